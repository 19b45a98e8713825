#include "large.h"

#include "mem.h"
#include "shell.h"
#include "slow.h"

#include <string.h>

struct reading {
    struct slow_job job;
    struct http_req *req; /* NULL: it has ended, and this lets go of what was read */
    enum route_id route;
    void (*go_in)(struct http_req *req);
    struct large large;
    int rc;
    struct det_err err;
};

json_t *report_cut(const struct buf *body, size_t path, struct json_span *ret_batches,
                   struct det_err *err)
{
    static const struct json_step steps[] = {
        {"metrics", "metrics"}, {"metrics", "metrics"}, {"batchMetrics", "batch_metrics"}};
    size_t skip = DET_ARRAY_LEN(steps) - path;
    det_cleanup(buf_finish) struct buf rest = BUF_INIT;
    const struct buf *text = &rest;
    if (json_cut(body->p, body->len, steps + skip, path, ret_batches) && ret_batches->len >= 3) {
        json_cut_rest(body->p, body->len, ret_batches, &rest);
    } else { /* none, or none to speak of */
        *ret_batches = (struct json_span){0};
        text = body;
    }
    if (text->len <= REPORT_REST_MAX)
        return json_parse(text->p, text->len, err);
    det_ignore(det_fail(err, DET_ETOOBIG,
                        "beside its batchMetrics a report may have %zu bytes, and this has %zu",
                        REPORT_REST_MAX, text->len),
               "told by NULL");
    return NULL;
}

static json_t *read_body(const struct reading *r, struct large *l, struct det_err *err)
{
    const struct buf *body = &r->req->body;
    enum route_id route = r->route;
    if (route == ROUTE_post_metrics)
        return report_cut(body, 3, &l->batches, err);
    if (route == ROUTE_post_training_metrics || route == ROUTE_post_validation_metrics)
        return report_cut(body, 2, &l->batches, err);
    if (route == ROUTE_post_task_logs || route == ROUTE_post_task_logs_plain)
        return json_parse_nul(body->p, body->len, err);
    return json_parse(body->p, body->len, err);
}

static void read_large(struct slow_job *j)
{
    struct reading *r = container_of(j, struct reading, job);
    if (!r->req) {
        json_decref(r->large.json);
        return;
    }
    r->large.json = read_body(r, &r->large, &r->err);
    r->rc = r->large.json ? 0 : r->err.code == DET_ETOOBIG ? DET_ETOOBIG : DET_EINVAL;
}

static void on_dropped(struct slow_job *j, int status)
{
    struct reading *r = container_of(j, struct reading, job);
    if (status < 0)
        json_decref(r->large.json);
    free(r);
}

/* The request has ended. */
static void drop_reading(struct shell *sh, void *read)
{
    struct reading *r = read;
    r->req = NULL;
    r->job.done = on_dropped;
    if (!sh->large || slow_push_first(sh->large, &r->job) < 0)
        on_dropped(&r->job, -1);
}

static void on_read(struct slow_job *j, int status)
{
    struct reading *r = container_of(j, struct reading, job);
    struct http_req *req = r->req;
    http_keep(req, r, drop_reading);
    if (status < 0)
        http_fail(req, DET_EUNAVAIL, "the master is stopping");
    else if (r->rc < 0)
        http_fail(req, r->rc, "body: %s", r->err.text);
    else
        r->go_in(req);
}

void large_read(struct http_req *req, enum route_id route, void (*go_in)(struct http_req *req))
{
    struct reading *r = det_zalloc(sizeof *r);
    *r = (struct reading){
        .job = {.work = read_large, .done = on_read}, .req = req, .route = route, .go_in = go_in};
    if (slow_push(req->sh->large, &r->job) == 0)
        return;
    free(r);
    http_fail(req, DET_EUNAVAIL, "too many large requests wait to be read; try again");
}

const struct large *large_body(const struct http_req *req)
{
    const struct reading *r = req->kept;
    return r ? &r->large : NULL;
}
