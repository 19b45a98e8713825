#include "proctree.h"

#include "buf.h"
#include "cgroup.h"
#include "fsx.h"
#include "mem.h"
#include "vec.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ENVIRON_BYTES_MAX ((size_t)8 << 20)

struct proc {
    pid_t pid, ppid, group;
    char state;
    bool is_ours;
};
typedef VEC(struct proc) procs;

/* state, parent and process group: the fields behind the last ')' of stat. */
static bool read_stat(struct proc *p)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", p->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    const char *end = strrchr(text, ')');
    return end && sscanf(end + 1, " %c %d %d", &p->state, &p->ppid, &p->group) == 3;
}

static void list_processes(pid_t spared, procs *v)
{
    DIR *d = opendir("/proc");
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        if (!isdigit((unsigned char)e->d_name[0]))
            continue;
        struct proc p = {.pid = (pid_t)strtol(e->d_name, NULL, 10)};
        if (p.pid > 1 && p.pid != getpid() && p.pid != spared && read_stat(&p))
            vec_push(v, p);
    }
    if (d)
        closedir(d);
}

/* Whether the environment has NAME=value as one of its strings. */
static bool has_variable(pid_t pid, const char *wanted)
{
    char path[64];
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    snprintf(path, sizeof path, "/proc/%d/environ", pid);
    if (fsx_read_file(AT_FDCWD, path, ENVIRON_BYTES_MAX, &b, NULL) < 0)
        return false;
    for (size_t i = 0; i < b.len; i += strlen(b.p + i) + 1)
        if (strcmp(b.p + i, wanted) == 0)
            return true;
    return false;
}

/* "det-task", the directory: see serve.c and taskdir_spawn.c. One that recovers ends by itself. */
static bool is_det_task(pid_t pid, const char *dir)
{
    char path[64];
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    if (fsx_read_file(AT_FDCWD, path, ENVIRON_BYTES_MAX, &b, NULL) < 0 ||
        strcmp(buf_str(&b), "det-task") != 0)
        return false;
    const char *arg = b.p + strlen(b.p) + 1, *end = b.p + b.len;
    char real[PATH_MAX];
    return arg < end && realpath(arg, real) && strcmp(real, dir) == 0;
}

static bool is_ours(const struct proc *v, size_t n, pid_t pid)
{
    if (pid == getpid())
        return true;
    for (size_t i = 0; i < n; i++)
        if (v[i].pid == pid)
            return v[i].is_ours;
    return false;
}

/* Children of ours are ours, until nothing changes: the list is in no order of descent. */
static void mark_descendants(struct proc *v, size_t n)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < n; i++)
            if (!v[i].is_ours && is_ours(v, n, v[i].ppid))
                changed = v[i].is_ours = true;
    }
}

static void mark_cgroup(struct proc *v, size_t n, const char *cgroup)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    det_cleanup(freep) char *path = det_asprintf("%s/cgroup.procs", cgroup);
    if (fsx_read_file(AT_FDCWD, path, ENVIRON_BYTES_MAX, &b, NULL) < 0)
        return;
    for (char *p = b.p, *end; p && *p; p = end) {
        pid_t pid = (pid_t)strtol(p, &end, 10);
        end += strspn(end, "\n");
        if (end == p)
            return;
        for (size_t i = 0; i < n; i++)
            v[i].is_ours = v[i].is_ours || v[i].pid == pid;
    }
}

static void find_tree(const struct proctree *t, procs *v)
{
    list_processes(t->spared, v);
    if (t->cgroup)
        mark_cgroup(v->v, v->n, t->cgroup);
    mark_descendants(v->v, v->n);
    for (size_t i = 0; i < v->n; i++)
        if (!v->v[i].is_ours && v->v[i].ppid != 2 && v->v[i].state != 'Z')
            v->v[i].is_ours = has_variable(v->v[i].pid, t->mark) ||
                              (t->task_dir && is_det_task(v->v[i].pid, t->task_dir));
    mark_descendants(v->v, v->n);
}

size_t proctree_count(const struct proctree *t)
{
    procs v = {0};
    size_t n = 0;
    find_tree(t, &v);
    for (size_t i = 0; i < v.n; i++)
        n += v.v[i].is_ours && v.v[i].state != 'Z';
    vec_free(&v);
    return n;
}

/* SigCgt of its status, a bit for each signal from 1 on. */
bool proctree_catches(pid_t pid, int signal)
{
    char path[64];
    unsigned long long mask = 0;
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    if (fsx_read_file(AT_FDCWD, path, 65536, &b, NULL) < 0)
        return false;
    const char *at = strstr(buf_str(&b), "\nSigCgt:");
    return at && sscanf(at + strlen("\nSigCgt:"), " %llx", &mask) == 1 &&
           (mask >> (signal - 1) & 1);
}

size_t proctree_catching(const struct proctree *t, int signal, pid_t *ret, size_t max)
{
    procs v = {0};
    size_t n = 0;
    find_tree(t, &v);
    for (size_t i = 0; i < v.n && n < max; i++)
        if (v.v[i].is_ours && v.v[i].state != 'Z' && proctree_catches(v.v[i].pid, signal))
            ret[n++] = v.v[i].pid;
    vec_free(&v);
    return n;
}

/* The group at one stroke: one by one, those that fork and end all the time would never be met. A
 * group is of one session, and the session is the task's own, as det-task began it. */
static void kill_with_group(const struct proc *p)
{
    kill(p->pid, SIGKILL); /* "Z" may be a main thread alone, the others living on */
    if (p->group > 1 && p->group != getpgrp())
        kill(-p->group, SIGKILL);
}

static size_t kill_found(const struct proctree *t)
{
    procs v = {0};
    size_t left = 0;
    find_tree(t, &v);
    for (size_t i = 0; i < v.n; i++) {
        if (!v.v[i].is_ours)
            continue;
        left += v.v[i].state != 'Z';
        kill_with_group(&v.v[i]);
    }
    vec_free(&v);
    return left;
}

bool proctree_has_child(void)
{
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

/* Whoever is born while the list is read is not on it, and its parent may be dead before its own
 * line is read: what was not found is looked for once more. */
size_t proctree_kill(const struct proctree *t)
{
    cgroup_kill(t->cgroup);
    size_t left = kill_found(t);
    return left > 0 ? left : kill_found(t);
}
