/* A directory in the store that follows a local one whose files only grow. */
#include "fsx.h"
#include "mem.h"
#include "storage.h"
#include "storage_impl.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct follow {
    int from, to;
    const char *path; /* of `to`, for messages */
    const char *but;
};

static int append_bytes(const struct follow *f, int out, const char *path, off_t bytes,
                        struct det_err *err)
{
    struct stat st;
    if (fstat(out, &st) < 0)
        return storage_errno("stat", f->path, path, err);
    if (st.st_size >= bytes)
        return 0;
    det_cleanup(det_closep) int in = fsx_open_beneath(f->from, path, O_RDONLY, 0, err);
    if (in < 0)
        return in;
    if (lseek(in, st.st_size, SEEK_SET) < 0 || lseek(out, st.st_size, SEEK_SET) < 0)
        return storage_errno("seek", f->path, path, err);
    int rc = fsx_copy_rest(in, out, err);
    return rc < 0 ? det_wrap(err, rc, "copy %s/%s", f->path, path) : 0;
}

static int follow_file(const struct follow *f, const char *path, off_t bytes, struct det_err *err)
{
    int out = fsx_open_beneath(f->to, path, O_WRONLY | O_CREAT, 0644, err);
    if (out < 0)
        return out;
    int rc = append_bytes(f, out, path, bytes, err);
    if (close(out) < 0 &&
        rc == 0) /* where file systems of other hosts say what they did not take */
        rc = storage_errno("close", f->path, path, err);
    return rc;
}

static int on_entry(void *arg, const char *path, bool is_dir, uint64_t bytes, struct det_err *err)
{
    const struct follow *f = arg;
    const char *slash = strrchr(path, '/');
    if (is_dir)
        return fsx_mkdirs(f->to, path, 0755, err);
    if (f->but && strstr(slash ? slash + 1 : path, f->but))
        return 0;
    return follow_file(f, path, (off_t)bytes, err);
}

static int check_place(const char *place, struct det_err *err)
{
    if (!*place || *place == '/' || strstr(place, ".."))
        return det_fail(err, DET_EINVAL, "\"%s\" is no place in a checkpoint store", place);
    return 0;
}

/* What holds it is opened beneath the root, so that no link leads elsewhere. */
int storage_remove_tree(struct storage *s, const char *place, struct det_err *err)
{
    const char *slash = strrchr(place, '/');
    int rc = check_place(place, err);
    if (rc == 0)
        rc = storage_ready(s, err);
    if (rc < 0)
        return rc;
    if (!slash || !slash[1])
        return det_fail(err, DET_EINVAL, "\"%s\" is no directory in another", place);
    det_cleanup(freep) char *above = det_strndup(place, (size_t)(slash - place));
    det_cleanup(det_closep) int fd = fsx_open_beneath(s->fd, above, O_RDONLY | O_DIRECTORY, 0, err);
    if (fd < 0)
        return fd == DET_ENOENT ? 0 : det_wrap(err, fd, "%s/%s", s->root, place);
    rc = fsx_remove_tree(fd, slash + 1, err);
    return rc < 0 ? det_wrap(err, rc, "%s/%s", s->root, place) : 0;
}

/* A folder of the place that is not the writer's alone: others add theirs beneath it, as in the
 * root. */
static int make_shared(struct storage *s, const char *folder, mode_t mode, struct det_err *err)
{
    int rc = fsx_mkdirs(s->fd, folder, 0755, err);
    det_cleanup(det_closep) int fd =
        rc < 0 ? -1 : fsx_open_beneath(s->fd, folder, O_RDONLY | O_DIRECTORY, 0, err);
    if (rc < 0 || fd < 0)
        return rc < 0 ? rc : fd;
    return fchmod(fd, mode) < 0 && errno != EPERM ? storage_errno("chmod", s->root, folder, err)
                                                  : 0;
}

/* Several accounts write to a root whose mode says so: sticky, for others or for a group. */
static int share_parents(struct storage *s, const char *place, struct det_err *err)
{
    struct stat root;
    int rc = 0;
    if (fstat(s->fd, &root) < 0)
        return storage_errno("stat", s->root, "", err);
    if (!(root.st_mode & S_ISVTX))
        return 0;
    for (const char *slash = strchr(place, '/'); slash && rc == 0; slash = strchr(slash + 1, '/')) {
        det_cleanup(freep) char *folder = det_strndup(place, (size_t)(slash - place));
        det_cleanup(det_closep) int fd =
            fsx_open_beneath(s->fd, folder, O_PATH | O_DIRECTORY, 0, err);
        rc = fd == DET_ENOENT ? make_shared(s, folder, root.st_mode & 03777, err) : fd < 0 ? fd : 0;
    }
    return rc;
}

/* Made when it is not there, which is the first time only. */
static int open_place(struct storage *s, const char *place, struct det_err *err)
{
    int fd = fsx_open_beneath(s->fd, place, O_RDONLY | O_DIRECTORY, 0, err);
    if (fd != DET_ENOENT)
        return fd;
    int rc = share_parents(s, place, err);
    if (rc == 0)
        rc = fsx_mkdirs(s->fd, place, 0755, err);
    return rc < 0 ? rc : fsx_open_beneath(s->fd, place, O_RDONLY | O_DIRECTORY, 0, err);
}

int storage_follow_dir(struct storage *s, const char *place, const char *local_dir, const char *but,
                       struct det_err *err)
{
    int checked = check_place(place, err);
    if (checked == 0)
        checked = storage_ready(s, err);
    if (checked < 0)
        return checked;
    det_cleanup(freep) char *path = det_asprintf("%s/%s", s->root, place);
    det_cleanup(det_closep) int from = open(local_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (from < 0)
        return errno == ENOENT ? 0 : storage_errno("open", local_dir, "", err);
    det_cleanup(det_closep) int to = open_place(s, place, err);
    if (to < 0)
        return det_wrap(err, to, "%s", path);
    struct follow f = {from, to, path, but};
    int rc = fsx_walk(from, on_entry, &f, err);
    return rc < 0 ? det_wrap(err, rc, "copy %s to %s", local_dir, path) : 0;
}
