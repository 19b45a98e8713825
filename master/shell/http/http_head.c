/*
 * Requests whose head, their line and headers, is too long. It lies in the connection's own memory,
 * and what it leaves of that is for the answer's head: where this does not fit any more,
 * libmicrohttpd hangs up without a word. So one that leaves too little is answered past it, and the
 * connection ends. A head that does not fit at all libmicrohttpd refuses by itself, 414 or 431. But
 * where there is no room to copy cookies, it answers what is no HTTP, or hangs up. It says so in
 * its log before it does, though not of whom: of what began lately it is who has such cookies.
 */
#include "http_conn.h"

#include <gnutls/gnutls.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* libmicrohttpd's record of each header and cookie; it also copies the header of the cookies. */
enum { ENTRY_BYTES = 64, COOKIES_LOOK_MAX = 64 };

static enum MHD_Result on_value(void *cls, enum MHD_ValueKind kind, const char *name,
                                size_t name_len, const char *value, size_t value_len)
{
    size_t *bytes = cls;
    size_t text = name_len + value_len + sizeof ": \r";
    *bytes += ENTRY_BYTES + text;
    return MHD_YES;
}

static size_t head_bytes(struct http_conn *c)
{
    size_t n = strlen(c->uri) + sizeof "DELETE  HTTP/1.1\r";
    MHD_get_connection_values_n(c->mhd, MHD_HEADER_KIND, on_value, &n);
    MHD_get_connection_values_n(c->mhd, MHD_COOKIE_KIND, on_value, &n);
    return n;
}

/* Nothing else is being sent. Of one whose buffers are full it is lost. */
static void send_text(struct http_conn *c, const char *text, size_t n)
{
    const union MHD_ConnectionInfo *i =
        MHD_get_connection_info(c->mhd, c->http->is_tls ? MHD_CONNECTION_INFO_GNUTLS_SESSION
                                                        : MHD_CONNECTION_INFO_CONNECTION_FD);
    if (c->http->is_tls)
        gnutls_record_send(i->tls_session, text, n);
    else
        send(i->connect_fd, text, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void say_too_long(struct http_conn *c, size_t bytes)
{
    char body[200], text[400];
    int n = snprintf(
        body, sizeof body,
        "{\"error\":{\"code\":8,\"reason\":\"ResourceExhausted\",\"error\":\"the request's line "
        "and headers have %zu bytes, with %d for each header; %d is the most\"}}",
        bytes, ENTRY_BYTES, HTTP_HEAD_MAX);
    n = snprintf(
        text, sizeof text,
        "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: application/json\r\n"
        "Content-Length: %d\r\nConnection: close\r\n\r\n%s",
        n, body);
    send_text(c, text, (size_t)n);
    http_stats_count(&c->http->stats, NULL, 431);
}

bool http_head_is_too_long(struct http_conn *c)
{
    size_t bytes = head_bytes(c);
    if (bytes > HTTP_HEAD_MAX)
        say_too_long(c, bytes);
    return bytes > HTTP_HEAD_MAX;
}

/* Of a head whose cookies are too long to be copied. */
static bool has_long_cookies(struct http_conn *c, size_t *ret_bytes)
{
    const char *cookies = c->started || c->is_told ? NULL : http_header(&c->req, "Cookie");
    *ret_bytes = cookies ? head_bytes(c) + strlen(cookies) : 0;
    return *ret_bytes > HTTP_HEAD_MAX;
}

void http_head_cookies(struct http *h)
{
    size_t bytes;
    struct http_conn *c = h->conns; /* those that began last come first */
    for (int i = 0; c && i < COOKIES_LOOK_MAX; i++, c = c->next) {
        if (!has_long_cookies(c, &bytes))
            continue;
        say_too_long(c, bytes);
        c->is_told = true;
        http_peer_cut(&h->peers, c->peer, uv_now(h->loop));
        return;
    }
}
