#include "taskserver.h"

#include "log.h"
#include "mem.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define SEND_S 2 /* a server that takes nothing for so long is as good as dead */

extern char **environ;

void taskserver_attributes(posix_spawnattr_t *at)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(at);
    posix_spawnattr_setsigmask(at, &none);
    posix_spawnattr_setsigdefault(at, &all);
    posix_spawnattr_setflags(at,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

/* The longest command line of a det-task: the server's own gives room for it. */
static char *make_room(const struct taskdirs *d)
{
    size_t n = strlen(d->root) + LINK_ID_MAX + strlen("--recover") + 8;
    char *room = det_alloc(n + 1);
    memset(room, '-', n);
    room[n] = '\0';
    return room;
}

/* Symbols are bound once, in the server, instead of in every task. */
static char **make_environ(void)
{
    size_t n = 0;
    while (environ[n])
        n++;
    char **env = det_reallocarray(NULL, n + 2, sizeof *env);
    memcpy(env, environ, n * sizeof *env);
    env[n] = "LD_BIND_NOW=1";
    env[n + 1] = NULL;
    return env;
}

static int spawn_server(const struct taskdirs *d, int orders)
{
    char **env = make_environ();
    det_cleanup(freep) char *room = make_room(d);
    char *const argv[] = {"det-task", "--serve", room, NULL};
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t at;
    pid_t pid;
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_adddup2(&fa, orders, 0);
    posix_spawn_file_actions_addopen(&fa, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addclosefrom_np(&fa, 3);
    taskserver_attributes(&at);
    int rc = posix_spawn(&pid, d->det_task, &fa, &at, argv, env);
    free(env);
    posix_spawn_file_actions_destroy(&fa);
    posix_spawnattr_destroy(&at);
    return rc;
}

void taskserver_start(struct taskdirs *d)
{
    int sv[2];
    const struct timeval limit = {.tv_sec = SEND_S};
    det_closep(&d->server);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
        return;
    setsockopt(sv[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    int rc = spawn_server(d, sv[1]);
    close(sv[1]);
    if (rc != 0) {
        log_warning("%s --serve: %s", d->det_task, strerror(rc));
        close(sv[0]);
        return;
    }
    d->server = sv[0];
}

static bool send_order(const struct taskdirs *d, const char *dir, bool recover, int socket)
{
    char kind = recover ? 'c' : 'r';
    char control[CMSG_SPACE(sizeof socket)] = {0};
    struct iovec v[] = {{&kind, 1}, {(char *)dir, strlen(dir)}};
    struct msghdr m = {
        .msg_iov = v, .msg_iovlen = 2, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof socket);
    memcpy(CMSG_DATA(c), &socket, sizeof socket);
    return d->server >= 0 && sendmsg(d->server, &m, MSG_NOSIGNAL) > 0;
}

bool taskserver_send(struct taskdirs *d, const char *dir, bool recover, int socket)
{
    if (send_order(d, dir, recover, socket))
        return true;
    taskserver_start(d);
    return send_order(d, dir, recover, socket);
}
