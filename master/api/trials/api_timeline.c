/* GET /trials/{id}/timeline */
#include "api_handlers.h"
#include "api_util.h"
#include "clk.h"
#include "db_timeline.h"
#include "shell.h"
#include "timeline.h"

static json_t *make_seconds(int64_t us)
{
    return us < 0 ? json_null() : json_double((double)us / 1e6);
}

static json_t *make_entry(const struct timeline_entry *e, int64_t first_us)
{
    json_t *j = json_make("{s:s,s:I,s:s,s:s,s:b}", "time", e->time, "runId", (json_int_t)e->run_id,
                          "kind", e->kind, "detail", e->detail, "ongoing", e->open);
    json_set(j, "node", e->node < 0 ? json_null() : json_integer(e->node));
    json_set(j, "offset", make_seconds(e->at_us > first_us ? e->at_us - first_us : 0));
    json_set(j, "duration", make_seconds(e->took_us));
    return j;
}

static void on_rows(void *arg, const struct db_result *r)
{
    struct api_call *c = arg;
    if (api_missing(c, "trial", r))
        return;
    size_t n = db_is_null(r, 0, LINE_KIND) ? 0 : (size_t)db_rows(r);
    det_cleanup(freep) struct timeline_entry *v = det_zalloc((n + 1) * sizeof *v);
    for (size_t i = 0; i < n; i++)
        v[i] = (struct timeline_entry){.at_us = db_i64(r, (int)i, LINE_AT),
                                       .run_id = db_i64(r, (int)i, LINE_RUN),
                                       .node = (int)db_i64(r, (int)i, LINE_NODE),
                                       .kind = db_text(r, (int)i, LINE_KIND),
                                       .duration_us = db_i64(r, (int)i, LINE_DURATION),
                                       .detail = db_text(r, (int)i, LINE_DETAIL),
                                       .time = db_text(r, (int)i, LINE_TIME)};
    timeline_durations(v, n, clk_wall_us());
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, make_entry(&v[i], v[0].at_us));
    api_reply_json(c->req, json_make("{s:I,s:o}", "trialId", (json_int_t)c->id, "events", list));
}

void api_get_trial_timeline(struct shell *sh, struct http_req *req)
{
    struct api_call *c = api_call(sh, req);
    if (api_id(req, "id", &c->id) && api_own_trial(req, c->id))
        db_timeline_read(sh->db, c->id, on_rows, c);
}
