/*
 * A master behind the loop's HTTP table: answers as the routes of docs/contract/loop.md 12 do,
 * writes every call down, and fails as it is told. Any thread may call it.
 */
#ifndef FAKE_MASTER_H
#define FAKE_MASTER_H

#include "loop.h"

#include <pthread.h>

struct fake_refusal {
    int64_t from, to; /* reports of these steps; 0: none */
    int status;
};

struct fake_master {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    char why[200];              /* of the first early exit */
    struct buf calls;           /* "GET trial | POST metrics training 2 | ..." */
    struct buf last_validation; /* body of the last validation report */
    int64_t lengths[4];         /* operations, in order; 0 ends them */
    int op;                     /* the current one */
    int64_t epoch_length;       /* of the last runner/metadata; -1: it said none */
    int64_t known_validation;   /* of GET trials/{id}; -1: null */
    double best;                /* NAN: 404 */
    const char *checkpoints;    /* answer of GET trials/{id}/checkpoints; NULL: none */
    int away;                   /* the next so many calls get no answer (< 0) or 503 (> 0) */
    int stale_after;            /* POSTs answered before all get 409; -1: never */
    int preempt_after;          /* workload reports before preemption; -1: never */
    int workloads;
    bool takes_bundles;              /* else it is an older one, without the route */
    struct buf bundles;              /* how many reports each had: "3 128 " */
    int lost_answers;                /* so many bundles are taken, and nothing is said */
    struct fake_refusal refusals[2]; /* of single reports, in a bundle */
    int refused_times;               /* so often; 0: always */
    int bundle_status; /* of the next bundle, of which nothing is kept; 0: it is taken */
    bool holds;        /* POSTs wait until it is let go; changed */
    int held;          /* so many do */
    bool hangs;        /* takes every POST and does not answer until canceled */
    bool canceled;
};

void fake_master_init(struct fake_master *m);
void fake_master_finish(struct fake_master *m);
struct loop_http fake_master_http(struct fake_master *m);
/* Returns when a POST waits for fake_master_let_go(). m->holds was set before. */
void fake_master_wait_held(struct fake_master *m);
void fake_master_let_go(struct fake_master *m);

#endif
