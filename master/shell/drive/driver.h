/*
 * Drives the core: events wait in a queue; once per loop iteration those that wait are stepped, the
 * rows of all their effects go to PostgreSQL in one transaction, and only when it committed are the
 * other effects performed, in order. While a commit is in flight the next batch gathers. While
 * PostgreSQL is away the batch in hand is kept and committed again later; nothing of it was
 * performed or answered.
 *
 * The files of this folder:
 *   driver.c: the queue, batches, effects
 *   driver_rows.c: a batch's rows
 *   hub.c: followers of logs
 *   waits.c: long polls of tasks
 *   waits_search.c: those of a custom search's client
 */
#ifndef SHELL_DRIVER_H
#define SHELL_DRIVER_H

#include "core.h"
#include "hist.h"
#include "shell.h"

struct driver;
/* Takes core. A row that the database refuses costs its own trial or experiment (core_refused).
 * on_fatal: it refuses what no data explains, so memory and database differ: end the process, a
 * restart rebuilds the core from the rows. */
struct driver *driver_create(struct shell *sh, struct core *core, void (*on_fatal)(void *arg),
                             void *arg);
/* Nothing is stepped any more; new events end with DET_EUNAVAIL. Before db_close. */
void driver_stop(struct driver *d);
/* Ends waiting callbacks with DET_EUNAVAIL. After db_close was called. */
void driver_destroy(struct driver *d);

/* NULL, or why requests cannot be served now. */
const char *driver_not_ready(const struct driver *d);
struct driver_stats {
    uint64_t events, starts, ends; /* stepped; containers ordered to start; allocations ended */
    struct hist queue_wait;        /* of allocations, from asking to the first order */
    size_t queued;                 /* events that wait */
};
void driver_stats(const struct driver *d, struct driver_stats *ret);

/* The number of the last batch of rows that is durable. */
int64_t driver_batch(const struct driver *d);

/* For reading (core_*_get and so on); pointers live until the loop's next turn. */
const struct core *driver_core(const struct driver *d);
/* For core_why_*, which try passes on it and take them back. */
struct core *driver_core_to_try(struct driver *d);

/* cb runs exactly once, later: after what follows from the event was committed, or with
 * DET_EUNAVAIL when PostgreSQL is away (the event is then not applied). NULL cb: an event nobody
 * waits for, which is kept until PostgreSQL is back. ev is copied whole; its now_ms, now_us and
 * request are set here. The references of create.config, gc.config, gc.uuids, gc.globs and
 * op.metric are borrowed (counted here); what cont points to is the caller's until cb. */
typedef void driver_cb(void *arg, const struct core_reply *reply);
void driver_post(struct driver *d, const struct core_event *ev, driver_cb *cb, void *arg);
/* cb runs after everything posted so far is committed. */
void driver_barrier(struct driver *d, driver_cb *cb, void *arg);

/* .create.submission, which the core hands on unseen. Made by the caller, taken by driver_post,
 * which frees it (also on failure). */
struct exp_submission {
    char *original_config; /* the YAML as it was sent; malloc'd */
    void *model_def;       /* tar.gz, malloc'd; NULL with parent_model_def */
    size_t model_def_len;
    bool parent_model_def; /* take create.parent_id's */
};
void exp_submission_destroy(struct exp_submission *p); /* NULL ok */

/* The pool's state changed. */
void driver_on_db(struct driver *d, bool up);
/* Perform what core_restored() owed; then begin. */
void driver_start(struct driver *d, struct core_effects *owed);

#endif
