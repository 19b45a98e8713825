/*
 * det-task: one allocation on one host, from an empty directory to nothing left running. What
 * follows from what is decided by its life, which is pure (agent/life/tasklife.h); here is what it
 * is told and what it asks for. One thread, one loop.
 *
 * The files of this folder:
 *   main.c: the program
 *   serve.c: one warm process that forks the others
 *   ctl.c: the socket of the agent
 *   task.c: what its life asks for and is told
 *   task_start.c: from an empty directory to running ranks
 *   task_python.c: environments, hook, interpreter
 *   task_drain.c: output and reports on their way
 *   task_reap.c: how processes ended
 *   task_end.c: to nothing left running
 *   task_trace.c and task_stacks.c: what ranks are doing
 *   task_reach.c: whether ranks could speak to the master
 *   endtask.c: --end from outside
 *   tasklook.c: files as the task sees them
 *   datapaths.c: data that it may not read
 */
#ifndef TASK_H
#define TASK_H

#include "client_uv.h"
#include "ctl.h"
#include "logship.h"
#include "marks.h"
#include "prepare.h"
#include "proctree.h"
#include "rank.h"
#include "reports.h"
#include "ports.h"
#include "pystacks.h"
#include "stackfold.h"
#include "stall.h"
#include "taskbox.h"
#include "tasklife.h"
#include "tasklook.h"
#include "taskspec.h"
#include "traceback.h"
#include "unseen.h"
#include "vec.h"

struct task {
    uv_loop_t *loop;
    struct taskspec spec;
    struct tasklife life;
    bool is_performing; /* what life asks for */

    struct client_uv *http;      /* created when there is something to say */
    struct client_uv_call *call; /* context or rendezvous */
    struct logspool *spool;
    struct logship *ship;
    struct reports *reports; /* being sent, or NULL */
    struct ctl *ctl;
    uv_signal_t sigchld, sigterm;
    uv_timer_t timer; /* life's deadline */
    uv_timer_t watch; /* of the stall watch */
    uv_timer_t ask;   /* until the master is asked, or asked again */
    bool owns_all;    /* every process of the tree is a descendant of this one */
    struct stall *stall;
    struct link_silent silent; /* as it was told last */
    struct rank *reacher;      /* asks the master as the ranks would, until it answers (reach.h) */
    uv_timer_t reach_at;
    int64_t reach_ms;                /* since when it fails */
    struct link_unreached unreached; /* as it was told last; its text is owned */
    struct marks marks;

    json_t *env; /* of all ranks */
    struct ports ports;
    struct prepare_plan plan;
    char *cgroup;
    struct taskbox box;
    pid_t looker;             /* that a mount may hold up for good; or 0 (struct tasklook_limit) */
    VEC(struct rank *) steps; /* of HOOKING, one after the other; the last is at work */
    void (*step_done)(struct task *t, int status); /* it has ended; as waitpid() says */
    int step_fd;      /* where a step leaves its answer, the hook its environment; -1 */
    int python_fd;    /* the lock on what the environment's packages lie in; -1 */
    char *python;     /* the interpreter of a trial class; NULL: none is found yet */
    int python_tries; /* environments that were removed before they could be locked */
    bool has_python;  /* what the configuration names is in env */
    VEC(struct rank *) ranks;
    int deaths;          /* of ranks (deaths.h) */
    pid_t stacks_of[16]; /* processes that tell where they are, each in its turn */
    size_t stacks_n, stacks_next;
    struct pystacks *stacks;        /* what they write; NULL: nobody has asked */
    const struct rank *stacks_rank; /* whose lines are kept */
    size_t stacks_before;           /* lines of the process in hand at the last look */
    int stacks_quiet, stacks_ticks;
    uv_timer_t stacks_timer; /* of the process in hand */
    void (*stacks_done)(struct task *t);
    struct rank *tracer;            /* a debugger that reads a rank's stacks */
    struct stackfold *fold;         /* what it has printed */
    size_t traced;                  /* ranks whose stacks were asked for */
    int trace_lines;                /* of the one in hand */
    pid_t traced_pid;               /* it, unless it was stopped before; 0 */
    int64_t tracer_ms;              /* when the debugger was started, monotonic */
    uv_timer_t look_by;             /* until all stacks are to be there */
    void (*looked)(struct task *t); /* then; NULL: nobody looks */

