/*
 * How long a connection may keep the server waiting for a request. libmicrohttpd's one time-out
 * begins anew with every byte, so a peer that sends one now and then, or half a request, would hold
 * its descriptor for as long as it likes. Private to http*.c.
 *
 * A new connection has 20 s to begin a request, an idle one 150 s for the next; a request that has
 * begun has 30 s, and a second more for each 32 KiB that came. Then its socket is shut down, which
 * libmicrohttpd sees as the peer's end.
 */
#ifndef SHELL_HTTP_PEER_H
#define SHELL_HTTP_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

struct http_peer {
    struct http_peer *next, **link;
    int fd;
    uint64_t since_ms; /* waiting since then; 0: a request is in hand */
    size_t bytes;      /* of the body, so far */
    bool is_new, is_reading;
};
struct http_peers {
    struct http_peer *head;
    uv_loop_t *loop;
};

struct http_peer *http_peer_add(struct http_peers *all, int fd);
void http_peer_remove(struct http_peer *p); /* frees; NULL ok */
/* p may be NULL in all of these. */
void http_peer_begins(struct http_peers *all, struct http_peer *p); /* the request line is there */
void http_peer_sent(struct http_peer *p, size_t bytes);
void http_peer_in_hand(struct http_peer *p); /* the request is whole */
void http_peer_idle(struct http_peers *all, struct http_peer *p);
/* Shuts down what has kept us waiting for too long. Every few seconds. */
void http_peers_sweep(struct http_peers *all);

/* How many connections the process can hold: raises its limit of descriptors as far as it may, and
 * leaves some for everything else. At most `most`. */
unsigned http_peers_max(unsigned most);

#endif
