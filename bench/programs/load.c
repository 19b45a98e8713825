/*
 * bench-load: keeps N keep-alive HTTP/1.1 connections to 127.0.0.1 busy, one request at a time
 * each.
 *
 * usage: bench-load [tls:]PORT SECONDS CONNECTIONS FILE [PER_S] < TOKEN
 * tls: over TLS, without a look at the certificate.
 * FILE: one request a line, "METHOD PATH [BODY-FILE [ALLOCATION-TOKEN]]"; with the latter it is a
 * task's, else of TOKEN's user. Connection c sends lines c, c + N, c + 2N...
 * METHOD "REPORTS": a trial's reports, PER_S in all (else as fast as they are taken). What comes
 * while a request is under way gathers and goes with the next one, by the limits of the reporter
 * (harness/loop/report/bundle.h): several to PATH/batch, one to PATH.
 * "@@@@@@@@" in a body becomes the connection's request number, right-aligned; after a digit, with
 * zeros in front. PER_S: all connections together send no more than so many requests a second.
 * Prints one JSON object:
 * {"requests", "reports", "errors", "seconds", "per_s", "bytes_per_s", "p50_ms", "p95_ms",
 * "p99_ms"}.
 */
#include "buf.h"
#include "bundle.h"
#include "mem.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MARK       "@@@@@@@@"
#define SAMPLE_MAX (1u << 22)

struct line {
    struct buf text; /* of the whole request */
    size_t mark;     /* of the number in it; 0: none */
    bool gathers;    /* text is a report's body alone: */
    char *path, *token;
};
struct conn {
    int fd;
    SSL *tls;        /* NULL: plain */
    unsigned number; /* of the last request, or report */
    size_t line, sent, want,
        have; /* bytes of the request; of the answer, 0 until its head is whole */
    char head[65536];
    struct buf out;
    double since, next; /* of the request under way; when the next may be sent, 0: sent */
    char last[5];       /* bytes of the answer: chunks end with an empty one */
    bool in_chunks;
};
static struct {
    struct line *lines;
    size_t lines_n, conns_n;
    struct conn *conns;
    float *ms;
    size_t requests, reports, errors, bytes;
    int epoll;
    SSL_CTX *tls; /* NULL: plain */
    struct sockaddr_in to;
    double begin, end, pause; /* pause: between a connection's requests, or reports */
} g;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void die(const char *what)
{
    fprintf(stderr, "bench-load: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void body_read(const char *path, struct buf *out)
{
    char part[65536];
    FILE *f = fopen(path, "rb");
    if (!f)
        die(path);
    for (size_t n; (n = fread(part, 1, sizeof part, f)) > 0;)
        buf_add(out, part, n);
    fclose(f);
}

static void line_add(char *text, const char *token)
{
    char *rest = text, *method = strsep(&rest, " "), *path = strsep(&rest, " "),
         *file = strsep(&rest, " ");
    struct buf body = BUF_INIT;
    if (!path)
        return;
    if (file)
        body_read(file, &body);
    g.lines = det_reallocarray(g.lines, g.lines_n + 1, sizeof *g.lines);
    struct line *l = &g.lines[g.lines_n++];
    *l = (struct line){.gathers = strcmp(method, "REPORTS") == 0};
    if (l->gathers && rest) {
        l->path = det_strdup(path);
        l->token = det_strdup(rest);
    } else
        buf_addf(&l->text,
                 "%s %s HTTP/1.1\r\nHost: x\r\n%s: Bearer %s\r\nContent-Length: %zu\r\n\r\n",
                 method, path, rest ? "Grpc-Metadata-x-allocation-token" : "Authorization",
                 rest ? rest : token, body.len);
    buf_add(&l->text, body.p ? body.p : "", body.len);
    const char *mark = strstr(buf_str(&l->text), MARK);
    l->mark = mark ? (size_t)(mark - buf_str(&l->text)) : 0;
    buf_finish(&body);
}

/* As recv() and send() do it that do not wait. */
static ssize_t tls_result(struct conn *c, int n)
{
    int why = n > 0 ? 0 : SSL_get_error(c->tls, n);
    errno = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? EAGAIN : EPROTO;
    return n > 0 ? n : why == SSL_ERROR_ZERO_RETURN ? 0 : -1;
}

static ssize_t put(struct conn *c, const char *p, size_t n)
{
    return c->tls ? tls_result(c, SSL_write(c->tls, p, (int)n)) : send(c->fd, p, n, MSG_NOSIGNAL);
}

static ssize_t get(struct conn *c, char *p, size_t n)
{
    return c->tls ? tls_result(c, SSL_read(c->tls, p, (int)n)) : recv(c->fd, p, n, MSG_DONTWAIT);
}

static void conn_send(struct conn *c)
{
    while (c->sent < c->out.len) {
        ssize_t n = put(c, c->out.p + c->sent, c->out.len - c->sent);
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0)
            die("send");
        c->sent += (size_t)n;
    }
    struct epoll_event e = {.events = EPOLLIN | (c->sent < c->out.len ? (uint32_t)EPOLLOUT : 0),
                            .data.ptr = c};
    epoll_ctl(g.epoll, EPOLL_CTL_MOD, c->fd, &e);
}

/* The line's text, with the next number in it. */
static void put_text(struct conn *c, const struct line *l)
{
    char number[16];
    size_t at = c->out.len + l->mark;
    buf_add(&c->out, l->text.p, l->text.len);
    if (!l->mark)
        return;
    bool follows_digit = isdigit((unsigned char)c->out.p[at - 1]);
    snprintf(number, sizeof number, follows_digit ? "%08u" : "%8u", ++c->number);
    memcpy(c->out.p + at, number, strlen(MARK));
}

/* How many reports a trial has made that were not sent, as many as go into one request. */
static size_t count_gathered(const struct conn *c, const struct line *l)
{
    double made = g.pause > 0 ? (now() - g.begin) / g.pause : c->number + BUNDLE_REPORTS_MAX;
    size_t n = made < c->number ? 0 : (size_t)made - c->number;
    size_t fits = l->text.len > BUNDLE_ONE_MAX ? 1 : BUNDLE_BYTES_MAX / (l->text.len + 1);
    n = n > BUNDLE_REPORTS_MAX ? BUNDLE_REPORTS_MAX : n;
    return n > fits ? fits : n;
}

static void put_reports(struct conn *c, const struct line *l, size_t n)
{
    static const char before[] = "{\"reports\":[", after[] = "]}";
    bool alone = n == 1;
    size_t bytes = n * (l->text.len + 1) - 1 + (alone ? 0 : strlen(before) + strlen(after));
    buf_addf(&c->out,
             "POST %s%s HTTP/1.1\r\nHost: x\r\nGrpc-Metadata-x-allocation-token: Bearer %s\r\n"
             "Content-Length: %zu\r\n\r\n",
             l->path, alone ? "" : "/batch", l->token, bytes);
    buf_add_str(&c->out, alone ? "" : before);
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_add_ch(&c->out, ',');
        put_text(c, l);
    }
    buf_add_str(&c->out, alone ? "" : after);
}

