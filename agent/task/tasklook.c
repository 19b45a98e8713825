#include "tasklook.h"

#include "fsx.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

static int look_as_user(const struct taskspec *s, tasklook_fn *fn, void *arg, struct buf *out,
                        struct det_err *err)
{
    int rc = taskspec_user_enter(s, err);
    if (rc < 0)
        return rc;
    fn(arg, out);
    taskspec_user_leave(s);
    return 0;
}

/* The first byte tells whether it could look. */
static void __attribute__((noreturn)) look_in_box(const struct taskspec *s, const struct taskbox *b,
                                                  tasklook_fn *fn, void *arg, int fd)
{
    struct det_err err;
    struct buf out = BUF_INIT;
    buf_add_ch(&out, '+');
    int rc = taskbox_join(b) < 0 ? det_fail_errno(&err, DET_EPERM, errno, "setns") : 0;
    if (rc == 0)
        rc = look_as_user(s, fn, arg, &out, &err);
    if (rc < 0) {
        buf_clear(&out);
        buf_addf(&out, "-%s", err.text);
    }
    _exit(fsx_write_all(fd, out.p, out.len, NULL) < 0);
}

static void read_all(int fd, struct buf *out)
{
    char some[4096];
    ssize_t n;
    while ((n = read(fd, some, sizeof some)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0)
            buf_add(out, some, (size_t)n);
}

static int told(const struct buf *all, struct buf *ret, struct det_err *err)
{
    if (all->len == 0)
        return det_fail(err, DET_EIO, "who looks at the task's files ended");
    if (all->p[0] != '+')
        return det_fail(err, DET_EPERM, "look at the task's files: %.*s", (int)all->len - 1,
                        all->p + 1);
    buf_add(ret, all->p + 1, all->len - 1);
    return 0;
}

int tasklook(const struct taskspec *s, const struct taskbox *b, tasklook_fn *fn, void *arg,
             struct buf *ret, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf all = BUF_INIT;
    int fds[2];
    if (!taskbox_is_open(b))
        return look_as_user(s, fn, arg, ret, err);
    if (pipe2(fds, O_CLOEXEC) < 0)
        return det_fail_errno(err, DET_EIO, errno, "pipe");
    pid_t pid = fork();
    if (pid == 0)
        look_in_box(s, b, fn, arg, fds[1]);
    int error = errno;
    close(fds[1]);
    if (pid > 0)
        read_all(fds[0], &all);
    close(fds[0]);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return pid < 0 ? det_fail_errno(err, DET_ENOMEM, error, "fork") : told(&all, ret, err);
}
