#include "taskconn.h"

#include "buf.h"
#include "mem.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define LINE_MAX_BYTES 65536

struct taskconn {
    uv_pipe_t pipe;
    uv_connect_t connect;
    char alloc[LINK_ID_MAX + 1];
    struct taskconn_handlers h;
    struct buf in, waiting; /* read; to be written once connected */
    int dir_fd;
    char chunk[4096];
    bool is_connected, is_quiet;
    uint64_t killed_ms;
};
struct writing {
    uv_write_t req;
    char *text;
};

static void on_closed(uv_handle_t *h)
{
    struct taskconn *c = h->data;
    if (!c->is_quiet)
        c->h.on_gone(c->h.arg, c->alloc);
    det_closep(&c->dir_fd);
    buf_finish(&c->in);
    buf_finish(&c->waiting);
    free(c);
}

static void shut_pipe(struct taskconn *c)
{
    if (!uv_is_closing((uv_handle_t *)&c->pipe))
        uv_close((uv_handle_t *)&c->pipe, on_closed);
}

static void on_silent(struct taskconn *c, const json_t *j)
{
    struct link_silent s;
    bool is_silent = j && link_silent_decode(j, &s, NULL) == 0;
    c->h.on_silent(c->h.arg, c->alloc, is_silent ? &s : NULL);
}

static void on_unreached(struct taskconn *c, const json_t *j)
{
    struct link_unreached u;
    bool is = j && link_unreached_decode(j, &u, NULL) == 0;
    c->h.on_unreached(c->h.arg, c->alloc, is ? &u : NULL);
}

static void on_line(struct taskconn *c, const char *line, size_t len)
{
    struct link_exit e;
    JSON_OWN j = json_parse(line, len, NULL);
    const char *state = json_str(j, "state", "");
    if (c->is_quiet)
        return;
    if (json_arr(j, "marks"))
        c->h.on_marks(c->h.arg, c->alloc, json_arr(j, "marks"));
    on_silent(c, json_object_get(j, "silent"));
    on_unreached(c, json_object_get(j, "unreached"));
    if (strcmp(state, link_state_name(LINK_RUNNING)) == 0)
        c->h.on_running(c->h.arg, c->alloc);
    else if (strcmp(state, link_state_name(LINK_ENDED)) == 0 &&
             link_exit_decode(json_object_get(j, "exit"), &e, NULL) == 0) {
        c->killed_ms = 0;
        c->h.on_ended(c->h.arg, c->alloc, &e);
    }
}

static void on_read(uv_stream_t *st, ssize_t n, const uv_buf_t *buf)
{
    struct taskconn *c = st->data;
    if (n < 0 || (n > 0 && c->in.len + (size_t)n > LINE_MAX_BYTES)) {
        shut_pipe(c);
        return;
    }
    buf_add(&c->in, buf->base, (size_t)n);
    for (char *nl; c->in.len > 0 && (nl = memchr(c->in.p, '\n', c->in.len)) != NULL;) {
        on_line(c, c->in.p, (size_t)(nl - c->in.p));
        buf_consume(&c->in, (size_t)(nl - c->in.p) + 1);
    }
}

static void on_alloc(uv_handle_t *h, size_t hint, uv_buf_t *buf)
{
    struct taskconn *c = h->data;
    *buf = uv_buf_init(c->chunk, sizeof c->chunk);
}

static void on_written(uv_write_t *req, int status)
{
    struct writing *w = container_of(req, struct writing, req);
    free(w->text);
    free(w);
}

static void flush_waiting(struct taskconn *c)
{
    if (!c->is_connected || c->waiting.len == 0 || uv_is_closing((uv_handle_t *)&c->pipe))
        return;
    struct writing *w = det_zalloc(sizeof *w);
    uv_buf_t b = uv_buf_init(NULL, (unsigned)c->waiting.len);
    w->text = b.base = buf_steal(&c->waiting);
    if (uv_write(&w->req, (uv_stream_t *)&c->pipe, &b, 1, on_written) < 0)
        on_written(&w->req, -1);
}

static void on_connect(uv_connect_t *req, int status)
{
    struct taskconn *c = req->data;
    det_closep(&c->dir_fd);
    if (status < 0) {
        shut_pipe(c);
        return;
    }
    c->is_connected = true;
    uv_read_start((uv_stream_t *)&c->pipe, on_alloc, on_read);
    flush_waiting(c);
}

struct taskconn *taskconn_open(uv_loop_t *loop, const char *alloc, const char *path, int dir_fd,
                               const struct taskconn_handlers *h)
{
    struct taskconn *c = det_zalloc(sizeof *c);
    snprintf(c->alloc, sizeof c->alloc, "%s", alloc);
    c->h = *h;
    c->dir_fd = dir_fd;
    uv_pipe_init(loop, &c->pipe, 0);
    c->pipe.data = c->connect.data = c;
    uv_pipe_connect(&c->connect, &c->pipe, path, on_connect);
    return c;
}

void taskconn_close(struct taskconn *c)
{
    if (!c)
        return;
    c->is_quiet = true;
    shut_pipe(c);
}

void taskconn_signal(struct taskconn *c, int signal)
{
    if (signal == SIGKILL && c->killed_ms == 0)
        c->killed_ms = uv_now(c->pipe.loop);
    buf_addf(&c->waiting, "{\"signal\":%d}\n", signal);
    flush_waiting(c);
}

uint64_t taskconn_killed_ms(const struct taskconn *c)
{
    return c->killed_ms;
}

void taskconn_forget_kill(struct taskconn *c)
{
    c->killed_ms = 0;
}

void taskconn_stacks(struct taskconn *c)
{
    buf_add_str(&c->waiting, "{\"stacks\":true}\n");
    flush_waiting(c);
}

void taskconn_acked(struct taskconn *c)
{
    buf_add_str(&c->waiting, "{\"acked\":true}\n");
    flush_waiting(c);
}
