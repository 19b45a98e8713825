/*
 * The schedulers and placement once more, as slowly and plainly as docs/contract/placement.md
 * reads: every agent and every request is looked at every time, and nothing is kept between passes.
 * master/core decides on its indices has to be the same, node by node.
 */
#ifndef SCHED_REF_H
#define SCHED_REF_H

#include "model.h"

struct ref_start {
    struct alloc *alloc;
    VEC(struct agent *) agents;
    VEC(int) slots;
};
struct ref_offer {
    struct exp *exp;
    int64_t slots;
};
struct ref_out {
    VEC(struct ref_start) starts;
    VEC(struct alloc *) releases;
    VEC(struct ref_offer) offers; /* of fair share */
    bool is_begin;                /* fair share then makes room: how, test_sched_fair.c judges */
};
void ref_decide(struct core *c, struct pool *pool, struct ref_out *ret);
void ref_finish(struct ref_out *o);

/* fit_could_size and fit_ever by trying. */
bool ref_could(struct core *c, struct pool *pool, int64_t slots, bool ever);

/* ---- between ref_fit.c and ref_sched.c ---- */
struct ref_agent {
    struct agent *a;
    int free, aux_free, whole;
};
struct ref_fit {
    const struct core *c;
    struct pool *pool;
    VEC(struct ref_agent) agents;
    int64_t free_total;
};
enum ref_view { REF_NOW, REF_IDLE, REF_EVER };
void ref_fit_begin(struct ref_fit *f, const struct core *c, struct pool *pool, enum ref_view view);
void ref_fit_free(struct ref_fit *f);
bool ref_place(struct ref_fit *f, const struct alloc *a, struct ref_start *ret); /* cleared first */
void ref_take(struct ref_fit *f, const struct ref_start *p);
void ref_give(struct ref_fit *f, const struct alloc *a);

#endif
