/* What a task's life is told of its processes, and what it asks for: from the first failure, or an
 * order, to nothing left running and everything told. */
#include "task.h"

#include "cgroup.h"
#include "clk.h"
#include "deaths.h"
#include "fsx.h"
#include "log.h"
#include "mem.h"
#include "oom.h"
#include "progress.h"
#include "storage.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define REPORTS_MS        10000
#define REPORTS_KILLED_MS 400
#define REPORTS_LOST_MS   5000 /* in all, by a successor: who ended det-task may wait for a kill's
                                * end */

/* ---- ranks ---- */

static bool all_exited(const struct task *t)
{
    for (size_t i = 0; i < t->ranks.n; i++)
        if (!rank_has_exited(t->ranks.v[i]))
            return false;
    return true;
}

static bool steps_exited(const struct task *t)
{
    return t->steps.n == 0 || rank_has_exited(t->steps.v[t->steps.n - 1]);
}

static bool failed(const struct rank *r)
{
    return !WIFEXITED(rank_status(r)) || WEXITSTATUS(rank_status(r)) != 0;
}

/* SIGKILL while hook or ranks run is none of ours. */
static void explain_kill(const struct task *t, struct buf *out)
{
    const struct oom_seen seen = {.in_group = oom_kills(t->cgroup),
                                  .past_limit = oom_past_limit(t->cgroup),
                                  .limit_bytes = t->spec.limits.memory_bytes,
                                  .before = t->oom_before,
                                  .now = oom_host_kills()};
    oom_explain(&seen, out);
}

/* What a program makes of a fork that is refused does not always say so. */
static void name_refused_forks(const struct task *t, struct buf *out)
{
    int64_t n = t->cgroup ? cgroup_count(t->cgroup, "pids.events", "max") : -1;
    if (n > 0)
        buf_addf(out, "; %lld times it got no new process or thread: it has the %lld that its slots "
                 "may have (the agent's --slot-pids)", (long long)n,
                 (long long)t->spec.limits.pids);
}

/* One that ends well before its time is why the others fail: its collectives have ended. */
static void name_deserter(const struct task *t, struct buf *out)
{
    for (size_t i = 0; i < t->ranks.n; i++) {
        const struct rank *r = t->ranks.v[i];
        if (rank_number(r) >= 0 && rank_has_exited(r) && !failed(r)) {
            buf_addf(out, "; rank %d had ended before, with code 0", rank_number(r));
            return;
        }
    }
}

/* What a rank has left to say: about its store (storage_note_away()), about its host. The file is
 * the task's own: no link is followed out of its directory, and what it holds is text. */
static bool has_note(const struct task *t, const char *file, struct buf *ret)
{
    return fsx_read_file(t->spec.dirfd, file, LINK_TEXT_MAX, ret, NULL) == 0 && ret->len > 0;
}

static void name_failure(struct task *t, enum tasklife_event_kind kind, const struct rank *r,
                         const char *what)
{
    int status = rank_status(r), rank = rank_number(r);
    char who[48];
    if (what)
        snprintf(who, sizeof who, "%s", what);
    else if (rank == RANK_NO_RANK)
        snprintf(who, sizeof who, "the command");
    else
        snprintf(who, sizeof who, "rank %d", rank);
    det_cleanup(buf_finish) struct buf why = BUF_INIT;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL &&
        (t->life.phase == TASK_RUNNING || t->life.phase == TASK_HOOKING))
        explain_kill(t, &why);
    name_refused_forks(t, &why);
    name_deserter(t, &why);
    det_cleanup(buf_finish) struct buf away = BUF_INIT, lacks = BUF_INIT;
    if (has_note(t, "run/" PROGRESS_HOST_FAILED_FILE, &lacks)) {
        task_fails(t, kind, (struct link_exit){.reason = LINK_START_FAILED, .rank = -1}, "%s",
                   buf_str(&lacks));
        return;
    }
    if (has_note(t, "run/" STORAGE_AWAY_FILE, &away)) {
        task_fails(t, kind,
                   (struct link_exit){.reason = LINK_STORE_AWAY,
                                      .code = WIFEXITED(status) ? WEXITSTATUS(status) : 0,
                                      .rank = rank},
                   "agent %s: %s", t->spec.agent_id, buf_str(&away));
        return;
    }
    struct link_exit exit = {.reason = LINK_EXITED, .rank = rank < 0 ? 0 : rank};
    exit.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    exit.code = exit.signal ? 128 + exit.signal : WEXITSTATUS(status);
    if (exit.signal)
        task_fails(t, kind, exit, "%s was killed by signal %d (%s)%s", who, exit.signal,
                   strsignal(exit.signal), buf_str(&why));
    else
        task_fails(t, kind, exit, "%s exited with code %d%s", who, exit.code, buf_str(&why));
}

