#include "run_ranks.h"

#include "buf.h"
#include "clk.h"
#include "deaths.h"
#include "mem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define GRACE_MS 10000 /* from SIGTERM to SIGKILL, for the ranks that outlive one */

enum { OUT, ERR, STREAMS };

struct rank {
    pid_t pid; /* 0: it has ended */
    int fd[STREAMS];
    struct buf line[STREAMS];
};

struct group {
    struct rank *v;
    int n, running;
    int deaths;         /* deaths.h: the first to fail is the one to name */
    int code;           /* of the first failure */
    int64_t kill_at_ms; /* 0: nobody was asked to end */
};

/* ---- starting ---- */

static int free_port(struct det_err *err)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    det_cleanup(det_closep) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, n) < 0 ||
        getsockname(fd, (struct sockaddr *)&a, &n) < 0)
        return det_fail_errno(err, DET_EIO, errno, "--ranks: a port on loopback");
    return ntohs(a.sin_port);
}

static void set_number(const char *name, long v)
{
    char text[24];
    snprintf(text, sizeof text, "%ld", v);
    setenv(name, text, 1);
}

/* The cores are shared out, unless the user has said how. */
static void set_threads(int n)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (!getenv("DET_THREADS_PER_SLOT"))
        set_number("DET_THREADS_PER_SLOT", cores > n ? cores / n : 1);
}

static void become_rank(int rank, int n, int port, int pipes[STREAMS][2], pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1);
    for (int s = 0; s < STREAMS; s++) {
        dup2(pipes[s][1], s == OUT ? STDOUT_FILENO : STDERR_FILENO);
        close(pipes[s][0]);
        close(pipes[s][1]);
    }
    set_number("RANK", rank);
    set_number("LOCAL_RANK", rank);
    set_number("WORLD_SIZE", n);
    set_number("LOCAL_WORLD_SIZE", n);
    set_number("C10D_PORT", port);
    setenv("DET_CHIEF_IP", "127.0.0.1", 1);
    set_threads(n);
}

/* 1 in the rank itself. */
static int start_rank(struct group *g, int rank, int port, struct det_err *err)
{
    int pipes[STREAMS][2] = {{-1, -1}, {-1, -1}};
    pid_t parent = getpid(), pid = -1;
    if (pipe(pipes[OUT]) == 0 && pipe(pipes[ERR]) == 0)
        pid = fork();
    int why = errno;
    if (pid == 0) {
        become_rank(rank, g->n, port, pipes, parent);
        return 1;
    }
    for (int s = 0; s < STREAMS; s++) {
        close(pipes[s][1]);
        g->v[rank].fd[s] = pipes[s][0];
    }
    if (pid < 0)
        return det_fail_errno(err, DET_EIO, why, "--ranks: start rank %d", rank);
    g->v[rank].pid = pid;
    g->running++;
    return 0;
}

/* ---- their output ---- */

static void print_line(int rank, int stream, const char *text, size_t n)
{
    FILE *to = stream == OUT ? stdout : stderr;
    fprintf(to, "[rank=%d] %.*s\n", rank, (int)n, text);
    fflush(to);
}

/* Prints the whole lines of what came; `all`: also the rest. */
static void print_lines(struct rank *r, int rank, int stream, bool all)
{
    struct buf *b = &r->line[stream];
    size_t at = 0;
    for (const char *end; (end = memchr(buf_str(b) + at, '\n', b->len - at));) {
        print_line(rank, stream, buf_str(b) + at, (size_t)(end - buf_str(b)) - at);
        at = (size_t)(end - buf_str(b)) + 1;
    }
    if (all && at < b->len) {
        print_line(rank, stream, buf_str(b) + at, b->len - at);
        at = b->len;
    }
    buf_consume(b, at);
}

static void read_stream(struct rank *r, int rank, int stream)
{
    char bytes[8192];
    ssize_t n = read(r->fd[stream], bytes, sizeof bytes);
    if (n > 0)
        buf_add(&r->line[stream], bytes, (size_t)n);
    print_lines(r, rank, stream, n <= 0);
    if (n > 0 || (n < 0 && errno == EINTR))
        return;
    close(r->fd[stream]);
    r->fd[stream] = -1;
}

