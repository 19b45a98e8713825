/*
 * What a transport must offer to comm.c, which does the bookkeeping (dead communicators, names of
 * lost ranks, argument checks). C and C++ both include this: the gloo transport is a C++ shim.
 */
#ifndef COMM_IMPL_H
#define COMM_IMPL_H

#include "det/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct comm_store;
struct comm_options;

struct comm_transport {
    const char *name;
    /* Each: 0, DET_EPEER or DET_ETIMEOUT. timeout_ms > 0 always; op counts the calls, equal on
     * all ranks. */
    int (*allreduce_sum_f32)(void *self, float *v, size_t n, uint32_t op, int timeout_ms,
                             struct det_err *err);
    int (*allreduce_sum_f64)(void *self, double *v, size_t n, uint32_t op, int timeout_ms,
                             struct det_err *err);
    int (*broadcast)(void *self, void *p, size_t n, int root, uint32_t op, int timeout_ms,
                     struct det_err *err);
    /* out: the blocks in rank order, bytes[rank] long; mine is at its place already. */
    int (*allgatherv)(void *self, void *out, const size_t *bytes, uint32_t op, int timeout_ms,
                      struct det_err *err);
    int (*barrier)(void *self, uint32_t op, int timeout_ms, struct det_err *err);
    void (*destroy)(void *self);
};

/* Joins through the store, which is borrowed until destroy. Address: of this host, as peers
 * reach it. */
DET_MUST int comm_gloo_open(int rank, int size, const char *address, struct comm_store *store,
                            int join_timeout_ms, const struct comm_transport **ret, void **ret_self,
                            struct det_err *err);

/* comm_store as the C++ side needs it (see comm_store.h). */
DET_MUST int comm_store_put(struct comm_store *s, const char *key, const void *p, size_t n,
                            struct det_err *err);
/* Rank 0's: forgets all keys that begin so, which nobody may ask for any more. */
DET_MUST int comm_store_drop(struct comm_store *s, const char *prefix, struct det_err *err);
/* *ret is malloc'ed. */
DET_MUST int comm_store_take(struct comm_store *s, const char *key, int timeout_ms, void **ret,
                             size_t *ret_n, struct det_err *err);
/* The key that was asked for last may never come: a rank is gone, and err named it. */
bool comm_store_is_lost(const struct comm_store *s);

#ifdef __cplusplus
}
#endif
#endif