void task_step_failed(struct task *t, struct rank *r)
{
    name_failure(t, TASKLIFE_FAILED, r, t->life.step);
}

static bool step_exited(struct task *t, pid_t pid, int status)
{
    for (size_t i = 0; i < t->steps.n; i++) {
        struct rank *r = t->steps.v[i];
        if (rank_pid(r) != pid || rank_has_exited(r))
            continue;
        rank_on_exit(r, status);
        if (t->life.phase == TASK_HOOKING)
            t->step_done(t, status);
        return true;
    }
    return false;
}

static void exited(struct task *t, pid_t pid, int status)
{
    if (step_exited(t, pid, status))
        return;
    if (t->tracer && rank_pid(t->tracer) == pid && !rank_has_exited(t->tracer)) {
        task_on_tracer_exit(t, status);
        return;
    }
    for (size_t i = 0; i < t->ranks.n; i++) {
        struct rank *r = t->ranks.v[i];
        if (rank_pid(r) != pid || rank_has_exited(r))
            continue;
        rank_on_exit(r, status);
        if (failed(r) && t->life.phase == TASK_RUNNING)
            name_failure(t, TASKLIFE_RANK_FAILED, r, NULL);
        return;
    }
}

/* The first rank that failed is the one to name: others fail for want of it, and soon. Also reaps
 * orphans of the ranks: this process is their subreaper. */
void task_on_child(struct task *t)
{
    pid_t pid;
    int status;
    while ((pid = deaths_wait(t->deaths, &status)) > 0)
        exited(t, pid, status);
    task_step(t, &(struct tasklife_event){
                     .kind = TASKLIFE_CHILDREN,
                     .all_ended = all_exited(t),
                     .first_ended = t->ranks.n > 0 && rank_has_exited(t->ranks.v[0])});
}

/* ---- output ---- */

static void pause_ranks(struct task *t, bool pause)
{
    for (size_t i = 0; i < t->ranks.n; i++)
        rank_pause(t->ranks.v[i], pause);
}

void task_on_line(void *arg, const struct rank *r, const char *stdtype, const struct logline *l)
{
    struct task *t = arg;
    task_stacks_line(t, r, l);
    traceback_line(&t->traceback, t->spec.dir, l->rank >= 0 ? l->rank : rank_number(r), l);
    logspool_add(t->spool, stdtype, rank_number(r), l);
    if (t->life.phase == TASK_HOOKING)
        task_happens(t, TASKLIFE_SAID);
    if (t->life.phase < TASK_KILLING && logspool_is_full(t->spool))
        pause_ranks(t, true);
    task_connect(t);
    logship_kick(t->ship);
}

static void on_room(void *arg)
{
    struct task *t = arg;
    if (!logspool_is_full(t->spool))
        pause_ranks(t, false);
}

