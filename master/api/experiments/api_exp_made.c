#include "api_exp_made.h"

#include "api_util.h"
#include "clk.h"

#include <inttypes.h>
#include <string.h>

json_t *exp_made_zero(json_t *config)
{
    json_t *j =
        json_make("{s:i,s:s,s:[],s:n,s:n,s:s,s:b,s:i,s:[],s:s,s:i,s:s,s:s,s:s,s:s}", "id", 0,
                  "description", "", "labels", "startTime", "endTime", "state", "STATE_UNSPECIFIED",
                  "archived", 0, "numTrials", 0, "trialIds", "displayName", "", "userId", 0,
                  "username", "", "resourcePool", "", "searcherType", "", "searcherMetric", "");
    json_t *rest =
        json_make("{s:s,s:s,s:s,s:n,s:n,s:i,s:s,s:i,s:s,s:b,s:o,s:s,s:i,s:s,s:i,s:b}", "name", "",
                  "notes", "", "jobId", "", "forkedFrom", "progress", "projectId", 0, "projectName",
                  "", "workspaceId", 0, "workspaceName", "", "parentArchived", 0, "config",
                  json_incref(config), "originalConfig", "", "projectOwnerId", 0, "checkpointSize",
                  "0", "checkpointCount", 0, "unmanaged", 0);
    json_object_update_new(j, rest);
    return j;
}

static void put_text(struct buf *out, const char *key, const char *value)
{
    buf_addf(out, ",\"%s\":", key);
    json_write_string(out, value ? value : "", value ? strlen(value) : 0);
}

/* As SQL's api_time(), which always has the fraction. */
static void put_start(struct buf *out, int64_t us)
{
    char text[CLK_RFC3339_MAX];
    clk_format(us - us % 1000000, text);
    buf_addf(out, ",\"startTime\":\"%.*s.%06dZ\"", (int)strlen(text) - 1, text,
             (int)(us % 1000000));
}

static void put_trials(struct buf *out, const struct core *core, int64_t id)
{
    det_cleanup(freep) int64_t *ids = NULL;
    size_t n = core_exp_trials(core, id, &ids);
    buf_addf(out, ",\"numTrials\":%zu,\"trialIds\":[", n);
    for (size_t i = 0; i < n; i++)
        buf_addf(out, "%s%" PRId64, i ? "," : "", ids[i]);
    buf_add_ch(out, ']');
}

static void put_of_config(struct buf *out, const struct exp_made *m, const char *config)
{
    const struct expconf *conf = m->conf;
    put_text(out, "name", conf->name);
    put_text(out, "description", conf->description);
    put_text(out, "searcherType", json_str(json_obj(conf->config, "searcher"), "name", ""));
    put_text(out, "searcherMetric", conf->metric);
    buf_add_str(out, ",\"labels\":");
    if (json_is_array(conf->labels))
        json_write(out, conf->labels);
    else
        buf_add_str(out, "[]");
    buf_addf(out, ",\"modelDefinitionSize\":%zu,\"config\":", m->model_def_len);
    buf_add_str(out, config);
    put_text(out, "originalConfig", m->original_config);
}

static void put_of_core(struct buf *out, struct shell *sh, const struct core_exp_view *v)
{
    buf_addf(out, "{\"id\":%" PRId64 ",\"state\":\"" API_STATE "%s\"", v->id,
             api_exp_state(sh, v->id, exp_state_text(v->state)));
    put_start(out, v->submitted_us);
    put_trials(out, api_core(sh), v->id);
    put_text(out, "jobId", v->job_id);
    put_text(out, "resourcePool", v->pool);
    buf_add_str(out, ",\"progress\":");
    if (v->progress < 0)
        buf_add_str(out, "null");
    else
        json_write_finite(out, v->progress);
}

bool exp_made_put(struct buf *out, struct shell *sh, const struct exp_made *m)
{
    struct core_exp_view v;
    if (!core_exp_get(api_core(sh), m->id, &v))
        return false;
    put_of_core(out, sh, &v);
    put_of_config(out, m, v.config);
    buf_add_ch(out, ',');
    buf_add(out, m->place + 1, strlen(m->place) - 2); /* an object, never empty */
    buf_add_str(out, ",\"endTime\":null,\"forkedFrom\":null,\"notes\":\"\",\"archived\":false,"
                     "\"checkpointSize\":\"0\",\"checkpointCount\":0,\"unmanaged\":false}");
    return true;
}
