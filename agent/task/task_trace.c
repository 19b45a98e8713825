/* What the ranks' processes are doing is written to the log: of one that hangs before the tree is
 * ended, and when a person asks. */
#include "task.h"

#include "clk.h"
#include "find.h"
#include "fsx.h"
#include "taskenv.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRACE_MS  10000 /* for all ranks of this host together */
#define RANKS_MAX 4
#define LINES_MAX 20000 /* of one rank */

static const struct {
    char letter;
    const char *means;
} states[] = {{'R', "running"},
              {'S', "sleeping"},
              {'D', "in the kernel, not to be woken"},
              {'T', "stopped by a signal"},
              {'t', "stopped by a debugger"},
              {'Z', "a zombie"}};

static void read_proc(pid_t pid, const char *name, struct buf *out)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    if (fsx_read_file(AT_FDCWD, path, 4096, out, NULL) < 0)
        buf_clear(out);
}

/* "stopped by a signal", and where in the kernel it waits when that is known. */
static void process_state(pid_t pid, struct buf *out)
{
    det_cleanup(buf_finish) struct buf stat = BUF_INIT, wchan = BUF_INIT;
    read_proc(pid, "stat", &stat);
    read_proc(pid, "wchan", &wchan);
    const char *end = strrchr(buf_str(&stat), ')');
    const char *means = "gone";
    for (size_t i = 0; end && i < DET_ARRAY_LEN(states); i++)
        if (end[1] == ' ' && end[2] == states[i].letter)
            means = states[i].means;
    buf_add_str(out, means);
    if (wchan.len > 1)
        buf_addf(out, " in %.60s", buf_str(&wchan));
}

static bool is_stopped(pid_t pid)
{
    det_cleanup(buf_finish) struct buf stat = BUF_INIT;
    read_proc(pid, "stat", &stat);
    const char *end = strrchr(buf_str(&stat), ')');
    return end && end[1] == ' ' && end[2] == 'T';
}

/* With the mark, by which it is found and ended when this process was killed. */
static json_t *tracer_env(const struct task *t)
{
    json_t *env = json_make("{s:s, s:s, s:s}", "PATH", "/usr/local/bin:/usr/bin:/bin", "LC_ALL",
                            "C", "HOME", "/nonexistent");
    const char *value = strchr(t->spec.mark, '=');
    det_cleanup(freep) char *name = det_strndup(t->spec.mark, (size_t)(value - t->spec.mark));
    json_object_set_new(env, name, json_string(value + 1));
    return env;
}

static void trace_next_rank(struct task *t);

static void on_line(void *arg, const struct rank *r, const char *stdtype, const struct logline *l)
{
    struct task *t = arg;
    if (t->trace_lines++ < LINES_MAX)
        stackfold_add(t->fold, l->text);
}

static void log_stack_line(void *arg, const char *line)
{
    struct task *t = arg;
    logspool_add(t->spool, NULL, rank_number(t->tracer),
                 &(struct logline){line, strlen(line), -1, LOGLINE_INFO});
}

/* What its owner may not see there is none of theirs, nor is what stands behind a link: that may be
 * a mount that hangs. */
static bool is_users(void *arg, const char *file)
{
    const struct task *t = arg;
    det_cleanup(freep) char *path = det_asprintf(LINK_WORK_DIR "/%s", file);
    if (*file == '/' || strstr(file, "..") || taskspec_user_enter(&t->spec, NULL) < 0)
        return false;
    bool is_there = fsx_is_within(t->spec.dirfd, path);
    taskspec_user_leave(&t->spec);
    return is_there;
}

/* Its last lines may come after its end. */
static void when_done(struct task *t)
{
    if (!task_may_look(t) || !rank_has_exited(t->tracer) || !rank_is_silent(t->tracer))
        return;
    if (t->looked) {
        if (stackfold_place(t->fold))
            task_say_place(t, t->ranks.v[t->traced - 1], stackfold_place(t->fold));
        stackfold_end(t->fold, log_stack_line, t);
    }
    rank_close(t->tracer);
    t->tracer = NULL;
    if (t->stall) /* a process that a debugger holds gives no sign of life */
        stall_forgive(t->stall, clk_mono_ms() - t->tracer_ms);
    if (t->looked)
        trace_next_rank(t);
}

