/*
 * bench-accept HOST PORT TOKEN BODY-FILE CLIENTS SECONDS: POSTs the body to /api/v1/experiments
 * from so many clients, each on a kept-alive connection, one request after the other. Prints
 * "accepted seconds p50_ms p95_ms".
 */
#include "fsx.h"
#include "mem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CLIENTS_MAX = 256, TIMES_MAX = 1 << 16, ANSWER_MAX = 1 << 20 };

struct bench {
    struct sockaddr_in to;
    struct buf request;
    double until;
};
struct one {
    pthread_t thread;
    const struct bench *b;
    double *ms;
    size_t n;
    const char *failure;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool send_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t k = send(fd, p, n, MSG_NOSIGNAL);
        if (k <= 0)
            return false;
        p += k;
        n -= (size_t)k;
    }
    return true;
}

/* One answer with a Content-Length: its status, 0 when there is none. */
static int receive(int fd, char *buf)
{
    size_t have = 0, want = 0;
    while (want == 0 || have < want) {
        ssize_t k = recv(fd, buf + have, ANSWER_MAX - 1 - have, 0);
        if (k <= 0)
            return 0;
        have += (size_t)k;
        buf[have] = '\0';
        const char *end = strstr(buf, "\r\n\r\n"), *length = strcasestr(buf, "content-length:");
        if (end && length && want == 0)
            want = (size_t)(end + 4 - buf) + strtoull(length + 15, NULL, 10);
    }
    return (int)strtol(buf + 9, NULL, 10);
}

static void *client(void *arg)
{
    struct one *o = arg;
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char *answer = det_alloc(ANSWER_MAX);
    if (connect(fd, (const struct sockaddr *)&o->b->to, sizeof o->b->to) < 0)
        o->failure = strerror(errno);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    while (!o->failure && now() < o->b->until && o->n < TIMES_MAX) {
        double begun = now();
        int status = send_all(fd, o->b->request.p, o->b->request.len) ? receive(fd, answer) : 0;
        if (status != 200)
            o->failure = status ? det_strdup(answer) : "the connection was closed";
        else
            o->ms[o->n++] = 1e3 * (now() - begun);
    }
    close(fd);
    free(answer);
    return NULL;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int run(struct bench *b, size_t clients, double seconds)
{
    static struct one all[CLIENTS_MAX];
    double begun = now(), *ms = NULL;
    size_t n = 0;
    b->until = begun + seconds;
    for (size_t i = 0; i < clients; i++) {
        all[i] = (struct one){.b = b, .ms = det_alloc(TIMES_MAX * sizeof(double))};
        if (pthread_create(&all[i].thread, NULL, client, &all[i]) != 0)
            abort();
    }
    for (size_t i = 0; i < clients; i++) {
        pthread_join(all[i].thread, NULL);
        ms = det_reallocarray(ms, n + all[i].n + 1, sizeof *ms);
        memcpy(ms + n, all[i].ms, all[i].n * sizeof *ms);
        n += all[i].n;
        if (all[i].failure)
            fprintf(stderr, "client %zu: %s\n", i, all[i].failure);
    }
    double took = now() - begun;
    qsort(ms, n, sizeof *ms, by_value);
    printf("%zu %.3f %.2f %.2f\n", n, took, n ? ms[n / 2] : 0, n ? ms[n * 95 / 100] : 0);
    return all[0].failure != NULL;
}

int main(int argc, char **argv)
{
    struct bench b = {.to = {.sin_family = AF_INET}};
    struct buf body = BUF_INIT;
    struct det_err err;
    if (argc != 7 || inet_pton(AF_INET, argv[1], &b.to.sin_addr) != 1)
        return 2;
    b.to.sin_port = htons((uint16_t)strtoul(argv[2], NULL, 10));
    if (fsx_read_file(AT_FDCWD, argv[4], (size_t)64 << 20, &body, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    buf_addf(&b.request,
             "POST /api/v1/experiments HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\n"
             "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
             argv[3], body.len);
    buf_add(&b.request, body.p, body.len);
    size_t clients = strtoul(argv[5], NULL, 10);
    return run(&b, clients > CLIENTS_MAX ? CLIENTS_MAX : clients, strtod(argv[6], NULL));
}
