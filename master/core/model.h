/*
 * The core's state. Private to master/core.
 *
 * Ownership: struct core owns experiments, allocations and agents; an experiment owns its trials;
 * an allocation owns its containers. All other pointers are links, cleared by whoever ends. What
 * changed in a step is marked dirty; its rows are written once, at the end of the step, and what
 * ended is freed after that.
 */
#ifndef CORE_MODEL_H
#define CORE_MODEL_H

#include "core.h"
#include "edges.h"
#include "map.h"
#include "searcher.h"
#include "slab.h"
#include "timers.h"
#include "uuid.h"
#include "vec.h"

#define BIT(n) (1u << (n))

/* What the core reads of an experiment's configuration. Strings are borrowed from it. */
struct conf {
    struct search_conf search;
    const char *name, *pool, *unit; /* unit: batches, records, epochs or "" */
    int64_t slots, max_restarts, max_slots;
    int priority;
    double weight;
    bool holds; /* a search whose first trials to fail fail alike (alike.h) */
};

struct container;
struct pool;
struct agent;

struct store {
    char *place;
    char id[UUID_STR_MAX]; /* "": none yet */
    json_t *known;         /* uuids of checkpoints that lie in it, while it has no id */
    char *made_on;
    int64_t owner_id, used_us;
    VEC(struct pool *) pools; /* whose agents look at it */
    struct agent *asked;      /* has the word to make it */
    struct timer timer;       /* runs while one has it */
    bool is_loose;            /* none could: runs start without */
    bool dirty;
};
/* A store as an agent sees it. */
struct sight {
    struct store *store;
    enum core_store_kind kind;
    char *text;
};

enum agent_state { AGENT_ABSENT, AGENT_UP, AGENT_LOST, AGENT_STATE_COUNT };

/* By an administrator. */
enum off {
    NOT_OFF,
    OFF_DRAINING, /* what runs may end first */
    OFF_AT_ONCE
};

struct slot {
    int id;
    enum core_device type;
    char *brand, *uuid;
    int island, numa; /* as its agent says; -1: none is known */
    enum off off;
    enum core_slot_state state; /* as its agent says */
    char *why;                  /* why it is not usable; "" */
    bool forced;                /* enabled by an administrator, not usable as it is */
    struct container *holder;
};

struct slot_ids {
    VEC(int) v;
};

struct agent {
    char *id, *addr, *version;
    uint64_t hash; /* of the id: breaks ties of placement */
    enum agent_state state;
    enum off off;
    int64_t registered_us;
    struct pool *pool; /* NULL when absent */
    VEC(struct slot) slots;
    struct slot_ids slots_off;          /* ids switched off: also while absent */
    struct slot_ids slots_forced;       /* likewise */
    VEC(struct container *) containers; /* those not terminated */
    VEC(struct sight) sights;           /* of the stores that it was told to look at */
    bool looks;                         /* it can be told to */
    struct timer lease;                 /* runs while LOST */
    bool dirty;
    /* as the index of its pool has it (fit.c); free counts move while a scheduler tries things */
    struct pool *counted_in;
    bool listed; /* takes work */
    int free, aux_free, whole, total;
    /* scratch of a pass (sched_room.c) */
    bool is_coming; /* listed there */
    int coming;     /* slots that are being freed, promised to nobody yet */
};

struct container {
    char id[UUID_STR_MAX];
    struct alloc *alloc;
    struct agent *agent; /* NULL once terminated */
    char *agent_id;
    int node;
    enum alloc_state state; /* ASSIGNED .. RUNNING, TERMINATED */
    VEC(int) slots;
    bool daemon, arrived;
    struct {            /* as its agent said last; not restored */
        char phase[32]; /* "": none of its ranks is silent */
        int rank;
        int64_t since_ms, timeout_ms;
    } silent;
    struct {              /* likewise */
        char text[300];   /* "": its processes have answers from the master */
        int64_t since_ms; /* of which this master knows */
    } unreached;
};