    bool has_told_accel; /* the master was told what it runs on: a task of milliseconds does not */
    struct traceback traceback;
    struct unseen_last unseen; /* by rank, RANK_NO_RANK: of the steps */
    bool has_told_unseen;      /* in the log, behind such a line */
    int64_t begun_ms;          /* of this process, monotonic */
    uint64_t retry_ms;
    int64_t oom_before; /* oom_host_kills() at the start */
};

enum task_mode { TASK_RUN, TASK_RECOVER };
/* Runs dir's task on the calling thread, to its end. Process exit code. */
int task_main(const char *dir, enum task_mode mode);

/* ---- between task.c, task_start.c, task_reap.c, task_drain.c, task_end.c and others ---- */
/* Tells life what happened, and does what it asks for; from within that, once it is done. */
void task_step(struct task *t, const struct tasklife_event *e);
void task_happens(struct task *t, enum tasklife_event_kind kind);
/* An event with an exit, its text from fmt. */
void task_fails(struct task *t, enum tasklife_event_kind kind, struct link_exit exit,
                const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void task_begin(struct task *t); /* from TASK_PREPARING on */
/* Whether the text names a file that the task cannot have (unseen.h); the reason is added to *out.
 */
bool task_explains(const struct task *t, const char *text, struct buf *out);
void task_connect(struct task *t);          /* makes http and ship, if they are not there */
void task_on_child(struct task *t);         /* SIGCHLD */
bool task_has_exited(const struct task *t); /* ranks, steps and tracer; none may have begun */
void task_on_line(void *arg, const struct rank *r, const char *stdtype, const struct logline *l);
void task_tell_running(struct task *t); /* to the agent, with what is known */
void task_on_stall(struct task *t, const struct stall_found *s);
/* Whether what runs could speak to the master: looked at in a while, until it can. */
void task_reach(struct task *t);
void task_on_reacher_exit(struct task *t, int status);
void task_reach_stop(struct task *t);     /* the task ends */
void task_look_at_stall(struct task *t);  /* TASKLIFE_LOOK */
void task_look(struct task *t);           /* where the ranks are, into the log; they go on */
void task_look_stop(struct task *t);      /* the task ends */
bool task_may_look(const struct task *t); /* it has ranks that nobody ends */
/* Has the Python processes write their stacks, then calls done, unless the task ends before. */
void task_stacks(struct task *t, void (*done)(struct task *t));
/* Whether a line of a rank is one of these: it is kept until all of them have come. */
bool task_stacks_keep(struct task *t, const struct rank *r, const struct logline *l);
/* Where in the user's own code it is: "model_def.py, line 3, in train_batch". */
void task_say_place(struct task *t, const struct rank *r, const char *where);
void task_stacks_end(struct task *t); /* nobody asks any more; what is kept is passed on */
void task_on_tracer_exit(struct task *t, int status);
void task_on_silent(void *arg, struct rank *r);
/* What life asks for of that name. */
void task_read_pipes(struct task *t);
void task_send_reports(struct task *t);
void task_hurry_reports(struct task *t);
void task_send_log(struct task *t);
void task_start_ranks(struct task *t);
void task_fail_start(struct task *t, const struct det_err *err);           /* the host's fault */
void task_fail_trial(struct task *t, int code, const struct det_err *err); /* uses up a restart */
/* Of what the configuration names: ends a trial that has never run where no host has it. */
void task_fail_absent(struct task *t, const struct det_err *err);
/* In the task's box, with what is the same for all. o has argv, number, local and pass_fd. */
/* Of a task without namespaces, to its log: it runs all the same; where users have uids of their
 * own, these keep them apart. */
void task_say_no_box(struct task *t, const struct det_err *err);
/* As tasklook(), and as find_on_path(): in the task's box, with its user's rights. */
DET_MUST int task_peek(struct task *t, tasklook_fn *fn, void *arg, struct buf *ret,
                       struct det_err *err);
DET_MUST int task_find(struct task *t, const json_t *env, const char *name, char **ret,
                       struct det_err *err);
struct rank *task_start_process(struct task *t, struct rank_options *o, const json_t *env,
                                struct det_err *err);
/* HOOKING: the hook and the choice of a Python, then the ranks. */
void task_start_steps(struct task *t);
/* The process of a step ended badly: decides, and ends the task. */
void task_step_failed(struct task *t, struct rank *r);

#endif
