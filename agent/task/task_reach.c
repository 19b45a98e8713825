/* Whether the ranks can speak to the master: they would ask for ever, and nobody would hear why. */
#include "task.h"

#include "clk.h"
#include "find.h"
#include "log.h"
#include "taskenv.h"

#include <signal.h>
#include <string.h>

/* Most tasks that end at once are never looked at. */
enum { FIRST_MS = 3000, TELL_MS = 4000 };

static void note_unreached(struct task *t, const char *text, int64_t for_ms)
{
    free((char *)t->unreached.text);
    t->unreached = (struct link_unreached){det_strdup(text), for_ms};
    task_tell_running(t);
}

static void on_line(void *arg, const struct rank *r, const char *stdtype, const struct logline *l)
{
    struct task *t = arg;
    int64_t for_ms = clk_mono_ms() - t->reach_ms;
    det_cleanup(freep) char *text = det_strndup(l->text, l->len);
    text[strcspn(text, "\n")] = 0;
    if (t->life.phase <= TASK_RUNNING && for_ms >= t->unreached.for_ms + TELL_MS)
        note_unreached(t, text, for_ms);
}

static void when_done(struct task *t)
{
    if (!rank_has_exited(t->reacher) || !rank_is_silent(t->reacher))
        return;
    rank_close(t->reacher);
    t->reacher = NULL;
    if (t->unreached.text && t->life.phase <= TASK_RUNNING)
        note_unreached(t, NULL, 0);
}

static void on_silent(void *arg, struct rank *r)
{
    when_done(arg);
}

void task_on_reacher_exit(struct task *t, int status)
{
    rank_on_exit(t->reacher, status);
    when_done(t);
}

/* It has the user's environment, and so may run his code: within the task's limits. */
static int start_probe(struct task *t, struct det_err *err)
{
    det_cleanup(freep) char *exe = find_beside("det-task", X_OK);
    if (!exe)
        return det_fail(err, DET_ENOENT, "det-task is no longer where it was started from");
    JSON_OWN env = t->env ? json_incref(t->env) : taskenv_common(&t->spec, t->spec.addr);
    char **vector = taskenv_vector(env);
    char *const argv[] = {exe, "--reach", NULL};
    struct rank_options o = {.spec = &t->spec,
                             .file = exe,
                             .argv = argv,
                             .env = vector,
                             .number = RANK_NO_RANK,
                             .local = 0,
                             .pass_fd = -1,
                             .cgroup = t->cgroup,
                             .box = &t->box,
                             .loop = t->loop,
                             .on_line = on_line,
                             .on_silent = on_silent,
                             .arg = t};
    if (taskbox_finish(&t->box, err) < 0)
        task_say_no_box(t, err);
    int rc = rank_start(&o, &t->reacher, err);
    taskenv_vector_destroy(vector);
    return rc;
}

static void on_time(uv_timer_t *timer)
{
    struct task *t = timer->data;
    struct det_err err = {0};
    if (t->life.phase > TASK_RUNNING || t->reacher)
        return;
    t->reach_ms = clk_mono_ms();
    if (start_probe(t, &err) < 0)
        log_warning("whether the task reaches the master cannot be tried: %s", err.text);
}

void task_reach(struct task *t)
{
    uv_timer_start(&t->reach_at, on_time, FIRST_MS, 0);
}

void task_reach_stop(struct task *t)
{
    uv_timer_stop(&t->reach_at);
    if (t->reacher)
        rank_signal(t->reacher, SIGKILL);
}
