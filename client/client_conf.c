#include "client_impl.h"

#include <ctype.h>
#include <string.h>

#define DEFAULT_PORT "8080"
#define NOVERIFY     "noverify"

/* Where the parts of "scheme://host:port" lie. */
struct parts {
    bool is_tls;
    const char *host, *port; /* host without brackets */
    size_t host_len, port_len;
    bool is_v6;
};

static const char *skip_scheme(const char *url, struct parts *p)
{
    p->is_tls = strncasecmp(url, "https://", 8) == 0;
    if (p->is_tls)
        return url + 8;
    return strncasecmp(url, "http://", 7) == 0 ? url + 7 : url;
}

static void default_port(struct parts *p, bool has_scheme)
{
    if (p->port_len > 0)
        return;
    p->port = !has_scheme ? DEFAULT_PORT : p->is_tls ? "443" : "80";
    p->port_len = strlen(p->port);
}

static bool host_is_fine(const struct parts *p)
{
    const char *more = p->is_v6 ? ":.%" : "-._";
    for (size_t i = 0; i < p->host_len; i++)
        if (!isalnum((unsigned char)p->host[i]) && !strchr(more, p->host[i]))
            return false;
    return p->host_len > 0;
}

static bool port_is_fine(const struct parts *p)
{
    int n = 0;
    for (size_t i = 0; i < p->port_len; i++) {
        if (!isdigit((unsigned char)p->port[i]) || i > 4)
            return false;
        n = n * 10 + p->port[i] - '0';
    }
    return n > 0 && n < 65536;
}

static int split_url(const char *url, struct parts *p, struct det_err *err)
{
    const char *s = skip_scheme(url, p);
    bool has_scheme = s != url;
    p->is_v6 = *s == '[';
    p->host = s + p->is_v6;
    p->host_len = strcspn(p->host, p->is_v6 ? "]" : ":/");
    s = p->host + p->host_len + (p->is_v6 && p->host[p->host_len]);
    if (*s == ':') {
        p->port = s + 1;
        p->port_len = strcspn(p->port, "/");
        s = p->port + p->port_len;
    }
    default_port(p, has_scheme);
    if (!host_is_fine(p) || !port_is_fine(p) || strspn(s, "/") != strlen(s))
        return det_fail(err, DET_EINVAL,
                        "'%s' is not the address of a master; write http://HOST:PORT", url);
    return 0;
}

static bool is_loopback(const struct parts *p)
{
    static const char *const names[] = {"localhost", "::1"};
    for (size_t i = 0; i < DET_ARRAY_LEN(names); i++)
        if (p->host_len == strlen(names[i]) && strncasecmp(p->host, names[i], p->host_len) == 0)
            return true;
    return p->host_len > 4 && strncmp(p->host, "127.", 4) == 0;
}

static char *join_url(const struct parts *p, const char *host, size_t len, bool is_v6)
{
    return det_asprintf("%s://%s%.*s%s:%.*s", p->is_tls ? "https" : "http", is_v6 ? "[" : "",
                        (int)len, host, is_v6 ? "]" : "", (int)p->port_len, p->port);
}

static void set_urls(struct client_addr *a, const struct parts *p, const char *name)
{
    a->base = join_url(p, p->host, p->host_len, p->is_v6);
    a->is_loopback = is_loopback(p);
    if (!p->is_tls || !name || !name[0]) {
        a->dial = det_strdup(a->base);
        return;
    }
    const char *authority = a->base + strlen("https://");
    a->dial = join_url(p, name, strlen(name), strchr(name, ':') != NULL);
    a->connect_to = det_asprintf("::%s", authority);
    a->host_header = det_asprintf("Host: %s", authority);
}

static const char *text_or_null(const char *s)
{
    return s && s[0] ? s : NULL;
}

