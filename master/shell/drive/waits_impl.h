/* The inside of the long polls, shared by waits*.c. */
#ifndef SHELL_WAITS_IMPL_H
#define SHELL_WAITS_IMPL_H

#include "map.h"
#include "waits.h"
#include <uv.h>

enum wait_kind { WAIT_PREEMPT, WAIT_RENDEZVOUS, WAIT_GATHER, WAIT_SEARCH };

struct wait {
    struct wait *prev, *next; /* of the same allocation */
    struct waits *owner;
    enum wait_kind kind;
    struct http_req *req;
    char *alloc_id; /* of a search: what waits_search.c calls it */
    char *name;     /* container, or the gather's request uuid */
    json_t *data;   /* of a gather */
    int peers;
    void *arg; /* of a search */
    uv_timer_t timer;
    bool timed;
};

struct waits {
    struct shell *sh;
    struct map *by_alloc; /* allocation -> its first struct wait */
    size_t open;
    bool stopping;
};

/* Off the list; the request is answered by the caller. */
struct http_req *wait_end(struct wait *w);
struct wait *wait_add(struct waits *o, enum wait_kind kind, struct http_req *req,
                      const char *alloc_id, const char *name, int64_t timeout_ms);

#endif
