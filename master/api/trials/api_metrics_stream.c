/* Streams of stored metrics: chunks of at most 1000 reports, ordered by total batches. */
#include "api_handlers.h"
#include "api_util.h"
#include "db_doc.h"
#include "db_trial_read.h"
#include "shell.h"
#include <string.h>

/* An answer of less than GATHER goes out in one piece: a stream's are small. */
enum { CHUNK = 1000, GATHER = 1 << 20 };

struct metrics_stream {
    struct shell *sh;
    struct http_req *req;       /* until it is answered */
    struct http_stream *stream; /* NULL: not yet */
    struct buf gathered;        /* until then */
    char *trial_ids, *group;
    int64_t steps, id; /* of the last row sent */
    bool busy, over;
};

static void metrics_end(struct metrics_stream *m)
{
    m->over = true;
    if (m->busy)
        return;
    if (m->stream)
        http_stream_end(m->stream);
    else if (m->req)
        http_reply_with(m->req, &(struct http_answer){0}, m->gathered.p, m->gathered.len);
    buf_finish(&m->gathered);
    free(m->trial_ids);
    free(m->group);
    free(m);
}

static void on_chunk(void *arg, const struct db_result *r);

static void metrics_next(struct metrics_stream *m)
{
    if (m->busy || m->over || (m->stream && http_stream_is_full(m->stream)))
        return;
    m->busy = true;
    db_metrics_read(m->sh->db, m->trial_ids, m->group, m->steps, m->id, on_chunk, m);
}

static void on_wake(void *arg)
{
    struct metrics_stream *m = arg;
    if (http_stream_is_gone(m->stream))
        metrics_end(m);
    else
        metrics_next(m);
}

static void chunk_put(struct metrics_stream *m, const struct db_result *r)
{
    struct buf *out = &m->gathered;
    buf_add_str(out, "{\"result\":{\"metrics\":");
    db_put_rows(out, r);
    buf_add_str(out, "}}\n");
    m->steps = db_i64(r, db_rows(r) - 1, REPORT_STEPS);
    m->id = db_i64(r, db_rows(r) - 1, REPORT_ID);
}

static void gathered_send(struct metrics_stream *m)
{
    if (!m->stream)
        m->stream = http_stream_begin(m->req, NULL, on_wake, m);
    m->req = NULL;
    http_stream_write(m->stream, m->gathered.p, m->gathered.len);
    buf_clear(&m->gathered);
}

static void on_chunk(void *arg, const struct db_result *r)
{
    struct metrics_stream *m = arg;
    bool failed = db_rc(r) < 0, last = failed || db_rows(r) < CHUNK;
    m->busy = false;
    if (!m->over && !failed && db_rows(r) > 0)
        chunk_put(m, r);
    if (!m->over && (m->stream || failed || (!last && m->gathered.len >= GATHER)))
        gathered_send(m);
    if (!m->over && failed)
        http_stream_error(m->stream, db_rc(r), db_error(r)->text);
    if (m->over || last)
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
                                 .req = req,
                                 .trial_ids = det_strdup(ids),
                                 .group = group && *group ? det_strdup(group) : NULL,
                                 .steps = -1};
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
