/* What a task's life asks for: from the first failure, or an order, to nothing left running and
 * everything told. */
#include "task.h"

#include "cgroup.h"
#include "clk.h"
#include "fsx.h"
#include "log.h"
#include "mem.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- ending ---- */

static void ask_to_end(struct task *t)
{
    for (size_t i = 0; i < t->ranks.n; i++)
        rank_signal(t->ranks.v[i], SIGTERM);
}

static void stop_watchers(struct task *t)
{
    task_look_stop(t);
    task_reach_stop(t);
    client_uv_cancel(t->call);
    t->call = NULL;
    uv_timer_stop(&t->watch);
    uv_timer_stop(&t->ask);
}

/* A box ends at one stroke, and is empty when det-task has no child any more: its init leaves last.
 * After a task that ended by itself the search of /proc is saved where nothing can be found. A kill
 * searches in any case. */
static size_t kill_rest(const struct task *t)
{
    const struct proctree tree = {.mark = t->spec.mark, .cgroup = t->cgroup, .spared = t->looker};
    bool is_undying = tasklife_is_undying(&t->life);
    if (taskbox_is_open(&t->box) && !is_undying) {
        cgroup_kill(t->cgroup);
        taskbox_kill(&t->box);
        return proctree_has_child();
    }
    bool is_clear = t->owns_all && t->life.exit.reason == LINK_EXITED && !proctree_has_child();
    size_t left = is_clear ? 0 : proctree_kill(&tree);
    return left == 0 && !is_undying ? proctree_has_child() : left;
}

static void strike_processes(struct task *t)
{
    bool is_gone = kill_rest(t) == 0 && task_has_exited(t);
    task_step(t, &(struct tasklife_event){.kind = TASKLIFE_STRUCK, .is_gone = is_gone});
}

/* ---- the end ---- */

/* With the marks: an agent that was away, and comes when this process is gone, has them only here.
 */
