/*
 * What the processes of a task see: the host's files, but for
 *     /tmp, /var/tmp    DIR/tmp, which goes with the task
 *     DIR/..            no other task's directory; where all have one account no other's cache
 *     /dev/shm          empty
 *     /run/determined   info/, workdir/, where existing clients look (docs/contract/task.md 2)
 *     /proc             of the task's own processes
 *     the agent's token, and what it was told to hide: nothing
 * What the task needs is shown again where one of these would cover it.
 */
#include "taskbox.h"

#include "find.h"
#include "fsx.h"
#include "mem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLACE    "/run/determined"
#define KEPT_MAX 8
/* The task's directory; s->dirfd is of the mounts outside, which cannot be bound. */
#define OWN 0

struct kept {
    char path[PATH_MAX];
    int fd;
};
struct view {
    const struct taskspec *s;
    struct kept kept[KEPT_MAX];
    size_t kept_n;
};

static int report_refusal(const char *what, struct det_err *err)
{
    return det_fail_errno(err, DET_EPERM, errno, "mount %s", what);
}

/* By descriptor: its path may be covered by now. */
static int bind_folder(int fd, const char *target, struct det_err *err)
{
    char source[64];
    snprintf(source, sizeof source, "/proc/self/fd/%d", fd);
    return mount(source, target, NULL, MS_BIND | MS_REC, NULL) < 0 ? report_refusal(target, err)
                                                                   : 0;
}

static int mount_tmpfs(const char *target, unsigned long flags, const char *options,
                       struct det_err *err)
{
    int rc = mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV | flags, options);
    return rc < 0 ? report_refusal(target, err) : 0;
}

/* ---- what stays ---- */

static bool is_beneath(const char *path, const char *dir)
{
    size_t n = strlen(dir);
    return strncmp(path, dir, n) == 0 && path[n] == '/';
}

static void keep_path(struct view *v, const char *path)
{
    struct kept *k = &v->kept[v->kept_n];
    if (!path || v->kept_n == KEPT_MAX || !realpath(path, k->path))
        return;
    k->fd = open(k->path, O_PATH | O_CLOEXEC);
    v->kept_n += k->fd >= 0;
}

/* The task itself, what it shares with other tasks, and our own programs. */
static void keep_all(struct view *v)
{
    const json_t *storage = v->s->task.checkpoint_storage;
    det_cleanup(freep) char *programs = find_beside("..", X_OK);
    keep_path(v, v->s->dir);
    keep_path(v, v->s->cache);
    keep_path(v, json_str(storage, "host_path", NULL));
    keep_path(v, v->s->ca_file);
    keep_path(v, programs);
    keep_path(v, getenv("DET_HARNESS"));
}

/* Where the task's account is det-task's own, what is for det-task alone is not shown: the order,
 * the socket, the spool. */
static int show_own(const struct kept *k, struct det_err *err)
{
    static const char *const parts[] = {"work", "model", "info", "run", "tmp"};
    int rc = fsx_mkdirs(AT_FDCWD, k->path, 0755, err);
    for (size_t i = 0; i < DET_ARRAY_LEN(parts) && rc == 0; i++) {
        det_cleanup(freep) char *path = det_asprintf("%s/%s", k->path, parts[i]);
        det_cleanup(det_closep) int fd = openat(k->fd, parts[i], O_PATH | O_CLOEXEC);
        rc = fd < 0 || (mkdir(path, 0700) < 0 && errno != EEXIST) ? report_refusal(path, err)
                                                                  : bind_folder(fd, path, err);
    }
    return rc;
}

static int show_again(const struct kept *k, struct det_err *err)
{
    struct stat st;
    bool is_dir = fstat(k->fd, &st) == 0 && S_ISDIR(st.st_mode);
    det_cleanup(freep) char *above =
        is_dir ? NULL : det_strndup(k->path, (size_t)(strrchr(k->path, '/') - k->path));
    int rc = fsx_mkdirs(AT_FDCWD, is_dir ? k->path : above, 0755, err);
    det_cleanup(det_closep) int file =
        rc < 0 || is_dir ? -1 : open(k->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    return rc < 0 ? rc : bind_folder(k->fd, k->path, err);
}

static int show_what_is_covered(const struct view *v, const char *dir, struct det_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < v->kept_n && rc == 0; i++)
        if (is_beneath(v->kept[i].path, dir))
            rc = i == OWN && geteuid() != 0 ? show_own(&v->kept[i], err)
                                            : show_again(&v->kept[i], err);
    return rc;
}

/* ---- what is the task's own ---- */

