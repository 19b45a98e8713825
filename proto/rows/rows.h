/*
 * Rows: what the master's core has stored and reads back when it is rebuilt. Shared by the core,
 * which fills them, and the database layer, which writes and reads them.
 *
 * Every string is NUL-terminated and borrowed: in an effect it lives as long as the effects, when
 * restoring it need only live until the restoring call returns. Times are wall-clock microseconds
 * since 1970 UTC, 0 = null. Columns called `core` hold JSON that only the core reads; write and
 * read back unchanged.
 *
 * Rows marked is_new are inserted; others update what the comment "updated" names, by primary key.
 */
#ifndef PROTO_ROWS_H
#define PROTO_ROWS_H

#include <stdbool.h>
#include <stdint.h>

/* X(name, text in the database, number in the API's enum). A trial's and an experiment's states
 * differ only in the API's numbers; QUEUED to RUNNING are made up when reading, never stored. */
#define EXP_STATES(X)                                                                              \
    X(EXP_ACTIVE, "ACTIVE")                                                                        \
    X(EXP_PAUSED, "PAUSED")                                                                        \
    X(EXP_STOPPING_COMPLETED, "STOPPING_COMPLETED")                                                \
    X(EXP_STOPPING_CANCELED, "STOPPING_CANCELED")                                                  \
    X(EXP_STOPPING_ERROR, "STOPPING_ERROR")                                                        \
    X(EXP_STOPPING_KILLED, "STOPPING_KILLED")                                                      \
    X(EXP_COMPLETED, "COMPLETED")                                                                  \
    X(EXP_CANCELED, "CANCELED")                                                                    \
    X(EXP_ERROR, "ERROR")                                                                          \
    X(EXP_DELETED, "DELETED")                                                                      \
    X(EXP_DELETING, "DELETING")                                                                    \
    X(EXP_DELETE_FAILED, "DELETE_FAILED")
#define TRIAL_STATES(X)                                                                            \
    X(TRIAL_ACTIVE, "ACTIVE")                                                                      \
    X(TRIAL_PAUSED, "PAUSED")                                                                      \
    X(TRIAL_STOPPING_COMPLETED, "STOPPING_COMPLETED")                                              \
    X(TRIAL_STOPPING_CANCELED, "STOPPING_CANCELED")                                                \
    X(TRIAL_STOPPING_ERROR, "STOPPING_ERROR")                                                      \
    X(TRIAL_STOPPING_KILLED, "STOPPING_KILLED")                                                    \
    X(TRIAL_COMPLETED, "COMPLETED")                                                                \
    X(TRIAL_CANCELED, "CANCELED")                                                                  \
    X(TRIAL_ERROR, "ERROR")
/* In order: an allocation shows the furthest that any of its containers came and never goes back.
 */
#define ALLOC_STATES(X)                                                                            \
    X(ALLOC_PENDING, "PENDING")                                                                    \
    X(ALLOC_ASSIGNED, "ASSIGNED")                                                                  \
    X(ALLOC_PULLING, "PULLING")                                                                    \
    X(ALLOC_STARTING, "STARTING")                                                                  \
    X(ALLOC_RUNNING, "RUNNING")                                                                    \
    X(ALLOC_WAITING, "WAITING")                                                                    \
    X(ALLOC_TERMINATING, "TERMINATING")                                                            \
    X(ALLOC_TERMINATED, "TERMINATED")

#define X(name, text) name,
enum exp_state { EXP_STATES(X) EXP_STATE_COUNT };
enum trial_state { TRIAL_STATES(X) TRIAL_STATE_COUNT };
enum alloc_state { ALLOC_STATES(X) ALLOC_STATE_COUNT };
#undef X

/* The text in the database ("STOPPING_KILLED"; the API's name is "STATE_" before it). */
const char *exp_state_text(enum exp_state s);
const char *trial_state_text(enum trial_state s);
const char *alloc_state_text(enum alloc_state s);
/* False when no state has this text. */
bool exp_state_parse(const char *text, enum exp_state *ret);
bool trial_state_parse(const char *text, enum trial_state *ret);
/* Of text that a row has. */
bool exp_state_is(const char *text, enum exp_state s);
bool trial_state_is(const char *text, enum trial_state s);
bool alloc_state_parse(const char *text, enum alloc_state *ret);
/* COMPLETED, CANCELED, ERROR (and, of experiments, the states of deletion). */
bool exp_state_is_terminal(enum exp_state s);
bool trial_state_is_terminal(enum trial_state s);

