#include "prepare.h"

#include "tgz.h"
#include "b64.h"
#include "entrypoint.h"
#include "find.h"
#include "fsx.h"
#include "progress.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int make_dir(const struct taskspec *s, const char *name, struct det_err *err)
{
    if (mkdirat(s->dirfd, name, 0700) < 0 && errno != EEXIST)
        return det_fail_errno(err, DET_EIO, errno, "mkdir %s/%s", s->dir, name);
    if (s->switch_user && fchownat(s->dirfd, name, s->uid, s->gid, AT_SYMLINK_NOFOLLOW) < 0)
        return det_fail_errno(err, DET_EIO, errno, "chown %s/%s", s->dir, name);
    return 0;
}

static int make_progress(const struct taskspec *s, int local, struct det_err *err)
{
    char name[64];
    snprintf(name, sizeof name, "run/progress.%d", local);
    det_cleanup(det_closep) int fd =
        fsx_open_beneath(s->dirfd, name, O_RDWR | O_CREAT | O_NOFOLLOW, 0600, err);
    if (fd < 0)
        return fd;
    if (ftruncate(fd, PROGRESS_BYTES) < 0)
        return det_fail_errno(err, DET_EIO, errno, "%s/%s", s->dir, name);
    return 0;
}

int prepare_dirs(const struct taskspec *s, struct det_err *err)
{
    static const char *const names[] = {"work", "model", "info", "run", "tmp"};
    int rc = 0;
    for (size_t i = 0; i < DET_ARRAY_LEN(names) && rc == 0; i++)
        rc = make_dir(s, names[i], err);
    if (rc == 0 && s->cache && geteuid() != 0)
        rc = fsx_mkdirs(AT_FDCWD, s->cache, 0700, err);
    if (rc == 0)
        rc = taskspec_user_enter(s, err);
    if (rc < 0)
        return rc;
    for (int i = 0; i < taskspec_local_size(s) && rc == 0; i++)
        rc = make_progress(s, i, err);
    taskspec_user_leave(s);
    return rc;
}

static int extract_archive(const struct taskspec *s, const char *name, const struct buf *tgz,
                           struct det_err *err)
{
    det_cleanup(det_closep) int fd =
        fsx_open_beneath(s->dirfd, name, O_RDONLY | O_DIRECTORY, 0, err);
    return fd < 0 ? fd : archive_extract(tgz->p, tgz->len, PREPARE_CONTEXT_MAX, fd, err);
}

/* As the task's user, so that nothing in an archive can do more than the user could. Twice: the
 * trial may write where it works, and what it wrote is no code of its checkpoints. */
int prepare_context(const struct taskspec *s, const char *b64, size_t len, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf tgz = BUF_INIT;
    int rc = b64_decode(&tgz, b64, len, err);
    if (rc < 0 || tgz.len == 0)
        return rc < 0 ? det_wrap(err, rc, "model definition") : 0;
    rc = taskspec_user_enter(s, err);
    if (rc < 0)
        return rc;
    rc = extract_archive(s, "work", &tgz, err);
    if (rc == 0)
        rc = extract_archive(s, "model", &tgz, err);
    taskspec_user_leave(s);
    return rc < 0 ? det_wrap(err, rc, "model definition") : 0;
}

bool prepare_has_hook(const struct taskspec *s)
{
    struct stat st;
    return fstatat(s->dirfd, "work/startup-hook.sh", &st, 0) == 0 && S_ISREG(st.st_mode);
}

/* ---- the entrypoint ---- */

static bool has_python_file(const struct taskspec *s, const char *entrypoint)
{
    struct stat st;
    det_cleanup(freep) char *module = det_strndup(entrypoint, strcspn(entrypoint, ":"));
    for (char *p = module; *p; p++)
        *p = *p == '.' ? '/' : *p;
    det_cleanup(freep) char *file = det_asprintf("work/%s.py", module);
    det_cleanup(freep) char *package = det_asprintf("work/%s/__init__.py", module);
    return fstatat(s->dirfd, file, &st, 0) == 0 || fstatat(s->dirfd, package, &st, 0) == 0;
}