/* True while there was something to read, or an end. */
static bool read_all(struct group *g, int wait_ms)
{
    det_cleanup(freep) struct pollfd *p = det_zalloc((size_t)g->n * STREAMS * sizeof *p);
    for (int i = 0; i < g->n * STREAMS; i++)
        p[i] = (struct pollfd){.fd = g->v[i / STREAMS].fd[i % STREAMS], .events = POLLIN};
    if (poll(p, (nfds_t)(g->n * STREAMS), wait_ms) <= 0)
        return false;
    for (int i = 0; i < g->n * STREAMS; i++)
        if (p[i].revents)
            read_stream(&g->v[i / STREAMS], i / STREAMS, i % STREAMS);
    return true;
}

/* ---- their end ---- */

static void signal_all(struct group *g, int sig)
{
    for (int i = 0; i < g->n; i++)
        if (g->v[i].pid)
            kill(g->v[i].pid, sig);
}

static void note_end(struct group *g, int rank, int status)
{
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    g->v[rank].pid = 0;
    g->running--;
    if (code == 0 || g->code != 0)
        return;
    g->code = code;
    if (WIFSIGNALED(status))
        fprintf(stderr, "rank %d was ended by signal %d (%s)%s\n", rank, WTERMSIG(status),
                strsignal(WTERMSIG(status)), g->running ? "; ending the others" : "");
    else
        fprintf(stderr, "rank %d exited with %d%s\n", rank, code,
                g->running ? "; ending the others" : "");
    signal_all(g, SIGTERM);
    g->kill_at_ms = clk_mono_ms() + GRACE_MS;
}

static void reap_ranks(struct group *g)
{
    pid_t pid;
    int status;
    while ((pid = deaths_wait(g->deaths, &status)) > 0)
        for (int i = 0; i < g->n; i++)
            if (g->v[i].pid == pid)
                note_end(g, i, status);
    if (g->kill_at_ms && clk_mono_ms() >= g->kill_at_ms)
        signal_all(g, SIGKILL);
}

/* Once all are there, so that none inherits it. */
static void watch_deaths(struct group *g)
{
    g->deaths = deaths_open();
    for (int i = 0; i < g->n; i++)
        if (g->v[i].pid)
            deaths_add(g->deaths, g->v[i].pid);
}

static int watch_ranks(struct group *g)
{
    watch_deaths(g);
    signal(SIGINT, SIG_IGN); /* the terminal sends it to the ranks too, which save and end */
    while (g->running) {
        read_all(g, 50);
        reap_ranks(g);
    }
    while (read_all(g, 0)) /* what they left in the pipes */
        ;
    return g->code;
}

static void close_pipes(struct group *g)
{
    for (int i = 0; i < g->n * STREAMS; i++) {
        struct rank *r = &g->v[i / STREAMS];
        if (r->fd[i % STREAMS] >= 0)
            close(r->fd[i % STREAMS]);
        buf_finish(&r->line[i % STREAMS]);
    }
    free(g->v);
    det_closep(&g->deaths);
}

int run_ranks(int n, struct det_err *err)
{
    struct group g = {.v = det_zalloc((size_t)n * sizeof *g.v), .n = n, .deaths = -1};
    int rc = free_port(err), port = rc;
    for (int i = 0; i < n; i++)
        g.v[i].fd[OUT] = g.v[i].fd[ERR] = -1;
    for (int i = 0; rc >= 0 && i < n; i++) {
        rc = start_rank(&g, i, port, err);
        if (rc == 1) {
            close_pipes(&g);
            return -1;
        }
    }
    if (rc < 0) {
        fprintf(stderr, "det-harness: %s\n", err->text);
        g.code = 1;
        signal_all(&g, SIGKILL);
    }
    int code = watch_ranks(&g);
    close_pipes(&g);
    return code;
}
