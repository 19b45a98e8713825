#include "unseen.h"

#include "mem.h"

#include <string.h>

static const char *const own_dirs[] = {"/tmp", "/var/tmp", "/dev/shm"};

/* A path that begins there: behind a quote, a blank or a colon, with more below it. */
static const char *find_own_dir(const char *line)
{
    for (size_t i = 0; i < DET_ARRAY_LEN(own_dirs); i++) {
        size_t n = strlen(own_dirs[i]);
        for (const char *p = line; (p = strstr(p, own_dirs[i])); p += n)
            if (p[n] == '/' && (p == line || strchr(" '\"`:=(", p[-1])))
                return own_dirs[i];
    }
    return NULL;
}

bool unseen_explain(const struct unseen *u, const char *line, struct buf *out)
{
    bool is_absent = strstr(line, "No such file or directory") != NULL;
    bool is_denied = strstr(line, "Permission denied") != NULL;
    const char *dir = u->has_own_tmp && (is_absent || is_denied) ? find_own_dir(line) : NULL;
    if (dir)
        buf_addf(out,
                 "a task has a %s of its own, which is empty when it begins: it sees nothing of "
                 "the host's, so keep data elsewhere",
                 dir);
    else if (is_denied && strchr(line, '/') && !strstr(line, "runs as the account"))
        buf_addf(out,
                 "the task's processes run as the account %s (uid %u), which must be able to read "
                 "the file and to enter each folder above it",
                 u->user && *u->user ? u->user : "without a name", u->uid);
    return out->len > 0;
}
