/* Making what was written durable. */
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
    int fd;
    const char *path; /* for messages */
};

/* So much at a time, that even a slow disk is seen to take it; and so much that it has to do
 * meanwhile. */
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
    det_cleanup(det_closep) int fd = fsx_open_beneath(t->fd, path, flags, 0, err);
    if (fd < 0)
        return fd;
    return sync_file(fd, is_dir ? 0 : (off_t)bytes) < 0 ? storage_errno("fsync", t->path, path, err)
                                                        : 0;
}

int storage_sync_tree(int fd, const char *path, struct det_err *err)
{
    struct tree t = {.fd = fd, .path = path};
    int rc = fsx_walk(fd, sync_entry, &t, err);
    if (rc < 0)
        return det_wrap(err, rc, "%s", path);
    return fsync(fd) < 0 ? storage_errno("fsync", path, "", err) : 0;
}
