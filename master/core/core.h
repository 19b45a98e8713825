/*
 * The master's core: experiments, trials, allocations, agents, searchers and schedulers as one pure
 * state machine. No I/O, clock, thread, global or randomness of its own: every event carries the
 * time, and what is random follows from seeds in the state.
 *
 * core_step() applies one event and appends effects. Effects of kind CORE_SAVE_* / CORE_DELETE_*
 * are rows: those of all events of one tick go into one transaction, in order. All other effects
 * may be performed only after that transaction committed, in order. A restart rebuilds the core
 * from the rows alone (core_restore_*, then core_restored) and what was owed to an agent follows
 * from its next hello, so an effect that was lost between commit and performance is repeated.
 *
 * Every event with request != 0 gets exactly one CORE_REPLY, among the effects of the same step.
 * Events without a request are answered by nobody; what is wrong with them is dropped (they are
 * repeats).
 *
 * Only live things are held: experiments that are not finished, their trials and allocations. An id
 * that is not live answers DET_ENOENT: whether it is finished or never was, the database knows.
 *
 * Invariants (core_check asserts them): per agent free + used + disabled slots = total; a slot is
 * held by at most one container; a trial has at most one live allocation and its run id never
 * falls; the queue holds exactly the pending allocations; every state that waits for someone has a
 * deadline.
 *
 * Thread: one. Strings in events are borrowed for the call.
 */
#ifndef CORE_CORE_H
#define CORE_CORE_H

#include "det/err.h"
#include "json.h"
#include "rows.h"
#include "vec.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct core;

enum core_scheduler { CORE_FAIR_SHARE, CORE_PRIORITY, CORE_FIFO, CORE_ROUND_ROBIN };
enum core_fitting { CORE_FIT_BEST, CORE_FIT_WORST };

/* How one resource pool is run. Strings are copied. */
struct core_pool_options {
    const char *name, *description;
    enum core_scheduler scheduler;
    enum core_fitting fitting;
    bool preemption;      /* of the priority scheduler */
    int default_priority; /* 42 */
    bool allow_heterogeneous_fits;
    int max_aux_containers;          /* zero-slot containers of an agent: 100 */
    int64_t agent_reconnect_wait_ms; /* 25,000 */
    int64_t starvation_wait_ms;      /* a request that waited so long gets room next; 0: never */
};

/* Slots that one user may hold at a time. The most special entry counts: one that names the user
 * before one for everybody; in a pool and in all pools together each by itself. */
struct core_quota {
    const char *user; /* "*": everybody who has no entry */
    const char *pool; /* NULL: all pools together */
    int64_t slots;
};

struct core_options {
    enum core_scheduler scheduler;
    enum core_fitting fitting;
    bool preemption;      /* of the priority scheduler */
    int default_priority; /* 42 */
    bool allow_heterogeneous_fits;
    bool launch_error;               /* refuse at submit what can never fit; else only warn */
    int max_aux_containers;          /* zero-slot containers of an agent: 100 */
    int64_t agent_reconnect_wait_ms; /* 25,000 */
    int64_t preempt_timeout_ms;      /* 3,600,000 */
    int64_t kill_resend_ms;          /* 30,000 */
    int64_t start_resend_ms;         /* 60,000 */
    int64_t invalid_hp_exit_ms;      /* 10,000 */
    int64_t ready_timeout_ms;        /* from placed to ready, hooks left out: 1,800,000 */
    int64_t gc_timeout_ms;           /* of one run of a collection: 3,600,000 */
    const char *default_pool;        /* "default"; copied */
    int64_t starvation_wait_ms;      /* of pools: 3,600,000 */
    /* Of the database; copied. Clusters that share a host must not have containers of one id, by
     * which the processes of a task are found. NULL: "" */
    const char *cluster_id;
    /* pools that are run in a way of their own, and quotas; copied at core_create */
    const struct core_pool_options *pools;
    size_t pools_n;
    const struct core_quota *quotas;
    size_t quotas_n;
};
extern const struct core_options core_options_default;

struct core *core_create(const struct core_options *o);
void core_destroy(struct core *c); /* NULL ok */

/* ---- Events ---- */