static void conn_next(struct conn *c)
{
    const struct line *l = &g.lines[c->line % g.lines_n];
    size_t n = l->gathers ? count_gathered(c, l) : 1;
    c->sent = c->want = c->have = 0;
    c->in_chunks = false;
    c->next = 0;
    if (n == 0) {
        c->next = g.begin + (c->number + 1) * g.pause;
        return;
    }
    c->line += g.conns_n;
    buf_clear(&c->out);
    if (l->gathers)
        put_reports(c, l, n);
    else
        put_text(c, l);
    g.reports += n;
    c->since = now();
    conn_send(c);
}

static void conn_done(struct conn *c)
{
    if (g.requests < SAMPLE_MAX)
        g.ms[g.requests] = (float)((now() - c->since) * 1000);
    g.requests++;
    g.bytes += c->have;
    bool is_good = strncmp(c->head, "HTTP/1.1 200", 12) == 0;
    if ((!is_good || strstr(c->head, "\"refused\":[{")) && g.errors++ == 0)
        fprintf(stderr, "bench-load: %.400s\n", c->head);
    if (now() >= g.end)
        close(c->fd);
    else if (g.pause > 0 && !g.lines[0].gathers)
        c->next = c->since + g.pause;
    else
        conn_next(c);
}

/* Length of the answer once its head is here: Content-Length, or chunks up to the last. */
static void conn_head(struct conn *c)
{
    const char *end = strstr(c->head, "\r\n\r\n"),
               *len = strcasestr(c->head, "\r\nContent-Length:");
    if (end && len && len < end)
        c->want = (size_t)(end - c->head) + 4 + strtoul(len + 17, NULL, 10);
    const char *chunked = strcasestr(c->head, "\r\nTransfer-Encoding: chunked");
    if (end && chunked && chunked < end) {
        c->in_chunks = true;
        c->want = SIZE_MAX;
    }
}

/* JSON holds no bare line ends, so only the empty chunk reads like this. */
static bool conn_is_whole(struct conn *c, const char *got, size_t n)
{
    size_t kept = n < sizeof c->last ? sizeof c->last - n : 0;
    memmove(c->last, c->last + sizeof c->last - kept, kept);
    memcpy(c->last + kept, got + n - (sizeof c->last - kept), sizeof c->last - kept);
    if (c->in_chunks)
        return memcmp(c->last, "0\r\n\r\n", sizeof c->last) == 0;
    return c->want && c->have >= c->want;
}