/* Where the queue lists an allocation. */
enum queue_as { QUEUE_NONE, QUEUE_PENDING, QUEUE_RUNNING, QUEUE_ENDING };
enum alloc_kind { KIND_TRIAL, KIND_GC };
enum kill_why {
    KILL_NONE,
    KILL_USER,
    KILL_PAUSE,
    KILL_TIMEOUT,
    KILL_SCHEDULER,
    KILL_DISABLED,
    KILL_FAILED,
    KILL_DAEMONS,
    KILL_INVALID_HP,
    KILL_LOST,
    KILL_WHY_COUNT
};
struct failure {
    bool is_set, transient;
    enum core_exit_reason reason;
    int node; /* whose container it was */
    int code, signal, rank;
    char *text;
    char *exception, *at; /* NULL: none is known; not restored */
};

struct alloc {
    uint64_t seq; /* order of request */
    char *id, *task_id;
    uint64_t hash;
    enum alloc_kind kind;
    enum alloc_state state;
    struct exp *exp;     /* NULL: collection for a finished experiment */
    struct trial *trial; /* NULL: collection */
    int64_t exp_id, owner_id, run_id, slots;
    struct pool *pool;
    VEC(struct container *) containers;
    size_t live; /* containers not terminated */
    int port;    /* index of its ports, -1: none */
    char *ports; /* by which rank 0's host exchanged some (runports.h); NULL: none */
    bool is_ready, preempt, dirty, is_new;
    /* Four facts of its end, no state: any may be true beside any other, and all are saved. */
    bool acked;       /* it was heard to stop as asked */
    bool was_ours;    /* we ended it, for no failure of its own */
    bool unclean;     /* some container failed, or was not seen to end */
    bool unconfirmed; /* ended by an agent's absence: may still run */
    enum kill_why kill;
    struct failure failure;              /* the first, when not ours */
    int64_t start_us, placed_us, end_us; /* placed: 0: it has had no slots yet */
    /* deadlines (deadline.c); INT64_MAX: none */
    int64_t hold_for_ms; /* how long it is held in all; 0: not */
    int64_t hold_ms, preempt_ms, kill_ms, start_ms, exit_ms, ready_ms, done_ms;
    struct timer timer;          /* the earliest of them */
    json_t *gc_config, *gc_work; /* collection: task.gc of agent.md */
    struct store *store;         /* collection: what it works on; else its experiment's */
    bool said_store;             /* its log says that it waits for its store */
    bool deletes;                /* read back: exp is to be deleted after it */
    bool parked;                 /* the database refused a row: none is written (park.h) */
    /* the queue (queue.c) */
    enum queue_as queued_as;
    int64_t shield_ms;         /* until then no scheduler asks it to stop */
    bool is_backfill;          /* started before others that come first */
    bool is_asked;             /* scratch of a pass: chosen to be asked to stop */
    struct alloc *prev, *next; /* in a list of its group */
};

/* By seq. */
struct alloc_list {
    struct alloc *first, *last;
    size_t n;
};

/* What shares are dealt to: an experiment, or all collections of a pool (exp NULL). All its
 * allocations are of one size. A pass reads every group, so what it reads stands together, in two
 * lines of the processor's cache, and those of all experiments side by side (slab.h). */
struct group {
    int64_t size;
    struct store *store;                        /* of its checkpoints; NULL: of a kind without */
    struct alloc_list pending, running, ending; /* those placed run, or were asked to stop */
    int64_t waits_ms;    /* since when nothing of it is placed, while something is
                          * pending */
    int64_t held;        /* slots of the running */
    unsigned backfilled; /* of the running */
    bool could;          /* scratch of a pass: something of it could start, were the agents
                          * idle */
    bool has_store;      /* enough agents have its store */
    int64_t taking;      /* scratch too, as are next, offer, excess, demand and victim */
    struct alloc *next;  /* the first pending one not considered yet */
    struct exp *exp;
    int64_t id; /* of the experiment; 0: collections */
    double weight;
    int64_t max_slots;
    double position;
    int64_t offer;
    int64_t excess; /* held beyond the offer */
    int priority;   /* 0: the default */

