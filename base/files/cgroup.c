#include "cgroup.h"

#include "fsx.h"
#include "mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MAX ((size_t)8 << 20)
#define TASKS          "det-tasks"
#define MAKE_TRIES     3 /* another agent that ends takes an empty `tasks` away */

static const struct controller {
    const char *name;
    unsigned bit;
} controllers[] = {{"memory", CGROUP_MEMORY}, {"pids", CGROUP_PIDS}, {"cpu", CGROUP_CPU}};

/* ---- files ---- */

/* "" where it cannot be read. */
static const char *text_of(const char *dir, const char *file, struct buf *b)
{
    det_cleanup(freep) char *path = det_asprintf("%s/%s", dir, file);
    buf_clear(b);
    return fsx_read_file(AT_FDCWD, path, FILE_BYTES_MAX, b, NULL) < 0 ? "" : buf_str(b);
}

/* 0 or an errno. */
static int put_text(const char *dir, const char *file, const char *text)
{
    det_cleanup(freep) char *path = det_asprintf("%s/%s", dir, file);
    det_cleanup(det_closep) int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 || write(fd, text, strlen(text)) < 0 ? errno : 0;
}

static int put_number(const char *dir, const char *file, int64_t n)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)n);
    return put_text(dir, file, text);
}

static bool has_word(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = text; *p; p += strspn(p, " \n")) {
        size_t m = strcspn(p, " \n");
        if (m == n && strncmp(p, word, n) == 0)
            return true;
        p += m;
    }
    return false;
}

static bool may_write(const char *dir, const char *file)
{
    det_cleanup(freep) char *path = det_asprintf("%s/%s", dir, file);
    return access(path, W_OK) == 0;
}

static char *parent_of(const char *path)
{
    const char *end = strrchr(path, '/');
    return det_strndup(path, end ? (size_t)(end - path) : 0);
}

/* ---- the place ---- */

/* The mount point in a line of mountinfo whose type is cgroup2, else NULL. */
static char *mount_of(const char *line, size_t n)
{
    det_cleanup(freep) char *own = det_strndup(line, n);
    const char *p = own;
    if (!strstr(own, " - cgroup2 "))
        return NULL;
    for (int i = 0; i < 4; i++) {
        p = strchr(p, ' ');
        if (!p)
            return NULL;
        p++;
    }
    return det_strndup(p, strcspn(p, " "));
}

static char *find_mount(const char *mountinfo)
{
    for (const char *p = mountinfo; *p; p += strspn(p, "\n")) {
        size_t n = strcspn(p, "\n");
        char *found = mount_of(p, n);
        if (found)
            return found;
        p += n;
    }
    return NULL;
}

/* The path behind "0::", "" for the first group of all; NULL where it is not beneath the mount. */
static char *find_group(const char *cgroup)
{
    const char *p = strncmp(cgroup, "0::", 3) == 0 ? cgroup : strstr(cgroup, "\n0::");
    if (!p)
        return NULL;
    p = strstr(p, "::") + 2;
    size_t n = strcspn(p, "\n");
    if (*p != '/' || strncmp(p, "/..", 3) == 0)
        return NULL;
    return n == 1 ? det_strdup("") : det_strndup(p, n);
}

char *cgroup_place(const char *mountinfo, const char *cgroup)
{
    det_cleanup(freep) char *mount = find_mount(mountinfo);
    det_cleanup(freep) char *own = mount ? find_group(cgroup) : NULL;
    if (!own)
        return NULL;
    det_cleanup(freep) char *dir = det_asprintf("%s%s", mount, own);
    det_cleanup(freep) char *above = parent_of(dir);
    bool beside = *own && access(above, W_OK) == 0 && may_write(above, "cgroup.procs") &&
                  may_write(above, "cgroup.subtree_control");
    return det_asprintf("%s/" TASKS, beside ? above : dir);
}

char *cgroup_own_place(void)
{
    det_cleanup(buf_finish) struct buf mounts = BUF_INIT, groups = BUF_INIT;
    return cgroup_place(text_of("/proc/self", "mountinfo", &mounts),
                        text_of("/proc/self", "cgroup", &groups));
}

int64_t cgroup_host_bytes(void)
{
    int64_t pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && bytes > 0 ? pages * bytes : 0;
}

/* ---- all tasks' group ---- */

/* 0, an errno, or -1 where the hierarchy does not have it: it may be used by one of version 1. */
static int turn_on(const char *dir, const char *name)
{
    char text[32];
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    if (!has_word(text_of(dir, "cgroup.controllers", &b), name))
        return -1;
    if (has_word(text_of(dir, "cgroup.subtree_control", &b), name))
        return 0;
    snprintf(text, sizeof text, "+%s", name);
    return put_text(dir, "cgroup.subtree_control", text);
}

struct refusal {
    const char *dir;
    int e; /* of turn_on() */
};

