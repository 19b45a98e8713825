#include "storeplace.h"

#include "mem.h"
#include <stdbool.h>
#include <string.h>

static bool has_dotdot(const char *path)
{
    for (const char *p = path; (p = strstr(p, "..")) != NULL; p += 2)
        if ((p == path || p[-1] == '/') && (p[2] == '\0' || p[2] == '/'))
            return true;
    return false;
}

static bool is_below(const char *path, const char *above)
{
    size_t n = strlen(above);
    while (n > 1 && above[n - 1] == '/')
        n--;
    return n == 1 || (strncmp(path, above, n) == 0 && (path[n] == '/' || !path[n]));
}

static int shared_fs_root(const json_t *config, char **ret, struct det_err *err)
{
    const char *host = json_str(config, "host_path", "");
    const char *sub = json_str(config, "storage_path", NULL);
    if (*host != '/')
        return det_fail(err, DET_EINVAL,
                        "checkpoint_storage.host_path: an absolute path is needed, not \"%s\"",
                        host);
    if (sub && *sub == '/' && !is_below(sub, host))
        return det_fail(err, DET_EINVAL,
                        "checkpoint_storage.storage_path: %s is not below host_path %s", sub, host);
    *ret = sub && *sub == '/' ? det_strdup(sub)
           : sub && *sub      ? det_asprintf("%s/%s", host, sub)
                              : det_strdup(host);
    if (has_dotdot(*ret))
        return det_fail(err, DET_EINVAL, "checkpoint_storage: \"..\" is refused in %s", *ret);
    return 0;
}

static int directory_root(const json_t *config, char **ret, struct det_err *err)
{
    const char *path = json_str(config, "container_path", "");
    if (*path != '/' || has_dotdot(path))
        return det_fail(err, DET_EINVAL,
                        "checkpoint_storage.container_path: an absolute path without \"..\" is "
                        "needed, not \"%s\"",
                        path);
    *ret = det_strdup(path);
    return 0;
}

/* Parts that say nothing go: "", ".". */
static void normalise_path(char *path)
{
    char *to = path;
    for (const char *part = path; *part;) {
        size_t n = strcspn(part, "/");
        if (n > 0 && !(n == 1 && *part == '.')) {
            *to++ = '/';
            memmove(to, part, n);
            to += n;
        }
        part += n + (part[n] == '/');
    }
    if (to == path)
        *to++ = '/';
    *to = '\0';
}

int storeplace_of(const json_t *storage, char **ret, struct det_err *err)
{
    const char *type = json_str(storage, "type", "");
    det_cleanup(freep) char *place = NULL;
    int rc = strcmp(type, "shared_fs") == 0   ? shared_fs_root(storage, &place, err)
             : strcmp(type, "directory") == 0 ? directory_root(storage, &place, err)
                                              : det_fail(err, DET_EUNIMPL,
                                                         "checkpoint_storage.type: \"%s\" is not "
                                                         "supported; use shared_fs or directory",
                                                         type);
    if (rc == 0 && strlen(place) >= STOREPLACE_MAX)
        rc = det_fail(err, DET_EINVAL,
                      "checkpoint_storage: a path of %zu bytes, at most %d are "
                      "allowed",
                      strlen(place), STOREPLACE_MAX - 1);
    if (rc < 0)
        return rc;
    normalise_path(place);
    *ret = det_take(place);
    return 0;
}
