/* An HTTP server for tests of clients: one thread, scripted answers, one a connection. */
#ifndef TESTS_SCRIPTED_SERVER_H
#define TESTS_SCRIPTED_SERVER_H

#include "buf.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct server {
    int fd, port;
    pthread_t thread;
    const char *const *answers; /* ends in NULL; "": the connection ends without one */
    struct buf seen;            /* the requests */
    bool repeat;                /* the last answer, for ever */
    atomic_int n;               /* requests so far: may be read while it runs */
    bool hold;                  /* keep the last connection open until the client closes it */
};

/* Listens on a free port; s is zeroed but for `hold` and `repeat`. */
void server_start(struct server *s, const char *const *answers);
void server_end(struct server *s);

#endif
