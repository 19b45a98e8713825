/*
 * Which checkpoints of an experiment its policy lets go (docs/contract/trial.md 3). Pure.
 *
 * Over the COMPLETED checkpoints, with the searcher metric of the validation at the same step: one
 * stays that is among the experiment's best, its trial's best (a checkpoint without a metric is
 * never one of these), its trial's latest, or that somebody holds. Ties: the lower trial id, then
 * the lower step, is better.
 */
#ifndef CORE_GC_POLICY_H
#define CORE_GC_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Why a checkpoint stays. The GC_HELD_* come from outside, the others from the policy. */
enum gc_why {
    GC_KEEP_LATEST = 1,
    GC_KEEP_TRIAL_BEST = 2,
    GC_KEEP_EXP_BEST = 4,
    GC_HELD_RESUME = 8,      /* a live trial would resume from it */
    GC_HELD_START = 16,      /* a live trial started from it */
    GC_HELD_SOURCE = 32,     /* some trial once started from it */
    GC_HELD_USE = 64,        /* it is being read */
    GC_HELD_UNDELETED = 128, /* somebody took it back out of the quarantine */
    GC_HELD_MODEL = 256      /* it is a version of a model */
};
#define GC_WHY_COUNT 9
/* Nobody may delete these; the other reasons bind only the policy. */
#define GC_HELD_HARD (GC_HELD_RESUME | GC_HELD_START | GC_HELD_USE | GC_HELD_MODEL)
/* The sentence for the lowest bit of `why`: "it is the trial's latest". A literal. */
const char *gc_why_text(unsigned why);

struct gc_checkpoint {
    const char *uuid; /* borrowed */
    int64_t trial_id, steps, report_us;
    double metric; /* as it was reported; NaN: none */
    unsigned held; /* GC_HELD_* */
    unsigned why;  /* set by gc_policy(): 0 = it goes */
};

struct gc_keep {
    int64_t experiment_best, trial_best, trial_latest; /* >= 0 */
    bool smaller_is_better;
};

/* Sets why of each; the order of v does not matter and does not change. */
void gc_policy(struct gc_checkpoint *v, size_t n, const struct gc_keep *keep);

#endif
