/*
 * The agent link: the messages of agent.md as structs, and their codecs. Both sides decode what the
 * other sent as hostile: every type, range, length and count is checked before a struct is filled,
 * and the error names the key.
 *
 * A decoded struct borrows its strings from the JSON it keeps (`json`), and lives until its
 * finish(). Structs that are to be encoded are filled by the caller, `json` NULL, strings borrowed
 * for the call.
 */
#ifndef AGENTLINK_H
#define AGENTLINK_H

#include "buf.h"
#include "clockdiff.h"
#include "det/err.h"
#include "json.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What agents and tasks say they speak; the master takes the version before too, so that it is
 * upgraded first and what runs goes on. */
#define LINK_PROTOCOL      2
#define LINK_PROTOCOL_MIN  (LINK_PROTOCOL - 1)
#define LINK_HEADER        "Det-Protocol" /* of a task's requests */
#define LINK_EVENTS_MAX    1000           /* of a request */
#define LINK_BODY_MAX      ((size_t)4 << 20)
#define LINK_LINE_MAX      ((size_t)16 << 20) /* of an order */
#define LINK_SLOTS_MAX     1024               /* of an agent */
#define LINK_TASKS_MAX     10000              /* of a hello */
#define LINK_NODES_MAX     4096
#define LINK_ID_MAX        128 /* letters, digits, '.', '_' and '-'; not "." or ".." */
#define LINK_POOL_MAX      128 /* bytes of a pool's name */
#define LINK_MARKS_MAX     32  /* of a task */
#define LINK_DETAIL_MAX    400 /* bytes of a mark's detail; longer ones are cut when encoded */
#define LINK_IDS_MAX       (INT64_C(1) << 30) /* of experiments and trials */
#define LINK_TEXT_MAX      2000 /* of an exit, in bytes; longer ones are cut when encoded */
#define LINK_WHY_MAX       300  /* bytes of why a slot is not usable; longer ones are cut */
#define LINK_EXCEPTION_MAX 400  /* bytes of an exception, and of its place; cut likewise */
#define LINK_PLACE_MAX     2048 /* bytes of a store's place */
#define LINK_NUMA_MAX      1024 /* nodes of a host, as Linux counts them */
#define LINK_KNOWN_MAX     64   /* checkpoints of a store that are named */
#define LINK_HEARTBEAT_MS  2000
#define LINK_SILENCE_MS    10000
/* In a task's directory, which is called as its allocation: where its ranks work, and so what the
 * paths in their tracebacks begin with. */
#define LINK_WORK_DIR "work"
/* The last line of an answer to an order "stacks", with the agent's name. */
#define LINK_STACKS_END "The stacks of the ranks on agent %s end here."
#define LINK_BEAT_MS    4000 /* an agent that has nothing to tell says so this often */

/* Whether s may be an allocation, container or agent id: safe as a path's part and in a URL. */
bool link_id_is_valid(const char *s);

enum link_device { LINK_CPU, LINK_CUDA, LINK_ROCM, LINK_DEVICE_COUNT };
const char *link_device_name(enum link_device d); /* "cpu" */
struct link_slot {
    int id;
    enum link_device type;
    const char *brand, *uuid;
    int island; /* the same number: joined by NVLink. -1: none is known, or it has none */
    int numa;   /* node of the host; -1: none is known */
};

enum link_exit_reason {
    LINK_EXITED,       /* the ranks ended: code, signal and rank of the first that failed */
    LINK_KILLED,       /* by an order of the master */
    LINK_STALLED,      /* no sign of life for the stall timeout */
    LINK_START_FAILED, /* the system's fault: nothing of the trial ran */
    LINK_LOST,         /* the system's fault: det-task is gone */
    LINK_STORE_AWAY,   /* no fault of the trial's: its checkpoint store is away or full */
    LINK_ABSENT,       /* the interpreter of the configuration is not here; nothing of it ran */
    LINK_EXIT_REASON_COUNT
};
const char *link_exit_reason_name(enum link_exit_reason r); /* "exited" */
struct link_exit {
    enum link_exit_reason reason;
    int code, signal, rank; /* 0..255, 0..64, -1.. */
    const char *text;       /* never NULL when decoded */
    /* The exception that ended it, "KeyError: 'lr'", and where in the user's own code,
     * "model_def.py, line 3, in f" or ""; both NULL: none is known. */
    const char *exception, *at;
};

