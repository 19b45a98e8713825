/*
 * How ranks find each other: a small key-value store over TCP, served by a thread of rank 0 and
 * gone with it. After the rendezvous the connections stay, silent: that is how rank 0 knows which
 * process died when a collective breaks.
 *
 * Wire: a frame is {u32 op, u32 key bytes, u32 value bytes} in little-endian order, key, value. The
 * first frame of a connection is HELLO, its value the rank and the hash of the shared secret;
 * anything else, another secret, a length out of bounds or a rank that is there already ends the
 * connection. A rank that was there and left is told to come again: it is ahead of rank 0, and this
 * group is about to give its port to the next one.
 */
#ifndef COMM_STORE_H
#define COMM_STORE_H

#include "buf.h"
#include "comm_impl.h"
#include "det/err.h"
#include "hash.h"
#include <stdbool.h>
#include <stdint.h>

#define COMM_STORE_KEY_MAX   256
#define COMM_STORE_VALUE_MAX (1u << 20)
#define COMM_STORE_RANKS_MAX 4096
#define COMM_STORE_TOLD_MAX  1024
#define COMM_STORE_REFUSED   "refused"
#define COMM_STORE_LATER     "later"

enum comm_store_op {
    COMM_STORE_HELLO = 1, /* value: struct comm_store_hello; answered by VALUE: "" when all is well,
                             COMM_STORE_REFUSED or COMM_STORE_LATER before the connection ends */
    COMM_STORE_PUT,       /* key, value; no answer */
    COMM_STORE_GET,       /* key; answered by VALUE once the key is there, by LOST where it is not
                             and a rank is gone: whoever was to put it may be that one */
    COMM_STORE_VERDICT,   /* value: u32 ms; answered by VALUE: a text that names the lost ranks */
    COMM_STORE_LEAVE,     /* value: why; answered by REASON */
    COMM_STORE_LEFT,      /* answered by REASON */
    COMM_STORE_GONE,      /* answered by VALUE: "rank 2 is gone", or nothing */
    COMM_STORE_VALUE,     /* key empty */
    COMM_STORE_REASON,    /* key empty; value: "rank 1: why" of the first that left, or nothing;
                             the others get it unasked, as it leaves */
    COMM_STORE_LOST,      /* key empty; value as of GONE */
    COMM_STORE_DROP,      /* rank 0's: all keys that begin with this one are gone; no answer */
    COMM_STORE_TROUBLE    /* value: what this rank could not do; no answer. Others get the first
                             one, "rank 1: WHAT", unasked before the answer to each GONE */
};

struct comm_store_frame {
    uint32_t op, key_bytes, value_bytes;
};
struct comm_store_hello {
    uint32_t rank;
    char secret[HASH_HEX_MAX];
};

struct comm_store_options {
    const char *host; /* of rank 0 */
    int port, rank, size;
    const char *secret;
    int timeout_ms; /* for the server to come up */
    /* The server's, as comm_options has them. */
    int (*on_unheard)(void *arg, const char *why, int unheard_ms);
    void *arg;
    int unheard_ms;
};

/* The server: a thread. DET_EIO if the address cannot be listened on. */
struct comm_store_server;
DET_MUST int comm_store_serve(const struct comm_store_options *o, struct comm_store_server **ret,
                              struct det_err *err);
void comm_store_server_stop(struct comm_store_server *s); /* NULL ok */

/* A rank's connection. Retried until the server is there; DET_ETIMEOUT, DET_EPERM (secret). */
DET_MUST int comm_store_connect(const struct comm_store_options *o, struct comm_store **ret,
                                struct det_err *err);
void comm_store_close(struct comm_store *s); /* NULL ok */
/* This end's address as the server's host sees it: how peers reach this host. */
DET_MUST int comm_store_local_address(const struct comm_store *s, char *out, size_t cap,
                                      struct det_err *err);
/* A collective failed here: within wait_ms, which ranks are gone, which did not answer? Appends
 * "rank 2 is gone", or nothing when all is well as far as known. */
void comm_store_verdict(struct comm_store *s, int wait_ms, struct buf *out);
/* Which ranks are gone, added to *out, without a claim that a collective failed. DET_EPEER: rank 0.
 */
DET_MUST int comm_store_gone(struct comm_store *s, int timeout_ms, struct buf *out,
                             struct det_err *err);
/* Whether something came that was not asked for: a reason, rank 0's last words, or its end. */
bool comm_store_stirs(const struct comm_store *s);
/* As comm_leave() and comm_left(). */
DET_MUST int comm_store_leave(struct comm_store *s, const char *why, struct det_err *err);
bool comm_store_left(struct comm_store *s, struct buf *out);
/* As comm_tell(). */
void comm_store_tell(struct comm_store *s, const char *what);
/* "rank 1: WHAT" as the last comm_store_gone() heard of it; NULL: nothing. Borrowed. */
const char *comm_store_trouble(const struct comm_store *s);

#endif