static void copy_options(struct client_conf *c, const struct client_options *o)
{
    c->o = *o;
    c->o.url = det_strdup(o->url);
    c->o.token = det_strdup(text_or_null(o->token));
    c->o.ca_file = det_strdup(text_or_null(o->ca_file));
    c->o.authority = det_strdup(text_or_null(o->authority));
    c->o.cert_name = det_strdup(text_or_null(o->cert_name));
    c->o.cert = det_strdup(text_or_null(o->cert));
    c->o.key = det_strdup(text_or_null(o->key));
    c->o.pin = det_strdup(text_or_null(o->pin));
    c->o.user_agent = det_strdup(o->user_agent ? o->user_agent : "det/" DET_VERSION);
    if (c->o.connect_timeout_ms <= 0)
        c->o.connect_timeout_ms = 5000;
    if (c->o.timeout_ms <= 0)
        c->o.timeout_ms = 60000;
    if (c->o.retries == 0)
        c->o.retries = 5;
}

static int add_addr(struct client_conf *c, const char *url, struct det_err *err)
{
    struct parts p = {0};
    if (c->addrs_n == CLIENT_ADDRS_MAX)
        return det_fail(err, DET_EINVAL, "more than %d addresses of masters", CLIENT_ADDRS_MAX);
    int rc = split_url(url, &p, err);
    if (rc == 0)
        set_urls(&c->addrs[c->addrs_n++], &p, c->o.cert_name);
    return rc;
}

int client_conf_init(struct client_conf *c, const struct client_options *o, struct det_err *err)
{
    *c = (struct client_conf){0};
    if (!text_or_null(o->url))
        return det_fail(err, DET_EINVAL,
                        "no address of a master was given; write http://HOST:PORT");
    copy_options(c, o);
    int rc = 0;
    det_cleanup(freep) char *list = det_strdup(o->url);
    for (char *rest = list, *one; rc == 0 && (one = strsep(&rest, ","));)
        rc = add_addr(c, one, err);
    if (rc < 0)
        client_conf_finish(c);
    return rc;
}

void client_conf_failed(struct client_conf *c, size_t addr, int rc)
{
    if (addr == c->at && (rc == DET_EUNAVAIL || rc == DET_ETIMEOUT))
        c->at = (c->at + 1) % c->addrs_n;
}

void client_conf_finish(struct client_conf *c)
{
    const char *const strings[] = {c->o.url, c->o.token, c->o.ca_file,    c->o.authority, c->o.cert,
                                   c->o.key, c->o.pin,   c->o.user_agent, c->o.cert_name};
    for (size_t i = 0; i < DET_ARRAY_LEN(strings); i++)
        free((char *)strings[i]);
    for (struct client_addr *a = c->addrs; a < c->addrs + c->addrs_n; a++) {
        free(a->base);
        free(a->dial);
        free(a->connect_to);
        free(a->host_header);
    }
    *c = (struct client_conf){0};
}

void client_conf_set_token(struct client_conf *c, enum client_token kind, const char *token)
{
    free((char *)c->o.token);
    c->o.token = det_strdup(text_or_null(token));
    c->o.token_kind = kind;
}

void client_conf_set_certificate(struct client_conf *c, const char *cert, const char *key)
{
    free((char *)c->o.cert);
    free((char *)c->o.key);
    c->o.cert = det_strdup(text_or_null(cert));
    c->o.key = det_strdup(text_or_null(key));
}

char *client_full_url(const char *url, struct det_err *err)
{
    struct client_conf c;
    struct buf b = BUF_INIT;
    if (client_conf_init(&c, &(struct client_options){.url = url}, err) < 0)
        return NULL;
    for (size_t i = 0; i < c.addrs_n; i++)
        buf_addf(&b, "%s%s", i ? "," : "", c.addrs[i].base);
    client_conf_finish(&c);
    return buf_steal(&b);
}

const char *client_env_url(void)
{
    const char *all = getenv("DET_MASTERS");
    return text_or_null(all) ? all : getenv("DET_MASTER");
}
