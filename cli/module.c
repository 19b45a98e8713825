#include "module.h"

#include "entrypoint.h"
#include "mem.h"
#include "near.h"
#include "vec.h"

#include <string.h>

static const char *const suffixes[] = {"/__init__.py", ".py", ".so", ".c"};

/* "pkg.model_def" of "pkg/model_def.py"; NULL: it is no module. Caller frees. */
static char *module_of(const char *path)
{
    size_t n = strlen(path);
    for (size_t i = 0; i < DET_ARRAY_LEN(suffixes); i++) {
        size_t s = strlen(suffixes[i]);
        if (n <= s || strcmp(path + n - s, suffixes[i]) != 0)
            continue;
        char *name = det_strndup(path, n - s);
        for (char *p = name; *p; p++)
            *p = *p == '/' ? '.' : *p;
        return name;
    }
    return NULL;
}

static int fail_absent(const char *entrypoint, size_t n, const char *near, struct det_err *err)
{
    det_cleanup(freep) char *file = det_strndup(entrypoint, n);
    for (char *p = file; *p; p++)
        *p = *p == '.' ? '/' : *p;
    return det_fail(err, DET_EINVAL,
                    "entrypoint %s: the directory has no %s.py, %s.so or %s.c%s%s%s%s", entrypoint,
                    file, file, file, near ? "; did you mean " : "", near ? near : "",
                    near ? entrypoint + n : "", near ? "?" : "");
}

int module_check(const char *entrypoint, const json_t *files, struct det_err *err)
{
    size_t n = strcspn(entrypoint, ":"), i;
    VEC(char *) names = {0};
    json_t *file;
    bool found = !entrypoint_is_class(entrypoint);
    json_array_foreach((json_t *)files, i, file)
    {
        const char *path = json_str(file, "path", "");
        char *name = module_of(path);
        found = found || strcmp(path, "startup-hook.sh") == 0 ||
                (name && strlen(name) == n && strncmp(name, entrypoint, n) == 0);
        if (name)
            vec_push(&names, name);
    }
    det_cleanup(freep) char *module = det_strndup(entrypoint, n);
    const char *near = near_name(module, (const char *const *)names.v, names.n);
    int rc = found ? 0 : fail_absent(entrypoint, n, near, err);
    for (i = 0; i < names.n; i++)
        free(names.v[i]);
    vec_free(&names);
    return rc;
}
