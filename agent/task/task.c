#include "task.h"

#include "accel.h"
#include "cgroup.h"
#include "clk.h"
#include "deaths.h"
#include "fsx.h"
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define SPOOL           "log.spool"
#define RECOVERED_LINES ((int64_t)1 << 40) /* above the numbers of the det-task before */

/* ---- orders ---- */

static void on_ctl_signal(void *arg, int signal)
{
    struct task *t = arg;
    if (signal == SIGKILL) {
        task_happens(t, TASKLIFE_KILL);
        return;
    }
    for (size_t i = 0; i < t->ranks.n; i++)
        rank_signal(t->ranks.v[i], signal);
}

static void on_ctl_end(void *arg)
{
    task_happens(arg, TASKLIFE_END);
}

static void on_ctl_stacks(void *arg)
{
    task_look(arg);
}

static void on_ctl_acked(void *arg)
{
    task_happens(arg, TASKLIFE_ACKED);
}

static void on_sigterm(uv_signal_t *s, int signum)
{
    task_happens(s->data, TASKLIFE_TERM);
}

static void on_sigchld(uv_signal_t *s, int signum)
{
    task_on_child(s->data);
}

void task_tell_running(struct task *t)
{
    ctl_running(t->ctl, &t->silent, &t->unreached, marks_all(&t->marks));
}

static void on_marks(void *arg)
{
    struct task *t = arg;
    if (t->life.phase == TASK_RUNNING && !t->has_told_accel && !t->spec.task.gc_uuids) {
        t->has_told_accel = true;
        task_connect(t);
        accel_tell(t->http, &t->spec);
    }
    if (t->life.phase > TASK_PREPARING && t->life.phase < TASK_ENDED)
        task_tell_running(t);
}

static void watch_signals(struct task *t)
{
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    uv_signal_init(t->loop, &t->sigchld);
    uv_signal_init(t->loop, &t->sigterm);
    uv_timer_init(t->loop, &t->timer);
    uv_timer_init(t->loop, &t->watch);
    uv_timer_init(t->loop, &t->ask);
    uv_timer_init(t->loop, &t->stacks_timer);
    uv_timer_init(t->loop, &t->look_by);
    uv_timer_init(t->loop, &t->reach_at);
    t->reach_at.data = t->stacks_timer.data = t->look_by.data = t;
    marks_init(&t->marks, t->loop, on_marks, t);
    t->sigchld.data = t->sigterm.data = t->timer.data = t->watch.data = t->ask.data = t;
    uv_signal_start(&t->sigchld, on_sigchld, SIGCHLD);
    uv_signal_start(&t->sigterm, on_sigterm, SIGTERM);
}

static int open_all(struct task *t, enum task_mode mode, struct det_err *err)
{
    const struct ctl_handlers h = {.on_signal = on_ctl_signal,
                                   .on_end = on_ctl_end,
                                   .on_acked = on_ctl_acked,
                                   .on_stacks = on_ctl_stacks,
                                   .arg = t};
    const struct logspool_origin origin = {t->spec.task.task_id, t->spec.alloc, t->spec.container,
                                           t->spec.agent_id};
    int rc = logspool_open(t->spec.dirfd, SPOOL, &origin, mode == TASK_RUN ? 0 : RECOVERED_LINES,
                           &t->spool, err);
    if (rc == 0)
        logspool_limit(t->spool, t->spec.log_bytes_max);
    if (rc == 0)
        rc = ctl_create(t->loop, TASKSPEC_SOCKET_FD, &h, &t->ctl, err);
    return rc;
}

/* By the exit that the det-task before left, if it came so far. */
static void recover_task(struct task *t)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    struct tasklife_event e = {.kind = TASKLIFE_RECOVER};
    JSON_OWN j = fsx_read_file(t->spec.dirfd, "state.json", 65536, &b, NULL) < 0
                     ? NULL
                     : json_parse(buf_str(&b), b.len, NULL);
    e.is_said = link_exit_decode(json_object_get(j, "exit"), &e.exit, NULL) == 0;
    marks_restore(&t->marks, json_object_get(j, "marks"));
    if (!e.is_said)
        e.exit = (struct link_exit){
            .reason = LINK_LOST, .rank = -1, .text = "det-task was killed; its ranks were ended"};
    task_step(t, &e);
}

static void begin_mode(struct task *t, enum task_mode mode)
{
    if (mode == TASK_RUN) {
        t->owns_all = true;
        t->cgroup = cgroup_make(t->spec.cgroup_dir, t->spec.cgroup_name, &t->spec.limits);
        task_begin(t);
        return;
    }
    t->cgroup = cgroup_path(t->spec.cgroup_dir, t->spec.cgroup_name);
    recover_task(t);
}

static void release_task(struct task *t)
{
    tasklife_finish(&t->life);
    stall_destroy(t->stall);
    stackfold_destroy(t->fold);
    marks_finish(&t->marks);
    logspool_close(t->spool);
    prepare_plan_finish(&t->plan);
    vec_free(&t->ranks);
    vec_free(&t->steps);
    free(t->python);
    unseen_last_finish(&t->unseen);
    free((char *)t->unreached.text);
    json_decref(t->env);
    ports_give(&t->ports);
    det_closep(&t->step_fd);
    det_closep(&t->python_fd);
    det_closep(&t->deaths);
    free(t->cgroup);
    taskbox_close(&t->box);
    taskspec_finish(&t->spec);
}

/* A det-task's first act is its log's spool. Without one nothing was begun: the order died with
 * the server that should have forked, and its successor is the first. */
static enum task_mode mode_of(const struct task *t, enum task_mode asked)
{
    struct stat st;
    int rc = fstatat(t->spec.dirfd, SPOOL, &st, AT_SYMLINK_NOFOLLOW);
    return rc < 0 && errno == ENOENT ? TASK_RUN : asked;
}

int task_main(const char *dir, enum task_mode mode)
{
    struct task t = {.step_fd = -1,
                     .python_fd = -1,
                     .deaths = -1,
                     .box = TASKBOX_NONE,
                     .ports = PORTS_NONE,
                     .loop = uv_default_loop(),
                     .marks = {.fd = -1},
                     .begun_ms = clk_mono_ms()};
    struct det_err err = {0};
    fcntl(TASKSPEC_SOCKET_FD, F_SETFD, FD_CLOEXEC);
    int rc = taskspec_load(dir, &t.spec, &err);
    if (rc == 0) {
        tasklife_init(&t.life, t.spec.task.stall_timeout_ms, t.begun_ms);
        mode = mode_of(&t, mode);
        rc = open_all(&t, mode, &err);
    }
    if (rc < 0) {
        log_error("%s", err.text);
        release_task(&t);
        return 1;
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* orphans of the ranks become children of this process */
    t.deaths = deaths_open();
    watch_signals(&t);
    begin_mode(&t, mode);
    uv_run(t.loop, UV_RUN_DEFAULT);
    uv_loop_close(t.loop);
    release_task(&t);
    return 0;
}
