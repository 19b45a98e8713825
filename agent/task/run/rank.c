#include "rank.h"

#include "mem.h"
#include "rank_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define READ_BYTES 65536

struct output {
    uv_pipe_t pipe;
    struct rank *r;
    const char *stdtype;
    struct logline_split split;
    bool is_open, is_closed;
};

struct rank {
    struct rank_options o;
    struct output out[2];
    char *read_buf;
    pid_t pid;
    int status;
    bool has_exited, is_paused, is_closing;
};

/* ---- the parent ---- */

static int open_cgroup(const char *cgroup)
{
    if (!cgroup)
        return -1;
    det_cleanup(freep) char *path = det_asprintf("%s/cgroup.procs", cgroup);
    return open(path, O_WRONLY | O_CLOEXEC);
}

static int start_failed(const struct rank *r, int e, struct det_err *err)
{
    return det_fail_errno(err, e == ENOENT ? DET_ENOENT : DET_EPERM, e, "cannot execute %s",
                          r->o.file);
}

/* Waits until exec happened: the descriptor closes by it, or tells why it did not. */
static int await_exec(struct rank *r, int status_fd, struct det_err *err)
{
    int e = 0;
    ssize_t n;
    do
        n = read(status_fd, &e, sizeof e);
    while (n < 0 && errno == EINTR);
    if (n <= 0 && r->pid > 0)
        return 0;
    e = n > 0 ? e : ECHILD; /* who was to make it was killed */
    while (r->pid > 0 && waitpid(r->pid, &r->status, 0) < 0 && errno == EINTR)
        ;
    return start_failed(r, e, err);
}

/* Descriptors below 4 would be overwritten by the child's own dup2 to 0..3. */
static int move_up(int *fd)
{
    int up = fcntl(*fd, F_DUPFD_CLOEXEC, 10);
    if (up < 0)
        return -1;
    close(*fd);
    *fd = up;
    return 0;
}

static int make_pipe(int fd[2], struct det_err *err)
{
    if (pipe2(fd, O_CLOEXEC) < 0 || move_up(&fd[0]) < 0 || move_up(&fd[1]) < 0)
        return det_fail_errno(err, DET_EIO, errno, "pipe");
    return 0;
}

/* The rank that `pid` has made; it has ended by now. */
static pid_t born_in_box(const struct rank_child *c, pid_t pid)
{
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return c->pid > 0 ? c->pid : -1;
}

/* The parent stands still until exec, with no signal in either: a handler must not run twice in one
 * memory. Copying what the libraries have mapped would cost more than all the rest of a start. */
static int fork_child(struct rank *r, struct rank_child *c, int status_read, struct det_err *err)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = vfork();
    if (pid == 0)
        rank_child_begin(c);
    int e = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (pid < 0)
        return det_fail_errno(err, DET_EIO, e, "fork");
    r->pid = taskbox_is_open(r->o.box) ? born_in_box(c, pid) : pid;
    if (r->pid > 0)
        setpgid(r->pid, r->pid); /* both sides do it, so that it is done for whoever comes first */
    det_closep(&c->status_fd);
    return await_exec(r, status_read, err);
}

