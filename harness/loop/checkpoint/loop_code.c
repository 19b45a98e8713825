/* The copy of the model's code in a checkpoint. */
#include "loop_impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CODE_DEPTH_MAX 64
#define CODE_BYTES_MAX (UINT64_C(256) << 20) /* more than a submitted context can be */

struct copy {
    struct stat skip; /* the store itself, which may lie inside the code's directory */
    bool has_skip;
    bool is_store; /* the code's directory is the store: its checkpoints are no code */
    uint64_t bytes;
};

/* "<uuid>", ".<uuid>.tmp". */
static bool is_checkpoint(const char *name)
{
    name += *name == '.';
    return strspn(name, "0123456789abcdef-") == 36 && (!name[36] || strcmp(name + 36, ".tmp") == 0);
}

/* Gone meanwhile, as the trial may write where it runs; or not for this user to read. */
static bool is_no_code(int error)
{
    return error == ENOENT || error == EACCES;
}

static int copy_file(struct copy *c, int from, int to, const char *name, mode_t mode,
                     struct det_err *err)
{
    char chunk[65536];
    det_cleanup(det_closep) int in = openat(from, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (in < 0 && is_no_code(errno))
        return 0;
    det_cleanup(det_closep) int out =
        in < 0 ? -1 : openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode & 0777);
    if (out < 0)
        return det_fail_errno(err, DET_EIO, errno, "copy %s", name);
    ssize_t k;
    while ((k = read(in, chunk, sizeof chunk)) > 0) {
        c->bytes += (uint64_t)k;
        if (c->bytes > CODE_BYTES_MAX)
            return det_fail(err, DET_ETOOBIG, "the code directory holds more than %llu MiB",
                            (unsigned long long)(CODE_BYTES_MAX >> 20));
        ssize_t written = write(out, chunk, (size_t)k);
        if (written != k)
            return det_fail_errno(err, DET_EIO, written < 0 ? errno : ENOSPC, "write %s", name);
    }
    return k < 0 ? det_fail_errno(err, DET_EIO, errno, "read %s", name) : 0;
}

static int copy_dir(struct copy *c, int from, int to, int depth, struct det_err *err);

static int copy_subdir(struct copy *c, int from, int to, const char *name, int depth,
                       struct det_err *err)
{
    det_cleanup(det_closep) int in =
        openat(from, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (in < 0 && is_no_code(errno))
        return 0;
    if (mkdirat(to, name, 0755) < 0 && errno != EEXIST)
        return det_fail_errno(err, DET_EIO, errno, "make %s", name);
    det_cleanup(det_closep) int out =
        openat(to, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (in < 0 || out < 0)
        return det_fail_errno(err, DET_EIO, errno, "open %s", name);
    return copy_dir(c, in, out, depth + 1, err);
}

/* Regular files and directories; links and special files are no code. */
static int copy_entry(struct copy *c, int from, int to, const char *name, int depth,
                      struct det_err *err)
{
    struct stat st;
    if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    if (c->has_skip && st.st_dev == c->skip.st_dev && st.st_ino == c->skip.st_ino)
        return 0;
    if (S_ISREG(st.st_mode))
        return copy_file(c, from, to, name, st.st_mode, err);
    return S_ISDIR(st.st_mode) ? copy_subdir(c, from, to, name, depth, err) : 0;
}

static int copy_dir(struct copy *c, int from, int to, int depth, struct det_err *err)
{
    if (depth > CODE_DEPTH_MAX)
        return det_fail(err, DET_ETOOBIG, "directories are nested deeper than %d", CODE_DEPTH_MAX);
    int fd = dup(from);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        det_closep(&fd);
        return det_fail_errno(err, DET_EIO, errno, "read a directory");
    }
    int rc = 0;
    for (struct dirent *e; rc == 0 && (e = readdir(d));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            strcmp(e->d_name, "__pycache__") == 0 || !json_is_text(e->d_name) ||
            (c->is_store && depth == 0 && is_checkpoint(e->d_name)))
            continue;
        rc = copy_entry(c, from, to, e->d_name, depth, err);
        if (rc < 0)
            det_wrap(err, rc, "%s", e->d_name);
    }
    closedir(d);
    return rc;
}

int loop_copy_code(const char *from, const char *to, const char *skip_dir, struct det_err *err)
{
    struct copy c = {0};
    c.has_skip = skip_dir && stat(skip_dir, &c.skip) == 0;
    if (mkdir(to, 0755) < 0)
        return det_fail_errno(err, DET_EIO, errno, "make %s", to);
    det_cleanup(det_closep) int in = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    det_cleanup(det_closep) int out = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (in < 0 || out < 0)
        return det_fail_errno(err, DET_EIO, errno, "open %s", in < 0 ? from : to);
    struct stat st;
    c.is_store = c.has_skip && fstat(in, &st) == 0 && st.st_dev == c.skip.st_dev &&
                 st.st_ino == c.skip.st_ino;
    int rc = copy_dir(&c, in, out, 0, err);
    return rc < 0 ? det_wrap(err, rc, "copy code from %s", from) : 0;
}