static void save_exit(struct task *t, const struct link_exit *e)
{
    JSON_OWN j = json_object();
    json_set(j, "exit", link_exit_json(e));
    json_set(j, "marks", json_incref((json_t *)marks_all(&t->marks)));
    det_cleanup(freep) char *text = json_text(j);
    det_cleanup(det_closep) int fd = openat(
        t->spec.dirfd, "state.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct det_err err = {0};
    if (fd < 0 || fsx_write_all(fd, text, strlen(text), &err) < 0 ||
        renameat(t->spec.dirfd, "state.new", t->spec.dirfd, "state.json") < 0)
        log_error("%s/state.json: %s", t->spec.dir, fd < 0 ? strerror(errno) : err.text);
}

static void close_handles(struct task *t)
{
    uv_close((uv_handle_t *)&t->timer, NULL);
    uv_close((uv_handle_t *)&t->watch, NULL);
    uv_close((uv_handle_t *)&t->ask, NULL);
    uv_close((uv_handle_t *)&t->stacks_timer, NULL);
    uv_close((uv_handle_t *)&t->look_by, NULL);
    uv_close((uv_handle_t *)&t->reach_at, NULL);
    marks_close(&t->marks);
    uv_close((uv_handle_t *)&t->sigchld, NULL);
    uv_close((uv_handle_t *)&t->sigterm, NULL);
    for (size_t i = 0; i < t->steps.n; i++)
        rank_close(t->steps.v[i]);
    if (t->tracer)
        rank_close(t->tracer);
    if (t->reacher)
        rank_close(t->reacher);
    for (size_t i = 0; i < t->ranks.n; i++)
        rank_close(t->ranks.v[i]);
    logship_close(t->ship);
    client_uv_close(t->http);
    ctl_close(t->ctl);
}

/* An uncaught one ends Python with code 1; its output is read to the end only now. */
static void name_exception(const struct traceback *seen, struct link_exit *e)
{
    bool is_its = seen->rank < 0 || seen->rank == e->rank;
    if (e->reason != LINK_EXITED || e->code != 1 || !seen->exception[0] || !is_its)
        return;
    e->exception = seen->exception;
    e->at = seen->at;
}

/* A file that it cannot have, where that is why: of Python's last exception, else of the last lines
 * of who failed. */
static bool explain_exit(const struct task *t, const struct link_exit *e, struct buf *why)
{
    if (e->reason != LINK_EXITED || e->code == 0 || e->signal)
        return false;
    if (e->exception)
        return task_explains(t, e->exception, why);
    const char *last = unseen_last_why(&t->unseen, t->ranks.n ? e->rank : RANK_NO_RANK);
    buf_add_str(why, last ? last : "");
    return last;
}

static void tell_exit(struct task *t)
{
    struct link_exit e = t->life.exit;
    det_cleanup(freep) char *text = NULL;
    det_cleanup(buf_finish) struct buf why = BUF_INIT;
    name_exception(&t->traceback, &e);
    if (explain_exit(t, &e, &why))
        e.text = text = det_asprintf("%s; %s", e.text, buf_str(&why));
    if (t->ship)
        logship_when_empty(t->ship, NULL, NULL);
    save_exit(t, &e);
    cgroup_remove(t->cgroup);
    ctl_ended(t->ctl, &e, marks_all(&t->marks));
}

static void exit_process(struct task *t)
{
    exit(0);
}

/* ---- what life asks for ---- */

static void say_exit(struct task *t)
{
    const struct link_exit *e = &t->life.exit;
    bool is_error = e->code != 0 || e->signal != 0 || e->reason != LINK_EXITED;
    if (e->text[0])
        logspool_say(t->spool, e->reason == LINK_KILLED || !is_error ? LOGLINE_INFO : LOGLINE_ERROR,
                     "%s", e->text);
    log_info("%s: %s%s%s", t->spec.alloc, link_exit_reason_name(e->reason), e->text[0] ? ": " : "",
             e->text);
    if (t->ship)
        logship_kick(t->ship);
}

static void say_straggle(struct task *t)
{
    logspool_say(t->spool, LOGLINE_WARNING,
                 "rank 0 ended well %d s ago and others have not: they are ended now",
                 TASKLIFE_STRAGGLE_MS / 1000);
}

static void say_undying(struct task *t)
{
    log_warning("processes of %s do not die", t->spec.alloc);
}

static void (*const performers[TASKLIFE_EFFECT_COUNT])(struct task *t) = {
    [TASKLIFE_SAY_EXIT] = say_exit,
    [TASKLIFE_SAY_STRAGGLE] = say_straggle,
    [TASKLIFE_SAY_UNDYING] = say_undying,
    [TASKLIFE_LOOK] = task_look_at_stall,
    [TASKLIFE_ASK_TO_END] = ask_to_end,
    [TASKLIFE_STOP] = stop_watchers,
    [TASKLIFE_STRIKE] = strike_processes,
    [TASKLIFE_READ_PIPES] = task_read_pipes,
    [TASKLIFE_SEND_REPORTS] = task_send_reports,
    [TASKLIFE_HURRY_REPORTS] = task_hurry_reports,
    [TASKLIFE_SEND_LOG] = task_send_log,
    [TASKLIFE_TELL_EXIT] = tell_exit,
    [TASKLIFE_SEND_REST] = task_send_log,
    [TASKLIFE_FINISH] = close_handles,
    [TASKLIFE_QUIT] = exit_process,
};

static void on_deadline(uv_timer_t *timer)
{
    task_happens(timer->data, TASKLIFE_TICK);
}

/* The loop's clock may lag behind: a tick that comes early is followed by another. */
static void arm_deadline(struct task *t)
{
    int64_t left_ms = t->life.deadline_ms - clk_mono_ms();
    if (t->life.phase == TASK_FINISHED)
        return;
    if (t->life.deadline_ms == TASKLIFE_NEVER)
        uv_timer_stop(&t->timer);
    else
        uv_timer_start(&t->timer, on_deadline, left_ms > 0 ? (uint64_t)left_ms : 0, 0);
}

void task_step(struct task *t, const struct tasklife_event *e)
{
    enum tasklife_effect effect;
    tasklife_step(&t->life, e, clk_mono_ms());
    tasklife_check(&t->life);
    if (t->is_performing)
        return;
    t->is_performing = true;
    while (tasklife_take(&t->life, &effect))
        performers[effect](t);
    t->is_performing = false;
    arm_deadline(t);
}

void task_happens(struct task *t, enum tasklife_event_kind kind)
{
    task_step(t, &(struct tasklife_event){.kind = kind});
}

void task_fails(struct task *t, enum tasklife_event_kind kind, struct link_exit exit,
                const char *fmt, ...)
{
    char text[LINK_TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    exit.text = text;
    task_step(t, &(struct tasklife_event){.kind = kind, .exit = exit});
}
