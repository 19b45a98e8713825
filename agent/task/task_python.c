/*
 * Between the info files and the ranks: the environment of a list of requirements, which
 * determined/exec/environment.py makes, startup-hook.sh, and which Python the ranks are run by
 * (pychoice.h). The configuration's is told to the hook; the hook has the last word. Whatever is
 * run here was named by the user or lies where they may write: it runs as they do, in the box.
 */
#include "task.h"

#include "find.h"
#include "fsx.h"
#include "owncache.h"
#include "pychoice.h"
#include "taskenv.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ENVIRON_MAX   ((size_t)16 << 20)
#define SYSTEM_PYTHON "/usr/bin/python3"
#define NAMES         "run/bin"
#define LAYER         "run/layer"
#define REQUEST       "run/python.json"
#define ENVIRONMENT   "run/venv"
#define ANSWER_MAX    65536
#define TRIES         2       /* after the first */
#define CACHE_MIB     "20480" /* of one user's environments, without DET_PYTHON_CACHE_MIB */

/* ---- a step ---- */

/* name: what the log calls it, a literal. */
static void start_step(struct task *t, const char *name, char *const *argv,
                       void (*done)(struct task *t, int status))
{
    struct det_err err = {0};
    det_closep(&t->step_fd);
    t->step_fd = memfd_create("step", MFD_CLOEXEC);
    struct rank_options o = {.argv = argv, .number = RANK_NO_RANK, .pass_fd = t->step_fd};
    task_step(t, &(struct tasklife_event){.kind = TASKLIFE_STEP, .step = name});
    t->step_done = done;
    struct rank *r = task_start_process(t, &o, t->env, &err);
    if (!r) {
        task_fail_trial(t, 126, &err);
        return;
    }
    vec_push(&t->steps, r);
}

/* What the step left, with a NUL behind; NULL: nothing, or too much. Caller frees. */
static char *answer_of(const struct task *t, size_t bytes_max, size_t *ret_len)
{
    off_t size = lseek(t->step_fd, 0, SEEK_END);
    if (size <= 0 || (size_t)size > bytes_max)
        return NULL;
    char *text = det_zalloc((size_t)size + 1);
    ssize_t n = pread(t->step_fd, text, (size_t)size, 0);
    *ret_len = n > 0 ? (size_t)n : 0;
    return text;
}