enum link_state { LINK_STARTING, LINK_RUNNING, LINK_ENDED, LINK_STATE_COUNT };
const char *link_state_name(enum link_state s); /* "starting"; "ended" occurs in a hello only */
/* Something that happened to a task, by its host's wall clock. */
struct link_mark {
    const char *kind; /* an id: agent.md lists them; one that is not known is kept all the same */
    int64_t at_us, duration_us; /* duration of what ended then; 0: a moment */
    const char *detail;         /* never NULL when decoded */
};
/* A rank that has given no sign of life for a while; its verdict is yet to come. */
struct link_silent {
    const char *phase; /* in which it is, an id; NULL: no rank is silent */
    int rank;
    int64_t batches;    /* that it has finished */
    int64_t silent_ms;  /* so far */
    int64_t timeout_ms; /* after which it is taken to hang */
};
/* No process of the task has had an answer from the master, though it was tried as they would. */
struct link_unreached {
    const char *text; /* what was tried and how it failed; NULL: it was, or was not tried yet */
    int64_t for_ms;
};
struct link_task {
    const char *alloc, *container;
    enum link_state state;
    struct link_exit exit;   /* when ended */
    struct link_mark *marks; /* that the master may not know yet; allocated when decoded */
    size_t marks_n;
    struct link_silent silent;       /* of one that runs */
    struct link_unreached unreached; /* likewise; not in a hello */
};

/* What an agent sees at the place of a checkpoint store. */
enum link_store_state {
    LINK_STORE_PRESENT, /* a marker: its id */
    LINK_STORE_OTHER,   /* the marker of another store */
    LINK_STORE_ABSENT,  /* none */
    LINK_STORE_KNOWN,   /* none, but a checkpoint that the order names */
    LINK_STORE_HIDDEN,  /* it may not look */
    LINK_STORE_FAILED,  /* it was to make the store and could not */
    LINK_STORE_STATE_COUNT
};
struct link_store {
    const char *place;
    const char *id; /* of the marker that is there; NULL: none */
    enum link_store_state state;
    const char *text; /* what is wrong there; never NULL when decoded */
};

/* Whether its agent would have a slot placed on. */
enum link_slot_state {
    LINK_SLOT_USABLE,
    LINK_SLOT_UNSEEN,  /* not looked at yet, or not since the end of a task */
    LINK_SLOT_FOREIGN, /* a process on it is no task's of this agent */
    LINK_SLOT_HELD,    /* its memory is in use, and no process can be seen */
    LINK_SLOT_AILING,  /* it has failed, or its driver does not answer */
    LINK_SLOT_STATE_COUNT
};
const char *link_slot_state_name(enum link_slot_state f); /* "usable" */
struct link_slot_sight {
    int slot;
    enum link_slot_state state;
    const char *text; /* why it is not usable; never NULL when decoded */
};

enum link_event_kind {
    LINK_EV_HELLO,
    LINK_EV_STATE,
    LINK_EV_EXIT,
    LINK_EV_STORE,
    LINK_EV_SLOT,
    LINK_EV_UNKNOWN, /* of a newer agent: it has a number, and says nothing to this master */
    LINK_EVENT_KIND_COUNT
};
struct link_hello {
    const char *version, *pool, *addr; /* pool "": the default */
    struct link_slot *slots;
    size_t slots_n;
    struct link_task *tasks;
    size_t tasks_n;
    bool looks;  /* it takes orders about stores */
    bool judges; /* it says which slots are not usable: unfit has all of them */
    struct link_slot_sight *unfit;
    size_t unfit_n;
    size_t left_out; /* decoded: slots of a type that only a newer master knows */
};
struct link_event {
    int64_t seq; /* from 1 */
    enum link_event_kind kind;
    struct link_hello hello; /* LINK_EV_HELLO */
    struct link_task task;   /* LINK_EV_STATE: state; LINK_EV_EXIT: state is LINK_ENDED, exit */
    struct link_store store; /* LINK_EV_STORE */
    struct link_slot_sight sight; /* LINK_EV_SLOT */
};