static int own_tmp(const struct view *v, const char *dir, struct det_err *err)
{
    char real[PATH_MAX];
    if (!realpath(dir, real))
        return 0;
    det_cleanup(det_closep) int fd =
        openat(v->kept[OWN].fd, "tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int rc = fd < 0 ? report_refusal(dir, err) : bind_folder(fd, real, err);
    return rc < 0 ? rc : show_what_is_covered(v, real, err);
}

/* Others' directories are closed to another uid; to the same one they are not there. */
static int hide_beside(const struct view *v, const char *path, struct det_err *err)
{
    det_cleanup(freep) char *dir = det_strndup(path, (size_t)(strrchr(path, '/') - path));
    if (is_beneath(dir, "/tmp") || is_beneath(dir, "/var/tmp"))
        return 0; /* covered already */
    int rc = mount_tmpfs(dir, 0, "size=64k,mode=0711", err);
    if (rc == 0)
        rc = show_what_is_covered(v, dir, err);
    return rc < 0 ? rc : mount_tmpfs(dir, MS_REMOUNT | MS_RDONLY, "size=64k,mode=0711", err);
}

static int hide_others(const struct view *v, struct det_err *err)
{
    int rc = hide_beside(v, v->s->dir, err);
    if (rc == 0 && v->s->cache && geteuid() != 0)
        rc = hide_beside(v, v->s->cache, err);
    return rc;
}

/* What is not there, or cannot be reached, cannot be seen either. */
static int hide_path(const char *path, struct det_err *err)
{
    struct stat st;
    if (!path || stat(path, &st) < 0)
        return 0;
    if (S_ISDIR(st.st_mode))
        return mount_tmpfs(path, MS_RDONLY, "size=4k,mode=0555", err);
    return mount("/dev/null", path, NULL, MS_BIND, NULL) < 0 ? report_refusal(path, err) : 0;
}

static int hide_secrets(const struct view *v, struct det_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < json_array_size(v->s->hide) && rc == 0; i++)
        rc = hide_path(json_string_value(json_array_get(v->s->hide, i)), err);
    return rc;
}

static int own_shm(struct det_err *err)
{
    return access("/dev/shm", F_OK) < 0 ? 0 : mount_tmpfs("/dev/shm", 0, "mode=1777", err);
}

/* DIR/from as PLACE/to. */
static int show_folder(const struct taskspec *s, const char *from, const char *to,
                       struct det_err *err)
{
    det_cleanup(freep) char *source = det_asprintf("%s/%s", s->dir, from);
    if (mkdir(to, 0700) < 0 || mount(source, to, NULL, MS_BIND, NULL) < 0)
        return report_refusal(to, err);
    return 0;
}

static int own_place(const struct taskspec *s, struct det_err *err)
{
    det_cleanup(freep) char *options =
        det_asprintf("size=16m,mode=0700,uid=%u,gid=%u", (unsigned)s->uid, (unsigned)s->gid);
    const char *users = PLACE "/pythonuserbase";
    if (mkdir(PLACE, 0755) < 0 && errno != EEXIST)
        return geteuid() == 0 ? report_refusal(PLACE, err) : 0; /* DET_INFO_DIR names its files */
    int rc = mount_tmpfs(PLACE, 0, options, err);
    if (rc == 0)
        rc = show_folder(s, "info", PLACE "/info", err);
    if (rc == 0)
        rc = show_folder(s, "work", PLACE "/workdir", err);
    if (rc == 0 && (mkdir(users, 0700) < 0 || chown(users, s->uid, s->gid) < 0))
        rc = report_refusal(users, err);
    return rc;
}

/* Its descriptors live until the init closes all. */
int taskbox_mounts(const struct taskspec *s, struct det_err *err)
{
    struct view v = {.s = s};
    int rc = 0;
    keep_all(&v);
    if (v.kept_n <= OWN)
        return report_refusal(s->dir, err);
    /* What the host mounts later is seen here too; what is mounted here is seen nowhere else. */
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        return report_refusal("--make-rslave /", err);
    if (taskspec_is_kept_apart(s)) {
        rc = hide_others(&v, err);
        if (rc == 0)
            rc = own_tmp(&v, "/tmp", err);
        if (rc == 0)
            rc = own_tmp(&v, "/var/tmp", err);
        if (rc == 0)
            rc = own_shm(err);
        if (rc == 0)
            rc = hide_secrets(&v, err);
    }
    if (rc == 0)
        rc = own_place(s, err);
    if (rc == 0 && mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        rc = report_refusal("/proc", err);
    return rc;
}
