/* How the processes of a task ended, and which of them is to be named for it. */
#include "task.h"

#include "cgroup.h"
#include "deaths.h"
#include "fsx.h"
#include "oom.h"
#include "progress.h"
#include "storage.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static bool all_exited(const struct task *t)
{
    for (size_t i = 0; i < t->ranks.n; i++)
        if (!rank_has_exited(t->ranks.v[i]))
            return false;
    return true;
}

bool task_has_exited(const struct task *t)
{
    bool step_runs = t->steps.n > 0 && !rank_has_exited(t->steps.v[t->steps.n - 1]);
    bool tracer_runs = t->tracer && !rank_has_exited(t->tracer);
    bool reacher_runs = t->reacher && !rank_has_exited(t->reacher);
    return all_exited(t) && !step_runs && !tracer_runs && !reacher_runs;
}

static bool has_failed(const struct rank *r)
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
        buf_addf(out,
                 "; %lld times it got no new process or thread: it has the %lld that its slots "
                 "may have (the agent's --slot-pids)",
                 (long long)n, (long long)t->spec.limits.pids);
}

/* One that ends well before its time is why the others fail: its collectives have ended. */
static void name_deserter(const struct task *t, struct buf *out)
{
    for (size_t i = 0; i < t->ranks.n; i++) {
        const struct rank *r = t->ranks.v[i];
        if (rank_number(r) >= 0 && rank_has_exited(r) && !has_failed(r)) {
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

static void take_exit(struct task *t, pid_t pid, int status)
{
    if (step_exited(t, pid, status))
        return;
    if (t->tracer && rank_pid(t->tracer) == pid && !rank_has_exited(t->tracer)) {
        task_on_tracer_exit(t, status);
        return;
    }
    if (t->reacher && rank_pid(t->reacher) == pid && !rank_has_exited(t->reacher)) {
        task_on_reacher_exit(t, status);
        return;
    }
    for (size_t i = 0; i < t->ranks.n; i++) {
        struct rank *r = t->ranks.v[i];
        if (rank_pid(r) != pid || rank_has_exited(r))
            continue;
        rank_on_exit(r, status);
        if (has_failed(r) && t->life.phase == TASK_RUNNING)
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
        take_exit(t, pid, status);
    task_step(t, &(struct tasklife_event){.kind = TASKLIFE_CHILDREN,
                                          .all_ended = all_exited(t),
                                          .first_ended =
                                              t->ranks.n > 0 && rank_has_exited(t->ranks.v[0])});
}