static void on_silent(void *arg, struct rank *r)
{
    when_done(arg);
}

/* Reading the symbols of all that a Python process has loaded (torch alone has 27 libraries here)
 * takes seconds: only those are read that stand in a stack, until each frame has a name. A gdb
 * without Python ends this at its second line, and goes on with what follows it on its command
 * line. */
static const char gdb_script[] =
    "python\n"
    "import re\n"
    "def unnamed():\n"
    "    for thread in gdb.selected_inferior().threads():\n"
    "        thread.switch()\n"
    "        frame, depth = gdb.newest_frame(), 0\n"
    "        while frame is not None and depth < 40:\n"
    "            if frame.name() is None:\n"
    "                yield gdb.solib_name(frame.pc())\n"
    "            frame, depth = frame.older(), depth + 1\n"
    "def load():\n"
    "    known, new = {None}, set(unnamed())\n"
    "    while new - known:\n"
    "        for library in new - known:\n"
    "            gdb.execute('sharedlibrary ' + re.escape(library), to_string=True)\n"
    "        known, new = known | new, set(unnamed())\n"
    "load()\n"
    "end\n"
    "thread apply all bt 40\n"
    "quit\n";

/* -1: it reads all. */
static int open_script(void)
{
    det_cleanup(det_closep) int fd = memfd_create("gdb", MFD_CLOEXEC);
    if (fd < 0 || fsx_write_all(fd, gdb_script, strlen(gdb_script), NULL) < 0)
        return -1;
    int ret = fd;
    fd = -1;
    return ret;
}

/* The debugger runs as the ranks' user: it can do nothing to others, whatever it is made to read.
 * It is no member of the task's cgroup: a look at a trial near its limit of memory must not end it.
 */
static int start_tracer(struct task *t, const struct rank *r, struct det_err *err)
{
    char pid[16];
    snprintf(pid, sizeof pid, "%d", taskbox_inner_pid(rank_pid(r)));
    JSON_OWN env = tracer_env(t);
    char *const gdb[] = {"gdb",
                         "-nx",
                         "-batch",
                         "-iex",
                         "set auto-load off",
                         "-iex",
                         "set auto-solib-add off",
                         "-p",
                         pid,
                         "-x",
                         "/dev/fd/3",
                         "-ex",
                         "sharedlibrary",
                         "-ex",
                         "thread apply all bt 40",
                         NULL};
    char *const eu[] = {"eu-stack", "-n", "40", "-p", pid, NULL};
    det_cleanup(freep) char *file = find_on_path(json_str(env, "PATH", NULL), "gdb");
    bool is_gdb = file != NULL;
    if (!file)
        file = find_on_path(json_str(env, "PATH", NULL), "eu-stack");
    if (!file)
        return det_fail(err, DET_ENOENT,
                        "neither gdb nor eu-stack is on this host (apt-get install gdb)");
    det_cleanup(det_closep) int script = open_script();
    char **vector = taskenv_vector(env);
    struct rank_options o = {.spec = &t->spec,
                             .file = file,
                             .argv = is_gdb ? gdb : eu,
                             .env = vector,
                             .number = rank_number(r),
                             .local = rank_local(r),
                             .pass_fd = script,
                             .cgroup = NULL,
                             .box = &t->box,
                             .loop = t->loop,
                             .on_line = on_line,
                             .on_silent = on_silent,
                             .arg = t};
    t->traced_pid = is_stopped(rank_pid(r)) ? 0 : rank_pid(r);
    t->tracer_ms = clk_mono_ms();
    int rc = rank_start(&o, &t->tracer, err);
    taskenv_vector_destroy(vector);
    return rc;
}

bool task_may_look(const struct task *t)
{
    return t->life.phase == TASK_RUNNING || t->life.phase == TASK_TRACING;
}

static void say_end(struct task *t)
{
    logspool_say(t->spool, LOGLINE_INFO, LINK_STACKS_END, t->spec.agent_id);
    if (t->ship)
        logship_kick(t->ship);
}

static void go_on(struct task *t)
{
    task_happens(t, TASKLIFE_LOOKED);
}