enum core_event_kind {
    CORE_EV_TICK, /* the time has come to core_deadline_ms(); harmless at any time */
    /* from the API */
    CORE_EV_EXP_CREATE,   /* .create; reply.id, reply.slots_exceeded */
    CORE_EV_EXP_ACTIVATE, /* .exp_id, as the next ones */
    CORE_EV_EXP_PAUSE,
    CORE_EV_EXP_CANCEL,
    CORE_EV_EXP_KILL,
    CORE_EV_EXP_PATCH,     /* .exp_id, .patch */
    CORE_EV_EXP_CONTINUE,  /* .cont: one that has ended goes on; reply.slots_exceeded */
    CORE_EV_EXP_EDIT,      /* .exp_id, .edit_begins: its row is changed beside the core, from now
                              on; with false: that has ended. Until then it is not continued */
    CORE_EV_SEARCH_EVENTS, /* .exp_id: what a custom search's client is to hear; reply.data */
    CORE_EV_SEARCH_OPS,    /* .exp_id, .search: what that client wants done */
    CORE_EV_EXP_DELETE,    /* .gc: an experiment that is finished (the API has checked that) */
    CORE_EV_EXP_PURGED,    /* .exp_id: CORE_PURGE is done, or cannot be: purge_failed */
    CORE_EV_EXP_GC,        /* .gc: deletes some checkpoints of an experiment, which stays */
    CORE_EV_TRIAL_KILL,    /* .trial_id */
    CORE_EV_AGENT_SET,     /* .agent_set: enable, disable, drain an agent or one slot */
    CORE_EV_STORE_ADOPT,   /* .adopt: what is at a store's place now is the store */
    CORE_EV_IDS_SEEN,      /* .exp_id, .trial_id: given out in another life; skipped in this */
    CORE_EV_EXP_ID,        /* gives the next number (reply.id) to what the core does not run */
    CORE_EV_TRIAL_ID,      /* likewise */
    /* from agents: .agent_id and */
    CORE_EV_AGENT_HELLO, /* .hello */
    CORE_EV_AGENT_STATE, /* .task: alloc, container, state */
    CORE_EV_AGENT_EXIT,  /* .task: alloc, container, exit */
    CORE_EV_AGENT_STORE, /* .store: what it sees at a place where it was told to look */
    CORE_EV_AGENT_SLOT,  /* .sight: whether a slot of it is usable */
    CORE_EV_AGENT_LOST,  /* the link is gone (10 s of silence or closed) */
    /* from harnesses: .trial_id, .run_id of the token (0: not checked) and */
    CORE_EV_OP_COMPLETED, /* .op: length, metric */
    CORE_EV_PROGRESS,     /* .units; reply.progress: the experiment's, 0..1 */
    CORE_EV_EARLY_EXIT,   /* .exit_early */
    CORE_EV_CHECKPOINT,   /* .checkpoint: after its row was committed, whatever its run */
    CORE_EV_LOG_POLICY,   /* .policy: a line that came from .agent_id (may be NULL) matched */
    /* from harnesses: .alloc_id and */
    CORE_EV_ACK_PREEMPTION,
    CORE_EV_RENDEZVOUS, /* .container: it has arrived, .ports; then wait for CORE_RENDEZVOUS */
    CORE_EV_READY,      /* all-gather done, or "ready" called */
    CORE_EV_WAITING,
    CORE_EV_DAEMON, /* .container is one that need not end by itself */
    CORE_EVENT_KIND_COUNT
};

