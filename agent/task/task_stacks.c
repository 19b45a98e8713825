/*
 * Where a Python process is, in the user's own lines. `determined` has Python's faulthandler answer
 * a signal with the stacks of all threads (_stacks.py), whatever they wait for. Only who catches
 * the signal gets it; one after the other, since their output may be one pipe. What a process
 * writes is kept until it has written all, and passed on behind the lines that say where the user's
 * own code is.
 */
#include "task.h"

#include "progress.h"
#include "proctree.h"

#include <signal.h>

#define TICK_MS     20
#define TICKS_MAX   100 /* that one process is waited for */
#define QUIET_TICKS 2   /* after which no more lines of its are expected */

void task_say_place(struct task *t, const struct rank *r, const char *where)
{
    det_cleanup(freep) char *who = rank_number(r) < 0 ? det_asprintf("process %d", rank_pid(r))
                                                      : det_asprintf("rank %d", rank_number(r));
    logspool_say(t->spool, LOGLINE_INFO, "%s is at %s", who, where);
}

static void say_place(void *arg, const char *where)
{
    struct task *t = arg;
    task_say_place(t, t->stacks_rank, where);
}

static void pass_on(void *arg, const struct logline *l)
{
    struct task *t = arg;
    int rank = rank_number(t->stacks_rank);
    traceback_line(&t->traceback, t->spec.dir, l->rank >= 0 ? l->rank : rank, l);
    logspool_add(t->spool, "stderr", rank, l);
}

static void tell_kept(struct task *t)
{
    if (!t->stacks || pystacks_kept(t->stacks) == 0)
        return;
    pystacks_end(t->stacks, say_place, pass_on, t);
    if (t->ship)
        logship_kick(t->ship);
}

bool task_stacks_keep(struct task *t, const struct rank *r, const struct logline *l)
{
    if (!t->stacks)
        return false;
    if (t->stacks_rank != r)
        tell_kept(t);
    if (!pystacks_line(t->stacks, t->spec.dir, l))
        return false;
    t->stacks_rank = r;
    return true;
}

/* A process has told when lines came, and then none for a while. */
static bool has_told(struct task *t)
{
    size_t kept = pystacks_kept(t->stacks);
    t->stacks_quiet = kept > 0 && kept == t->stacks_before ? t->stacks_quiet + 1 : 0;
    t->stacks_before = kept;
    return t->stacks_next == 0 || t->stacks_quiet == QUIET_TICKS || ++t->stacks_ticks >= TICKS_MAX;
}

static void on_tick(uv_timer_t *timer)
{
    struct task *t = timer->data;
    if (!has_told(t))
        return;
    tell_kept(t);
    t->stacks_before = 0;
    t->stacks_quiet = t->stacks_ticks = 0;
    if (t->stacks_next < t->stacks_n) {
        pid_t pid = t->stacks_of[t->stacks_next++];
        if (proctree_catches(pid, PROGRESS_STACKS_SIGNAL)) /* still: an exec would end it by that */
            kill(pid, PROGRESS_STACKS_SIGNAL);
        else
            t->stacks_ticks = TICKS_MAX;
        return;
    }
    uv_timer_stop(timer);
    t->stacks_done(t);
}

void task_stacks(struct task *t, void (*done)(struct task *t))
{
    const struct proctree tree = {.mark = t->spec.mark, .cgroup = t->cgroup};
    t->stacks_n =
        proctree_catching(&tree, PROGRESS_STACKS_SIGNAL, t->stacks_of, DET_ARRAY_LEN(t->stacks_of));
    t->stacks_next = 0;
    t->stacks = pystacks_create();
    t->stacks_done = done;
    uv_timer_start(&t->stacks_timer, on_tick, 0, TICK_MS);
}

void task_stacks_end(struct task *t)
{
    uv_timer_stop(&t->stacks_timer);
    tell_kept(t);
    pystacks_destroy(t->stacks);
    t->stacks = NULL;
}
