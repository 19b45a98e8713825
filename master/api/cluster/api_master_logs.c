/*
 * The master's own log as a stream: the lines still held, then, when followed, each new one. Each
 * leadership's ids are above those of the one before, so that whoever asks again after a failover
 * takes no line for one that it has seen; where ids are not consecutive, there were others.
 */
#include "api_handlers.h"
#include "api_util.h"
#include "clk.h"
#include "db.h"
#include "logring.h"
#include "shell.h"
#include <string.h>

#define LINES_MAX                                                                                  \
    INT64_C(10000000000) /* of a leadership; 900,000 of them are exact in a double                 \
                          */

struct master_logs {
    struct shell *sh;
    struct http_stream *stream;
    int64_t next, stop; /* ids: the next to send, where to stop (INT64_MAX while following) */
    struct logring_watch *watch;
    uv_idle_t turn; /* sends in a turn of its own: a line may come from the middle of anything */
    bool over;
};

static void send_line(struct master_logs *m, int64_t id)
{
    const struct logring_line *l = logring_at(m->sh->logring, id);
    json_int_t told = db_epoch(m->sh->db) * LINES_MAX + id;
    char when[CLK_RFC3339_MAX];
    clk_format(l->wall_us, when);
    JSON_OWN j = json_make("{s:{s:I,s:o,s:s,s:s}}", "logEntry", "id", told, "message",
                           json_lossy(l->text, strlen(l->text)), "timestamp", when, "level",
                           wire_name_of(wire_log_level, (int)l->level + 1));
    struct buf out = BUF_INIT;
    json_write(&out, j);
    http_stream_result(m->stream, buf_str(&out), out.len);
    buf_finish(&out);
}

static void on_turn_closed(uv_handle_t *h)
{
    free(h->data);
}

static void logs_end(struct master_logs *m)
{
    if (m->over)
        return;
    m->over = true;
    logring_unwatch(m->watch);
    uv_close((uv_handle_t *)&m->turn, on_turn_closed);
    http_stream_end(m->stream);
}

static void on_turn(uv_idle_t *turn)
{
    struct master_logs *m = turn->data;
    const struct logring *ring = m->sh->logring;
    uv_idle_stop(turn);
    if (http_stream_is_gone(m->stream)) {
        logs_end(m);
        return;
    }
    if (m->next < logring_first(ring))
        m->next = logring_first(ring);
    while (m->next < logring_end(ring) && m->next < m->stop && !http_stream_is_full(m->stream))
        send_line(m, m->next++);
    if (m->next >= m->stop)
        logs_end(m);
}

static void wake_stream(void *arg)
{
    struct master_logs *m = arg;
    if (!m->over)
        uv_idle_start(&m->turn, on_turn);
}

/* A negative offset counts from the end; limit 0 is all. */
static void set_range(struct master_logs *m, int64_t offset, int64_t limit, bool follow)
{
    const struct logring *ring = m->sh->logring;
    int64_t first = logring_first(ring), end = logring_end(ring);
    m->next = offset < 0 ? end + (offset < first - end ? first - end : offset)
                         : first + (offset > end - first ? end - first : offset);
    m->stop = follow ? INT64_MAX : end;
    if (limit && limit < end - m->next)
        m->stop = m->next + limit;
}

void api_master_logs(struct shell *sh, struct http_req *req)
{
    int64_t offset, limit;
    int follow;
    if (!api_query_i64(req, "offset", 0, &offset) || !api_query_i64(req, "limit", 0, &limit) ||
        !api_query_flag(req, "follow", &follow))
        return;
    if (limit < 0 || (limit && follow == 1)) {
        http_fail(req, DET_EINVAL,
                  limit < 0 ? "limit must not be negative" : "limit and follow exclude each other");
        return;
    }
    struct master_logs *m = det_zalloc(sizeof *m);
    m->sh = sh;
    set_range(m, offset, limit, follow == 1);
    uv_idle_init(sh->loop, &m->turn);
    m->turn.data = m;
    if (follow == 1)
        m->watch = logring_watch(sh->logring, wake_stream, m);
    m->stream = http_stream_begin(req, NULL, wake_stream, m);
    wake_stream(m);
}
