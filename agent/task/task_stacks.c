/*
 * Where a Python process is, in the user's own lines. `determined` has Python's faulthandler answer
 * a signal with the stacks of all threads (_stacks.py), whatever they wait for. Only who catches
 * the signal gets it; one after the other, since their output may be one pipe. The lines go the way
 * of all that the rank prints; before each thread's first line of the user's own code stands a
 * line that says it.
 */
#include "task.h"

#include "progress.h"
#include "proctree.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define TICK_MS    20
#define TICKS_MAX  100 /* that one process is waited for */

void task_stacks_line(struct task *t, const struct rank *r, const struct logline *l)
{
    char path[1024], function[128];
    int line;
    if (!t->stacks_asked)
        return;
    bool is_head = strstr(l->text, "(most recent call first)") != NULL;
    bool is_frame =
        sscanf(l->text, " File \"%1023[^\"]\", line %d in %127[^\n]", path, &line, function) == 3;
    t->stacks_lines += is_head || is_frame; /* and not what the trial prints meanwhile */
    if (is_head)
        t->stacks_told = false;
    if (t->stacks_told || !is_frame)
        return;
    const char *file = traceback_users_file(path, t->spec.dir);
    if (!file)
        return;
    t->stacks_told = true;
    det_cleanup(freep) char *who = rank_number(r) < 0
                                       ? det_asprintf("process %d", rank_pid(r))
                                       : det_asprintf("rank %d", rank_number(r));
    logspool_say(t->spool, LOGLINE_INFO, "%s is at %s, line %d, in %s", who, file, line, function);
}

/* A process has told when lines came, and then none for a while. */
static bool has_told(struct task *t)
{
    bool is_quiet = t->stacks_lines > 0 && t->stacks_lines == t->stacks_before;
    t->stacks_before = t->stacks_lines;
    return t->stacks_next == 0 || is_quiet || ++t->stacks_ticks >= TICKS_MAX;
}

static void on_tick(uv_timer_t *timer)
{
    struct task *t = timer->data;
    if (!has_told(t))
        return;
    t->stacks_lines = t->stacks_before = t->stacks_ticks = 0;
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
    t->stacks_n = proctree_catching(&tree, PROGRESS_STACKS_SIGNAL, t->stacks_of,
                                    DET_ARRAY_LEN(t->stacks_of));
    t->stacks_next = 0;
    t->stacks_asked = true;
    t->stacks_told = false;
    t->stacks_done = done;
    uv_timer_start(&t->stacks_timer, on_tick, 0, TICK_MS);
}
