/*
 * Experiments: a search and its trials.
 *
 *   ACTIVE <-> PAUSED;  both -> STOPPING_{COMPLETED,CANCELED,KILLED,ERROR}
 *   STOPPING_CANCELED -> STOPPING_KILLED -> STOPPING_ERROR;  STOPPING_* -> COMPLETED, CANCELED,
 *                                                            ERROR
 *   COMPLETED, CANCELED, ERROR -> ACTIVE by "continue" only (exp_continue.c)
 *   finished -> DELETING -> DELETED | DELETE_FAILED -> DELETING
 *
 * A stopping experiment ends when its last trial has. Private to master/core.
 */
#ifndef CORE_EXP_H
#define CORE_EXP_H

#include "model.h"

struct exp *exp_find(const struct core *c, int64_t id);
void exp_enlist(struct core *c, struct exp *e);
/* Nothing is filled in; not listed. */
struct exp *exp_make(struct core *c);
void exp_destroy(struct exp *e);
void exp_mark(struct core *c, struct exp *e);
/* Off all indices, and freed. */
void exp_drop(struct core *c, struct exp *e);
/* See core_exp_revision(). */
void exp_revise(struct core *c, int64_t exp_id);
/* CORE_EV_EXP_EDIT: as many ends as begins. */
void exp_edit(struct core *c, int64_t exp_id, bool begins);

void exp_goto(struct core *c, struct exp *e, enum exp_state to);
/* Into a STOPPING state, with all its trials. */
void exp_stop(struct core *c, struct exp *e, enum exp_state to, const char *reason);
bool exp_may(const struct exp *e, enum exp_state to); /* by the table of edges */
/* Its rows say so; it is freed at the end of the step. */
bool exp_has_ended(const struct exp *e);

/* Checks, and only then changes anything. */
DET_MUST int exp_create(struct core *c, const struct core_create *in, int64_t *ret_id,
                        bool *ret_exceeded, struct det_err *err);
DET_MUST int exp_continue(struct core *c, const struct core_continue *in, bool *ret_exceeded,
                          struct det_err *err);
DET_MUST int exp_activate(struct core *c, struct exp *e, struct det_err *err);
DET_MUST int exp_pause(struct core *c, struct exp *e, struct det_err *err);
/* Paused by the rule of alike.h; takes why. */
void exp_hold(struct core *c, struct exp *e, char *why);
DET_MUST int exp_cancel(struct core *c, struct exp *e, struct det_err *err);
DET_MUST int exp_kill(struct core *c, struct exp *e, struct det_err *err);
DET_MUST int exp_patch(struct core *c, struct exp *e, const struct core_event *ev,
                       struct det_err *err);

/* Tells the searcher, logs the event, carries out what it answers. */
void exp_tell(struct core *c, struct exp *e, const struct search_event *ev);
/* Progress changes no decision; only a custom search's is logged. */
void exp_on_progress(struct core *c, struct exp *e, struct trial *t, double units);
/* A custom search: the events that wait (as JSON text in the effects' memory), or one that says
 * that the experiment is not active; and what its client posts. DET_ESTATE, DET_EINVAL. */
DET_MUST int exp_search_events(struct core *c, struct exp *e, const char **ret_events,
                               struct det_err *err);
DET_MUST int exp_search_ops(struct core *c, struct exp *e, int64_t ack, const json_t *operations,
                            struct det_err *err);
/* Trials that the search asked for and that are not made yet. */
void exp_make_more(struct core *c, struct exp *e);
void exp_resume_todo(struct core *c, struct exp *e);
void exp_drop_todo(struct core *c, struct exp *e);
void exp_on_trial_end(struct core *c, struct exp *e, struct trial *t);
/* Ends it if it is stopping and nothing is open. */
void exp_maybe_finish(struct core *c, struct exp *e);

/* Deletion and collection (gc.c). */
DET_MUST int gc_delete(struct core *c, const struct core_gc *in, struct det_err *err);
/* Purges an experiment that is being deleted, once its collections have all ended. */
void gc_delete_idle(struct core *c, struct exp *e);
/* words: why it cannot be; NULL: it is done. */
void gc_purged(struct core *c, struct exp *e, const char *words);
DET_MUST int gc_collect(struct core *c, const struct core_gc *in, struct det_err *err);
/* task.gc of agent.md; action NULL: purge; globs, trees NULL: none. New reference. */
json_t *gc_work(json_t *uuids, const char *action, json_t *globs, json_t *trees);

#endif