struct core_create {
    const char *job_id; /* a fresh UUID */
    int64_t owner_id, project_id, parent_id;
    const char *owner; /* the owner's name: quotas go by it; NULL: none */
    json_t *config;    /* complete and valid (expconf_parse); a reference is taken, never changed */
    bool activate;     /* else it stays PAUSED */
    const char *warm_start; /* checkpoint every trial starts from (searcher.source_*), or NULL */
    struct exp_submission *submission; /* borrowed, handed back in the new row (rows.h) */
};
struct core_patch {
    bool has_priority, has_weight, has_max_slots;
    int priority;                /* 1..99 */
    double weight;               /* > 0 */
    int64_t max_slots;           /* negative: none */
    const char *pool;            /* moves it there while nothing of it is placed; NULL: stays */
    int64_t ahead_of, behind_of; /* moves it next to that experiment in the queue; 0: stays */
};
/* An ended experiment as its rows have it. What it points to is the caller's until the answer. */
struct core_continue {
    uint64_t revision;         /* core_exp_revision() before the rows were read */
    struct row_experiment row; /* in a state of COMPLETED, CANCELED, ERROR */
    const json_t *config;      /* complete and valid, for a single search only; NULL: as it was */
    const struct row_search_event *events; /* all, from seq 1 */
    size_t events_n;
    const struct row_trial *trials; /* by id, with the latest checkpoint to go on from */
    size_t trials_n;
};
struct core_gc {
    int64_t exp_id, owner_id;
    const char *job_id;
    json_t *config;     /* the experiment's; a reference is taken */
    json_t *uuids;      /* array of checkpoint uuids (may be empty); a reference is taken */
    const char *action; /* GC_ACTION_* (agent.md), passed on; NULL: purge */
    json_t *globs;      /* of the action "cut", else NULL; a reference is taken */
    bool has_files;     /* EXP_DELETE: its store may hold more than the checkpoints */
};
struct core_agent_set {
    const char *agent_id;
    int slot;            /* -1: the whole agent */
    bool enabled, drain; /* drain with enabled = false: what runs may end by itself */
};
enum core_device { CORE_CPU, CORE_CUDA, CORE_ROCM };
struct core_slot_in {
    int id;
    enum core_device type;
    const char *brand, *uuid;
    int island, numa; /* of NVLink, and the NUMA node; -1: none is known */
};
/* What ended a container (agent.md). */
enum core_exit_reason {
    CORE_EXITED,
    CORE_KILLED,
    CORE_STALLED,
    CORE_START_FAILED,
    CORE_LOST,
    CORE_STORE_AWAY,
    CORE_ABSENT,
    CORE_EXIT_REASON_COUNT
};
struct core_exit {
    enum core_exit_reason reason;
    int code, signal, rank;     /* 0, 0, -1 when none failed */
    const char *text;           /* may be NULL */
    const char *exception, *at; /* of a Python program (agentlink.h); NULL: none is known */
};
/* What a host saw happen to a task (agent.md), by its own clock. */
struct core_mark {
    const char *kind, *detail;
    int64_t at_us, duration_us;
};
/* A rank that has given no sign of life for a while: for core_why_trial(), it decides nothing. */
struct core_silent {
    const char *phase; /* NULL: none is silent */
    int rank;
    int64_t silent_ms, timeout_ms; /* so far; when it is taken to hang */
};
/* Nobody of the task has had an answer from the master since its start. */
struct core_unreached {
    const char *text; /* what was tried, and how it failed; NULL: it has, maybe */
};
enum core_task_state { CORE_TASK_STARTING, CORE_TASK_RUNNING, CORE_TASK_ENDED };
struct core_task_in {
    const char *alloc, *container;
    enum core_task_state state;
    struct core_exit exit;           /* when ended */
    struct core_silent silent;       /* while it runs */
    struct core_unreached unreached; /* likewise */
    const struct core_mark *marks;
    size_t marks_n;
};
/* What is at the place of a checkpoint store on an agent. */
enum core_store_kind {
    CORE_STORE_UNSEEN,  /* it has not looked yet */
    CORE_STORE_PRESENT, /* its marker */
    CORE_STORE_OTHER,   /* the marker of another store */
    CORE_STORE_ABSENT,  /* no marker */
    CORE_STORE_KNOWN,   /* no marker, but a checkpoint that is known to lie in it */
    CORE_STORE_HIDDEN,  /* the agent's account may not look */
    CORE_STORE_FAILED,  /* it was to make the store and could not */
    CORE_STORE_KIND_COUNT
};
const char *core_store_kind_text(enum core_store_kind k); /* "PRESENT" */
struct core_store_in {
    const char *place;
    const char *id; /* of the marker that is there; PRESENT */
    enum core_store_kind kind;
    const char *text; /* what is wrong there, for people; may be NULL */
};
struct core_adopt {
    const char *place;
    json_t *known; /* array of uuids, one of which has to be there; a reference is taken;
                    * NULL: an empty directory will do */
};
/* Whether its agent would have a slot placed on (agent.md). */
enum core_slot_state {
    CORE_SLOT_USABLE,
    CORE_SLOT_UNSEEN,
    CORE_SLOT_FOREIGN,
    CORE_SLOT_HELD,
    CORE_SLOT_AILING,
    CORE_SLOT_STATE_COUNT
};
const char *core_slot_state_text(enum core_slot_state f); /* "USABLE" */
struct core_slot_sight {
    int slot;
    enum core_slot_state state;
    const char *text; /* why it is not usable, for people; may be NULL */
};
struct core_hello {
    const char *version, *pool; /* pool "": default */
    const char *addr;           /* what other hosts reach its tasks at */
    const struct core_slot_in *slots;
    size_t slots_n;
    const struct core_task_in *tasks;
    size_t tasks_n;
    bool looks;  /* it can be told to look at stores */
    bool judges; /* unfit are all slots that are not usable; else it does not say */
    const struct core_slot_sight *unfit;
    size_t unfit_n;
};
enum core_policy_action { CORE_CANCEL_RETRIES, CORE_EXCLUDE_NODE };
struct core_policy {
    enum core_policy_action action;
    const char *pattern; /* as the configuration has it */
};
enum core_early_exit { CORE_EXIT_INVALID_HP, CORE_EXIT_INIT_INVALID_HP };

