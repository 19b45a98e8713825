/*
 * Collectives between the ranks of a trial, behind one table: none (one rank), gloo (TCP between
 * hosts or processes). Gradients on GPUs go through comm_device.h, which uses one of these to find
 * its peers.
 *
 * Every rank calls the same functions in the same order; a call returns when this rank has its
 * result. Results are equal on all ranks, bit for bit, and the same in every run: the order of a
 * sum depends on its length and the number of ranks alone.
 *
 * A peer that dies gives DET_EPEER at once, one that stays silent for timeout_ms DET_ETIMEOUT; the
 * text names the ranks, since rank 0 keeps a connection to each and knows who is gone and who did
 * not answer. After either the communicator is dead: every later call fails the same way, and only
 * comm_close() remains. A comm belongs to one thread at a time.
 */
#ifndef COMM_H
#define COMM_H

#include "buf.h"
#include "det/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct comm_options {
    int rank, size;             /* 0 <= rank < size */
    int local_rank, local_size; /* on this host */
    const char *chief_host;     /* address of rank 0's host; NULL: 127.0.0.1; borrowed */
    const char *bind_host;      /* this host as peers reach it; NULL: found from the route */
    int port;                   /* where rank 0 listens for the rendezvous */
    const char *secret;         /* shared by the ranks of one run; others are refused; NULL: none */
    int timeout_ms;             /* of one collective; 0: 30 minutes, since one rank may be slow
                                 * (a hung one is the watchdog's matter, a dead one DET_EPEER) */
    int join_timeout_ms;        /* for all ranks to come; 0: 60,000 */
    /* Rank 0, may be NULL: called in another thread where a rank left with a reason and this one
     * has not asked comm_left() for unheard_ms (0: 60,000): what it waits in may never end. why: as
     * comm_left() has it. Returns after how many more milliseconds to call again; 0: not again. */
    int (*on_unheard)(void *arg, const char *why, int unheard_ms);
    void *arg;
    int unheard_ms;
};

struct comm;

/* Joins the group; returns when all ranks are in it. size 1 needs no network and cannot fail. */
DET_MUST int comm_open(const struct comm_options *o, struct comm **ret, struct det_err *err);
/* RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, DET_CHIEF_IP, C10D_PORT (29400),
 * DET_COLLECTIVE_TIMEOUT_S (timeout_ms), and DET_SESSION_TOKEN as the secret; RANK or WORLD_SIZE
 * unset: one rank. The strings are borrowed from the environment. DET_EINVAL names a bad
 * variable. */
DET_MUST int comm_options_from_env(struct comm_options *ret, struct det_err *err);
/* Patience of the following collectives; 0: back to what comm_open() was given. For waits on
 * work that one rank does alone (a checkpoint, a whole validation). Must be called on every rank
 * alike. */
void comm_set_timeout(struct comm *c, int timeout_ms);
int comm_timeout_ms(const struct comm *c);
void comm_close(struct comm *c); /* NULL ok; does not wait for peers */

/* Leaves the group for a reason that is for all ranks: their collectives, and all later ones here,
 * fail with DET_EPEER, and comm_left() tells them why. 0: rank 0's process has the reason, the
 * first one of all; DET_EPEER, DET_ETIMEOUT: it is gone or does not answer. One rank alone: 0. */
DET_MUST int comm_leave(struct comm *c, const char *why, struct det_err *err);
/* Between collectives, without waiting: DET_EPEER where the next one would fail because a rank left
 * with a reason, or because rank 0 is gone. */
DET_MUST int comm_check(struct comm *c, struct det_err *err);
/* While this rank waits for something that its peers must do elsewhere, on their devices: DET_EPEER
 * names those that are gone or left with a reason. A round trip to rank 0, for timeout_ms at most.
 */
DET_MUST int comm_watch(struct comm *c, int timeout_ms, struct det_err *err);
/* What this rank could not do of what its peers wait for: their comm_watch() gives DET_EPEER and
 * "rank 1: WHAT" of the first that tells. The group stays, for all to end together: what was told
 * cannot be taken back, and every later comm_watch() gives it again. */
void comm_tell(struct comm *c, const char *what);
/* At the end, whatever it was: whether a rank had left with a reason, and "rank 1: WHY" added to
 * *out. Rank 0 asks once: after its "no" comm_leave() fails, so that no reason gets lost. */
bool comm_left(struct comm *c, struct buf *out);

int comm_rank(const struct comm *c);
int comm_size(const struct comm *c);

/* v = mean over ranks, in place. n may be 0 but must be equal on all ranks. */
DET_MUST int comm_allreduce_mean_f32(struct comm *c, float *v, size_t n, struct det_err *err);
DET_MUST int comm_allreduce_mean_f64(struct comm *c, double *v, size_t n, struct det_err *err);
/* Rank root's n bytes to all; n must be equal on all ranks. */
DET_MUST int comm_broadcast(struct comm *c, void *p, size_t n, int root, struct det_err *err);
DET_MUST int comm_barrier(struct comm *c, struct det_err *err);

/* One block of bytes from each rank, of any length. */
struct comm_blobs {
    void *memory;   /* owns all blocks */
    const void **v; /* v[rank] */
    size_t *bytes;
    int n;
};
DET_MUST int comm_allgather(struct comm *c, const void *p, size_t n, struct comm_blobs *ret,
                            struct det_err *err);
void comm_blobs_finish(struct comm_blobs *b);
/* Rank 0's block, of any length, to all: *ret is NUL-terminated past its n bytes; caller frees. */
DET_MUST int comm_broadcast_bytes(struct comm *c, const void *p, size_t n, void **ret,
                                  size_t *ret_n, struct det_err *err);

#endif
