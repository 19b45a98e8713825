/*
 * How long a connection may keep the server waiting, and who makes room when there are too many.
 * Private to http*.c. libmicrohttpd's time-out of a connection begins anew with every byte, so a
 * peer that sends one now and then would hold its descriptor for as long as it likes; and where
 * connections have different ones it looks at all of them each time, which with 20,000 idle ones
 * took all of a processor. So it has one for all, and this is what else there is:
 *
 * A new connection has 20 s to begin a request, an idle one 150 s for the next; a request that has
 * begun has 30 s, and a second more for each 32 KiB that came, and never 15 s without a byte. Then
 * its socket is shut down, which libmicrohttpd sees as the peer's end. When the server is nearly
 * full, each new connection ends the one that was not heard of for the longest time. Whose request
 * is in hand is never touched: strangers have none that lasts.
 */
#ifndef SHELL_HTTP_PEER_H
#define SHELL_HTTP_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum http_peer_state {
    PEER_NEW,     /* no request yet */
    PEER_READING, /* a request is coming in */
    PEER_IDLE,    /* between requests */
    PEER_BUSY,    /* a request is in hand */
    PEER_CUT,     /* shut down by us */
    PEER_STATES
};
struct http_peer {
    struct http_peer *next, *prev; /* of its state's list, the longest silent first */
    int fd;
    enum http_peer_state state;
    uint64_t since_ms, heard_ms; /* in this state; the last byte of a body, or since_ms */
    size_t bytes;                /* of the body, so far */
};
struct http_peers {
    struct {
        struct http_peer *first, *last;
    } lists[PEER_STATES];
    size_t count, room; /* room: how many there may be; 0: no bound */
};

struct http_peer *http_peer_add(struct http_peers *all, int fd, uint64_t now_ms);
void http_peer_remove(struct http_peers *all, struct http_peer *p); /* frees; NULL ok */
/* p may be NULL in all of these, and one that was cut stays so. */
void http_peer_begins(struct http_peers *all, struct http_peer *p, uint64_t now_ms);
void http_peer_sent(struct http_peers *all, struct http_peer *p, size_t bytes, uint64_t now_ms);
void http_peer_in_hand(struct http_peers *all, struct http_peer *p, uint64_t now_ms);
/* A request in hand has more of its body to come. */
void http_peer_goes_on(struct http_peers *all, struct http_peer *p, uint64_t now_ms);
void http_peer_idle(struct http_peers *all, struct http_peer *p, uint64_t now_ms);
void http_peer_cut(struct http_peers *all, struct http_peer *p, uint64_t now_ms);
/* The same of one that sends on, which is told by a reset: what is closed at a window of 0 bytes
 * stays at it, and its sender asks for more, ever more rarely, for 102 s. */
void http_peer_reset(struct http_peers *all, struct http_peer *p, uint64_t now_ms);
/* Cuts what has kept us waiting for too long. Every few seconds. */
void http_peers_sweep(struct http_peers *all, uint64_t now_ms);

/* How many connections the process can hold: raises its limit of descriptors as far as it may, and
 * leaves some for everything else. At most `most`. */
unsigned http_peers_max(unsigned most);

#endif
