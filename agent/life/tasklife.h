/*
 * The life of one det-task, from an empty directory to everything told, as a machine. Pure: no I/O,
 * no clock. det-task (agent/task/) feeds in what happens and performs the effects, in order.
 *
 *     PREPARING --> HOOKING --> RUNNING ----> ENDING (SIGTERM, grace) --> KILLING
 *         |            |         |    \-----> TRACING (a rank hangs) -------> |
 *         \____________\_________\__________________________________________/ |
 *                                                                             v
 *     FINISHED <-- ENDED (exit told; the rest of the log) <-- LOG <-- REPORTS <-- PIPES
 *
 * The first failure decides the exit; what follows from it (ranks that lose their peers) does not
 * change it. From ENDING and TRACING on there is one, and before RUNNING there is none.
 *
 * Each phase ends by a deadline (tasklife.c has the table) but those that something else bounds:
 * PREPARING and RUNNING the master's orders and the stall watch, HOOKING without a stall timeout an
 * order, REPORTS the limits that go with them (report/reports.h).
 */
#ifndef TASKLIFE_H
#define TASKLIFE_H

#include "agentlink.h"
#include "vec.h"

enum task_phase {
    TASK_PREPARING, /* directories, the model's files, where the other nodes are */
    TASK_HOOKING,   /* a step before the ranks: the hook, the choice of a Python */
    TASK_RUNNING,
    TASK_TRACING, /* a rank hangs: where the ranks are is written down first */
    TASK_ENDING,  /* the ranks were asked to end */
    TASK_KILLING, /* struck again and again, until no process is left */
    TASK_PIPES,   /* what was printed is read to its end */
    TASK_REPORTS, /* what ranks had left to report is sent */
    TASK_LOG,     /* and the log */
    TASK_ENDED,   /* the exit is told; the rest of the log goes on being sent */
    TASK_FINISHED,
    TASK_PHASE_COUNT
};

/* What else than TASKLIFE_TICK has a member of the event besides its kind stands there. */
enum tasklife_event_kind {
    TASKLIFE_STEP,        /* a step begins: step */
    TASKLIFE_SAID,        /* something was printed */
    TASKLIFE_RANKS,       /* the ranks begin */
    TASKLIFE_MET,         /* the master has heard of them */
    TASKLIFE_FAILED,      /* it cannot go on: exit */
    TASKLIFE_RANK_FAILED, /* exit; the children's event follows */
    TASKLIFE_CHILDREN,    /* children ended: all_ended, first_ended */
    TASKLIFE_STALLED,     /* a rank gives no sign of life: exit */
    TASKLIFE_LOOKED,      /* where the ranks are is written, or will not be */
    TASKLIFE_KILL,        /* the master's order */
    TASKLIFE_END,         /* likewise, and nothing is waited for: det-task --end */
    TASKLIFE_TERM,        /* det-task itself is told to end */
    TASKLIFE_RECOVER,     /* in place of a det-task that died: exit */
    TASKLIFE_STRUCK,      /* all that was found was killed: is_gone, when nothing was left */
    TASKLIFE_SILENT,      /* the pipes are at their end */
    TASKLIFE_REPORTED,    /* the reports are sent, or given up */
    TASKLIFE_LOG_EMPTY,   /* no line is unsent */
    TASKLIFE_ACKED,       /* the master knows the exit */
    TASKLIFE_TICK,        /* deadline_ms may have come */
    TASKLIFE_EVENT_COUNT
};
struct tasklife_event {
    enum tasklife_event_kind kind;
    const char *step;            /* what it is called; a literal */
    struct link_exit exit;       /* its text is copied, the exception is not taken */
    bool all_ended, first_ended; /* of the ranks; the first is rank 0 or what stands for it */
    bool is_gone;
    bool is_said; /* RECOVER: the log has the exit's text already */
};

enum tasklife_effect {
    TASKLIFE_SAY_EXIT,      /* the exit is decided: into the log */
    TASKLIFE_SAY_STRAGGLE,  /* rank 0 has ended, others have not and are ended */
    TASKLIFE_SAY_UNDYING,   /* processes do not die */
    TASKLIFE_LOOK,          /* where are the ranks? TASKLIFE_LOOKED follows */
    TASKLIFE_ASK_TO_END,    /* SIGTERM to the ranks */
    TASKLIFE_STOP,          /* no look, no question to the master, no watch any more */
    TASKLIFE_STRIKE,        /* kill all there is; TASKLIFE_STRUCK follows at once */
    TASKLIFE_READ_PIPES,    /* to their end: TASKLIFE_SILENT. Nothing of the task runs */
    TASKLIFE_SEND_REPORTS,  /* TASKLIFE_REPORTED follows */
    TASKLIFE_HURRY_REPORTS, /* those that are being sent */
    TASKLIFE_SEND_LOG,      /* TASKLIFE_LOG_EMPTY follows, if the phase does not end before */
    TASKLIFE_TELL_EXIT,     /* to the agent, once */
    TASKLIFE_SEND_REST,     /* of the log; TASKLIFE_LOG_EMPTY, likewise */
    TASKLIFE_FINISH,        /* let go of everything */
    TASKLIFE_QUIT,          /* leave at once: all is told */
    TASKLIFE_EFFECT_COUNT
};

/* How much is waited for once it ends. */
enum tasklife_hurry { TASKLIFE_PATIENT, TASKLIFE_KILLED, TASKLIFE_HURRIED };

#define TASKLIFE_NEVER       INT64_MAX
#define TASKLIFE_STRAGGLE_MS 10000 /* for the other ranks, after rank 0 ended well */

struct tasklife {
    enum task_phase phase;
    int64_t since_ms, deadline_ms; /* of the phase, monotonic; TASKLIFE_NEVER: none */
    int64_t stall_ms;              /* that a step may be silent for; 0: without limit */
    const char *step;              /* the last one's name */
    bool has_met;
    bool has_exit;
    struct link_exit exit; /* its text is the one below */
    char text[LINK_TEXT_MAX];
    enum tasklife_hurry hurry;
    bool is_successor; /* of a det-task that died */
    size_t strikes;
    int64_t killed_in_ms;              /* from KILLING's begin to nothing left */
    VEC(enum tasklife_effect) effects; /* not taken yet */
};

void tasklife_init(struct tasklife *l, int64_t stall_ms, int64_t now_ms);
void tasklife_finish(struct tasklife *l);
/* Events that mean nothing in the phase are ignored. now_ms never falls. */
void tasklife_step(struct tasklife *l, const struct tasklife_event *e, int64_t now_ms);
/* The oldest effect; false when there is none. */
bool tasklife_take(struct tasklife *l, enum tasklife_effect *ret);
/* It was struck so often that only the kernel, or a debugger, can hold what is left. */
bool tasklife_is_undying(const struct tasklife *l);
bool tasklife_may_move(enum task_phase from, enum task_phase to);
/* Aborts when an invariant is broken. */
void tasklife_check(const struct tasklife *l);

#endif
