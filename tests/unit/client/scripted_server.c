#include "scripted_server.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static void read_request(int fd, struct buf *seen)
{
    char ch;
    size_t start = seen->len;
    while (read(fd, &ch, 1) == 1) {
        buf_add_ch(seen, ch);
        if (seen->len - start > 3 && strcmp(seen->p + seen->len - 4, "\r\n\r\n") == 0)
            break;
    }
    const char *len = seen->len > start ? strstr(seen->p + start, "Content-Length: ") : NULL;
    for (long n = len ? strtol(len + 16, NULL, 10) : 0; n > 0 && read(fd, &ch, 1) == 1; n--)
        buf_add_ch(seen, ch);
}

static void *serve(void *arg)
{
    struct server *s = arg;
    for (size_t i = 0; s->answers[i]; i += !s->repeat || s->answers[i + 1]) {
        int fd = accept(s->fd, NULL, NULL);
        if (fd < 0)
            break;
        read_request(fd, &s->seen);
        s->n++;
        send(fd, s->answers[i], strlen(s->answers[i]), MSG_NOSIGNAL); /* who asked may be gone */
        char ch;
        if (s->hold && !s->answers[i + 1])
            while (read(fd, &ch, 1) > 0)
                ;
        close(fd);
    }
    return NULL;
}

void server_start(struct server *s, const char *const *answers)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    s->answers = answers;
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(s->fd, 8), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&a, &len), 0);
    s->port = ntohs(a.sin_port);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

void server_end(struct server *s)
{
    shutdown(s->fd, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->fd);
    buf_finish(&s->seen);
}