struct core_event {
    enum core_event_kind kind;
    int64_t now_ms;   /* monotonic; never less than in the event before */
    int64_t now_us;   /* wall clock: written into rows, decides nothing */
    uint64_t request; /* token of the request to answer, 0: none */
    bool more;        /* the next event follows at once: what starts is decided then */
    int64_t exp_id, trial_id, run_id;
    const char *alloc_id, *container, *agent_id;
    union {
        struct core_create create;
        struct core_patch patch;
        struct core_gc gc;
        const struct core_continue *cont;
        struct core_agent_set agent_set;
        struct core_store_in store;
        struct core_slot_sight sight;
        struct core_adopt adopt;
        struct core_hello hello;
        struct core_task_in task;
        struct {
            int64_t length;
            const json_t *metric;
        } op;
        /* ack: the events up to this id are done with, 0: none; operations: an array of
         * SearcherOperation, each one checked with search_check_operation */
        struct {
            int64_t ack;
            const json_t *operations;
        } search;
        double units;
        const char
            *ports; /* that rank 0's host chose (runports.h); NULL: those that it was given */
        bool edit_begins;
        const char *purge_failed; /* the database's words; NULL: it is done */
        struct {
            enum core_early_exit reason;
            const char *text; /* what is invalid; NULL: it does not say */
        } exit_early;
        struct core_policy policy;
        struct {
            const char *uuid;
            int64_t steps;
        } checkpoint;
    };
};

/* ---- Effects ---- */

enum core_effect_kind {
    /* rows, committed before any other effect of the batch */
    CORE_SAVE_EXPERIMENT,        /* .experiment */
    CORE_SAVE_EXP_STATE,         /* .exp_state: only this column (deletion) */
    CORE_SAVE_SEARCH_EVENT,      /* .search_event */
    CORE_SAVE_SEARCH_SNAPSHOT,   /* .search_snapshot: in place of the one before */
    CORE_SAVE_TRIAL,             /* .trial */
    CORE_SAVE_ALLOCATION,        /* .allocation */
    CORE_SAVE_AGENT,             /* .agent */
    CORE_SAVE_STORE,             /* .store */
    CORE_SAVE_TIMELINE,          /* .timeline; of a host, or queued placed running ready preempted
                                    checkpoint validation restart kill end */
    CORE_SAVE_PARKED,            /* .parked */
    CORE_DELETE_SEARCH_SNAPSHOT, /* .exp_id: its log is read from the start until the next one */
    CORE_DELETE_EXPERIMENT,      /* .exp_id: with the little that hangs on it still */
    /* after the commit */
    CORE_REPLY,       /* .reply */
    CORE_ORDER_START, /* .start */
    CORE_ORDER_KILL,  /* .kill: signal KILL */
    CORE_ORDER_STORE, /* .store_order: look there, now and from now on */
    CORE_PREEMPT,     /* .alloc_id: wake its long polls with true */
    CORE_RENDEZVOUS,  /* .rendezvous: answer all who wait; may come again for one who asks again */
    CORE_ALLOC_END,   /* .alloc_id ended: end its long polls, forget its token */
    CORE_TASK_LOG,    /* .log: a line of source "master" */
    CORE_SEARCH_WAKE, /* .exp_id: events wait for the client of its custom search */
    CORE_GC_WANTED,   /* .exp_id ended: find what the policy deletes, then CORE_EV_EXP_GC */
    CORE_PURGE,       /* .exp_id: take what may be many rows of it away, in portions, then
                         CORE_EV_EXP_PURGED; what is DELETING at a start is purged anew */
    CORE_NOTHING,     /* was one of those before it, which core_refused() took out */
    CORE_EFFECT_KIND_COUNT
};
/* `case CORE_ANY_ROW:` of a switch that treats all rows alike; CORE_ANY_SENT: what only goes
 * out after the commit (CORE_TASK_LOG is both). */
