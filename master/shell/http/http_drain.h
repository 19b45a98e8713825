/*
 * Bodies of refused requests. They are read and dropped, as an answer in the middle of one is lost
 * by many clients, but not as fast as strangers can send: all of them together have so many bytes
 * each few ms, beyond which their connections are not looked at, and one has no more than an
 * honest client can have to send. Private to http*.c.
 */
#ifndef SHELL_HTTP_DRAIN_H
#define SHELL_HTTP_DRAIN_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

struct http_drained { /* one of them; zeroed, lives as long as its request */
    struct http_drained *next;
    struct MHD_Connection *mhd; /* suspended while it waits, else NULL */
    size_t bytes;
};
struct http_drain {
    uv_timer_t timer;                  /* runs while somebody waits */
    struct http_drained *first, *last; /* they wait, in their order */
    size_t left;                       /* bytes of this turn */
    bool is_stopped;
    void (*on_turn)(void *arg); /* some were resumed */
    void *arg;
};
/* What one connection may send that is dropped; the longest body that any route takes fits. */
#define HTTP_DRAIN_MAX ((size_t)97 << 20)

void http_drain_init(struct http_drain *d, uv_loop_t *loop, void (*on_turn)(void *arg), void *arg);
/* n more bytes of one came, which may be suspended now. False: it is to be cut. */
bool http_drain_take(struct http_drain *d, struct http_drained *one, struct MHD_Connection *mhd,
                     size_t n);
/* Nobody waits any more, nor will. The timer is the caller's to close. */
void http_drain_stop(struct http_drain *d);

#endif