/* A GPU in figures, of late; -1: its driver does not say. */
struct link_gpu {
    int slot;
    int util_percent;            /* of the time, a kernel ran */
    int64_t mem_used, mem_total; /* bytes */
    int temp_c, power_mw, sm_mhz, mem_mhz;
    int64_t idle_s; /* a task has it and has used less than LINK_GPU_IDLE_PERCENT for so long */
};
#define LINK_GPU_IDLE_PERCENT 5
json_t *link_gpu_json(const struct link_gpu *g); /* new reference */

/* A life of the master, as it says at each answer and as the agent has heard of it last: the
 * leadership's number and nonce, its newest batch of rows, the highest ids given out. */
struct link_life {
    const char *cluster, *nonce;
    int64_t epoch, batch, exp, trial;
};
/* DET_EINVAL names the key. Strings are borrowed from j. */
DET_MUST int link_life_decode(const json_t *j, struct link_life *ret, struct det_err *err);
json_t *link_life_json(const struct link_life *l); /* new reference */

/* The body of POST /agent/v1/{agent}/events. */
struct link_events {
    json_t *json;
    bool has_seen;
    struct link_life seen; /* "seen": the life that the agent served last */
    bool has_clock;
    struct clockdiff clock; /* "clock": the agent's beside the master's, by an exchange before */
    const char *boot;
    int protocol;
    bool beats;           /* its silence means something */
    struct link_event *v; /* seq rises by 1 from one to the next */
    size_t n;
    struct link_gpu *gpus; /* "gpus": of this host, all that are known; NULL: it does not say now */
    size_t gpus_n;
};
/* DET_EUNIMPL for a version that this master does not speak. */
DET_MUST int link_protocol_check(int64_t protocol, struct det_err *err);
/* DET_EINVAL (the text names the key), DET_ETOOBIG, DET_EUNIMPL as above; then nothing is to be
 * finished. */
DET_MUST int link_events_decode(const char *text, size_t len, struct link_events *ret,
                                struct det_err *err);
void link_events_finish(struct link_events *e);
/* One event as it stands in "events". New reference. */
json_t *link_event_json(const struct link_event *e);
/* The whole body; takes the references of events_array (an array of link_event_json()). seen
 * (borrowed): a link_life_json(), or NULL. New reference. */
json_t *link_events_json(const char *boot, json_t *events_array, json_t *seen);
json_t *link_clock_json(const struct clockdiff *d); /* its "clock"; new reference */
/* When the master had a request whole, and when it answered, by its wall clock. */
struct link_times {
    int64_t got_us, answered_us;
};
/* DET_EINVAL names the key. */
DET_MUST int link_times_decode(const json_t *j, struct link_times *ret, struct det_err *err);
json_t *link_times_json(const struct link_times *t); /* new reference */
/* The answer's body: {"ack": n, "life": {...}, "clock": {...}}; masters of before have no life, or
 * no clock. */
struct link_ack {
    json_t *json;
    int64_t ack;
    bool has_clock;
    struct link_times clock;
    bool has_life;
    struct link_life life;
};
DET_MUST int link_ack_decode(const char *text, size_t len, struct link_ack *ret,
                             struct det_err *err);
void link_ack_finish(struct link_ack *a);

enum link_order_kind {
    LINK_HEARTBEAT,
    LINK_START,
    LINK_SIGNAL,
    LINK_STORE,
    LINK_STACKS, /* write where its ranks are into its log */
    LINK_ORDER_UNKNOWN
};
/* Look at this place now and then; what is seen there is told at once, and when it changes. */
struct link_watch {
    const char *place;   /* absolute */
    const char *id;      /* that should be there; NULL: none is known */
    const json_t *known; /* array of strings: checkpoints that lie there; NULL: none */
    bool make;           /* make the store, once */
    const json_t *user;  /* as whom: as in a task; NULL: as tasks of `owner` without an account */
    int64_t owner;       /* 0: not said */
};
struct link_order {
    json_t *json;
    enum link_order_kind kind;
    int64_t seq; /* 0 for a heartbeat */
    const char *alloc;
    const char *container;   /* LINK_START, LINK_STACKS; LINK_SIGNAL, NULL from older masters */
    json_t *task;            /* LINK_START: checked by link_spec_decode(); borrowed from json */
    int signal;              /* LINK_SIGNAL: SIGKILL, SIGTERM, SIGINT, SIGUSR1, SIGUSR2 */
    struct link_watch watch; /* LINK_STORE; borrowed from json */
};
/* A line of the orders' stream. An order of another name is LINK_ORDER_UNKNOWN, to be passed over.
 */
