#include "ctl.h"

#include "buf.h"
#include "mem.h"
#include "vec.h"

#include <string.h>

#define LINE_MAX_BYTES 4096
#define PEERS_MAX      8

struct peer {
    uv_pipe_t pipe;
    struct ctl *ctl;
    struct buf in;
    char chunk[1024];
};
struct ctl {
    uv_pipe_t listener;
    struct ctl_handlers h;
    VEC(struct peer *) peers;
    char *state; /* the line of the present state */
    bool is_closing, is_listener_closed;
};
struct writing {
    uv_write_t req;
    char *text;
};

static void maybe_free(struct ctl *c)
{
    if (!c->is_closing || !c->is_listener_closed || c->peers.n > 0)
        return;
    vec_free(&c->peers);
    free(c->state);
    free(c);
}

static void on_peer_closed(uv_handle_t *h)
{
    struct peer *p = h->data;
    struct ctl *c = p->ctl;
    for (size_t i = 0; i < c->peers.n; i++)
        if (c->peers.v[i] == p) {
            vec_remove(&c->peers, i);
            break;
        }
    buf_finish(&p->in);
    free(p);
    maybe_free(c);
}

static void peer_close(struct peer *p)
{
    if (!uv_is_closing((uv_handle_t *)&p->pipe))
        uv_close((uv_handle_t *)&p->pipe, on_peer_closed);
}

static void on_written(uv_write_t *req, int status)
{
    struct writing *w = container_of(req, struct writing, req);
    free(w->text);
    free(w);
}

static void peer_write(struct peer *p, const char *text)
{
    struct writing *w = det_zalloc(sizeof *w);
    w->text = det_strdup(text);
    uv_buf_t b = uv_buf_init(w->text, (unsigned)strlen(w->text));
    if (uv_write(&w->req, (uv_stream_t *)&p->pipe, &b, 1, on_written) < 0)
        on_written(&w->req, -1);
}

static void on_command(struct ctl *c, const char *line, size_t len)
{
    JSON_OWN j = json_parse(line, len, NULL);
    int64_t sig = json_int(j, "signal", 0);
    if (sig > 0 && sig < 64 && c->h.on_signal)
        c->h.on_signal(c->h.arg, (int)sig);
    if (json_flag(j, "end", false) && c->h.on_end)
        c->h.on_end(c->h.arg);
    if (json_flag(j, "acked", false) && c->h.on_acked)
        c->h.on_acked(c->h.arg);
    if (json_flag(j, "stacks", false) && c->h.on_stacks)
        c->h.on_stacks(c->h.arg);
}

static void on_read(uv_stream_t *st, ssize_t n, const uv_buf_t *buf)
{
    struct peer *p = st->data;
    if (n < 0 || (n > 0 && p->in.len + (size_t)n > LINE_MAX_BYTES)) {
        peer_close(p);
        return;
    }
    buf_add(&p->in, buf->base, (size_t)n);
    for (char *nl; p->in.len > 0 && (nl = memchr(p->in.p, '\n', p->in.len)) != NULL;) {
        on_command(p->ctl, p->in.p, (size_t)(nl - p->in.p));
        buf_consume(&p->in, (size_t)(nl - p->in.p) + 1);
    }
}

static void on_alloc(uv_handle_t *h, size_t hint, uv_buf_t *buf)
{
    struct peer *p = h->data;
    *buf = uv_buf_init(p->chunk, sizeof p->chunk);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct ctl *c = listener->data;
    if (status < 0 || c->is_closing)
        return;
    struct peer *p = det_zalloc(sizeof *p);
    p->ctl = c;
    uv_pipe_init(listener->loop, &p->pipe, 0);
    p->pipe.data = p;
    vec_push(&c->peers, p);
    if (uv_accept(listener, (uv_stream_t *)&p->pipe) < 0 || c->peers.n > PEERS_MAX) {
        peer_close(p);
        return;
    }
    uv_read_start((uv_stream_t *)&p->pipe, on_alloc, on_read);
    if (c->state)
        peer_write(p, c->state);
}

int ctl_create(uv_loop_t *loop, int fd, const struct ctl_handlers *h, struct ctl **ret,
               struct det_err *err)
{
    struct ctl *c = det_zalloc(sizeof *c);
    c->h = *h;
    uv_pipe_init(loop, &c->listener, 0);
    c->listener.data = c;
    int rc = uv_pipe_open(&c->listener, fd);
    if (rc == 0)
        rc = uv_listen((uv_stream_t *)&c->listener, PEERS_MAX, on_connection);
    if (rc < 0) {
        ctl_close(c);
        return det_fail(err, DET_EIO, "the agent's socket: %s", uv_strerror(rc));
    }
    *ret = c;
    return 0;
}

static void on_listener_closed(uv_handle_t *h)
{
    struct ctl *c = h->data;
    c->is_listener_closed = true;
    maybe_free(c);
}

static void on_shut(uv_shutdown_t *req, int status)
{
    peer_close(req->data);
    free(req);
}

void ctl_close(struct ctl *c)
{
    if (!c)
        return;
    c->is_closing = true;
    uv_close((uv_handle_t *)&c->listener, on_listener_closed);
    for (size_t i = 0; i < c->peers.n; i++) {
        struct peer *p = c->peers.v[i];
        uv_shutdown_t *req = det_zalloc(sizeof *req);
        req->data = p;
        if (uv_is_closing((uv_handle_t *)&p->pipe) ||
            uv_shutdown(req, (uv_stream_t *)&p->pipe, on_shut) < 0) {
            free(req);
            peer_close(p);
        }
    }
}

/* Takes the reference of j. */
static void tell_state(struct ctl *c, json_t *j, enum link_state state, const json_t *marks)
{
    json_set(j, "state", json_string(link_state_name(state)));
    if (json_array_size(marks) > 0)
        json_set(j, "marks", json_incref((json_t *)marks));
    det_cleanup(freep) char *text = json_text(j);
    json_decref(j);
    free(c->state);
    c->state = det_asprintf("%s\n", text);
    for (size_t i = 0; i < c->peers.n; i++)
        if (!uv_is_closing((uv_handle_t *)&c->peers.v[i]->pipe))
            peer_write(c->peers.v[i], c->state);
}

void ctl_running(struct ctl *c, const struct link_silent *silent,
                 const struct link_unreached *unreached, const json_t *marks)
{
    json_t *j = json_object();
    if (silent->phase)
        json_set(j, "silent", link_silent_json(silent));
    if (unreached->text)
        json_set(j, "unreached", link_unreached_json(unreached));
    tell_state(c, j, LINK_RUNNING, marks);
}

void ctl_ended(struct ctl *c, const struct link_exit *e, const json_t *marks)
{
    json_t *j = json_object();
    json_set(j, "exit", link_exit_json(e));
    tell_state(c, j, LINK_ENDED, marks);
}