/* clang-format off */
#define CORE_ANY_ROW                                                                               \
    CORE_SAVE_EXPERIMENT: case CORE_SAVE_EXP_STATE: case CORE_SAVE_SEARCH_EVENT:                   \
    case CORE_SAVE_SEARCH_SNAPSHOT: case CORE_SAVE_TRIAL: case CORE_SAVE_ALLOCATION:               \
    case CORE_SAVE_AGENT: case CORE_SAVE_STORE: case CORE_SAVE_TIMELINE: case CORE_SAVE_PARKED:    \
    case CORE_DELETE_SEARCH_SNAPSHOT: case CORE_DELETE_EXPERIMENT
#define CORE_ANY_SENT                                                                              \
    CORE_REPLY: case CORE_ORDER_START: case CORE_ORDER_KILL: case CORE_ORDER_STORE:                \
    case CORE_PREEMPT: case CORE_RENDEZVOUS: case CORE_ALLOC_END: case CORE_SEARCH_WAKE:           \
    case CORE_GC_WANTED: case CORE_PURGE
/* clang-format on */

struct core_reply {
    uint64_t request;
    int code;            /* 0 or DET_E*: DET_ENOENT not live, DET_ESTATE, DET_EINVAL, DET_ESTALE */
    const char *text;    /* of an error */
    int64_t id;          /* of what was created */
    bool slots_exceeded; /* LAUNCH_WARNING_CURRENT_SLOTS_EXCEEDED */
    double progress;
    const char *data;         /* SEARCH_EVENTS: a JSON array of SearcherEvent */
    int64_t exp_id, trial_id; /* whom it was about; 0: neither */
    bool is_setting;          /* of an agent or a store */
};
/* Of a refusal; what its code says where nothing more is known. */
const char *core_reply_text(const struct core_reply *r);
struct core_start {
    const char *agent_id, *alloc_id, *container;
    int64_t exp_id, trial_id, run_id; /* trial 0: none */
    int64_t owner_id;
    int64_t stall_timeout_s; /* the experiment's; -1: the master's setting */
    const char *task_id, *kind;
    /* The `task` object of agent.md and, apart, its env: texts of JSON objects, whole but for
     * token, user, owner, stall_timeout_ms, context, and in env DET_SESSION_TOKEN, DET_CLUSTER_ID,
     * DET_MASTER_ID, which the shell adds. */
    const char *task, *env;
};
struct core_kill {
    const char *agent_id, *alloc_id, *container;
};
struct core_store_order {
    const char *agent_id, *place;
    const char *id;    /* that has to be there; NULL: none is known */
    const char *known; /* JSON array of uuids; NULL: none */
    int64_t owner_id;  /* as whom it is made */
    bool make;         /* make its marker, unless there is one */
};
struct core_rendezvous { /* parallel arrays in order of rank */
    const char *alloc_id;
    size_t n;
    const char **containers, **addresses;
    int *slots;
    const char *ports; /* NULL: those that were given */
};
struct core_log {
    const char *task_id, *alloc_id, *text; /* one line without newline */
    int level;                             /* log.v1.LogLevel: 3 INFO, 4 WARNING, 5 ERROR */
    int64_t now_us;
};

struct core_effect {
    enum core_effect_kind kind;
    union {
        struct row_experiment experiment;
        struct {
            int64_t id;
            enum exp_state state;
            const char *undeleted; /* of DELETE_FAILED: why; else NULL */
        } exp_state;
        struct row_search_event search_event;
        struct row_search_snapshot search_snapshot;
        struct row_trial trial;
        struct row_allocation allocation;
        struct row_agent agent;
        struct row_store store;
        struct row_timeline timeline;
        struct row_parked parked;
        int64_t exp_id;
        const char *alloc_id;
        struct core_reply reply;
        struct core_start start;
        struct core_kill kill;
        struct core_store_order store_order;
        struct core_rendezvous rendezvous;
        struct core_log log;
    };
};
#define CORE_EFFECT_IS_ROW(kind) ((kind) <= CORE_DELETE_EXPERIMENT)

