/* What checkpoint collection reads and writes: the journal in the rows of checkpoints (gc_step, see
 * its migration). */
#ifndef DB_DB_GC_H
#define DB_DB_GC_H

#include "db.h"

/* One row for each COMPLETED checkpoint, by experiment: of one experiment, or (0) of every finished
 * one; due: only of those that ended and were not looked through since. HELD: bits of enum gc_why.
 * An experiment without checkpoints has one row whose uuid is null. */
enum db_gc_col {
    GC_EXP,
    GC_UUID,
    GC_TRIAL,
    GC_STEPS,
    GC_TIME_US,
    GC_METRIC,
    GC_HELD,
    GC_BYTES,
    GC_KEEP_EXP,
    GC_KEEP_TRIAL,
    GC_KEEP_NEW,
    GC_SMALLER,
    GC_LIVE,
    GC_METRIC_NAME
};
struct db_gc_scope {
    int64_t exp_id;
    bool due;
    bool is_shown; /* to a person who asks what would go: a recent answer will do */
};
void db_gc_list(struct db *db, const struct db_gc_scope *s, db_cb *cb, void *arg);
/* One row: of these (a JSON array) the entries of GET preview_gc, as a JSON array. */
void db_gc_docs(struct db *db, const char *uuids, db_cb *cb, void *arg);

struct db_gc_intent {
    const char *uuids; /* JSON array */
    unsigned mask;     /* who can prevent it */
    const char *globs; /* JSON array: only these files; NULL: all */
    int64_t rest_s;    /* in quarantine; 0: none */
    bool all;          /* all or none */
};
/* Columns uuid, experiment, held: > 0 prevented, 0 written down, -1 nothing left to remove. With
 * .all and something prevented there are only the prevented. MODELS: which versions of models it
 * is, in words; null: none, or nothing prevents it. UNTIL: when its pin ends by itself, in UTC;
 * null: it has none. */
enum { INTENT_UUID, INTENT_EXP, INTENT_HELD, INTENT_MODELS, INTENT_UNTIL };
void db_gc_intend(struct db *db, const struct db_gc_intent *in, db_cb *cb, void *arg);
/* Back from the quarantine. Columns uuid, why not (null: written down), whether
 * there is none of it: all or none. */
enum { UNDO_UUID, UNDO_WHY, UNDO_IS_ABSENT };
void db_gc_undo(struct db *db, const char *uuids, db_cb *cb, void *arg);

/* Steps that are written down and to be asked of an agent, grouped; each comes again later until it
 * is reported as done. exp_id 0: of all experiments that have no collecting task now; -1: of these
 * also what is not due yet (a master that starts has nobody at work that it does not know of). */
enum { OPEN_EXP, OPEN_OWNER, OPEN_JOB, OPEN_CONFIG, OPEN_ACTION, OPEN_GLOBS, OPEN_UUIDS };
void db_gc_open(struct db *db, int64_t exp_id, db_cb *cb, void *arg);
/* Those whose rest is over are to be purged. */
void db_gc_expire(struct db *db, db_cb *cb, void *arg);
/* An ended experiment was looked through. */
void db_gc_collected(struct db *db, int64_t exp_id, db_cb *cb, void *arg);

/* One row: a JSON array of checkpoints that lie in the store of this place; null: none. */
void db_store_known(struct db *db, const char *place, db_cb *cb, void *arg);

/* Keeps a COMPLETED checkpoint from being removed for a while. One row (enum db_ckpt_pin_col) or
 * none: it is not there, or on its way out. */
enum db_ckpt_pin_col { PIN_UNTIL, PIN_STORAGE };
void db_ckpt_pin(struct db *db, const char *uuid, int64_t seconds, db_cb *cb, void *arg);
/* Ends the pin, if nobody else has pinned since. */
void db_ckpt_unpin(struct db *db, const char *uuid, const char *until, db_cb *cb, void *arg);

#endif