static char **argv_of(const char *const *words, size_t n)
{
    char **v = det_zalloc((n + 1) * sizeof *v);
    for (size_t i = 0; i < n; i++)
        v[i] = det_strdup(words[i]);
    return v;
}

/* det-harness lies beside det-task; DET_HARNESS of the agent's environment may name another. */
static char *find_harness(const json_t *env, struct det_err *err)
{
    const char *given = getenv("DET_HARNESS");
    if (given && *given)
        return det_strdup(given);
    char *found = find_beside("det-harness", X_OK);
    if (!found)
        found = find_on_path(json_str(env, "PATH", NULL), "det-harness");
    if (!found)
        det_fail(err, DET_ENOENT, "det-harness is neither beside det-task nor on PATH");
    return found;
}

static char *plan_python(const json_t *env, const char *python, struct det_err *err)
{
    const char *given = json_str(env, "DET_PYTHON_EXECUTABLE", NULL);
    if (python)
        return det_strdup(python);
    if (given && *given)
        det_fail(err, DET_ENOENT, "DET_PYTHON_EXECUTABLE: there is no %s on PATH", given);
    else
        det_fail(err, DET_EINVAL,
                 "the entrypoint is a Python trial, but no python3 on this host has torch: "
                 "install python3-torch, or name one in environment.python");
    return NULL;
}

bool prepare_is_python_class(const struct taskspec *s)
{
    const char *e = json_string_value(s->task.entrypoint);
    return e && entrypoint_is_class(e) && has_python_file(s, e);
}

static int plan_class(const struct taskspec *s, const json_t *env, const char *found,
                      struct prepare_plan *p, struct det_err *err)
{
    const char *entrypoint = json_string_value(s->task.entrypoint);
    bool python = has_python_file(s, entrypoint);
    det_cleanup(freep) char *exe = python ? plan_python(env, found, err) : find_harness(env, err);
    if (!exe)
        return DET_EINVAL;
    const char *const py[] = {exe, "-m", "determined.exec.harness", entrypoint};
    const char *const c[] = {exe, entrypoint};
    p->argv = python ? argv_of(py, DET_ARRAY_LEN(py)) : argv_of(c, DET_ARRAY_LEN(c));
    p->per_slot = true;
    p->is_harness = !python;
    return 0;
}

static int plan_gc(struct prepare_plan *p, struct det_err *err)
{
    det_cleanup(freep) char *exe = find_beside("det-task", X_OK);
    if (!exe)
        return det_fail(err, DET_ENOENT, "det-task is no longer where it was started from");
    const char *const words[] = {exe, "--gc"};
    p->argv = argv_of(words, DET_ARRAY_LEN(words));
    return 0;
}

int prepare_plan(const struct taskspec *s, const json_t *env, const char *python,
                 struct prepare_plan *ret, struct det_err *err)
{
    const json_t *e = s->task.entrypoint;
    *ret = (struct prepare_plan){0};
    if (s->task.gc_uuids)
        return plan_gc(ret, err);
    if (json_is_string(e) && entrypoint_is_class(json_string_value(e)))
        return plan_class(s, env, python, ret, err);
    if (json_is_string(e)) {
        const char *const words[] = {"/bin/sh", "-c", json_string_value(e)};
        ret->argv = argv_of(words, DET_ARRAY_LEN(words));
        return 0;
    }
    ret->argv = det_zalloc((json_array_size(e) + 1) * sizeof *ret->argv);
    for (size_t i = 0; i < json_array_size(e); i++)
        ret->argv[i] = det_strdup(json_string_value(json_array_get(e, i)));
    return 0;
}

void prepare_plan_finish(struct prepare_plan *p)
{
    for (size_t i = 0; p->argv && p->argv[i]; i++)
        free(p->argv[i]);
    free(p->argv);
    *p = (struct prepare_plan){0};
}
