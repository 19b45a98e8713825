/* The client of a custom search, and any search played again. */
#include "api_handlers.h"
#include "api_util.h"
#include "db_search_read.h"
#include "driver.h"
#include "log.h"
#include "search_replay.h"
#include "searcher.h"
#include "shell.h"
#include "slow.h"
#include "waits.h"
#include <inttypes.h>
#include <string.h>

#define POLL_MS        60000
#define NOTED_MAX      10 /* in the log, of one request */
#define OPERATIONS_MAX 10000

void api_get_searcher_events(struct shell *sh, struct http_req *req)
{
    int64_t id;
    if (api_id(req, "experimentId", &id))
        waits_search(sh->waits, req, id, POLL_MS);
}

/* The operations that can be understood, a new reference; the others are passed over. */
static json_t *good_operations(int64_t exp_id, const json_t *all)
{
    json_t *good = json_array();
    size_t bad = 0;
    for (size_t i = 0; i < json_array_size(all); i++) {
        struct det_err err = {0};
        json_t *op = json_array_get(all, i);
        if (search_check_operation(op, &err) == 0)
            json_array_append(good, op);
        else if (++bad <= NOTED_MAX)
            log_warning("experiment %" PRId64 ": searcherOperations[%zu] is passed over: %s",
                        exp_id, i, err.text);
    }
    if (bad > NOTED_MAX)
        log_warning("experiment %" PRId64 ": %zu more searcherOperations are passed over", exp_id,
                    bad - NOTED_MAX);
    return good;
}

void api_post_searcher_operations(struct shell *sh, struct http_req *req)
{
    struct {
        json_t *operations, *event;
    } b = {0};
    static const struct wire_field fields[] = {
        {"searcherOperations", WIRE_ARRAY, 0, 0, NULL},
        {"triggeredByEvent", WIRE_OBJECT, sizeof(json_t *), 0, NULL}};
    struct det_err err;
    int64_t id, ack = 0;
    json_t *body;
    if (!api_id(req, "experimentId", &id) || !api_decode(req, fields, 2, &b, &body))
        return;
    const json_t *event_id = b.event ? wire_get(b.event, "id") : NULL;
    if (event_id && wire_i64(event_id, "triggeredByEvent.id", &ack, &err) < 0) {
        http_fail_err(req, &err);
    } else if (json_array_size(b.operations) > OPERATIONS_MAX) {
        http_fail(req, DET_ETOOBIG,
                  "searcherOperations: %d are the most of one request, and it "
                  "has %zu",
                  OPERATIONS_MAX, json_array_size(b.operations));
    } else {
        JSON_OWN good = good_operations(id, b.operations);
        struct core_event ev = {.kind = CORE_EV_SEARCH_OPS, .exp_id = id};
        ev.search.ack = ack > 0 ? ack : 0; /* -1: "inactive", which nobody queued */
        ev.search.operations = good;
        driver_post(sh->driver, &ev, api_reply_core, req);
    }
    json_decref(body);
}

/* ---- replay: read here, played on a worker thread ---- */

struct replay {
    struct slow_job job;
    struct http_req *req;
    char *config, *snapshot, *events, *trials; /* JSON texts; snapshot may be NULL */
    int64_t snapshot_seq;
    struct search_verdict verdict;
    struct det_err err;
    int rc;
};

static void replay_free(struct replay *p)
{
    free(p->config);
    free(p->snapshot);
    free(p->events);
    free(p->trials);
    free(p);
}

static json_t *read_text(const char *text, struct det_err *err)
{
    return json_parse(text, strlen(text), err);
}

static void replay_work(struct slow_job *j)
{
    struct replay *p = container_of(j, struct replay, job);
    JSON_OWN config = read_text(p->config, &p->err);
    JSON_OWN events = config ? read_text(p->events, &p->err) : NULL;
    JSON_OWN trials = events ? read_text(p->trials, &p->err) : NULL;
    JSON_OWN snapshot = trials && p->snapshot ? read_text(p->snapshot, &p->err) : NULL;
    p->rc = !trials || (p->snapshot && !snapshot) ? DET_ECORRUPT : 0;
    if (p->rc < 0)
        return;
    struct search_log log = {.config = config,
                             .events = events,
                             .trials = trials,
                             .snapshot = snapshot,
                             .snapshot_seq = p->snapshot_seq};
    p->rc = search_replay(&log, &p->verdict, &p->err);
}

static void replay_done(struct slow_job *j, int status)
{
    struct replay *p = container_of(j, struct replay, job);
    const struct search_verdict *v = &p->verdict;
    if (p->rc < 0) {
        http_fail(p->req, p->rc, "the log of the search: %s", p->err.text);
    } else {
        json_t *difference =
            v->equal ? NULL : json_make("{s:I, s:s}", "seq", (json_int_t)v->seq, "what", v->what);
        json_t *j =
            json_make("{s:b, s:I, s:I, s:s}", "equal", v->equal, "events", (json_int_t)v->events,
                      "trials", (json_int_t)v->trials, "sha256", v->sha256);
        json_set(j, "difference", difference);
        api_reply_json(p->req, j);
    }
    replay_free(p);
}

static void on_log(void *arg, const struct db_result *r)
{
    struct api_call *c = arg;
    if (api_missing(c, "experiment", r))
        return;
    struct replay *p = det_zalloc(sizeof *p);
    p->req = c->req;
    p->config = det_strdup(db_text(r, 0, SEARCH_CONFIG));
    if (!db_is_null(r, 0, SEARCH_SNAPSHOT))
        p->snapshot = det_strdup(db_text(r, 0, SEARCH_SNAPSHOT));
    p->snapshot_seq = db_i64(r, 0, SEARCH_SEQ);
    p->events = det_strdup(db_text(r, 0, SEARCH_EVENTS));
    p->trials = det_strdup(db_text(r, 0, SEARCH_TRIALS));
    p->job = (struct slow_job){.work = replay_work, .done = replay_done};
    slow_do_now(c->sh->loop, &p->job);
}

void api_replay_search(struct shell *sh, struct http_req *req)
{
    struct api_call *c = api_call(sh, req);
    if (api_id(req, "experimentId", &c->id))
        db_search_log(sh->db, c->id, on_log, c);
}