/* Effects in order, and all memory they point to. Independent of the core once filled. */
struct core_effects {
    struct core_effect *v;
    size_t n, cap;
    struct core_chunk *chunks;
};
#define CORE_EFFECTS_INIT                                                                          \
    {                                                                                              \
        0                                                                                          \
    }
void core_effects_finish(struct core_effects *e); /* frees; e is CORE_EFFECTS_INIT again */

/* Applies ev and appends to out. 0, or DET_EINVAL for an event that is malformed (state unchanged;
 * a request is answered all the same). After an event with more set, nothing but the next event. */
int core_step(struct core *c, const struct core_event *ev, struct core_effects *out);
/* The database refused row i of these effects, of which none was committed, performed or answered;
 * they are all there are since the last commit. Whose row it is is parked: the trial, or the
 * experiment with its trials when it is a row of the experiment or a trial's first, ends in ERROR
 * with the words in its log. None of its rows is written any more, now or later, but the one that
 * says so (CORE_SAVE_PARKED); its requests in `batch` are refused with the words. A row of neither
 * (a log line, a mark of the timeline, an agent's or store's setting) is left out. whole: the
 * experiment is parked in any case. False: the row cannot be missed, parked ones' own. */
struct core_refusal {
    size_t row;
    bool whole;
    const char *words;
};
bool core_refused(struct core *c, struct core_effects *batch, const struct core_refusal *r,
                  int64_t now_ms, int64_t now_us);
/* When the next CORE_EV_TICK is wanted, INT64_MAX if not at all. */
int64_t core_deadline_ms(const struct core *c);
/* Aborts when an invariant is broken. Slow: for tests and debug builds. */
void core_check(const struct core *c);
/* Of every n-th of its experiments, allocations, agents, pools and users, from the k-th on. */
void core_check_part(const struct core *c, size_t k, size_t n);
/* Of one experiment, its trials, and their allocations and containers. */
void core_check_exp(const struct core *c, int64_t exp_id);

/* ---- Rebuilding; in this order, on a fresh core ---- */

/* Whose leadership this is: a number, and a nonce that no other leadership has drawn, of this
 * database or of a copy of it. What is named from here on holds the nonce: tasks, allocations
 * (whose ids end with its first CORE_LIFE_MARK characters), containers. */
enum { CORE_LIFE_MARK = 8 };
void core_set_life(struct core *c, int64_t epoch, const char *nonce);
/* The highest ids ever given out. */
void core_restore_ids(struct core *c, int64_t last_exp_id, int64_t last_trial_id);
DET_MUST int core_restore_agent(struct core *c, const struct row_agent *r, struct det_err *err);
DET_MUST int core_restore_store(struct core *c, const struct row_store *r, struct det_err *err);
/* Experiments whose state is none of COMPLETED, CANCELED, ERROR, DELETED, DELETE_FAILED, by id. */
DET_MUST int core_restore_experiment(struct core *c, const struct row_experiment *r,
                                     struct det_err *err);
/* Their snapshot if there is one, then their events of later seq, in order. */
DET_MUST int core_restore_search_snapshot(struct core *c, const struct row_search_snapshot *r,
                                          struct det_err *err);
DET_MUST int core_restore_search_event(struct core *c, const struct row_search_event *r,
                                       struct det_err *err);
/* All trials of these experiments, by id; finished ones too. */
DET_MUST int core_restore_trial(struct core *c, const struct row_trial *r, struct det_err *err);
/* Allocations whose state is not TERMINATED; each knows its place in the queue. */
DET_MUST int core_restore_allocation(struct core *c, const struct row_allocation *r,
                                     struct det_err *err);
/* Ends the rebuilding: leases of agents begin, owed decisions are taken. */
int core_restored(struct core *c, int64_t now_ms, int64_t now_us, struct core_effects *out);

/* ---- Reading; cheap, const; strings and pointers live until the next step ---- */

