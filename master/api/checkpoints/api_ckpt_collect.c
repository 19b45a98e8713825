/* The retention policy by hand: what it would let go, and why the others stay. */
#include "access.h"
#include "api_handlers.h"
#include "api_util.h"
#include "gc.h"
#include "shell.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

struct collection {
    struct shell *sh;
    struct http_req *req;
    int64_t exp_id;
    bool dry_run;
    struct gc_keep keep; /* of a preview; negative: the experiment's own */
    char *metric_name;   /* of a preview, as JSON */
};

static json_t *make_entry(const struct db_result *r, int i, const struct gc_checkpoint *v)
{
    json_t *j = json_make("{s:s,s:I,s:I,s:I,s:b,s:s}", "uuid", v->uuid, "experimentId",
                          (json_int_t)db_i64(r, i, GC_EXP), "trialId", (json_int_t)v->trial_id,
                          "stepsCompleted", (json_int_t)v->steps, "deleted", v->why == 0, "why",
                          gc_why_text(v->why));
    det_cleanup(freep) char *bytes = det_asprintf("%" PRId64, db_i64(r, i, GC_BYTES));
    json_set(j, "bytes", json_string(bytes));
    json_set(j, "metric", isnan(v->metric) ? json_null() : json_double(v->metric));
    return j;
}

static void on_judged(void *arg, const struct db_result *r)
{
    struct collection *c = arg;
    if (api_failed(c->req, r))
        return;
    if (c->exp_id && db_rows(r) == 0) {
        http_fail(c->req, DET_ENOENT, "experiment %" PRId64 " not found", c->exp_id);
        return;
    }
    if (c->exp_id && !c->dry_run && db_bool(r, 0, GC_LIVE)) {
        http_fail(c->req, DET_ESTATE,
                  "experiment %" PRId64 " is not finished: its policy is applied when it ends",
                  c->exp_id);
        return;
    }
    det_cleanup(freep) struct gc_checkpoint *v = gc_judge(r, &c->keep);
    json_t *list = json_array();
    int64_t bytes = 0, count = 0;
    for (int i = 0; i < db_rows(r); i++) {
        if (!*v[i].uuid)
            continue;
        json_array_append_new(list, make_entry(r, i, &v[i]));
        count += v[i].why == 0;
        bytes += v[i].why == 0 ? db_i64(r, i, GC_BYTES) : 0;
    }
    if (!c->dry_run)
        gc_let_go(c->sh, r, v);
    det_cleanup(freep) char *sum = det_asprintf("%" PRId64, bytes);
    api_reply_json(c->req, json_make("{s:o,s:I,s:s,s:b}", "checkpoints", list, "deletedCount",
                                     (json_int_t)count, "deletedBytes", sum, "dryRun", c->dry_run));
}

static void begin_collection(void *arg)
{
    struct collection *c = arg;
    db_gc_list(c->sh->db, &(struct db_gc_scope){.exp_id = c->exp_id}, on_judged, c);
}

struct collect_body {
    int64_t exp_id;
    int dry_run;
    struct gc_keep keep;
};
static const struct wire_field collect_fields[] = {
    {"experimentId", WIRE_I32, offsetof(struct collect_body, exp_id), 0, NULL},
    {"dryRun", WIRE_BOOL, offsetof(struct collect_body, dry_run), 0, NULL},
    {"saveExperimentBest", WIRE_I32, offsetof(struct collect_body, keep.experiment_best), 0, NULL},
    {"saveTrialBest", WIRE_I32, offsetof(struct collect_body, keep.trial_best), 0, NULL},
    {"saveTrialLatest", WIRE_I32, offsetof(struct collect_body, keep.trial_latest), 0, NULL},
};

