#include "lead_probe.h"

#include "mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lead_probe_call {
    struct lead_probe *probe; /* NULL: given up */
    uv_getaddrinfo_t name;
    uv_connect_t connect;
    uv_tcp_t tcp;
    bool has_tcp;
};

static void on_closed(uv_handle_t *h)
{
    free(h->data);
}

static void end_call(struct lead_probe_call *c)
{
    if (c->probe)
        c->probe->call = NULL;
    if (!c->has_tcp) {
        free(c);
        return;
    }
    c->tcp.data = c;
    uv_close((uv_handle_t *)&c->tcp, on_closed);
}

static void on_connect(uv_connect_t *req, int status)
{
    struct lead_probe_call *c = req->data;
    if (c->probe)
        c->probe->is_refused = status == UV_ECONNREFUSED;
    if (!uv_is_closing((uv_handle_t *)&c->tcp))
        end_call(c);
}

static void on_name(uv_getaddrinfo_t *req, int status, struct addrinfo *found)
{
    struct lead_probe_call *c = req->data;
    bool begun = false;
    if (c->probe && status == 0 && uv_tcp_init(c->probe->loop, &c->tcp) == 0) {
        c->has_tcp = true;
        c->connect.data = c;
        begun = uv_tcp_connect(&c->connect, &c->tcp, found->ai_addr, on_connect) == 0;
    }
    uv_freeaddrinfo(found);
    if (!begun)
        end_call(c);
}

/* http://HOST:PORT, http://[V6]:PORT. */
static bool split_url(const char *url, char host[256], char port[8])
{
    const char *at = strstr(url, "://");
    const char *colon = strrchr(url, ':');
    if (!at || !colon || colon < at + 3)
        return false;
    at += 3;
    size_t n = (size_t)(colon - at);
    if (n >= 2 && at[0] == '[' && at[n - 1] == ']') {
        at++;
        n -= 2;
    }
    if (n == 0 || n > 255 || strlen(colon + 1) > 5)
        return false;
    snprintf(host, 256, "%.*s", (int)n, at);
    snprintf(port, 8, "%.5s", colon + 1);
    return true;
}

void lead_probe_look(struct lead_probe *p, const char *url)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    char host[256], port[8];
    if (p->call || !split_url(url, host, port))
        return;
    struct lead_probe_call *c = p->call = det_zalloc(sizeof *c);
    c->probe = p;
    c->name.data = c;
    if (uv_getaddrinfo(p->loop, &c->name, on_name, host, port, &hints) != 0)
        end_call(c);
}

void lead_probe_reset(struct lead_probe *p)
{
    p->is_refused = false;
    struct lead_probe_call *c = p->call;
    if (!c)
        return;
    p->call = NULL;
    c->probe = NULL;
    if (c->has_tcp)
        end_call(c); /* its connect ends as canceled */
}
