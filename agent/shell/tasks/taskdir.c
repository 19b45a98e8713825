#include "taskdir.h"

#include "find.h"
#include "fsx.h"
#include "uuid.h"
#include "vec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define SPEC_BYTES_MAX ((size_t)64 << 20)
#define DROPPED        ".gone-"

/* Others may pass through, to reach what is theirs, but see no names. */
static int make_open_dir(const char *path, mode_t mode, struct det_err *err)
{
    int rc = fsx_mkdirs(AT_FDCWD, path, 0755, err);
    if (rc == 0 && chmod(path, mode) < 0)
        rc = det_fail_errno(err, DET_EIO, errno, "chmod %s", path);
    return rc;
}

static int take_lock(const char *work_dir, struct det_err *err)
{
    det_cleanup(freep) char *path = det_asprintf("%s/agent.lock", work_dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return det_fail_errno(err, DET_EIO, errno, "open %s", path);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        close(fd);
        return det_fail(err, DET_EEXIST, "another det-agent runs in %s", work_dir);
    }
    return 0; /* held until the process ends */
}

/* What chattr +T says: the directories in it have nothing to do with each other. ext4 then puts
 * them all over the disk instead of side by side, where one without a journal looks at each inode
 * that was deleted lately before it makes a new one: after some hundred tasks 6 ms for the next.
 * Other filesystems may refuse. */
static void spread_directories(int fd)
{
    int flags;
    if (ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && !(flags & FS_TOPDIR_FL)) {
        flags |= FS_TOPDIR_FL;
        ioctl(fd, FS_IOC_SETFLAGS, &flags);
    }
}

int taskdirs_open(struct taskdirs *d, const char *work_dir, bool lock, json_t *agent,
                  struct det_err *err)
{
    char real[PATH_MAX];
    *d = (struct taskdirs){.fd = -1, .server = -1, .agent = agent};
    int rc = make_open_dir(work_dir, 0755, err);
    if (rc == 0 && !realpath(work_dir, real))
        rc = det_fail_errno(err, DET_EIO, errno, "%s", work_dir);
    if (rc == 0 && lock)
        rc = take_lock(real, err);
    if (rc < 0)
        return rc;
    det_cleanup(freep) char *cache = det_asprintf("%s/cache", real);
    d->root = det_asprintf("%s/tasks", real);
    rc = make_open_dir(d->root, 0711, err);
    if (rc == 0)
        rc = make_open_dir(cache, 01777, err);
    if (rc == 0)
        rc = d->fd = fsx_open_dir(AT_FDCWD, d->root, err);
    if (rc >= 0)
        spread_directories(d->fd);
    d->det_task = find_beside("det-task", X_OK);
    if (!d->det_task)
        d->det_task = find_beside("task/det-task", X_OK); /* in the build tree */
    if (rc >= 0 && !d->det_task)
        rc = det_fail(err, DET_ENOENT, "det-task is not beside det-agent");
    setenv("DET_CACHE_DIR", cache, 0);
    return rc < 0 ? rc : 0;
}

void taskdirs_close(struct taskdirs *d)
{
    det_closep(&d->fd);
    det_closep(&d->server);
    free(d->root);
    free(d->det_task);
    json_decref(d->agent);
}

static int open_task(const struct taskdirs *d, const char *alloc, struct det_err *err)
{
    return fsx_open_beneath(d->fd, alloc, O_RDONLY | O_DIRECTORY, 0, err);
}

int taskdir_make(const struct taskdirs *d, const char *alloc, const char *container, json_t *task,
                 struct det_err *err)
{
    if (mkdirat(d->fd, alloc, 0711) < 0 || fchmodat(d->fd, alloc, 0711, 0) < 0)
        return det_fail_errno(err, DET_EIO, errno, "mkdir %s/%s", d->root, alloc);
    det_cleanup(det_closep) int dir = open_task(d, alloc, err);
    if (dir < 0)
        return dir;
    JSON_OWN j = json_object();
    json_set(j, "alloc", json_string(alloc));
    json_set(j, "container", json_string(container));
    json_set(j, "agent", json_incref(d->agent));
    json_set(j, "task", json_incref(task));
    det_cleanup(freep) char *text = json_text(j);
    det_cleanup(det_closep) int fd =
        fsx_open_beneath(dir, "spec.new", O_WRONLY | O_CREAT | O_TRUNC, 0600, err);
    int rc = fd < 0 ? fd : fsx_write_all(fd, text, strlen(text), err);
    if (rc == 0 && renameat(dir, "spec.new", dir, "spec.json") < 0)
        rc = det_fail_errno(err, DET_EIO, errno, "%s/%s/spec.json", d->root, alloc);
    return rc;
}

int taskdir_socket_path(const struct taskdirs *d, const char *alloc, int *ret_fd, char out[64],
                        struct det_err *err)
{
    *ret_fd = open_task(d, alloc, err);
    snprintf(out, 64, "/proc/self/fd/%d/sock", *ret_fd);
    return *ret_fd < 0 ? *ret_fd : 0;
}

static json_t *read_json(const struct taskdirs *d, const char *alloc, const char *name,
                         struct det_err *err)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    det_cleanup(det_closep) int dir = open_task(d, alloc, err);
    if (dir < 0 || fsx_read_file(dir, name, SPEC_BYTES_MAX, &b, err) < 0)
        return NULL;
    json_t *j = json_parse(buf_str(&b), b.len, err);
    if (!j)
        det_wrap(err, DET_ECORRUPT, "%s/%s/%s", d->root, alloc, name);
    return j;
}

json_t *taskdir_spec(const struct taskdirs *d, const char *alloc, struct det_err *err)
{
    return read_json(d, alloc, "spec.json", err);
}

int taskdir_exit(const struct taskdirs *d, const char *alloc, json_t **ret_json,
                 struct link_exit *ret, struct det_err *err)
{
    JSON_OWN j = read_json(d, alloc, "state.json", err);
    if (!j)
        return DET_ENOENT;
    int rc = link_exit_decode(json_object_get(j, "exit"), ret, err);
    if (rc == 0)
        *ret_json = json_incref(j);
    return rc;
}

void taskdir_drop(const struct taskdirs *d, const char *alloc)
{
    char id[UUID_STR_MAX];
    uuid_random(id);
    det_cleanup(freep) char *name = det_asprintf(DROPPED "%s", id);
    renameat(d->fd, alloc, d->fd, name);
}

typedef VEC(char *) names;

static void list_names(int root_fd, bool dropped, names *v)
{
    int fd = openat(root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    for (struct dirent *e; dir && (e = readdir(dir)) != NULL;) {
        bool is_dropped = strncmp(e->d_name, DROPPED, strlen(DROPPED)) == 0;
        if (dropped ? is_dropped : e->d_name[0] != '.' && link_id_is_valid(e->d_name))
            vec_push(v, det_strdup(e->d_name));
    }
    if (dir)
        closedir(dir);
    vec_push(v, (char *)NULL);
}

void taskdir_sweep(int root_fd)
{
    names v = {0};
    list_names(root_fd, true, &v);
    for (size_t i = 0; v.v[i]; i++) {
        det_ignore(fsx_remove_tree(root_fd, v.v[i], NULL), "the next sweep tries again");
        free(v.v[i]);
    }
    vec_free(&v);
}

char **taskdir_list(const struct taskdirs *d)
{
    names v = {0};
    list_names(d->fd, false, &v);
    return v.v;
}
