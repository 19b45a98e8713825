/* From the first failure, or an order, to nothing left running and everything told. */
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
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define GRACE_MS          2000  /* for the others, after one rank failed */
#define STRAGGLE_MS       10000 /* for the others, after rank 0 ended well */
#define KILL_TICK_MS      3
#define KILL_SLOW_MS      1000
#define KILLS_MANY        (10000 / KILL_TICK_MS) /* then only the kernel, or a debugger, holds
                                                  * them */
#define PIPES_MS          300
#define REPORTS_MS        10000
#define REPORTS_KILLED_MS 400
#define REPORTS_LOST_MS   5000 /* in all, by a successor: who ended det-task may wait for a kill's
                                * end */
#define LOG_MS            1500
#define LOG_KILLED_MS     300
#define LOG_UNKNOWN_MS    86400000 /* the log goes on being sent: while nobody is told of the
                                    * exit */
#define LOG_AFTER_MS      600000   /* and after the master has acknowledged it */

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

static void name_failure(struct task *t, const struct rank *r, const char *what)
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
        (t->phase == TASK_RUNNING || t->phase == TASK_HOOKING))
        explain_kill(t, &why);
    name_refused_forks(t, &why);
    name_deserter(t, &why);
    det_cleanup(buf_finish) struct buf away = BUF_INIT, lacks = BUF_INIT;
    if (has_note(t, "run/" PROGRESS_HOST_FAILED_FILE, &lacks)) {
        task_decide(t, LINK_START_FAILED, 0, 0, -1, "%s", buf_str(&lacks));
        return;
    }
    if (has_note(t, "run/" STORAGE_AWAY_FILE, &away)) {
        task_decide(t, LINK_STORE_AWAY, WIFEXITED(status) ? WEXITSTATUS(status) : 0, 0, rank,
                    "agent %s: %s", t->spec.agent_id, buf_str(&away));
        return;
    }
    if (WIFSIGNALED(status))
        task_decide(t, LINK_EXITED, 128 + WTERMSIG(status), WTERMSIG(status), rank < 0 ? 0 : rank,
                    "%s was killed by signal %d (%s)%s", who, WTERMSIG(status),
                    strsignal(WTERMSIG(status)), buf_str(&why));
    else
        task_decide(t, LINK_EXITED, WEXITSTATUS(status), 0, rank < 0 ? 0 : rank,
                    "%s exited with code %d%s", who, WEXITSTATUS(status), buf_str(&why));
}

static void end_gently(struct task *t); /* to TASK_ENDING: SIGTERM, then TASK_KILLING */

static void on_straggle(uv_timer_t *timer)
{
    struct task *t = timer->data;
    logspool_say(t->spool, LOGLINE_WARNING,
                 "rank 0 ended well %d s ago and others have not: they are ended now",
                 STRAGGLE_MS / 1000);
    task_decide(t, LINK_EXITED, 0, 0, -1, "all ranks were told to end after rank 0 ended well");
    end_gently(t);
}

/* A rank exited while TASK_RUNNING or TASK_ENDING. */
static void ranks_changed(struct task *t)
{
    if (t->phase == TASK_ENDING || t->phase == TASK_RUNNING) {
        if (all_exited(t)) {
            if (!t->is_decided)
                task_decide(t, LINK_EXITED, 0, 0, -1, "%s", "");
            task_kill(t); /* what was left behind by those that have ended */
        } else if (t->phase == TASK_RUNNING && t->is_decided) {
            end_gently(t);
        } else if (t->phase == TASK_RUNNING && rank_has_exited(t->ranks.v[0]) &&
                   t->has_rendezvous && !uv_is_active((uv_handle_t *)&t->timer)) {
            uv_timer_start(&t->timer, on_straggle, STRAGGLE_MS, 0);
        }
    }
}

void task_step_failed(struct task *t, struct rank *r)
{
    name_failure(t, r, t->step);
    task_kill(t);
}

