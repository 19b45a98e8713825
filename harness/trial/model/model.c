#include "model.h"

#include "mem.h"
#include "model_exports.h"
#include "trial_loop.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WORD "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

static bool copy_part(char out[MODEL_NAME_MAX], const char *p, size_t n, const char *allowed)
{
    if (n == 0 || n >= MODEL_NAME_MAX || strspn(p, allowed) < n)
        return false;
    memcpy(out, p, n);
    out[n] = '\0';
    return true;
}

int model_entry_parse(const char *text, struct model_entry *ret, struct det_err *err)
{
    const char *colon = strchr(text, ':');
    if (!colon || !copy_part(ret->module, text, (size_t)(colon - text), WORD ".") ||
        !copy_part(ret->class, colon + 1, strlen(colon + 1), WORD) || ret->module[0] == '.' ||
        strstr(ret->module, "..") || colon[-1] == '.')
        return det_fail(err, DET_EINVAL,
                        "entrypoint \"%.200s\": a trial is named module:Class, as "
                        "model_def:DigitsTrial",
                        text);
    return 0;
}

int model_entry_of_file(const char *path, struct model_entry *ret, struct det_err *err)
{
    const char *dot = strrchr(path, '.');
    bool known =
        dot && (strcmp(dot, ".c") == 0 || strcmp(dot, ".so") == 0 || strcmp(dot, ".py") == 0);
    path += strncmp(path, "./", 2) == 0 ? 2 : 0;
    ret->class[0] = '\0';
    if (!known || !copy_part(ret->module, path, (size_t)(dot - path), WORD "/"))
        return det_fail(err, DET_EINVAL,
                        "%.200s: a model is a file of the working directory or below it, as "
                        "model_def.c, or module:Class",
                        path);
    for (char *p = ret->module; *p; p++)
        if (*p == '/')
            *p = '.';
    return 0;
}

int model_find(const struct model_entry *e, char **ret_path, enum model_kind *ret_kind,
               struct det_err *err)
{
    static const char *const suffixes[] = {
        [MODEL_PYTHON] = ".py", [MODEL_SO] = ".so", [MODEL_C] = ".c"};
    struct stat st;
    det_cleanup(freep) char *base = det_strdup(e->module);
    for (char *p = base; *p; p++)
        if (*p == '.')
            *p = '/';
    for (int kind = MODEL_PYTHON; kind <= MODEL_C; kind++) {
        det_cleanup(freep) char *path = det_asprintf("./%s%s", base, suffixes[kind]);
        if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
            *ret_path = det_take(path);
            *ret_kind = (enum model_kind)kind;
            return 0;
        }
    }
    det_cleanup(freep) char *cwd = getcwd(NULL, 0);
    return det_fail(err, DET_ENOENT,
                    "entrypoint %s%s%s: there is no %s.py, %s.so or %s.c in the model definition "
                    "(%s)",
                    e->module, e->class[0] ? ":" : "", e->class, base, base, base, cwd ? cwd : ".");
}

static int shared_object(const struct model_entry *e, bool quiet, char **ret_so,
                         struct det_err *err)
{
    det_cleanup(freep) char *path = NULL;
    enum model_kind kind;
    int rc = model_find(e, &path, &kind, err);
    if (rc < 0)
        return rc;
    switch (kind) {
    case MODEL_PYTHON:
        return det_fail(err, DET_EUNIMPL,
                        "%s is a Python trial, and this is the harness of C trials: run it by "
                        "python3 -m determined.exec.local %s:%s --config FILE",
                        path, e->module, e->class[0] ? e->class : "Class");
    case MODEL_SO: *ret_so = det_take(path); return 0;
    case MODEL_C: break;
    }
    return model_compile(path, quiet, ret_so, err);
}

/* The only trial of the module, where none was named. */
static int pick_class(struct model_entry *e, const char *so, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf names = BUF_INIT;
    size_t n;
    int rc = e->class[0] ? 0 : model_exports(so, &names, &n, err);
    if (rc < 0 || e->class[0])
        return rc;
    if (n != 1 || !copy_part(e->class, buf_str(&names), names.len, WORD))
        return det_fail(err, DET_EINVAL, "the module %s has %s%s%s: name one, as %s:Class",
                        e->module, n ? "several trials (" : "no \"const struct det_trial_type\"",
                        buf_str(&names), n ? ")" : "", e->module);
    return 0;
}

static int no_such_class(const struct model_entry *e, const char *so, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf names = BUF_INIT;
    size_t n = 0;
    det_ignore(model_exports(so, &names, &n, NULL), "it only adds to the words");
    return det_fail(err, DET_EINVAL,
                    "the module %s has no \"const struct det_trial_type %s\" (is it static?)%s%s",
                    e->module, e->class, n ? "; it has: " : "; it exports no trial at all",
                    buf_str(&names));
}

int model_load(struct model_entry *e, bool quiet, const struct det_trial_type **ret,
               struct det_err *err)
{
    det_cleanup(freep) char *so = NULL;
    int rc = shared_object(e, quiet, &so, err);
    if (rc < 0)
        return rc;
    void *object = dlopen(so, RTLD_NOW | RTLD_LOCAL);
    if (!object)
        return det_fail(err, DET_EINVAL, "load %s: %s", so, dlerror());
    if ((rc = pick_class(e, so, err)) < 0)
        return rc;
    const struct det_trial_type *type = dlsym(object, e->class);
    if (!type)
        return no_such_class(e, so, err);
    if ((rc = trial_type_check(type, e->class, err)) < 0)
        return rc;
    *ret = type;
    return 0;
}
