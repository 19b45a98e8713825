#include "logship.h"

#include "log.h"

#include <stdlib.h>

#define GATHER_MS      50
#define RETRY_FIRST_MS 200
#define RETRY_MAX_MS   5000

struct logship {
    struct client_uv *http;
    struct logspool *spool;
    struct client_uv_call *call; /* NULL: none under way */
    uv_timer_t timer;
    uint64_t bytes; /* of the request under way */
    uint64_t retry_ms;
    void (*on_empty)(void *arg), (*on_room)(void *arg);
    void *empty_arg, *room_arg;
    bool is_closing;
};

static void send_batch(struct logship *s);

static void on_timer(uv_timer_t *t)
{
    send_batch(container_of(t, struct logship, timer));
}

static void arm_timer(struct logship *s, uint64_t ms)
{
    uv_timer_start(&s->timer, on_timer, ms, 0);
}

static void tell_empty(struct logship *s)
{
    void (*fn)(void *arg) = s->on_empty;
    s->on_empty = NULL;
    if (fn)
        fn(s->empty_arg);
}

/* Refused for good (4xx): nobody will ever take these lines, so they must not block those behind.
 */
static bool is_refused(int rc)
{
    return rc == DET_EINVAL || rc == DET_ENOENT || rc == DET_EPERM || rc == DET_EAUTH ||
           rc == DET_ESTALE || rc == DET_ETOOBIG || rc == DET_ESTATE || rc == DET_EEXIST;
}

static void on_sent(void *arg, int rc, const struct client_resp *resp, const struct det_err *err)
{
    struct logship *s = arg;
    s->call = NULL;
    if (rc < 0 && !is_refused(rc)) {
        s->retry_ms = s->retry_ms ? s->retry_ms * 2 : RETRY_FIRST_MS;
        s->retry_ms = s->retry_ms > RETRY_MAX_MS ? RETRY_MAX_MS : s->retry_ms;
        arm_timer(s, s->retry_ms);
        return;
    }
    if (rc < 0)
        log_warning("the master refuses log lines: %s", err->text);
    s->retry_ms = 0;
    logspool_sent(s->spool, s->bytes);
    if (s->on_room)
        s->on_room(s->room_arg);
    send_batch(s);
}

static void send_batch(struct logship *s)
{
    det_cleanup(buf_finish) struct buf body = BUF_INIT;
    struct det_err err;
    if (s->call)
        return;
    if (logspool_unsent(s->spool) == 0 || logspool_batch(s->spool, &body, &s->bytes, &err) < 0 ||
        s->bytes == 0) {
        tell_empty(s);
        return;
    }
    struct client_req req = {
        .method = "POST", .path = "/api/v1/task/logs", .body = body.p, .body_len = body.len};
    s->call = client_uv_start(s->http, &req, on_sent, s);
}

struct logship *logship_create(uv_loop_t *loop, struct client_uv *http, struct logspool *spool)
{
    struct logship *s = det_zalloc(sizeof *s);
    s->http = http;
    s->spool = spool;
    uv_timer_init(loop, &s->timer);
    return s;
}

static void on_closed(uv_handle_t *h)
{
    free(container_of((uv_timer_t *)h, struct logship, timer));
}

void logship_close(struct logship *s)
{
    if (!s)
        return;
    client_uv_cancel(s->call);
    uv_close((uv_handle_t *)&s->timer, on_closed);
}

void logship_kick(struct logship *s)
{
    if (!s->call && !uv_is_active((uv_handle_t *)&s->timer))
        arm_timer(s, GATHER_MS);
}

void logship_when_empty(struct logship *s, void (*on_empty)(void *arg), void *arg)
{
    s->on_empty = on_empty;
    s->empty_arg = arg;
    if (on_empty && !s->call && s->retry_ms == 0)
        arm_timer(s, 0);
}

void logship_on_room(struct logship *s, void (*on_room)(void *arg), void *arg)
{
    s->on_room = on_room;
    s->room_arg = arg;
}