    struct user *user; /* the experiment's owner */
    int64_t demand;
    struct alloc *victim; /* the next that may be released */
    int64_t releasing;    /* slots of the ending */
    struct pool *pool;    /* NULL: not listed, it has no allocation */
};

/* Who owns experiments: what of his quotas is used. */
struct user_pool {
    struct pool *pool;
    int64_t used; /* slots placed there */
};
struct user {
    int64_t id;
    char *name;
    int64_t used;   /* slots placed anywhere */
    int64_t taking; /* scratch of a pass */
    VEC(struct user_pool) pools;
};
struct quota {
    char *user, *pool; /* NULL: everybody; all pools together */
    int64_t slots;
};

/* A host that a trial's next run stays away from (avoid.h). */
enum avoid_source { AVOID_POLICY, AVOID_START, AVOID_SOURCE_COUNT };
struct avoid {
    char *agent;
    enum avoid_source source;
    char *text;       /* why */
    int failures;     /* to start it there, since it last got somewhere */
    bool is_out;      /* else it is known, but may be tried again */
    bool is_absent;   /* it has not what the configuration names */
    int64_t until_ms; /* INT64_MAX: no time lifts it */
};

/* What the searcher asked for last. */
enum trial_op {
    OP_NONE, /* nothing yet */
    OP_OPEN,
    OP_REDO, /* it was completed, but its run left no last checkpoint: to be done again, untold */
    OP_DONE
};

struct trial {
    int64_t id;
    struct exp *exp;
    char request_id[UUID_STR_MAX];
    char *task_id;
    enum trial_state state;
    int64_t run_id, restarts, seed, start_us, end_us;
    bool run_fresh;       /* run_id was raised by a fence and not yet used */
    json_t *hparams;      /* NULL when finished */
    bool hparams_changed; /* to be written once more */
    char *warm_start, *latest;
    int64_t latest_steps;
    enum trial_op op;
    bool closed;
    int64_t op_length, op_last; /* of the operation, of the last one completed (0: none) */
    int exit_reason;            /* enum search_exit, -1: none */
    int transients;             /* losses in a row without a checkpoint between */
    char *lost;                 /* the last of them: host and reason; NULL: none */
    struct {                    /* of this run, as far as it was reported; not restored */
        int64_t run_id, from_ms, at_ms;
        double from_units, units;
    } speed;
    VEC(struct avoid) avoids;
    int start_rounds;           /* times that no host could start it, since it got somewhere */
    bool is_paused;             /* its next run is held for the last of these */
    bool has_run;               /* a run of it came to a batch */
    char *said;                 /* the searcher's reason to close it; not restored */
    char *invalid_for;          /* what it said of its hyperparameters; NULL: nothing */
    char *closed_for;           /* what the client of its search gave for that; NULL: nothing */
    char *mistake, *mistake_at; /* the exception of its first run that failed, "": none was
                                 * known; NULL: none has failed (alike.h) */
    char *no_retry;             /* the pattern of a log policy: its next failure is the last */
    struct alloc *alloc;
    bool dirty, is_new;
    bool parked;
};

struct exp {
    struct group *group; /* what schedulers ask of it; its own */
    int64_t id;
    struct pool *pool;
    int64_t owner_id, project_id, parent_id;
    char *job_id, *warm_start, *owner;
    enum exp_state state;
    char *held;      /* why it was paused unasked (alike.h); NULL: it was not */
    char *undeleted; /* DELETE_FAILED: why */
    json_t *config;  /* conf_trim() of config_text */
    char *config_text;
    struct conf conf;
    struct exp_submission *submission; /* borrowed until its first row is made */
    int64_t start_us, end_us;
    double progress;
    int64_t waited_ms; /* for room, as its row has it */
    struct search *search;
    int64_t search_seq, snap_seq;
    struct search_ops todo; /* for trials to be made; from todo_at on (exp_search.c) */
    size_t todo_at;
    bool todo_owed;    /* read back: the log's replay has to fill todo */
    struct timer more; /* runs while todo has something */
    VEC(struct trial *) trials;
    struct map *by_request; /* request id -> trial */
    size_t open;
    size_t mistaken;        /* trials that have a mistake (alike.h) */
    bool is_judged;         /* whether these failed alike was decided, once */
    bool is_judging_unsaid; /* its row does not say: alike_restored() */
    struct alloc *gc;       /* DELETING: of its checkpoints; */
    bool is_purging;        /* then of its rows */
    bool dirty, is_new, state_only;
    bool config_changed; /* to be written once more */
    bool parked;
};

