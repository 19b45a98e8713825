#include "tasklook.h"

#include "clk.h"
#include "counted.h"
#include "fsx.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TITLE "det-look" /* as long as "det-task" */

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
    int fd;                       /* to whom it tells */
    struct tasklook_limit *limit; /* or NULL */
};

/* Killed, it may still be there when the task has ended: det-task's connections end without it, and
 * it is not taken for det-task. */
static void become_stranger(struct looker *l)
{
    if (strcmp(program_invocation_name, "det-task") == 0)
        memcpy(program_invocation_name, TITLE, strlen(TITLE));
    dup2(l->fd, 0);
    l->fd = 0;
    syscall(SYS_close_range, 1U, ~0U, 0U);
}

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
    int rc = taskbox_is_open(b) && taskbox_join(b) < 0
                 ? det_fail_errno(&err, DET_EPERM, errno, "setns")
                 : 0;
    if (l->limit)
        become_stranger(l);
    if (rc == 0)
        rc = look_as_user(s, look_alone, l, &out, &err);
    if (rc < 0) {
        buf_clear(&out);
        buf_addf(&out, "-%s", err.text);
    }
    counted_write();
    _exit(fsx_write_all(l->fd, out.p, out.len, NULL) < 0);
}

/* Up to the end of it; false: that did not come in time. by_ms 0: it is waited for. */
static bool read_all(int fd, int64_t by_ms, struct buf *out)
{
    char some[4096];
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int64_t left_ms = by_ms - clk_mono_ms();
        int ready = poll(&p, 1, by_ms == 0 ? -1 : left_ms > 0 ? (int)left_ms : 0);
        ssize_t n = ready > 0 ? read(fd, some, sizeof some) : -1;
        if (ready == 0)
            return false;
        if (n == 0 || (n < 0 && errno != EINTR))
            return true;
        if (n > 0)
            buf_add(out, some, (size_t)n);
    }
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

/* Without SIGCHLD it is none of the children that are waited for without __WALL. fork() alone sees
 * to it that no other thread holds the allocator: it is for who has no limit. */
static pid_t fork_looker(const struct looker *l)
{
    return l->limit ? (pid_t)syscall(SYS_clone, 0UL, NULL, NULL, NULL, NULL) : fork();
}

/* Who is held up dies as soon as it is let go: nobody waits for that. */
static void end_looker(pid_t pid, bool is_done, struct tasklook_limit *limit)
{
    pid_t ended;
    if (!is_done)
        kill(pid, SIGKILL);
    do
        ended = waitpid(pid, NULL, __WALL | (is_done ? 0 : WNOHANG));
    while (ended < 0 && errno == EINTR);
    if (limit)
        limit->late = ended == 0 ? pid : 0;
}

static int look_apart(const struct taskspec *s, const struct taskbox *b, struct looker *l,
                      struct buf *ret, struct det_err *err)
{
    int64_t by_ms = l->limit ? clk_mono_ms() + l->limit->ms : 0;
    det_cleanup(buf_finish) struct buf all = BUF_INIT;
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return det_fail_errno(err, DET_EIO, errno, "pipe");
    l->parent = getpid();
    l->fd = fds[1];
    pid_t pid = fork_looker(l);
    if (pid == 0)
        look_in_box(s, b, l);
    int error = errno;
    close(fds[1]);
    bool is_done = pid > 0 && read_all(fds[0], by_ms, &all);
    close(fds[0]);
    if (pid < 0)
        return det_fail_errno(err, DET_ENOMEM, error, "fork");
    end_looker(pid, is_done, l->limit);
    return is_done ? read_answer(&all, ret, err) : det_fail(err, DET_ETIMEOUT, "no answer");
}

int tasklook(const struct taskspec *s, const struct taskbox *b, tasklook_fn *fn, void *arg,
             struct buf *ret, struct det_err *err)
{
    if (!taskbox_is_open(b))
        return look_as_user(s, fn, arg, ret, err);
    return look_apart(s, b, &(struct looker){.fn = fn, .arg = arg}, ret, err);
}

int tasklook_within(const struct taskspec *s, const struct taskbox *b, struct tasklook_limit *limit,
                    tasklook_fn *fn, void *arg, struct buf *ret, struct det_err *err)
{
    limit->late = 0;
    return look_apart(s, b, &(struct looker){.fn = fn, .arg = arg, .limit = limit}, ret, err);
}