static void conn_read(struct conn *c)
{
    char rest[65536];
    for (;;) {
        bool in_head = !c->want;
        char *to = in_head ? c->head + c->have : rest;
        ssize_t n = get(c, to, in_head ? sizeof c->head - c->have - 1 : sizeof rest);
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0)
            die("the server closed a connection");
        c->have += (size_t)n;
        if (in_head) {
            c->head[c->have] = 0;
            conn_head(c);
        }
        if (conn_is_whole(c, to, (size_t)n)) {
            c->want = c->have;
            conn_done(c);
            return;
        }
    }
}

/* Sends what had to wait for its turn. */
static void send_due(void)
{
    double t = now();
    for (size_t i = 0; i < g.conns_n; i++)
        if (g.conns[i].next > 0 && g.conns[i].next <= t)
            conn_next(&g.conns[i]);
}

static void conn_shake_hands(struct conn *c)
{
    c->tls = SSL_new(g.tls);
    if (!c->tls || !SSL_set_fd(c->tls, c->fd) || SSL_connect(c->tls) != 1)
        die("TLS");
    SSL_set_mode(c->tls, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    fcntl(c->fd, F_SETFL, fcntl(c->fd, F_GETFL) | O_NONBLOCK);
}

static void conn_open(struct conn *c, size_t i)
{
    int one = 1;
    c->line = i;
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(c->fd, (struct sockaddr *)&g.to, sizeof g.to) < 0)
        die("connect");
    if (g.tls)
        conn_shake_hands(c);
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(g.epoll, EPOLL_CTL_ADD, c->fd, &e);
    conn_next(c);
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void report(double seconds)
{
    size_t n = g.requests < SAMPLE_MAX ? g.requests : SAMPLE_MAX;
    if (n == 0)
        exit(1);
    qsort(g.ms, n, sizeof *g.ms, by_value);
    printf(
        "{\"requests\":%zu,\"reports\":%zu,\"errors\":%zu,\"seconds\":%.3f,\"per_s\":%.1f,\"bytes_per_s\":%.0f,"
        "\"p50_ms\":%.3f,\"p95_ms\":%.3f,\"p99_ms\":%.3f}\n",
        g.requests, g.reports, g.errors, seconds, (double)g.requests / seconds,
        (double)g.bytes / seconds, (double)g.ms[n / 2], (double)g.ms[n * 95 / 100],
        (double)g.ms[n * 99 / 100]);
}

static void run(void)
{
    struct epoll_event events[64];
    while (now() < g.end + 10) {
        size_t open = 0;
        int n = epoll_wait(g.epoll, events, 64, g.pause > 0 ? 1 : 100);
        send_due();
        for (int i = 0; i < n; i++) {
            struct conn *c = events[i].data.ptr;
            if (events[i].events & EPOLLOUT)
                conn_send(c);
            if (events[i].events & ~(uint32_t)EPOLLOUT)
                conn_read(c);
        }
        if (now() < g.end)
            continue;
        for (size_t i = 0; i < g.conns_n; i++)
            open +=
                g.conns[i].next <= 0 && !(g.conns[i].want && g.conns[i].have >= g.conns[i].want);
        if (open == 0)
            return;
    }
}

int main(int argc, char **argv)
{
    char token[4096] = "", text[8192];
    if (argc != 5 && argc != 6) {
        fprintf(stderr, "usage: bench-load [tls:]PORT SECONDS CONNECTIONS FILE [PER_S] < TOKEN\n");
        return 2;
    }
    if (fgets(token, sizeof token, stdin))
        token[strcspn(token, "\n")] = 0;
    FILE *f = fopen(argv[4], "r");
    if (!f)
        die(argv[4]);
    while (fgets(text, sizeof text, f)) {
        text[strcspn(text, "\n")] = 0;
        line_add(text, token);
    }
    fclose(f);
    bool is_tls = strncmp(argv[1], "tls:", 4) == 0;
    const char *port = argv[1] + (is_tls ? 4 : 0);
    g.tls = is_tls ? SSL_CTX_new(TLS_client_method()) : NULL;
    g.conns_n = strtoul(argv[3], NULL, 10);
    g.pause = argc == 6 ? (double)g.conns_n / strtod(argv[5], NULL) : 0;
    g.conns = det_reallocarray(NULL, g.conns_n, sizeof *g.conns);
    memset(g.conns, 0, g.conns_n * sizeof *g.conns);
    g.ms = det_reallocarray(NULL, SAMPLE_MAX, sizeof *g.ms);
    g.epoll = epoll_create1(0);
    g.to = (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    double start = g.begin = now();
    g.end = start + strtod(argv[2], NULL);
    for (size_t i = 0; i < g.conns_n && g.lines_n; i++)
        conn_open(&g.conns[i], i);
    run();
    report(now() - start);
    return 0;
}