/* What an ACTIVE experiment or trial is shown as: the furthest of its allocations. */
enum core_run_state {
    CORE_RUN_IDLE, /* a trial that waits for its searcher, and for no slot */
    CORE_RUN_QUEUED,
    CORE_RUN_PULLING,
    CORE_RUN_STARTING,
    CORE_RUN_RUNNING
};
/* Why a pending allocation has not started, as the last pass saw it. */
enum core_wait {
    CORE_WAIT_NONE,      /* it is not pending */
    CORE_WAIT_HOLD,      /* held back after losses in a row */
    CORE_WAIT_QUOTA,     /* its owner holds as many slots as he may */
    CORE_WAIT_MAX_SLOTS, /* its experiment does */
    CORE_WAIT_SHARE,     /* its experiment holds its fair share */
    CORE_WAIT_ORDER,     /* others come first */
    CORE_WAIT_AGENTS,    /* the agents there are could not take it, were they idle */
    CORE_WAIT_STORE,     /* they could, but too few of them have its checkpoint store */
    CORE_WAIT_ROOM,      /* it does not fit what is free */
};
enum core_job_state { CORE_JOB_QUEUED, CORE_JOB_SCHEDULED, CORE_JOB_BACKFILLED };

struct core_exp_view { /* an experiment = a job */
    int64_t id, owner_id;
    const char *job_id, *pool, *name, *config; /* config: JSON */
    enum exp_state state;
    enum core_run_state run_state; /* matters when state is ACTIVE */
    double progress;               /* 0..1 */
    int priority;                  /* the default when none was set */
    double weight;
    int64_t max_slots; /* negative: none */
    int64_t submitted_us;
    /* the job */
    enum core_job_state job_state;
    int64_t slots_requested, slots_held;
    bool is_set_aside; /* paused, and nothing of it runs any more */
    size_t trials_open;
};
/* False: not live. */
bool core_exp_get(const struct core *c, int64_t exp_id, struct core_exp_view *ret);
/* Ids of a live experiment's trials, in the order they were made. Caller frees. */
size_t core_exp_trials(const struct core *c, int64_t exp_id, int64_t **ret_ids);
/* The log_policies of its configuration; NULL: not live, or none. */
const json_t *core_exp_log_policies(const struct core *c, int64_t exp_id);
/* Ids of the live jobs (experiments) of a pool (NULL: all), in queue order. Caller frees. */
size_t core_jobs(const struct core *c, const char *pool, int64_t **ret_ids);
/* How many of its pool are served before it. */
int64_t core_jobs_ahead(const struct core *c, int64_t exp_id);
/* What patches[i], a CORE_EV_EXP_PATCH, would answer if it and those before it came now, which were
 * checked; changes nothing. */
DET_MUST int core_patch_check(const struct core *c, const struct core_event *patches, size_t i,
                              struct det_err *err);
/* The pool its experiment would be in when it comes; NULL: there is no such live experiment. */
const char *core_patch_pool(const struct core *c, const struct core_event *patches, size_t i);
/* The experiment of a live job, 0: none. */
int64_t core_job_find(const struct core *c, const char *job_id);

struct core_trial_view {
    int64_t id, exp_id, run_id, restarts;
    const char *request_id, *task_id, *alloc_id; /* alloc NULL: none lives */
    enum trial_state state;
    enum core_run_state run_state; /* matters when state is ACTIVE */
    bool has_op;                   /* GET searcher/operation: op and completed */
    int64_t op_length;
    bool op_completed;             /* nothing left to do now */
    const char *latest_checkpoint; /* NULL: none */
    int64_t latest_steps;
};
bool core_trial_get(const struct core *c, int64_t trial_id, struct core_trial_view *ret);

struct core_alloc_view {
    const char *id, *task_id, *kind, *pool, *name;
    int64_t exp_id, trial_id, run_id, owner_id;
    enum alloc_state state;
    bool is_ready, preempt;                 /* preempt: what the long poll answers */
    int64_t slots, requested_us, placed_us; /* placed: 0: it has had no slots yet */
    size_t containers;
    int priority;
    bool is_backfill; /* it was started before others that come first */
    enum core_wait wait;
    size_t avoids; /* agents that its trial stays away from */
};
bool core_alloc_get(const struct core *c, const char *alloc_id, struct core_alloc_view *ret);
/* All live allocations, oldest first: i from 0 until false. */
bool core_alloc_at(const struct core *c, size_t i, struct core_alloc_view *ret);