void task_connect(struct task *t)
{
    struct det_err err;
    if (t->http)
        return;
    struct client_options o = {.url = t->spec.master,
                               .token_kind = CLIENT_TOKEN_ALLOCATION,
                               .token = t->spec.task.token,
                               .ca_file = t->spec.ca_file,
                               .cert_name = t->spec.cert_name};
    if (client_uv_create(t->loop, &o, &t->http, &err) < 0) {
        log_error("%s", err.text); /* the agent has checked the URL: only memory can be short */
        _exit(1);
    }
    t->ship = logship_create(t->loop, t->http, t->spool);
    logship_on_room(t->ship, on_room, t);
    logship_kick(t->ship);
}

/* ---- ending ---- */

static void ask_to_end(struct task *t)
{
    for (size_t i = 0; i < t->ranks.n; i++)
        rank_signal(t->ranks.v[i], SIGTERM);
}

static void stop(struct task *t)
{
    task_look_stop(t);
    client_uv_cancel(t->call);
    t->call = NULL;
    uv_timer_stop(&t->watch);
    uv_timer_stop(&t->ask);
}

static bool has_exited(const struct rank *r)
{
    return !r || rank_has_exited(r);
}

/* A box ends at one stroke, and is empty when det-task has no child any more: its init leaves last.
 * After a task that ended by itself the search of /proc is saved where nothing can be found. A kill
 * searches in any case. */