static void end_and_go_on(struct task *t)
{
    say_end(t);
    go_on(t);
}

typedef void (*then_fn)(struct task *t);

static then_fn take_looked(struct task *t)
{
    then_fn looked = t->looked;
    uv_timer_stop(&t->look_by);
    task_stacks_end(t);
    t->looked = NULL;
    if (t->tracer)
        rank_signal(t->tracer, SIGKILL);
    return looked;
}

/* Who asked is told of the end all the same. */
void task_look_stop(struct task *t)
{
    then_fn then = take_looked(t);
    if (then == say_end || then == end_and_go_on)
        say_end(t);
}

static void end_look(struct task *t)
{
    take_looked(t)(t);
}

static void on_deadline(uv_timer_t *timer)
{
    struct task *t = timer->data;
    logspool_say(t->spool, LOGLINE_WARNING, "reading the stacks took longer than %d s: left out",
                 TRACE_MS / 1000);
    end_look(t);
}

/* The next rank that lives; then the look is over. */
static void trace_next_rank(struct task *t)
{
    struct det_err err = {0};
    for (; !t->tracer && t->traced < t->ranks.n && t->traced < RANKS_MAX; t->traced++) {
        const struct rank *r = t->ranks.v[t->traced];
        if (rank_has_exited(r))
            continue;
        stackfold_destroy(t->fold);
        t->fold = stackfold_create(is_users, t);
        t->trace_lines = 0;
        logspool_say(t->spool, LOGLINE_INFO, "the stacks of process %d:", rank_pid(r));
        int rc = start_tracer(t, r, &err);
        if (rc == 0) {
            t->traced++;
            return;
        }
        logspool_say(t->spool, LOGLINE_WARNING, "its stacks cannot be read: %s", err.text);
        break;
    }
    end_look(t);
}

static void trace_ranks(struct task *t, void (*looked)(struct task *t))
{
    t->looked = looked;
    t->traced = 0;
    uv_timer_start(&t->look_by, on_deadline, TRACE_MS, 0);
    task_stacks(t, trace_next_rank);
}

/* Whoever asks gets an end in any case, and knows by it that nothing follows. */
void task_look(struct task *t)
{
    task_connect(t);
    if (t->looked || t->tracer) {
        logspool_say(t->spool, LOGLINE_INFO, "the stacks are being read already");
    } else if (task_may_look(t) && t->ranks.n > 0) {
        trace_ranks(t, say_end);
        return;
    } else {
        logspool_say(t->spool, LOGLINE_INFO, "no rank runs whose stacks could be read");
    }
    say_end(t);
}

/* A debugger that was killed may leave the stop behind by which it took hold of a thread. */
static void let_go_on(const struct task *t, int status)
{
    if (WIFSIGNALED(status) && t->traced_pid > 0 && task_may_look(t))
        kill(t->traced_pid, SIGCONT);
}

void task_on_tracer_exit(struct task *t, int status)
{
    rank_on_exit(t->tracer, status);
    let_go_on(t, status);
    when_done(t);
}

void task_on_stall(struct task *t, const struct stall_found *s)
{
    const struct rank *r = t->ranks.v[s->local];
    int rank = taskspec_first_rank(&t->spec) + s->local;
    det_cleanup(buf_finish) struct buf state = BUF_INIT;
    process_state(rank_pid(r), &state);
    marks_add(&t->marks, "stalled", s->silent_ms, "rank %d, process %d, %s; %s, batch %llu", rank,
              rank_pid(r), buf_str(&state), s->phase, (unsigned long long)s->batches);
    const struct link_exit exit = {.reason = LINK_STALLED, .signal = SIGKILL, .rank = rank};
    task_fails(t, TASKLIFE_STALLED, exit,
               "rank %d stalled: no batch for %.1f s, last batch %llu (%s); process %d is %s", rank,
               (double)s->silent_ms / 1e3, (unsigned long long)s->batches, s->phase, rank_pid(r),
               buf_str(&state));
}

void task_look_at_stall(struct task *t)
{
    uv_timer_stop(&t->watch);
    if (t->looked) /* by somebody who asked: the same stacks */
        t->looked = end_and_go_on;
    else
        trace_ranks(t, go_on);
}
