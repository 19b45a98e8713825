/*
 * Between the info files and the ranks: startup-hook.sh, and which Python the ranks are run by
 * (pychoice.h). The configuration's is told to the hook; the hook has the last word. Whatever is
 * run here was named by the user or lies where they may write: it runs as they do, in the box.
 */
#include "task.h"

#include "find.h"
#include "pychoice.h"
#include "taskenv.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ENVIRON_MAX   ((size_t)16 << 20)
#define SYSTEM_PYTHON "/usr/bin/python3"
#define NAMES         "run/bin"

/* ---- a step ---- */

static void on_step_silent(uv_timer_t *timer)
{
    struct task *t = timer->data;
    task_decide(t, LINK_STALLED, 0, SIGKILL, -1, "%s stalled: it printed nothing for %lld s",
                t->step, (long long)(t->spec.task.stall_timeout_ms / 1000));
    task_kill(t);
}

/* A step may take long, as one that installs packages; but it says something now and then. */
void task_hook_lives(struct task *t)
{
    if (t->phase == TASK_HOOKING && t->spec.task.stall_timeout_ms > 0)
        uv_timer_start(&t->watch, on_step_silent, (uint64_t)t->spec.task.stall_timeout_ms, 0);
}

/* name: what the log calls it, a literal. */
static void start_step(struct task *t, const char *name, char *const *argv, int pass_fd,
                       void (*done)(struct task *t, int status))
{
    struct det_err err = {0};
    struct rank_options o = {.argv = argv, .number = RANK_NO_RANK, .pass_fd = pass_fd};
    task_goto(t, TASK_HOOKING);
    t->step = name;
    t->step_done = done;
    struct rank *r = task_start_process(t, &o, t->env, &err);
    if (!r) {
        task_fail_trial(t, 126, &err);
        return;
    }
    vec_push(&t->steps, r);
    task_hook_lives(t);
}

