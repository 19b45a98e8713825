/* Streams of stored metrics: chunks of at most 1000 reports, ordered by total batches. */
#include "api_handlers.h"
#include "api_util.h"
#include "db_doc.h"
#include "db_trial_read.h"
#include "shell.h"
#include <string.h>

enum { CHUNK = 1000 };

struct metrics_stream {
    struct shell *sh;
    struct http_stream *stream;
    char *trial_ids, *group;
    int64_t steps, id; /* of the last row sent */
    bool busy, over;
};

static void metrics_end(struct metrics_stream *m)
{
    m->over = true;
    if (m->busy)
        return;
    http_stream_end(m->stream);
    free(m->trial_ids);
    free(m->group);
    free(m);
}

static void on_chunk(void *arg, const struct db_result *r);

static void metrics_next(struct metrics_stream *m)
{
    if (m->busy || m->over || http_stream_is_full(m->stream))
        return;
    m->busy = true;
    db_metrics_read(m->sh->db, m->trial_ids, m->group, m->steps, m->id, on_chunk, m);
}

static void chunk_write(struct metrics_stream *m, const struct db_result *r)
{
    struct buf out = BUF_INIT;
    buf_add_str(&out, "{\"metrics\":[");
    for (int i = 0; i < db_rows(r); i++) {
        buf_add_str(&out, i ? ",{" : "{");
        db_put_members(&out, r, i, REPORT_MEMBERS, -1);
        buf_add_ch(&out, '}');
        m->steps = db_i64(r, i, REPORT_STEPS);
        m->id = db_i64(r, i, REPORT_ID);
    }
    buf_add_str(&out, "]}");
    http_stream_result(m->stream, out.p, out.len);
    buf_finish(&out);
}

static void on_chunk(void *arg, const struct db_result *r)
{
    struct metrics_stream *m = arg;
    m->busy = false;
    if (!m->over && db_rc(r) < 0)
        http_stream_error(m->stream, db_rc(r), db_error(r)->text);
    else if (!m->over && db_rows(r) > 0)
        chunk_write(m, r);
    if (m->over || db_rc(r) < 0 || db_rows(r) < CHUNK)
        metrics_end(m);
    else
        metrics_next(m);
}

static void on_wake(void *arg)
{
    struct metrics_stream *m = arg;
    if (http_stream_is_gone(m->stream))
        metrics_end(m);
    else
        metrics_next(m);
}

static void metrics_stream(struct shell *sh, struct http_req *req, const char *group)
{
    const char *ids;
    if (!api_query_ints(req, "trialIds", &ids))
        return;
    if (!ids) {
        http_fail(req, DET_EINVAL, "trialIds: at least one is required");
        return;
    }
    struct metrics_stream *m = det_zalloc(sizeof *m);
    *m = (struct metrics_stream){.sh = sh,
                                 .trial_ids = det_strdup(ids),
                                 .group = group && *group ? det_strdup(group) : NULL,
                                 .steps = -1};
    m->stream = http_stream_begin(req, NULL, on_wake, m);
    metrics_next(m);
}

void api_get_metrics(struct shell *sh, struct http_req *req)
{
    metrics_stream(sh, req, http_query(req, "group"));
}

void api_get_training_metrics(struct shell *sh, struct http_req *req)
{
    metrics_stream(sh, req, "training");
}

void api_get_validation_metrics(struct shell *sh, struct http_req *req)
{
    metrics_stream(sh, req, "validation");
}
