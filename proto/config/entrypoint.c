#include "entrypoint.h"

#include "mem.h"
#include "near.h"
#include "vec.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Names with dots up to end, and one name from there on. */
static bool is_name_of(const char *e, const char *end)
{
    for (const char *p = e; *p; p++)
        if (p != end && !isalnum((unsigned char)*p) && *p != '_' && (*p != '.' || p > end))
            return false;
    return end > e && end[1];
}

bool entrypoint_is_class(const char *e)
{
    const char *colon = strchr(e, ':');
    return colon && is_name_of(e, colon);
}

const char *entrypoint_meant_colon(const char *e)
{
    const char *dot = strrchr(e, '.');
    return dot && is_name_of(e, dot) && isupper((unsigned char)dot[1]) ? dot : NULL;
}

bool entrypoint_has_blanks(const char *e)
{
    char joined[256];
    const char *colon = strchr(e, ':');
    size_t n = colon ? (size_t)(colon - e) : 0;
    while (n > 0 && e[n - 1] == ' ')
        n--;
    const char *class = colon ? colon + 1 + strspn(colon + 1, " ") : "";
    int len = snprintf(joined, sizeof joined, "%.*s:%s", (int)n, e, class);
    return len > 0 && (size_t)len < sizeof joined && (size_t)len < strlen(e) &&
           entrypoint_is_class(joined);
}

bool entrypoint_is_bare_file(const char *e)
{
    size_t n = strlen(e);
    return n > 3 && strcmp(e + n - 3, ".py") == 0 && !strpbrk(e, "/ \t$;&|<>()'\"`");
}

static const char *const module_suffixes[] = {"/__init__.py", ".py", ".so", ".c"};

/* "pkg.model_def" of "pkg/model_def.py"; NULL: it is no module. Caller frees. */
static char *module_of(const char *path)
{
    size_t n = strlen(path);
    for (size_t i = 0; i < DET_ARRAY_LEN(module_suffixes); i++) {
        size_t s = strlen(module_suffixes[i]);
        if (n <= s || strcmp(path + n - s, module_suffixes[i]) != 0)
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

int entrypoint_check_module(const char *entrypoint, const json_t *files, struct det_err *err)
{
    size_t n = strcspn(entrypoint, ":"), i;
    VEC(char *) names = {0};
    json_t *file;
    bool found = !entrypoint_is_class(entrypoint);
    json_array_foreach((json_t *)files, i, file)
    {
        const char *path = json_str(file, "path", "");
        path += strncmp(path, "./", 2) == 0 ? 2 : 0;
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