/* What its user sent and only its row holds: the text of the configuration, the model definition.
 * The core hands it on unseen; drive/driver.h has its members. */
struct exp_submission;

struct row_experiment {
    bool is_new;
    int64_t id;
    /* Set when new. submission is the create event's, untouched. */
    const char *job_id;            /* always set */
    int64_t owner_id;              /* always set */
    int64_t project_id, parent_id; /* parent 0: null */
    const char *config;            /* JSON; null unless new or changed, always set when restoring */
    struct exp_submission *submission;
    int64_t start_us;
    /* Updated. */
    enum exp_state state;
    int64_t end_us;
    double progress; /* 0..1, negative: null */
    const char *resource_pool;
    int priority; /* 1..99, 0: null */
    double weight;
    int64_t max_slots; /* negative: null */
    double queue_position;
    const char *core;
};

/* What the searcher was told, in order, seq from 1. */
struct row_search_event {
    int64_t experiment_id, seq;
    const char *event; /* JSON */
};
/* Replaces the one before; the last one stays, and all events do. */
struct row_search_snapshot {
    int64_t experiment_id, seq;
    const char *snapshot; /* JSON */
};

struct row_trial {
    bool is_new;
    int64_t id;
    /* Set when new and when restoring. */
    int64_t experiment_id;
    const char *request_id, *task_id;
    const char *hparams; /* JSON; null unless new or changed, always set when restoring */
    int64_t seed, start_us;
    const char *warm_start_checkpoint; /* may be null */
    /* Updated. */
    enum trial_state state;
    int64_t run_id; /* the fence */
    int64_t restarts;
    int64_t end_us;
    const char *core;
    /* Restoring only: the COMPLETED checkpoint of the trial with the highest steps. */
    const char *latest_checkpoint; /* null: none */
    int64_t latest_steps;
};

struct row_allocation {
    bool is_new;
    const char *id; /* "<task id>.<run id>" */
    /* Set when new and when restoring. */
    const char *task_id;
    int64_t experiment_id, trial_id; /* trial 0: null */
    int64_t run_id;
    const char *kind; /* "TRIAL", "CHECKPOINT_GC" */
    int64_t slots;
    const char *resource_pool;
    int64_t start_us;
    /* Updated. */
    enum alloc_state state;
    bool is_ready;
    int64_t placed_us; /* since when it has its slots; 0: it has had none */
    int64_t end_us;
    const char *exit_reason; /* null while it lives */
    int64_t status_code;     /* exit code of the first container that failed; negative: null */
    const char *core;
};

/* Something that happened to a trial; added, never changed. */
struct row_timeline {
    int64_t trial_id, run_id;
    int node;                   /* number of the run's container; -1: the master itself */
    const char *kind;           /* agent.md lists those of hosts, core.h those of the core */
    int64_t at_us, duration_us; /* duration of what ended then; 0: a moment */
    const char *detail;         /* "": none */
    int64_t experiment_id;      /* whose trial it is; not written */
};

/* What the database refused a row of, in place of all its rows: it, or with trial 0 the experiment
 * with its trials, is STOPPING_ERROR, and ERROR when it has ended; its allocations are over. What
 * is terminal already stays so. */
struct row_parked {
    int64_t experiment_id, trial_id;
    bool has_ended;
};

/* Which directory is which checkpoint store; upsert, all columns. */
struct row_store {
    const char *place;   /* its root (storeplace.h) */
    const char *id;      /* of its marker; null: not made, or not adopted yet */
    const char *known;   /* JSON array of uuids of checkpoints that lie in it; null: none */
    const char *made_on; /* the agent that saw or made the marker first; null: none yet */
    int64_t owner_id;    /* whose experiment used it first; 0: null */
    int64_t used_us;
};

/* What an administrator switched off; upsert, all columns. */
struct row_agent {
    const char *agent_id;
    bool enabled, draining;
    const char *slots_disabled, *slots_forced; /* JSON arrays of slot ids */
};

#endif