struct core_container_view {
    const char *id, *agent_id, *alloc_id;
    enum alloc_state state; /* ASSIGNED, PULLING, STARTING, RUNNING, TERMINATED */
    const int *slots;       /* ids on its agent */
    size_t slots_n;
};
bool core_alloc_container(const struct core *c, const char *alloc_id, size_t i,
                          struct core_container_view *ret);

struct core_agent_view {
    const char *id, *pool, *addr, *version;
    bool connected; /* false: in its reconnect wait */
    bool enabled, draining;
    int64_t registered_us;
    size_t slots, slots_used, slots_free,
        slots_disabled; /* counts; free + used + disabled = slots */
    size_t containers;  /* also those without slots */
};
/* By id, i from 0 until false. */
bool core_agent_at(const struct core *c, size_t i, struct core_agent_view *ret);
bool core_agent_get(const struct core *c, const char *agent_id, struct core_agent_view *ret);
struct core_slot_view {
    int id;
    enum core_device type;
    const char *brand, *uuid;
    int island, numa;                 /* -1: none is known */
    bool enabled, draining;           /* of the slot and its agent together */
    enum core_slot_state state;       /* as its agent says */
    const char *why;                  /* it is not usable; "" */
    bool forced;                      /* an administrator has it used all the same */
    const char *container, *alloc_id; /* NULL: free */
    enum alloc_state container_state;
};
bool core_slot_at(const struct core *c, const char *agent_id, size_t i, struct core_slot_view *ret);
/* Container i of an agent. */
bool core_agent_container(const struct core *c, const char *agent_id, size_t i,
                          struct core_container_view *ret);

/* The i-th store that the agent looks at, as it is there. */
struct core_sight_view {
    const char *place, *text;
    enum core_store_kind kind;
};
bool core_agent_sight(const struct core *c, const char *agent_id, size_t i,
                      struct core_sight_view *ret);

struct core_store_view {
    const char *place, *id, *made_on; /* id, made_on NULL: not made yet */
    int64_t owner_id, used_us;
    bool is_used; /* agents look at it */
};
/* As they were first used, i from 0 until false. */
bool core_store_at(const struct core *c, size_t i, struct core_store_view *ret);

struct core_pool_view {
    const char *name;
    const struct core_pool_options *o;
    size_t agents, slots, slots_used, aux_running;
    size_t jobs_queued, jobs_scheduled, jobs_paused; /* the last: is_set_aside */
};
/* The default pool first, then those configured and those that agents have named, by name. */
bool core_pool_at(const struct core *c, size_t i, struct core_pool_view *ret);
/* How a pool is run (NULL or "": the default one); NULL: no such pool. */
const struct core_pool_options *core_pool_options(const struct core *c, const char *pool);

/* What is live, by state (finished trials of live experiments included). */
struct core_counts {
    size_t experiments[EXP_STATE_COUNT], trials[TRIAL_STATE_COUNT], allocations[ALLOC_STATE_COUNT];
    int64_t oldest_pending_us; /* when it was asked for; INT64_MAX: nothing waits */
    size_t agents_connected, agents_lost, slots_free, slots_used, slots_disabled;
};
void core_count(const struct core *c, struct core_counts *ret);

/* The highest ids given out or skipped. */
void core_last_ids(const struct core *c, int64_t *ret_exp, int64_t *ret_trial);

/* Rises whenever the experiment is continued, begins to be deleted, or its row was changed beside
 * the core: by it CORE_EV_EXP_CONTINUE tells whether rows that were read are those of now. */
uint64_t core_exp_revision(const struct core *c, int64_t exp_id);

/* What the client of a custom search hears while the experiment is in that state ("PAUSED"), or has
 * ended in it: the JSON text of CORE_EV_SEARCH_EVENTS. Caller frees. */
char *core_inactive_event(const char *state);

/* Could `slots` ever be placed in this pool ("" = default), were it idle? 0: yes (ret_exceeded says
 * that it does not fit the agents there are now, but is let through); DET_EINVAL: no, with reason
 * and numbers; DET_ENOENT: no such pool. What CORE_EV_EXP_CREATE checks, for validateOnly. */
DET_MUST int core_fits(const struct core *c, const char *pool, int64_t slots, bool *ret_exceeded,
                       struct det_err *err);

#endif