static bool step_exited(struct task *t, pid_t pid, int status)
{
    for (size_t i = 0; i < t->steps.n; i++) {
        struct rank *r = t->steps.v[i];
        if (rank_pid(r) != pid || rank_has_exited(r))
            continue;
        rank_on_exit(r, status);
        if (t->phase == TASK_HOOKING)
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
        if (failed(r) && t->phase == TASK_RUNNING)
            name_failure(t, r, NULL);
        return;
    }
}

static void kill_step(struct task *t);

/* The first rank that failed is the one to name: others fail for want of it, and soon. Also reaps
 * orphans of the ranks: this process is their subreaper. */
void task_on_child(struct task *t)
{
    pid_t pid;
    int status;
    while ((pid = deaths_wait(t->deaths, &status)) > 0)
        exited(t, pid, status);
    ranks_changed(t);
    if (t->phase == TASK_KILLING)
        kill_step(t);
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
    task_hook_lives(t);
    if (t->phase < TASK_KILLING && logspool_is_full(t->spool))
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

static void on_grace(uv_timer_t *timer)
{
    task_kill(timer->data);
}

static void end_gently(struct task *t)
{
    if (t->phase >= TASK_ENDING)
        return;
    task_goto(t, TASK_ENDING);
    for (size_t i = 0; i < t->ranks.n; i++)
        rank_signal(t->ranks.v[i], SIGTERM);
    uv_timer_start(&t->timer, on_grace, GRACE_MS, 0);
}

static void drain(struct task *t);

static void on_kill_tick(uv_timer_t *timer)
{
    kill_step(timer->data);
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
    if (taskbox_is_open(&t->box) && t->kills < KILLS_MANY) {
        cgroup_kill(t->cgroup);
        taskbox_kill(&t->box);
        return proctree_has_child();
    }
    bool is_clear = t->owns_all && t->exit.reason == LINK_EXITED && !proctree_has_child();
    size_t left = is_clear ? 0 : proctree_kill(&tree);
    return left == 0 && t->kills < KILLS_MANY ? proctree_has_child() : left;
}

static void kill_step(struct task *t)
{
    if (kill_rest(t) == 0 && all_exited(t) && steps_exited(t) && has_exited(t->tracer)) {
        if (t->exit.reason == LINK_KILLED || t->exit.reason == LINK_STALLED)
            marks_add(&t->marks, "killed", clk_mono_ms() - t->phase_ms, "%s", t->text);
        drain(t);
        return;
    }
    if (++t->kills == KILLS_MANY)
        log_warning("processes of %s do not die", t->spec.alloc);
    uv_timer_start(&t->timer, on_kill_tick, t->kills > KILLS_MANY ? KILL_SLOW_MS : KILL_TICK_MS, 0);
}

void task_kill(struct task *t)
{
    if (t->phase >= TASK_KILLING)
        return;
    task_goto(t, TASK_KILLING);
    task_look_stop(t);
    client_uv_cancel(t->call);
    t->call = NULL;
    uv_timer_stop(&t->watch);
    uv_timer_stop(&t->arrive);
    uv_timer_start(&t->timer, on_kill_tick, 0, 0);
}

/* ---- draining: pipes, then reports, then the log, then the exit ---- */

static void tell_exit(struct task *t);

static void on_log_timer(uv_timer_t *timer)
{
    tell_exit(timer->data);
}

static void on_log_empty(void *arg)
{
    tell_exit(arg);
}

static void on_reports(void *arg, const struct reports_tally *n)
{
    struct task *t = arg;
    bool killed = t->exit.reason == LINK_KILLED;
    t->reports = NULL;
    if (n->sent > 0)
        logspool_say(t->spool, LOGLINE_INFO, "%zu reports that ranks had left were sent", n->sent);
    if (n->refused > 0)
        logspool_say(t->spool, LOGLINE_WARNING,
                     "%zu reports that ranks had left are lost, the master refused them: %s",
                     n->refused, n->refusal.text);
    if (n->left > 0)
        logspool_say(t->spool, LOGLINE_WARNING, "reports of %zu ranks could not be sent", n->left);
    if (t->in_hurry) {
        tell_exit(t);
        return;
    }
    if (!t->http && logspool_unsent(t->spool) == 0) { /* nothing was ever said */
        tell_exit(t);
        return;
    }
    task_connect(t);
    uv_timer_start(&t->timer, on_log_timer, killed ? LOG_KILLED_MS : LOG_MS, 0);
    logship_when_empty(t->ship, on_log_empty, t);
}

static void pipes_done(struct task *t)
{
    uv_timer_stop(&t->timer);
    logspool_end(t->spool);
    if (!reports_are_left(&t->spec)) {
        on_reports(t, &(struct reports_tally){0});
        return;
    }
    task_connect(t);
    struct reports_limits limits = {.retry_ms = t->in_hurry ? 0 : REPORTS_MS,
                                    .all_ms = t->is_killed      ? REPORTS_KILLED_MS
                                              : t->is_successor ? REPORTS_LOST_MS
                                                                : 0};
    t->reports = reports_start(t->loop, t->http, &t->spec, limits, on_reports, t);
}

/* A kill of what has ended already, too, is over soon. */
void task_hurry(struct task *t)
{
    t->is_killed = true;
    if (t->reports)
        reports_hurry(t->reports, REPORTS_KILLED_MS);
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

static void on_pipes_timer(uv_timer_t *timer)
{
    pipes_done(timer->data);
}

static void drain(struct task *t)
{
    task_goto(t, TASK_DRAINING);
    ports_give(&t->ports);
    pause_ranks(t, false);
    uv_timer_start(&t->timer, on_pipes_timer, pipes_are_silent(t) ? 0 : PIPES_MS, 0);
}

void task_on_silent(void *arg, struct rank *r)
{
    struct task *t = arg;
    if (t->phase == TASK_DRAINING && pipes_are_silent(t) && uv_is_active((uv_handle_t *)&t->timer))
        uv_timer_start(&t->timer, on_pipes_timer, 0, 0);
}

/* ---- the end ---- */

static void save_exit(struct task *t)
{
    JSON_OWN j = json_object();
    json_set(j, "exit", link_exit_json(&t->exit));
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
    task_goto(t, TASK_FINISHED);
    uv_close((uv_handle_t *)&t->timer, NULL);
    uv_close((uv_handle_t *)&t->watch, NULL);
    uv_close((uv_handle_t *)&t->arrive, NULL);
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

static void on_last_timer(uv_timer_t *timer)
{
    finish(timer->data);
}

static void on_last_empty(void *arg)
{
    finish(arg);
}

/* An uncaught one ends Python with code 1; its output is read to the end only now. */
static void name_exception(struct task *t)
{
    const struct traceback *seen = &t->traceback;
    bool is_its = seen->rank < 0 || seen->rank == t->exit.rank;
    if (t->exit.reason != LINK_EXITED || t->exit.code != 1 || !seen->exception[0] || !is_its)
        return;
    t->exit.exception = seen->exception;
    t->exit.at = seen->at;
}

static void tell_exit(struct task *t)
{
    if (t->phase != TASK_DRAINING)
        return;
    name_exception(t);
    task_goto(t, TASK_ENDED);
    if (t->ship)
        logship_when_empty(t->ship, NULL, NULL);
    save_exit(t);
    cgroup_remove(t->cgroup);
    ctl_ended(t->ctl, &t->exit, marks_all(&t->marks));
    if (t->in_hurry || logspool_unsent(t->spool) == 0) {
        finish(t);
        return;
    }
    task_connect(t);
    uv_timer_start(&t->timer, on_last_timer, LOG_UNKNOWN_MS, 0);
    logship_when_empty(t->ship, on_last_empty, t);
}

void task_on_acked(struct task *t)
{
    if (t->phase == TASK_ENDED)
        uv_timer_start(&t->timer, on_last_timer, LOG_AFTER_MS, 0);
}