DET_MUST int link_order_decode(const char *line, size_t len, struct link_order *ret,
                               struct det_err *err);
void link_order_finish(struct link_order *o);
/* The line of an order but LINK_START, without its newline. New reference. */
json_t *link_order_json(const struct link_order *o);
/* The line of a LINK_START, without its newline; task: the text of a JSON object. */
void link_start_write(struct buf *out, const struct link_order *o, const char *task);

/* What a CHECKPOINT_GC task does with each of its checkpoints. */
enum link_gc_action {
    LINK_GC_PURGE,      /* deletes it for good, wherever it is */
    LINK_GC_QUARANTINE, /* puts it aside */
    LINK_GC_RESTORE,    /* takes it back */
    LINK_GC_CUT,        /* deletes the files that match */
    LINK_GC_LIST,       /* of none: tells what lies in the store and the master does not know */
    LINK_GC_COUNT
};
extern const char *const link_gc_names[LINK_GC_COUNT];

/* What a start order says of its task. */
struct link_spec {
    const char *task_id, *kind; /* kind "TRIAL" or "CHECKPOINT_GC" */
    int64_t run_id;
    int *slots; /* ids on this agent */
    size_t slots_n;
    int node, nodes;
    int *slot_counts;         /* nodes of them */
    const json_t *entrypoint; /* string or non-empty array of strings; NULL for CHECKPOINT_GC */
    const json_t *env;        /* object of strings */
    const char *token;
    bool has_user;
    const char *user_name;
    int64_t uid, gid;
    int64_t owner;                    /* the master's number of whose task it is; 0: not said */
    int64_t stall_timeout_ms;         /* 0: never */
    const char *context;              /* base64 of a tar.gz, or NULL: fetch it */
    const json_t *checkpoint_storage; /* object or NULL */
    const json_t *python;             /* the configuration's environment.python, or NULL */
    const char *interpreter;          /* of it; NULL: not said */
    const json_t *requirements;       /* of it: array of strings; NULL: none */
    /* CHECKPOINT_GC only */
    const json_t *gc_uuids; /* array of strings */
    enum link_gc_action gc_action;
    const json_t *gc_globs; /* array of strings, LINK_GC_CUT only */
    const json_t *gc_trees; /* array of strings, LINK_GC_PURGE only; NULL: none */
};
/* All is borrowed from `task`, but for slots and slot_counts, which link_spec_finish() frees. */
DET_MUST int link_spec_decode(const json_t *task, struct link_spec *ret, struct det_err *err);
void link_spec_finish(struct link_spec *s);

/* A mark as it stands in "marks". New reference. */
json_t *link_mark_json(const struct link_mark *m);
/* An array of marks (absent: none). *ret is allocated, its strings borrowed from arr. */
DET_MUST int link_marks_decode(const json_t *arr, struct link_mark **ret, size_t *ret_n,
                               struct det_err *err);

/* The object of a silence, and back (phase borrowed from j). */
json_t *link_silent_json(const struct link_silent *s);
DET_MUST int link_silent_decode(const json_t *j, struct link_silent *ret, struct det_err *err);

/* The object of what is not reached, and back (text borrowed from j). */
json_t *link_unreached_json(const struct link_unreached *u);
DET_MUST int link_unreached_decode(const json_t *j, struct link_unreached *ret,
                                   struct det_err *err);

/* The object of an exit, and back (text borrowed from j). Kept in det-task's state file too. */
json_t *link_exit_json(const struct link_exit *e);
DET_MUST int link_exit_decode(const json_t *j, struct link_exit *ret, struct det_err *err);

#endif
