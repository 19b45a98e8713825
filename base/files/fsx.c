#include "fsx.h"

#include "mem.h"
#include "uuid.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int code_of_errno(int e)
{
    switch (e) {
    case EEXIST: return DET_EEXIST;
    case EROFS: return DET_EPERM;
    case EXDEV: /* openat2: the path leaves the directory */
    case ELOOP:
    case ENOTDIR:
    case EISDIR:
    case ENAMETOOLONG: return DET_EINVAL;
    default: return det_code_of_errno(e);
    }
}

static int fail_errno(struct det_err *err, const char *what, const char *path)
{
    int e = errno;
    if (e == EXDEV)
        return det_fail(err, DET_EINVAL, "%s %s: the path leaves its directory", what, path);
    return det_fail_errno(err, code_of_errno(e), e, "%s %s", what, path);
}

/* For kernels and sandboxes without openat2: part by part, following no link at all. */
static int open_by_parts(int dirfd, const char *path, int flags, mode_t mode)
{
    det_cleanup(det_closep) int at = -1;
    if (*path == '/') {
        errno = EXDEV;
        return -1;
    }
    for (const char *part = path;;) {
        size_t n = strcspn(part, "/");
        const char *rest = part + n + strspn(part + n, "/");
        det_cleanup(freep) char *name = det_strndup(n ? part : ".", n ? n : 1);
        if (strcmp(name, "..") == 0) {
            errno = EXDEV;
            return -1;
        }
        int from = at >= 0 ? at : dirfd;
        if (!*rest)
            return openat(from, name, flags | O_NOFOLLOW | O_CLOEXEC, mode);
        int next = openat(from, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0)
            return -1;
        det_closep(&at);
        at = next;
        part = rest;
    }
}

static int open_beneath(int dirfd, const char *path, int flags, mode_t mode)
{
    struct open_how how = {
        .flags = (uint64_t)(flags | O_CLOEXEC),
        .mode = flags & O_CREAT ? mode : 0,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    long fd;
    do
        fd = syscall(SYS_openat2, dirfd, path, &how, sizeof how);
    while (fd < 0 && (errno == EINTR || errno == EAGAIN));
    if (fd < 0 && (errno == ENOSYS || errno == EPERM))
        return open_by_parts(dirfd, path, flags, mode);
    return (int)fd;
}

bool fsx_is_within(int dirfd, const char *path)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV};
    det_cleanup(det_closep) int fd = (int)syscall(SYS_openat2, dirfd, path, &how, sizeof how);
    return fd >= 0;
}

/* A path from AT_FDCWD is the program's own and may be absolute; any other stays beneath dirfd. */
static int open_any(int dirfd, const char *path, int flags, mode_t mode)
{
    if (dirfd == AT_FDCWD)
        return openat(dirfd, path, flags | O_CLOEXEC, mode);
    return open_beneath(dirfd, path, flags, mode);
}

int fsx_open_beneath(int dirfd, const char *path, int flags, mode_t mode, struct det_err *err)
{
    int fd = open_beneath(dirfd, path, flags, mode);
    return fd >= 0 ? fd : fail_errno(err, "open", path);
}

int fsx_open_dir(int dirfd, const char *path, struct det_err *err)
{
    int fd = open_any(dirfd, path, O_RDONLY | O_DIRECTORY, 0);
    return fd >= 0 ? fd : fail_errno(err, "open directory", path);
}

int fsx_read_file(int dirfd, const char *path, size_t bytes_max, struct buf *out,
                  struct det_err *err)
{
    det_cleanup(det_closep) int fd = open_any(dirfd, path, O_RDONLY, 0);
    return fd < 0 ? fail_errno(err, "open", path) : fsx_read_rest(fd, path, bytes_max, out, err);
}

int fsx_read_rest(int fd, const char *name, size_t bytes_max, struct buf *out, struct det_err *err)
{
    size_t start = out->len;
    for (;;) {
        buf_reserve(out, 16384);
        ssize_t n = read(fd, out->p + out->len, 16384);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail_errno(err, "read", name);
        if (n == 0)
            break;
        out->len += (size_t)n;
        if (out->len - start > bytes_max)
            return det_fail(err, DET_ETOOBIG, "%s is above the limit of %zu bytes", name,
                            bytes_max);
    }
    out->p[out->len] = '\0';
    return 0;
}

int fsx_write_all(int fd, const void *p, size_t n, struct det_err *err)
{
    const char *at = p;
    while (n) {
        ssize_t done = write(fd, at, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return det_fail_errno(err, DET_EIO, errno, "write");
        at += done;
        n -= (size_t)done;
    }
    return 0;
}

static int copy_by_hand(int in, int out, struct det_err *err)
{
    char block[1 << 16];
    ssize_t n;
    while ((n = read(in, block, sizeof block)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return det_fail_errno(err, DET_EIO, errno, "read");
        int rc = fsx_write_all(out, block, (size_t)n, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int fsx_copy_rest(int in, int out, struct det_err *err)
{
    ssize_t n;
    do
        n = copy_file_range(in, NULL, out, NULL, (size_t)1 << 30, 0);
    while (n > 0 || (n < 0 && errno == EINTR));
    if (n == 0)
        return 0;
    if (errno != EXDEV && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
        return det_fail_errno(err, DET_EIO, errno, "write");
    return copy_by_hand(in, out, err);
}

/* Opens the directory that holds path's last part; *ret_name is that part (borrowed from path). */
static int open_parent(int dirfd, const char *path, const char **ret_name)
{
    const char *slash = strrchr(path, '/');
    *ret_name = slash ? slash + 1 : path;
    if (!slash)
        return open_any(dirfd, ".", O_RDONLY | O_DIRECTORY, 0);
    det_cleanup(freep) char *dir = det_strndup(path, slash == path ? 1 : (size_t)(slash - path));
    return open_any(dirfd, dir, O_RDONLY | O_DIRECTORY, 0);
}

static int write_synced(int parent, const char *name, const void *p, size_t n, mode_t mode,
                        struct det_err *err)
{
    det_cleanup(det_closep) int fd =
        openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return fail_errno(err, "create", name);
    int rc = fsx_write_all(fd, p, n, err);
    if (rc < 0)
        return rc;
    if (fchmod(fd, mode) < 0 || fsync(fd) < 0)
        return fail_errno(err, "sync", name);
    return 0;
}

int fsx_write_atomic(int dirfd, const char *path, const void *p, size_t n, mode_t mode,
                     struct det_err *err)
{
    const char *name;
    det_cleanup(det_closep) int parent = open_parent(dirfd, path, &name);
    if (parent < 0)
        return fail_errno(err, "open the directory of", path);
    char unique[17];
    random_hex(unique, 8);
    det_cleanup(freep) char *tmp = det_asprintf(".%.200s.%s.tmp", name, unique);
    int rc = write_synced(parent, tmp, p, n, mode, err);
    if (rc == 0 && renameat(parent, tmp, parent, name) < 0)
        rc = fail_errno(err, "rename to", path);
    if (rc < 0) {
        unlinkat(parent, tmp, 0);
        return det_wrap(err, rc, "write %s", path);
    }
    if (fsync(parent) < 0)
        return fail_errno(err, "sync the directory of", path);
    return 0;
}
