#include "unseen.h"

#include "mem.h"

#include <string.h>

static const char *const own_dirs[] = {"/tmp", "/var/tmp", "/dev/shm"};

static bool is_before_path(const char *line, const char *p)
{
    return p == line || strchr(" '\"`:=(", p[-1]);
}

/* Behind the name of a shell that speaks, "/bin/sh: 1: ", "/bin/sh: line 1: ": that one is no file
 * it cannot have. */
static const char *skip_speaker(const char *line)
{
    const char *p = *line == '/' ? strstr(line, ": ") : NULL;
    if (!p)
        return line;
    p += strlen(": ");
    p += strncmp(p, "line ", 5) == 0 ? 5 : 0;
    size_t digits = strspn(p, "0123456789");
    return digits && p[digits] == ':' ? p + digits : line;
}

/* One that begins at the root; no URL's. */
static bool has_path(const char *line)
{
    for (const char *p = skip_speaker(line); (p = strchr(p, '/')); p++)
        if (p[1] > ' ' && p[1] != '/' && is_before_path(line, p))
            return true;
    return false;
}

/* A path that begins there, with more below it. */
static const char *find_own_dir(const char *line)
{
    for (size_t i = 0; i < DET_ARRAY_LEN(own_dirs); i++) {
        size_t n = strlen(own_dirs[i]);
        for (const char *p = line; (p = strstr(p, own_dirs[i])); p += n)
            if (p[n] == '/' && is_before_path(line, p))
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
    else if (is_denied && has_path(line) && !strstr(line, "runs as the account"))
        buf_addf(out,
                 "the task's processes run as the account %s (uid %u), which must be able to read "
                 "the file and to enter each folder above it",
                 u->user && *u->user ? u->user : "without a name", u->uid);
    return out->len > 0;
}

static struct unseen_of *find_of(const struct unseen_last *l, int who)
{
    for (size_t i = 0; i < l->of.n; i++)
        if (l->of.v[i].who == who)
            return &l->of.v[i];
    return NULL;
}

void unseen_last_line(struct unseen_last *l, int who, const char *why)
{
    struct unseen_of *o = find_of(l, who);
    if (o && !why)
        o->after += o->after < UNSEEN_LAST;
    if (!why)
        return;
    if (!o) {
        vec_push(&l->of, (struct unseen_of){.who = who});
        o = &l->of.v[l->of.n - 1];
    }
    free(o->why);
    o->why = det_strdup(why);
    o->after = 0;
}

const char *unseen_last_why(const struct unseen_last *l, int who)
{
    const struct unseen_of *o = find_of(l, who);
    return o && o->after < UNSEEN_LAST ? o->why : NULL;
}

void unseen_last_finish(struct unseen_last *l)
{
    for (size_t i = 0; i < l->of.n; i++)
        free(l->of.v[i].why);
    vec_free(&l->of);
}