static struct refusal try_limit(const char *above, const char *tasks, const char *name)
{
    int e = turn_on(above, name);
    return e != 0 ? (struct refusal){above, e} : (struct refusal){tasks, turn_on(tasks, name)};
}

/* Those that are refused for the same reason, as one. */
static void say_why(struct refusal *r, size_t n, struct buf *why)
{
    for (size_t i = 0; i < n; i++) {
        const struct refusal one = r[i];
        const char *between = why->len ? "; " : "";
        for (size_t k = i; k < n && one.e != 0; k++)
            if (r[k].e == one.e && r[k].dir == one.dir) {
                buf_addf(why, "%s%s", between, controllers[k].name);
                between = ", ";
                r[k].e = 0;
            }
        if (one.e < 0)
            buf_addf(why, ": not offered by %s (a hierarchy of version 1 may have it)", one.dir);
        else if (one.e == EBUSY)
            buf_addf(why, ": %s has processes in it, as the first group of a container", one.dir);
        else if (one.e > 0)
            buf_addf(why, ": %s: %s", one.dir, strerror(one.e));
    }
}

/* Left as it is where somebody has set it. */
static void spare_the_host(const char *tasks, int64_t host_bytes)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    if (host_bytes > 0 && has_word(text_of(tasks, "memory.max", &b), "max"))
        put_number(tasks, "memory.max", host_bytes - host_bytes / 20);
}

int cgroup_open(const char *tasks, int64_t host_bytes, unsigned *ret_held, struct det_err *err)
{
    det_cleanup(freep) char *above = parent_of(tasks);
    det_cleanup(buf_finish) struct buf why = BUF_INIT;
    struct refusal refused[DET_ARRAY_LEN(controllers)];
    *ret_held = 0;
    if (mkdir(tasks, 0755) < 0 && errno != EEXIST)
        return det_fail_errno(err, DET_EPERM, errno, "mkdir %s", tasks);
    if (!may_write(tasks, "cgroup.procs"))
        return det_fail_errno(err, DET_EPERM, errno, "%s/cgroup.procs", tasks);
    for (size_t i = 0; i < DET_ARRAY_LEN(controllers); i++) {
        refused[i] = try_limit(above, tasks, controllers[i].name);
        *ret_held |= refused[i].e == 0 ? controllers[i].bit : 0;
    }
    say_why(refused, DET_ARRAY_LEN(controllers), &why);
    if (*ret_held & CGROUP_MEMORY)
        spare_the_host(tasks, host_bytes);
    return why.len ? det_fail(err, DET_ENOENT, "%s", buf_str(&why)) : 0;
}

/* ---- one task's ---- */

char *cgroup_path(const char *tasks, const char *name)
{
    return tasks ? det_asprintf("%s/det-%s", tasks, name) : NULL;
}

static bool make_dir(const char *tasks, const char *path)
{
    unsigned held;
    for (int i = 0; i < MAKE_TRIES; i++) {
        if (mkdir(path, 0755) == 0 || errno == EEXIST)
            return true;
        if (errno != ENOENT)
            return false;
        det_ignore(cgroup_open(tasks, cgroup_host_bytes(), &held, NULL),
                   "mkdir() then says what is amiss");
    }
    return false;
}

/* One that is past its memory ends as a whole, at once and for a reason, not by swapping, and not
 * with half of its processes. */
static void set_limits(const char *path, const struct cgroup_limits *l)
{
    if (l->memory_bytes > 0 && put_number(path, "memory.max", l->memory_bytes) == 0)
        put_text(path, "memory.swap.max", "0");
    put_text(path, "memory.oom.group", "1");
    if (l->pids > 0)
        put_number(path, "pids.max", l->pids);
    if (l->cpu_weight > 0)
        put_number(path, "cpu.weight", l->cpu_weight);
}

char *cgroup_make(const char *tasks, const char *name, const struct cgroup_limits *l)
{
    det_cleanup(freep) char *path = cgroup_path(tasks, name);
    if (!path || !make_dir(tasks, path))
        return NULL;
    if (!may_write(path, "cgroup.procs")) {
        rmdir(path);
        return NULL;
    }
    set_limits(path, l);
    return det_take(path);
}

void cgroup_kill(const char *path)
{
    if (path)
        put_text(path, "cgroup.kill", "1"); /* else its processes are found in other ways */
}

void cgroup_remove(const char *path)
{
    if (path && rmdir(path) < 0)
        errno = 0;
}

int64_t cgroup_count(const char *path, const char *file, const char *key)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    size_t n = strlen(key);
    for (const char *p = text_of(path, file, &b); *p; p += strspn(p, "\n")) {
        if (strncmp(p, key, n) == 0 && p[n] == ' ')
            return strtoll(p + n + 1, NULL, 10);
        p += strcspn(p, "\n");
    }
    return -1;
}