static int start_process(struct rank *r, int out_read[2], struct det_err *err)
{
    det_cleanup(det_closep) int work =
        openat(r->o.spec->dirfd, "work", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    det_cleanup(freep) char *path = det_asprintf("%s/work", r->o.spec->dir);
    det_cleanup(det_closep) int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    det_cleanup(det_closep) int cgroup = open_cgroup(r->o.cgroup);
    int out[2] = {-1, -1}, errs[2] = {-1, -1}, status[2] = {-1, -1};
    int rc = work < 0 || null < 0 ? det_fail_errno(err, DET_EIO, errno, "%s/work", r->o.spec->dir)
                                  : make_pipe(out, err);
    if (rc == 0)
        rc = make_pipe(errs, err);
    if (rc == 0)
        rc = make_pipe(status, err);
    if (rc == 0) {
        struct rank_child c = {.o = &r->o,
                               .out = {out[1], errs[1]},
                               .status_fd = status[1],
                               .cgroup_fd = cgroup,
                               .work_fd = work,
                               .work = path,
                               .null_fd = null,
                               .parent = getpid()};
        rc = fork_child(r, &c, status[0], err);
        status[1] = c.status_fd;
    }
    det_closep(&out[1]);
    det_closep(&errs[1]);
    det_closep(&status[0]);
    det_closep(&status[1]);
    out_read[0] = out[0];
    out_read[1] = errs[0];
    return rc;
}

/* ---- output ---- */

static void on_logline(void *arg, const struct logline *l)
{
    struct output *o = arg;
    o->r->o.on_line(o->r->o.arg, o->r, o->stdtype, l);
}

static void maybe_free(struct rank *r)
{
    if (!r->is_closing || !r->out[0].is_closed || !r->out[1].is_closed)
        return;
    free(r->read_buf);
    free(r);
}

static void on_closed(uv_handle_t *h)
{
    struct output *o = h->data;
    o->is_closed = true;
    maybe_free(o->r);
}

static void output_close(struct output *o)
{
    if (!o->is_open)
        return;
    o->is_open = false;
    uv_close((uv_handle_t *)&o->pipe, on_closed);
}

static void on_alloc(uv_handle_t *h, size_t hint, uv_buf_t *buf)
{
    struct output *o = h->data;
    *buf = uv_buf_init(o->r->read_buf, READ_BYTES);
}

static void on_read(uv_stream_t *st, ssize_t n, const uv_buf_t *buf)
{
    struct output *o = st->data;
    struct rank *r = o->r;
    if (n > 0) {
        logline_feed(&o->split, buf->base, (size_t)n, on_logline, o);
        return;
    }
    if (n == 0)
        return;
    logline_flush(&o->split, on_logline, o);
    output_close(o);
    if (rank_is_silent(r))
        r->o.on_silent(r->o.arg, r);
}

static void output_open(struct rank *r, int i, int fd)
{
    struct output *o = &r->out[i];
    o->r = r;
    o->stdtype = i == 0 ? "stdout" : "stderr";
    uv_pipe_init(r->o.loop, &o->pipe, 0);
    o->pipe.data = o;
    o->is_open = true;
    if (uv_pipe_open(&o->pipe, fd) < 0) {
        close(fd);
        output_close(o);
        return;
    }
    uv_read_start((uv_stream_t *)&o->pipe, on_alloc, on_read);
}

int rank_start(const struct rank_options *o, struct rank **ret, struct det_err *err)
{
    int fds[2] = {-1, -1};
    struct rank *r = det_zalloc(sizeof *r);
    r->o = *o;
    int rc = start_process(r, fds, err);
    if (rc < 0) {
        det_closep(&fds[0]);
        det_closep(&fds[1]);
        free(r);
        return rc;
    }
    r->o.argv = r->o.env = NULL; /* were borrowed for the start */
    r->read_buf = det_alloc(READ_BYTES);
    output_open(r, 0, fds[0]);
    output_open(r, 1, fds[1]);
    *ret = r;
    return 0;
}

void rank_close(struct rank *r)
{
    r->is_closing = true;
    output_close(&r->out[0]);
    output_close(&r->out[1]);
    maybe_free(r);
}

pid_t rank_pid(const struct rank *r)
{
    return r->pid;
}

int rank_number(const struct rank *r)
{
    return r->o.number;
}

int rank_local(const struct rank *r)
{
    return r->o.local;
}

bool rank_is_silent(const struct rank *r)
{
    return !r->out[0].is_open && !r->out[1].is_open;
}

void rank_pause(struct rank *r, bool pause)
{
    if (r->is_paused == pause)
        return;
    r->is_paused = pause;
    for (int i = 0; i < 2; i++) {
        if (!r->out[i].is_open)
            continue;
        if (pause)
            uv_read_stop((uv_stream_t *)&r->out[i].pipe);
        else
            uv_read_start((uv_stream_t *)&r->out[i].pipe, on_alloc, on_read);
    }
}

void rank_on_exit(struct rank *r, int status)
{
    r->has_exited = true;
    r->status = status;
}

bool rank_has_exited(const struct rank *r)
{
    return r->has_exited;
}

int rank_status(const struct rank *r)
{
    return r->status;
}

void rank_signal(const struct rank *r, int signal)
{
    if (!r->has_exited)
        kill(-r->pid, signal);
}
