#include "tasklook.h"

#include "counted.h"
#include "fsx.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
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

/* Who looks in a box has a process of its own. What it looks at may hold it up for ever, a mount
 * that does not answer say: so it ends with det-task, whose connections it has open. */
struct looker {
    tasklook_fn *fn;
    void *arg;
    pid_t parent;
    int fd; /* to whom it tells */
};

static void look_alone(void *arg, struct buf *out)
{
    const struct looker *l = arg;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* after the change of user, which clears it */
    if (getppid() == l->parent)
        l->fn(l->arg, out);
}

/* The first byte tells whether it could look. */
static void __attribute__((noreturn))
look_in_box(const struct taskspec *s, const struct taskbox *b, struct looker *l)
{
    struct det_err err;
    struct buf out = BUF_INIT;
    buf_add_ch(&out, '+');
    int rc = taskbox_join(b) < 0 ? det_fail_errno(&err, DET_EPERM, errno, "setns") : 0;
    if (rc == 0)
        rc = look_as_user(s, look_alone, l, &out, &err);
    if (rc < 0) {
        buf_clear(&out);
        buf_addf(&out, "-%s", err.text);
    }
    counted_write();
    _exit(fsx_write_all(l->fd, out.p, out.len, NULL) < 0);
}

static void read_all(int fd, struct buf *out)
{
    char some[4096];
    ssize_t n;
    while ((n = read(fd, some, sizeof some)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0)
            buf_add(out, some, (size_t)n);
}

static int read_answer(const struct buf *all, struct buf *ret, struct det_err *err)
{
    if (all->len == 0)
        return det_fail(err, DET_EIO, "who looks at the task's files ended");
    if (all->p[0] != '+')
        return det_fail(err, DET_EIO, "look at the task's files: %.*s", (int)all->len - 1,
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
    struct looker l = {fn, arg, getpid(), fds[1]};
    pid_t pid = fork();
    if (pid == 0)
        look_in_box(s, b, &l);
    int error = errno;
    close(fds[1]);
    if (pid > 0)
        read_all(fds[0], &all);
    close(fds[0]);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return pid < 0 ? det_fail_errno(err, DET_ENOMEM, error, "fork") : read_answer(&all, ret, err);
}
