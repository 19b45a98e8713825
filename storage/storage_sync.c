/* Copies of whole checkpoints, and making them durable. */
#include "fsx.h"
#include "mem.h"
#include "storage.h"
#include "storage_impl.h"
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct tree {
    int from, to;
    const char *path; /* of the tree that is written, for messages */
};

/* So much at a time, that even a slow disk is seen to take it; and so much that it has to do meanwhile. */
#define PORTION ((off_t)16 << 20)
#define AHEAD   (8 * PORTION)

static _Atomic uint64_t synced;

uint64_t storage_synced_bytes(void)
{
    return atomic_load_explicit(&synced, memory_order_relaxed);
}

static bool is_unknown(int error)
{
    return error == ENOSYS || error == EINVAL || error == ESPIPE || error == EOPNOTSUPP;
}

/* fsync, in portions. An error of the disk that one of them was told fsync does not tell again. */
static int sync_file(int fd, off_t bytes)
{
    const unsigned flags =
        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    sync_file_range(fd, 0, AHEAD, SYNC_FILE_RANGE_WRITE);
    for (off_t at = 0; at < bytes; at += PORTION) {
        sync_file_range(fd, at + AHEAD, PORTION, SYNC_FILE_RANGE_WRITE);
        if (sync_file_range(fd, at, PORTION, flags) < 0) {
            if (is_unknown(errno))
                break;
            return -1;
        }
        atomic_fetch_add_explicit(&synced, (uint64_t)PORTION, memory_order_relaxed);
    }
    return fsync(fd);
}

static int sync_entry(void *arg, const char *path, bool is_dir, uint64_t bytes, struct det_err *err)
{
    const struct tree *t = arg;
    int flags = O_RDONLY | (is_dir ? O_DIRECTORY : 0);
    det_cleanup(det_closep) int fd = fsx_open_beneath(t->to, path, flags, 0, err);
    if (fd < 0)
        return fd;
    return sync_file(fd, is_dir ? 0 : (off_t)bytes) < 0
               ? storage_errno("fsync", t->path, path, err)
               : 0;
}

int storage_sync_tree(int fd, const char *path, struct det_err *err)
{
    struct tree t = {.from = -1, .to = fd, .path = path};
    int rc = fsx_walk(fd, sync_entry, &t, err);
    if (rc < 0)
        return det_wrap(err, rc, "%s", path);
    return fsync(fd) < 0 ? storage_errno("fsync", path, "", err) : 0;
}

int storage_copy_bytes(int in, int out, const char *to_path, const char *path, struct det_err *err)
{
    ssize_t n;
    while ((n = copy_file_range(in, NULL, out, NULL, (size_t)1 << 30, 0)) > 0)
        ;
    if (n == 0)
        return 0;
    if (errno != EXDEV && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
        return storage_errno("write", to_path, path, err);
    char block[1 << 16];
    while ((n = read(in, block, sizeof block)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return det_fail(err, DET_EIO, "read %s: %s", path, strerror(errno));
        int rc = fsx_write_all(out, block, (size_t)n, err);
        if (rc < 0)
            return det_wrap(err, rc, "write %s/%s", to_path, path);
    }
    return 0;
}

static int copy_file(const struct tree *t, const char *path, struct det_err *err)
{
    det_cleanup(det_closep) int in = fsx_open_beneath(t->from, path, O_RDONLY, 0, err);
    if (in < 0)
        return in;
    struct stat st;
    if (fstat(in, &st) < 0)
        return det_fail(err, DET_EIO, "stat %s: %s", path, strerror(errno));
    det_cleanup(det_closep) int out = fsx_open_beneath(
        t->to, path, O_WRONLY | O_CREAT | O_TRUNC, (st.st_mode & 0111) ? 0755 : 0644, err);
    return out < 0 ? out : storage_copy_bytes(in, out, t->path, path, err);
}

static int copy_entry(void *arg, const char *path, bool is_dir, uint64_t bytes, struct det_err *err)
{
    const struct tree *t = arg;
    return is_dir ? fsx_mkdirs(t->to, path, 0755, err) : copy_file(t, path, err);
}

int storage_copy_tree(int from, int to, const char *to_path, struct det_err *err)
{
    struct tree t = {.from = from, .to = to, .path = to_path};
    return fsx_walk(from, copy_entry, &t, err);
}

static int copy_dirs(const char *from_path, const char *to_path, struct det_err *err)
{
    det_cleanup(det_closep) int from = fsx_open_dir(AT_FDCWD, from_path, err);
    if (from < 0)
        return from;
    det_cleanup(det_closep) int to = fsx_open_dir(AT_FDCWD, to_path, err);
    return to < 0 ? to : storage_copy_tree(from, to, to_path, err);
}

int storage_put_dir(struct storage *s, const char *uuid, const char *local_dir, struct det_err *err)
{
    det_cleanup(freep) char *path = NULL;
    int rc = storage_begin(s, uuid, &path, err);
    if (rc < 0)
        return rc;
    if ((rc = copy_dirs(local_dir, path, err)) == 0)
        rc = storage_publish(s, uuid, err);
    if (rc < 0)
        storage_abort(s, uuid, NULL);
    return rc;
}

int storage_get(struct storage *s, const char *uuid, char **ret_path, struct det_err *err)
{
    int rc = storage_exists(s, uuid, err);
    if (rc < 0)
        return rc;
    *ret_path = storage_path(s, uuid);
    return 0;
}

int storage_get_dir(struct storage *s, const char *uuid, const char *dest_dir, struct det_err *err)
{
    det_cleanup(freep) char *path = NULL;
    int rc = storage_get(s, uuid, &path, err);
    if (rc < 0)
        return rc;
    if ((rc = fsx_mkdirs(AT_FDCWD, dest_dir, 0755, err)) < 0)
        return rc;
    return copy_dirs(path, dest_dir, err);
}