static size_t kill_rest(const struct task *t)
{
    const struct proctree tree = {.mark = t->spec.mark, .cgroup = t->cgroup};
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

static void strike(struct task *t)
{
    bool is_gone =
        kill_rest(t) == 0 && all_exited(t) && steps_exited(t) && has_exited(t->tracer);
    task_step(t, &(struct tasklife_event){.kind = TASKLIFE_STRUCK, .is_gone = is_gone});
}

/* ---- draining: pipes, then reports, then the log, then the exit ---- */

static void on_reports(void *arg, const struct reports_tally *n)
{
    struct task *t = arg;
    t->reports = NULL;
    if (n->sent > 0)
        logspool_say(t->spool, LOGLINE_INFO, "%zu reports that ranks had left were sent", n->sent);
    if (n->refused > 0)
        logspool_say(t->spool, LOGLINE_WARNING,
                     "%zu reports that ranks had left are lost, the master refused them: %s",
                     n->refused, n->refusal.text);
    if (n->left > 0)
        logspool_say(t->spool, LOGLINE_WARNING, "reports of %zu ranks could not be sent", n->left);
    task_happens(t, TASKLIFE_REPORTED);
}

static void send_reports(struct task *t)
{
    const struct tasklife *l = &t->life;
    logspool_end(t->spool);
    if (!reports_are_left(&t->spec)) {
        on_reports(t, &(struct reports_tally){0});
        return;
    }
    task_connect(t);
    struct reports_limits limits = {.retry_ms = l->hurry == TASKLIFE_HURRIED ? 0 : REPORTS_MS,
                                    .all_ms = l->hurry > TASKLIFE_PATIENT ? REPORTS_KILLED_MS
                                              : l->is_successor           ? REPORTS_LOST_MS
                                                                          : 0};
    t->reports = reports_start(t->loop, t->http, &t->spec, limits, on_reports, t);
}

static void hurry_reports(struct task *t)
{
    if (t->reports)
        reports_hurry(t->reports, REPORTS_KILLED_MS);
}

static void on_log_empty(void *arg)
{
    task_happens(arg, TASKLIFE_LOG_EMPTY);
}

static void send_log(struct task *t)
{
    if (!t->http && logspool_unsent(t->spool) == 0) { /* nothing was ever said */
        task_happens(t, TASKLIFE_LOG_EMPTY);
        return;
    }
    task_connect(t);
    logship_when_empty(t->ship, on_log_empty, t);
}

static bool pipes_are_silent(const struct task *t)
{
    for (size_t i = 0; i < t->ranks.n; i++)
        if (!rank_is_silent(t->ranks.v[i]))
            return false;
    for (size_t i = 0; i < t->steps.n; i++)
        if (!rank_is_silent(t->steps.v[i]))
            return false;
    return true;
}

static void read_pipes(struct task *t)
{
    const struct tasklife *l = &t->life;
    if (l->exit.reason == LINK_KILLED || l->exit.reason == LINK_STALLED)
        marks_add(&t->marks, "killed", l->killed_in_ms, "%s", l->text);
    ports_give(&t->ports);
    pause_ranks(t, false);
    if (pipes_are_silent(t))
        task_happens(t, TASKLIFE_SILENT);
}

void task_on_silent(void *arg, struct rank *r)
{
    struct task *t = arg;
    if (t->life.phase == TASK_PIPES && pipes_are_silent(t))
        task_happens(t, TASKLIFE_SILENT);
}

/* ---- the end ---- */

static void save_exit(struct task *t, const struct link_exit *e)
{
    JSON_OWN j = json_object();
    json_set(j, "exit", link_exit_json(e));
    det_cleanup(freep) char *text = json_text(j);
    det_cleanup(det_closep) int fd = openat(
        t->spec.dirfd, "state.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct det_err err = {0};
    if (fd < 0 || fsx_write_all(fd, text, strlen(text), &err) < 0 ||
        renameat(t->spec.dirfd, "state.new", t->spec.dirfd, "state.json") < 0)
        log_error("%s/state.json: %s", t->spec.dir, fd < 0 ? strerror(errno) : err.text);
}

static void finish(struct task *t)
{
    uv_close((uv_handle_t *)&t->timer, NULL);
    uv_close((uv_handle_t *)&t->watch, NULL);
    uv_close((uv_handle_t *)&t->ask, NULL);
    uv_close((uv_handle_t *)&t->stacks_timer, NULL);
    uv_close((uv_handle_t *)&t->look_by, NULL);
    marks_close(&t->marks);
    uv_close((uv_handle_t *)&t->sigchld, NULL);
    uv_close((uv_handle_t *)&t->sigterm, NULL);
    for (size_t i = 0; i < t->steps.n; i++)
        rank_close(t->steps.v[i]);
    if (t->tracer)
        rank_close(t->tracer);
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

static void tell_exit(struct task *t)
{
    struct link_exit e = t->life.exit;
    name_exception(&t->traceback, &e);
    if (t->ship)
        logship_when_empty(t->ship, NULL, NULL);
    save_exit(t, &e);
    cgroup_remove(t->cgroup);
    ctl_ended(t->ctl, &e, marks_all(&t->marks));
}

static void send_rest(struct task *t)
{
    if (logspool_unsent(t->spool) == 0) {
        task_happens(t, TASKLIFE_LOG_EMPTY);
        return;
    }
    task_connect(t);
    logship_when_empty(t->ship, on_log_empty, t);
}

static void quit(struct task *t)
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
    log_info("%s: %s%s%s", t->spec.alloc, link_exit_reason_name(e->reason),
             e->text[0] ? ": " : "", e->text);
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
    [TASKLIFE_STOP] = stop,
    [TASKLIFE_STRIKE] = strike,
    [TASKLIFE_READ_PIPES] = read_pipes,
    [TASKLIFE_SEND_REPORTS] = send_reports,
    [TASKLIFE_HURRY_REPORTS] = hurry_reports,
    [TASKLIFE_SEND_LOG] = send_log,
    [TASKLIFE_TELL_EXIT] = tell_exit,
    [TASKLIFE_SEND_REST] = send_rest,
    [TASKLIFE_FINISH] = finish,
    [TASKLIFE_QUIT] = quit,
};

static void on_deadline(uv_timer_t *timer)
{
    task_happens(timer->data, TASKLIFE_TICK);
}

/* The loop's clock may lag behind: a tick that comes early is followed by another. */
static void arm(struct task *t)
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
    arm(t);
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
