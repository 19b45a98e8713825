#include "serve.h"

#include "client_uv.h"
#include "hash.h"
#include "log.h"
#include "mem.h"
#include "owncache.h"
#include "task.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ORDERS_FD 0

struct order {
    char text[1 + PATH_MAX]; /* kind, then the directory */
    int socket;              /* -1: none came */
};

static void on_child(int signum)
{
}

static void reap_children(void)
{
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

/* What every task would else do for itself: symbols, TLS, digests, time zone, the user
 * database. */
static void warm_up(void)
{
    char hex[HASH_HEX_MAX];
    client_uv_warm_up();
    hash_bytes(HASH_SHA256, "", 0, hex);
    tzset();
    if (!getpwuid(geteuid()))
        errno = 0; /* not every user has a name */
}

static int take_socket(struct msghdr *m)
{
    int fd = -1;
    struct cmsghdr *c = CMSG_FIRSTHDR(m);
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
        c->cmsg_len == CMSG_LEN(sizeof fd))
        memcpy(&fd, CMSG_DATA(c), sizeof fd);
    return fd;
}

/* 1: an order; 0: the agent is gone; -1: try again. */
static int receive_order(struct order *o)
{
    char control[CMSG_SPACE(sizeof(int))];
    struct iovec v = {o->text, sizeof o->text - 1};
    struct msghdr m = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t n = recvmsg(ORDERS_FD, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n < 0)
        return errno == EINTR || errno == EAGAIN ? -1 : 0;
    if (n == 0)
        return 0;
    o->text[n] = '\0';
    o->socket = take_socket(&m);
    return 1;
}

/* What ps shows, and what tells one task from another. */
static void set_title(int argc, char **argv, const struct order *o)
{
    char *at = argv[0];
    size_t room = (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) - argv[0]);
    const char *const words[] = {"det-task", o->text[0] == SERVE_RECOVER ? "--recover" : NULL,
                                 o->text + 1};
    memset(at, 0, room);
    for (size_t i = 0; i < DET_ARRAY_LEN(words); i++) {
        size_t n = words[i] ? strlen(words[i]) + 1 : 0;
        if (n > room)
            return;
        memcpy(at, words[i] ? words[i] : "", n);
        at += n;
        room -= n;
    }
}

static int open_log(const char *dir)
{
    det_cleanup(freep) char *path = det_asprintf("%s/task.log", dir);
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

/* The forked process: what posix_spawn would have set up. */
static int become_task(int argc, char **argv, const struct order *o)
{
    det_cleanup(det_closep) int log = open_log(o->text + 1);
    det_cleanup(det_closep) int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    sigset_t none;
    sigemptyset(&none);
    signal(SIGCHLD, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    if (log < 0 || null < 0 || dup2(null, 0) < 0 || dup2(log, 2) < 0 ||
        dup2(o->socket, TASKSPEC_SOCKET_FD) < 0)
        return 1;
    close(o->socket);
    set_title(argc, argv, o);
    return task_main(o->text + 1, o->text[0] == SERVE_RECOVER ? TASK_RECOVER : TASK_RUN);
}

/* At once: what libraries tidy up at exit they would first have to copy, page by page. */
static void __attribute__((noreturn)) end_as_task(int rc)
{
    fflush(NULL);
#if defined(__SANITIZE_ADDRESS__) || defined(DET_COUNTED)
    exit(rc); /* looks for leaks, or writes down what was reached */
#else
    _exit(rc);
#endif
}

static bool is_whole(const struct order *o)
{
    return o->socket > TASKSPEC_SOCKET_FD && o->text[1] == '/' &&
           (o->text[0] == SERVE_RUN || o->text[0] == SERVE_RECOVER);
}

/* Before a task can take the name. */
static void take_cache(void)
{
    const char *cache = getenv("DET_CACHE_DIR");
    if (geteuid() == 0 && cache && *cache == '/')
        det_ignore(owncache_prepare(cache, NULL), "the task that needs it says so");
}

int serve_main(int argc, char **argv)
{
    struct order o;
    sigset_t chld, before;
    const struct sigaction sa = {.sa_handler = on_child};
    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    sigprocmask(SIG_BLOCK, &chld, &before); /* taken in ppoll only: none is missed */
    sigaction(SIGCHLD, &sa, NULL);
    if (dup2(1, TASKSPEC_SOCKET_FD) < 0) /* each task's socket takes this place */
        return 1;
    warm_up();
    take_cache();
    for (;;) {
        struct pollfd p = {.fd = ORDERS_FD, .events = POLLIN};
        reap_children();
        if (ppoll(&p, 1, NULL, &before) < 0)
            continue;
        int got = receive_order(&o);
        if (got == 0)
            return 0;
        if (got < 0)
            continue;
        pid_t pid = is_whole(&o) ? fork() : -1;
        if (pid == 0)
            end_as_task(become_task(argc, argv, &o));
        det_closep(&o.socket);
    }
}
