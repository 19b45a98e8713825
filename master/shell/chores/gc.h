/*
 * Checkpoint collection: decides what an experiment's policy lets go (gc_policy.h), writes it into
 * the journal (db_gc.h), and asks agents to carry it out. The journal is what counts: a step that
 * was written down and not reported, because the master, an agent or a store failed, is asked for
 * again by a timer, as are the checkpoints whose time in the quarantine is over.
 */
#ifndef SHELL_GC_H
#define SHELL_GC_H

#include "db_gc.h"
#include "gc_policy.h"
#include "json.h"

struct shell;
struct gc;

/* Starts the timer; its first round, at once, also looks through the experiments that ended while
 * no master ran. */
struct gc *gc_create(struct shell *sh);
/* No further rounds; while the loop still runs. NULL ok. */
void gc_stop(struct gc *g);
/* After gc_stop(), once the database has answered all it was asked. NULL ok. */
void gc_destroy(struct gc *g);

/* Collects a finished experiment by its policy, in the background. */
void gc_wanted(struct shell *sh, int64_t exp_id);
/* Has agents do what is written down for this experiment (0: for all; -1: see db_gc_open()), in the
 * background. */
void gc_carry_out(struct shell *sh, int64_t exp_id);

/* What the policy says of the rows of db_gc_list(), all of them; keep: other numbers than the
 * experiments' own where they are not negative, or NULL. Caller frees. The uuids are borrowed from
 * r. */
struct gc_checkpoint *gc_judge(const struct db_result *r, const struct gc_keep *keep);
/* Has what the judged rows let go written down, experiment by experiment, and carried out. */
void gc_let_go(struct shell *sh, const struct db_result *r, const struct gc_checkpoint *v);

#endif