struct fit_entry {
    uint64_t hash;
    struct agent *agent;
};
struct fit_bucket {
    int free, whole;
    VEC(struct fit_entry) entries; /* by hash, then falling id */
};
struct fit_index {
    VEC(struct fit_bucket) buckets; /* by free, then whole; none is empty */
};
struct fit_size {
    int size;
    int64_t n;
};
struct fit_tally {
    VEC(struct fit_size) sizes; /* by size */
};
struct fit_change {
    struct agent *agent;
    int free, aux_free; /* before it */
};
struct fit {
    const struct core *c;
    const struct core_pool_options *o;
    struct fit_index slots, aux; /* of agents that take work */
    struct fit_tally usable, all;
    int64_t free_total;
    VEC(struct fit_change) journal;
    bool is_frozen;
};

struct pool {
    char *name, *description;
    struct core_pool_options o; /* its strings are these */
    VEC(struct agent *) agents; /* not absent; by id */
    struct fit fit;
    VEC(struct group *) groups; /* with allocations; by experiment's id, collections first */
    struct group collections;
    size_t pending_n;
    struct alloc *guarded; /* has waited long: room is made for it on these agents */
    VEC(struct agent *) reserved;
    struct timer timer; /* the next wait or shield that ends */
    bool dirty;         /* to be scheduled in this step */
};

struct search_row {
    int64_t exp_id, seq;
    char *text;
};

struct core {
    struct core_options o;
    char *default_pool, *cluster_id;
    int64_t now_ms, now_us;   /* of the event in progress */
    struct core_effects *out; /* during a step */
    int64_t settled_ms;       /* agents of before a start have had time to come back */
    struct timer settled;     /* runs when something waits for that */
    struct timer waits;       /* runs while something waits for room: queue_save_waits() */
    struct timer lifts;       /* runs while a trial avoids a host for a time: avoid_on_timer() */
    int64_t last_exp, last_trial;
    int64_t epoch;
    char nonce[UUID_STR_MAX]; /* of the leadership: in all names that are made */
    uint64_t last_alloc, last_gc;
    int made;               /* trials, in this step */
    VEC(struct exp *) exps; /* by id */
    struct slab groups;     /* of theirs */
    struct imap *exp_by_id, *trial_by_id;
    struct imap *deleted;       /* ids of experiments deleted since the start */
    struct imap *revisions;     /* by id of the experiment: core_exp_revision() */
    struct imap *edits;         /* by id of the experiment: how many changes of its row are under
                                 * way */
    VEC(struct alloc *) allocs; /* by seq */
    struct map *alloc_by_id, *agent_by_id;
    VEC(struct agent *) agents; /* by id */
    VEC(struct pool *) pools;   /* the default first, then by name */
    VEC(struct store *) stores; /* as they were first used */
    struct map *store_by_place;
    VEC(bool) ports;  /* indices in use */
    size_t port_free; /* none below is free */
    struct timers timers;
    unsigned moved[MACHINE_COUNT][MACHINE_STATES_MAX]; /* from each state, bits of where to */
    VEC(struct quota) quotas;
    struct imap *users; /* by id */
    VEC(struct exp *) dirty_exps;
    VEC(struct trial *) dirty_trials;
    VEC(struct alloc *) dirty_allocs;
    VEC(struct agent *) dirty_agents;
    VEC(struct store *) dirty_stores;
    VEC(struct search_row) search_rows;
};

#endif