static bool is_good(int status)
{
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- what the configuration names ---- */

static int look_for(struct task *t, const char *wanted, struct pychoice *ret, struct det_err *err)
{
    *ret = PYCHOICE_NONE;
    int rc = taskspec_user_enter(&t->spec, err);
    if (rc < 0)
        return rc;
    det_cleanup(freep) char *work = det_asprintf("%s/work", t->spec.dir);
    rc = pychoice_find(wanted, json_str(t->env, "PATH", NULL), work, ret, err);
    if (rc == 0)
        pychoice_apply(ret, t->env);
    if (rc == 0 && pychoice_lacks_names(ret, t->env)) {
        det_cleanup(freep) char *names = det_asprintf("%s/" NAMES, t->spec.dir);
        rc = pychoice_write_names(ret, t->spec.dirfd, NAMES, err);
        pychoice_put_first(t->env, names);
    }
    taskspec_user_leave(&t->spec);
    return rc;
}

/* DET_ENOENT and DET_EPERM: it is not here, and maybe a hook brings it. */
static int take_configured(struct task *t, struct det_err *err)
{
    struct pychoice c;
    int rc = look_for(t, t->spec.task.interpreter, &c, err);
    if (rc == 0) {
        t->has_python = true;
        logspool_say(t->spool, LOGLINE_INFO, "Python is %s, as environment.python says.", c.exe);
    }
    pychoice_finish(&c);
    return rc;
}

/* No fault of the trial's: another host may have it. */
static void fail_configured(struct task *t, struct det_err *err)
{
    det_wrap(err, err->code, "environment.python, on agent %s", t->spec.agent_id);
    task_fail_start(t, err);
}

/* ---- the Python of a trial class ---- */

static void take_system_python(struct task *t)
{
    free(t->python);
    t->python = access(SYSTEM_PYTHON, X_OK) == 0 ? det_strdup(SYSTEM_PYTHON) : NULL;
    task_start_ranks(t);
}

static void on_torch(struct task *t, int status)
{
    if (is_good(status))
        task_start_ranks(t);
    else
        take_system_python(t);
}

/* One on PATH that cannot train hides no other. */
static void ask_for_torch(struct task *t)
{
    char *const argv[] = {"/bin/sh", "-c",
                          "exec \"$0\" -c 'import importlib.util as u, sys; "
                          "sys.exit(u.find_spec(\"torch\") is None)' >/dev/null 2>&1",
                          t->python, NULL};
    start_step(t, "the search for a Python with torch", argv, -1, on_torch);
}

/* Who names one gets it, be it without torch. */
static void choose(struct task *t)
{
    const char *given = json_str(t->env, "DET_PYTHON_EXECUTABLE", "");
    struct det_err err = {0};
    if (!prepare_is_python_class(&t->spec)) {
        task_start_ranks(t);
        return;
    }
    if (taskspec_user_enter(&t->spec, &err) < 0) {
        task_fail_start(t, &err);
        return;
    }
    t->python = find_on_path(json_str(t->env, "PATH", NULL), *given ? given : "python3");
    taskspec_user_leave(&t->spec);
    if (*given || (t->python && strcmp(t->python, SYSTEM_PYTHON) == 0))
        task_start_ranks(t);
    else if (t->python)
        ask_for_torch(t);
    else
        take_system_python(t);
}

/* ---- startup-hook.sh: what it exports is for the ranks ---- */

static bool is_shells_own(const char *name)
{
    return strcmp(name, "_") == 0 || strcmp(name, "SHLVL") == 0 ||
           strncmp(name, "BASH_FUNC", 9) == 0;
}

/* New reference. */
static json_t *read_hook(const struct task *t, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    off_t size = lseek(t->hook_fd, 0, SEEK_END);
    if (size <= 0 || size > (off_t)ENVIRON_MAX) {
        det_fail(err, DET_EINVAL,
                 "startup-hook.sh left no usable environment (did it call exit?)");
        return NULL;
    }
    json_t *env = json_object();
    buf_reserve(&b, (size_t)size + 1);
    ssize_t n = pread(t->hook_fd, b.p, (size_t)size, 0);
    b.len = n > 0 ? (size_t)n : 0;
    b.p[b.len] = '\0';
    for (size_t i = 0; i < b.len; i += strlen(b.p + i) + 1) {
        char *eq = strchr(b.p + i, '=');
        if (!eq || eq == b.p + i)
            continue;
        *eq = '\0';
        if (!is_shells_own(b.p + i))
            json_set(env, b.p + i, json_lossy(eq + 1, strlen(eq + 1)));
        *eq = '=';
    }
    return env;
}

/* What it did to PATH counts for a trial class too. */
static void heed_hook(struct task *t, json_t *env)
{
    if (taskspec_user_enter(&t->spec, NULL) < 0)
        return; /* choose() says it */
    det_cleanup(freep) char *chosen = pychoice_of_hook(t->env, env);
    taskspec_user_leave(&t->spec);
    if (!chosen)
        return;
    json_set(env, "DET_PYTHON_EXECUTABLE", json_lossy(chosen, strlen(chosen)));
    t->has_python = true;
    logspool_say(t->spool, LOGLINE_INFO, "Python is %s, as startup-hook.sh says.", chosen);
}

static void on_hook(struct task *t, int status)
{
    struct det_err err = {0};
    if (!is_good(status)) {
        task_step_failed(t, t->steps.v[t->steps.n - 1]);
        return;
    }
    JSON_OWN env = read_hook(t, &err);
    if (!env) {
        task_fail_trial(t, 1, &err);
        return;
    }
    heed_hook(t, env);
    json_decref(t->env);
    t->env = json_incref(env);
    if (t->spec.task.interpreter && !t->has_python && take_configured(t, &err) < 0)
        fail_configured(t, &err);
    else
        choose(t);
}

static void start_hook(struct task *t)
{
    char *const argv[] = {access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh", "-c",
                          "set -ex\n. ./startup-hook.sh\n{ set +ex; } 2>/dev/null\nexec env -0 >&3",
                          NULL};
    t->hook_fd = memfd_create("hook", MFD_CLOEXEC);
    start_step(t, "startup-hook.sh", argv, t->hook_fd, on_hook);
}

void task_start_steps(struct task *t)
{
    struct det_err err = {0};
    bool has_hook = prepare_has_hook(&t->spec);
    int rc = t->spec.task.interpreter ? take_configured(t, &err) : 0;
    if (rc < 0 && !has_hook)
        fail_configured(t, &err);
    else if (has_hook)
        start_hook(t);
    else
        choose(t);
}