static bool is_good(int status)
{
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- what the configuration names ---- */

struct wish {
    const struct task *t;
    const char *wanted;
};

/* *ret_absent: it will not be here the next time either, nor may the account run it. */
static int choose_python(const struct wish *w, struct pychoice *ret, bool *ret_absent,
                         struct det_err *err)
{
    const struct task *t = w->t;
    det_cleanup(freep) char *work = det_asprintf("%s/work", t->spec.dir);
    int rc = pychoice_find(w->wanted, json_str(t->env, "PATH", NULL), work, ret, err);
    *ret_absent = rc == DET_ENOENT || rc == DET_EPERM;
    if (rc == 0)
        pychoice_apply(ret, t->env);
    if (rc == 0 && pychoice_lacks_names(ret, t->env)) {
        det_cleanup(freep) char *names = det_asprintf("%s/" NAMES, t->spec.dir);
        rc = pychoice_write_names(ret, t->spec.dirfd, NAMES, err);
        pychoice_put_first(t->env, names);
    }
    return rc;
}

/* What is found, and the environment that goes with it. */
static void on_look(void *arg, struct buf *out)
{
    const struct wish *w = arg;
    struct det_err err = {0};
    struct pychoice c = PYCHOICE_NONE;
    bool is_absent;
    int rc = choose_python(w, &c, &is_absent, &err);
    JSON_OWN said = json_make("{s:i,s:b,s:s,s:O}", "code", rc, "absent", is_absent, "error",
                              err.text, "env", w->t->env);
    if (rc == 0)
        json_set(said, "exe", json_lossy(c.exe, strlen(c.exe)));
    det_cleanup(freep) char *text = json_text(said);
    buf_add_str(out, text);
    pychoice_finish(&c);
}

/* *ret: the interpreter, the caller's to free. DET_ENOENT: it is absent, and nothing else is. */
static int look_for(struct task *t, const char *wanted, char **ret, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf out = BUF_INIT;
    *ret = NULL;
    if (task_peek(t, on_look, &(struct wish){t, wanted}, &out, err) < 0)
        return err->code = DET_EIO;
    JSON_OWN said = json_parse(out.p, out.len, NULL);
    if (json_int(said, "code", DET_EIO) < 0)
        return det_fail(err, json_flag(said, "absent", false) ? DET_ENOENT : DET_EIO, "%s",
                        json_str(said, "error", wanted));
    json_decref(t->env);
    t->env = json_incref(json_object_get(said, "env"));
    *ret = det_strdup(json_str(said, "exe", ""));
    return 0;
}

/* DET_ENOENT: it is not here, and maybe a hook brings it. */
static int take_configured(struct task *t, struct det_err *err)
{
    det_cleanup(freep) char *exe = NULL;
    int rc = look_for(t, t->spec.task.interpreter, &exe, err);
    if (rc == 0) {
        t->has_python = true;
        logspool_say(t->spool, LOGLINE_INFO, "Python is %s, as environment.python says.", exe);
    }
    return rc;
}

/* No fault of the trial's: another host may have it. */
static void fail_configured(struct task *t, struct det_err *err)
{
    det_wrap(err, err->code, "environment.python, on agent %s", t->spec.agent_id);
    task_fail_start(t, err);
}

/* The interpreter itself, before anything ran that may have been to make it. */
static void fail_interpreter(struct task *t, struct det_err *err)
{
    if (err->code != DET_ENOENT) {
        fail_configured(t, err);
        return;
    }
    det_wrap(err, err->code, "environment.python, on agent %s", t->spec.agent_id);
    task_fail_absent(t, err);
}

/* ---- the Python of a trial class ---- */

/* Takes exe; NULL: none. */
static void set_python(struct task *t, char *exe)
{
    free(t->python);
    t->python = exe;
}

static void take_system_python(struct task *t)
{
    set_python(t, access(SYSTEM_PYTHON, X_OK) == 0 ? det_strdup(SYSTEM_PYTHON) : NULL);
}

static void on_torch(struct task *t, int status)
{
    if (!is_good(status))
        take_system_python(t);
    task_start_ranks(t);
}

/* One on PATH that cannot train hides no other. */
static void ask_for_torch(struct task *t)
{
    char *const argv[] = {"/bin/sh", "-c",
                          "exec \"$0\" -c 'import importlib.util as u, sys; "
                          "sys.exit(u.find_spec(\"torch\") is None)' >/dev/null 2>&1",
                          t->python, NULL};
    start_step(t, "the search for a Python with torch", argv, on_torch);
}

/* name's file on PATH becomes t->python; NULL where there is none. */
static int find_for_task(struct task *t, const char *name, struct det_err *err)
{
    char *exe;
    int rc = task_find(t, t->env, name, &exe, err);
    if (rc == 0)
        set_python(t, exe);
    return rc;
}

/* Who names one gets it, be it without torch. */
static void start_choice(struct task *t)
{
    const char *given = json_str(t->env, "DET_PYTHON_EXECUTABLE", "");
    struct det_err err = {0};
    if (!prepare_is_python_class(&t->spec)) {
        task_start_ranks(t);
        return;
    }
    if (find_for_task(t, *given ? given : "python3", &err) < 0) {
        task_fail_start(t, &err);
        return;
    }
    if (!*given && t->python && strcmp(t->python, SYSTEM_PYTHON) != 0) {
        ask_for_torch(t);
        return;
    }
    if (!*given && !t->python)
        take_system_python(t);
    task_start_ranks(t);
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
    size_t len = 0;
    det_cleanup(freep) char *text = answer_of(t, ENVIRON_MAX, &len);
    if (!text) {
        det_fail(err, DET_EINVAL, "startup-hook.sh left no usable environment (did it call exit?)");
        return NULL;
    }
    json_t *env = json_object();
    for (size_t i = 0; i < len; i += strlen(text + i) + 1) {
        char *eq = strchr(text + i, '=');
        if (!eq || eq == text + i)
            continue;
        *eq = '\0';
        if (!is_shells_own(text + i))
            json_set(env, text + i, json_lossy(eq + 1, strlen(eq + 1)));
        *eq = '=';
    }
    return env;
}

struct change {
    const json_t *before, *after;
};

static void on_change(void *arg, struct buf *out)
{
    const struct change *c = arg;
    det_cleanup(freep) char *chosen = pychoice_of_hook(c->before, c->after);
    buf_add_str(out, chosen ? chosen : "");
}

/* What it did to PATH counts for a trial class too. */
static void heed_hook(struct task *t, json_t *env)
{
    struct det_err err;
    det_cleanup(buf_finish) struct buf out = BUF_INIT;
    if (task_peek(t, on_change, &(struct change){t->env, env}, &out, &err) < 0)
        return; /* start_choice() says it */
    const char *chosen = buf_str(&out);
    if (!*chosen)
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
        fail_configured(t, &err); /* another time the hook may make it */
    else
        start_choice(t);
}

static void on_managed(void *arg, struct buf *out)
{
    const struct task *t = arg;
    det_cleanup(freep) char *exe = find_on_path(json_str(t->env, "PATH", NULL), "python3");
    if (exe && pychoice_is_managed(exe))
        buf_add_str(out, exe);
}

static int write_layer(const struct task *t, const char *exe, struct det_err *err)
{
    int rc = taskspec_user_enter(&t->spec, err);
    if (rc < 0)
        return rc;
    rc = pychoice_write_layer(exe, t->spec.dirfd, LAYER, t->spec.dir, err);
    taskspec_user_leave(&t->spec);
    return rc;
}

/* pip refuses to install into a distribution's Python; and there others would find what it did. */
static int lay_over(struct task *t, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf exe = BUF_INIT;
    int rc = task_peek(t, on_managed, t, &exe, err);
    if (rc < 0 || exe.len == 0)
        return rc;
    det_cleanup(freep) char *folder = det_asprintf("%s/" LAYER, t->spec.dir);
    det_cleanup(freep) char *bin = det_asprintf("%s/bin", folder);
    rc = write_layer(t, buf_str(&exe), err);
    if (rc == 0) {
        pychoice_put_first(t->env, bin);
        json_set(t->env, "VIRTUAL_ENV", json_lossy(folder, strlen(folder)));
    }
    return rc;
}

static void start_hook(struct task *t)
{
    struct det_err err = {0};
    bool is_named = t->has_python || *json_str(t->env, "DET_PYTHON_EXECUTABLE", "");
    if (!is_named && lay_over(t, &err) < 0)
        logspool_say(t->spool, LOGLINE_WARNING, "pip has no place of this task's own: %s",
                     err.text);
    char *const argv[] = {access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh", "-c",
                          "set -ex\n. ./startup-hook.sh\n{ set +ex; } 2>/dev/null\nexec env -0 >&3",
                          NULL};
    start_step(t, "startup-hook.sh", argv, on_hook);
}

static void hook_or_ranks(struct task *t)
{
    if (prepare_has_hook(&t->spec))
        start_hook(t);
    else
        start_choice(t);
}

/* ---- the environment of a list of requirements ---- */

/* As long as it is held nobody removes what the environment needs; the paths are the process's
 * word. DET_EUNAVAIL: somebody has, after it had ended. */
static int hold_environment(struct task *t, const json_t *answer, struct det_err *err)
{
    struct stat st;
    const char *path = json_str(answer, "lock", ""), *made = json_str(answer, "made", "");
    int rc = taskspec_user_enter(&t->spec, err);
    if (rc < 0)
        return rc;
    det_closep(&t->python_fd);
    t->python_fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (t->python_fd < 0 || flock(t->python_fd, LOCK_SH | LOCK_NB) < 0)
        rc = det_fail_errno(err, DET_EUNAVAIL, errno, "%s", path);
    else if (stat(made, &st) < 0)
        rc = det_fail(err, DET_EUNAVAIL, "%s was removed by another task", made);
    taskspec_user_leave(&t->spec);
    return rc;
}

static int take_environment(struct task *t, const json_t *answer, struct det_err *err)
{
    det_cleanup(freep) char *folder = det_asprintf("%s/" ENVIRONMENT, t->spec.dir);
    det_cleanup(freep) char *exe = NULL;
    int rc = hold_environment(t, answer, err);
    if (rc == 0)
        rc = look_for(t, folder, &exe, err);
    t->has_python = rc == 0;
    return rc;
}

static void make_environment(struct task *t);

static void fail_or_again(struct task *t, struct det_err *err)
{
    if (err->code != DET_EUNAVAIL || t->python_tries++ >= TRIES) {
        fail_configured(t, err);
        return;
    }
    logspool_say(t->spool, LOGLINE_INFO, "Python's environment is made again: %s", err->text);
    make_environment(t);
}

static void on_environment(struct task *t, int status)
{
    struct det_err err = {0};
    size_t len = 0;
    det_cleanup(freep) char *text = answer_of(t, ANSWER_MAX, &len);
    JSON_OWN answer = text ? json_parse(text, len, NULL) : NULL;
    const char *said = json_str(answer, "error", NULL);
    if (said)
        det_fail(&err, DET_EUNAVAIL, "environment.python, on agent %s: %s", t->spec.agent_id, said);
    if (!answer)
        task_step_failed(t, t->steps.v[t->steps.n - 1]);
    else if (said && json_flag(answer, "host", true))
        task_fail_start(t, &err);
    else if (said)
        task_fail_trial(t, 1, &err);
    else if (take_environment(t, answer, &err) < 0)
        fail_or_again(t, &err);
    else
        hook_or_ranks(t);
}

/* Where those of the task's account are kept. One that could not be had is no reason to fail. */
static char *environments_dir(struct task *t)
{
    struct det_err err = {0};
    char *dir = NULL;
    const struct taskspec *s = &t->spec;
    if (s->cache && !s->switch_user)
        return det_asprintf("%s/python-%u", s->cache, s->uid);
    if (s->cache && owncache_make(s->cache, OWNCACHE_PYTHON, s->uid, s->gid, &dir, &err) == 0)
        return dir;
    if (s->cache)
        logspool_say(t->spool, LOGLINE_WARNING,
                     "This task's Python environment is made for it alone, not kept: %s", err.text);
    return det_asprintf("%s/run/cache", s->dir);
}

/* Who takes over where t->python lacks the torch that is to be seen; NULL: nobody. */
static char *another_python(const struct task *t)
{
    bool wants_torch = json_flag(t->spec.task.python, "system_site_packages", false);
    bool is_named =
        t->spec.task.interpreter || (t->python && strcmp(t->python, SYSTEM_PYTHON) == 0);
    return wants_torch && !is_named && access(SYSTEM_PYTHON, X_OK) == 0 ? SYSTEM_PYTHON : NULL;
}

/* By t->python, without what it does at its start for programs (-S). */
static void make_environment(struct task *t)
{
    struct det_err err = {0};
    const char *mib = getenv("DET_PYTHON_CACHE_MIB");
    det_cleanup(freep) char *package = taskenv_package_dir();
    det_cleanup(freep) char *script =
        det_asprintf("%s/determined/exec/environment.py", package ? package : "");
    det_cleanup(freep) char *request = det_asprintf("%s/" REQUEST, t->spec.dir);
    det_cleanup(freep) char *folder = det_asprintf("%s/" ENVIRONMENT, t->spec.dir);
    det_cleanup(freep) char *cache = environments_dir(t);
    char *const argv[] = {t->python,
                          "-I",
                          "-S",
                          script,
                          request,
                          cache,
                          mib && *mib ? (char *)mib : CACHE_MIB,
                          folder,
                          another_python(t),
                          NULL};
    if (t->python && package) {
        start_step(t, "the environment of environment.python", argv, on_environment);
        return;
    }
    det_fail(&err, DET_ENOENT,
             t->python ? "the package determined is not installed beside det-task"
                       : "there is no python3 on PATH");
    fail_configured(t, &err);
}

static int write_request(const struct task *t, struct det_err *err)
{
    det_cleanup(freep) char *text = json_text(t->spec.task.python);
    int rc = taskspec_user_enter(&t->spec, err);
    if (rc < 0)
        return rc;
    det_cleanup(det_closep) int fd = fsx_open_beneath(
        t->spec.dirfd, REQUEST, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600, err);
    rc = fd < 0 ? fd : fsx_write_all(fd, text, strlen(text), err);
    taskspec_user_leave(&t->spec);
    return rc;
}

/* Whose packages are to be seen, those of the Python that trials have; else the first on PATH. */
static void start_environment(struct task *t)
{
    struct det_err err = {0};
    char *exe;
    const char *wanted = t->spec.task.interpreter;
    if (wanted && look_for(t, wanted, &exe, &err) < 0) {
        fail_interpreter(t, &err);
        return;
    }
    if (wanted)
        set_python(t, exe);
    int rc = write_request(t, &err);
    if (rc == 0 && !wanted)
        rc = find_for_task(t, "python3", &err);
    if (rc < 0)
        fail_configured(t, &err);
    else
        make_environment(t);
}

void task_start_steps(struct task *t)
{
    struct det_err err = {0};
    if (t->spec.task.requirements)
        start_environment(t);
    else if (t->spec.task.interpreter && take_configured(t, &err) < 0 &&
             !prepare_has_hook(&t->spec))
        fail_interpreter(t, &err);
    else
        hook_or_ranks(t);
}