void api_collect_checkpoints(struct shell *sh, struct http_req *req)
{
    struct collect_body b = {.keep = {-1, -1, -1, false}};
    JSON_OWN body = NULL;
    if (!api_decode(req, collect_fields, DET_ARRAY_LEN(collect_fields), &b, &body))
        return;
    bool preview =
        b.keep.experiment_best >= 0 || b.keep.trial_best >= 0 || b.keep.trial_latest >= 0;
    if (preview && b.dry_run != 1) {
        http_fail(req, DET_EINVAL,
                  "other numbers than the experiment's own need dryRun; "
                  "PATCH /api/v1/experiments/{id} changes them");
        return;
    }
    struct collection *c = http_mem(req, sizeof *c);
    *c = (struct collection){.sh = sh,
                             .req = req,
                             .exp_id = b.exp_id > 0 ? b.exp_id : 0,
                             .dry_run = b.dry_run == 1,
                             .keep = b.keep};
    if (c->dry_run)
        begin_collection(c);
    else
        access_ask_one(req,
                       &(struct access_one){&rules_all[ROUTE_collect_checkpoints], SUBJECT_EXP,
                                            begin_collection, c},
                       c->exp_id);
}

/* ---- GET /experiments/{id}/preview_gc ---- */

static void on_docs(void *arg, const struct db_result *r)
{
    struct collection *c = arg;
    if (api_failed(c->req, r))
        return;
    struct buf out = BUF_INIT;
    buf_add_str(&out, "{\"checkpoints\":");
    buf_add(&out, db_text(r, 0, 0), db_text_len(r, 0, 0));
    buf_addf(&out, ",\"metric_name\":%s}", c->metric_name);
    http_reply_buf(c->req, 200, &out);
    buf_finish(&out);
}

static char *judge_anew(const struct collection *c, const struct db_result *r)
{
    det_cleanup(freep) struct gc_checkpoint *v = gc_judge(r, &c->keep);
    JSON_OWN go = json_array();
    for (int i = 0; i < db_rows(r); i++)
        if (v[i].why == 0 && *v[i].uuid)
            json_array_append_new(go, json_string(v[i].uuid));
    return json_text(go);
}

static bool is_same_keep(const struct gc_keep *a, const struct gc_keep *b)
{
    return a->experiment_best == b->experiment_best && a->trial_best == b->trial_best &&
           a->trial_latest == b->trial_latest;
}

/* What would go, as a JSON array; caller frees. Many may ask about one large experiment at once: it
 * is judged once for who asks with the same numbers as the first, which stand before it. */
static char *judge_shared(const struct collection *c, const struct db_result *r)
{
    struct buf *made = &db_made(r)->b;
    struct gc_keep had;
    if (made->len > sizeof had) {
        memcpy(&had, made->p, sizeof had);
        if (is_same_keep(&had, &c->keep))
            return det_strdup(made->p + sizeof had);
    }
    char *text = judge_anew(c, r);
    if (made->len == 0) {
        buf_add(made, &c->keep, sizeof c->keep);
        buf_add(made, text, strlen(text) + 1);
    }
    return text;
}

static void on_previewed(void *arg, const struct db_result *r)
{
    struct collection *c = arg;
    if (api_failed(c->req, r))
        return;
    if (db_rows(r) == 0) {
        http_fail(c->req, DET_ENOENT, "experiment %" PRId64 " not found", c->exp_id);
        return;
    }
    JSON_OWN name = json_string(db_text(r, 0, GC_METRIC_NAME));
    det_cleanup(freep) char *metric = json_text(name), *uuids = judge_shared(c, r);
    c->metric_name = http_strdup(c->req, metric);
    db_gc_docs(c->sh->db, uuids, on_docs, c);
}

void api_preview_gc(struct shell *sh, struct http_req *req)
{
    struct collection *c = http_mem(req, sizeof *c);
    *c = (struct collection){.sh = sh, .req = req};
    struct gc_keep *k = &c->keep;
    if (!api_id(req, "id", &c->exp_id) ||
        !api_query_i64(req, "save_experiment_best", -1, &k->experiment_best) ||
        !api_query_i64(req, "save_trial_best", -1, &k->trial_best) ||
        !api_query_i64(req, "save_trial_latest", -1, &k->trial_latest))
        return;
    db_gc_list(sh->db, &(struct db_gc_scope){.exp_id = c->exp_id, .is_shown = true}, on_previewed,
               c);
}
