/* What a handler reads of its request: path variables, query, headers, memory. */
#include "http_conn.h"
#include "mem.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void http_unescape(char *s, bool query)
{
    char *out = s;
    for (; *s; s++, out++) {
        if (*s == '%' && s[1] && hex_value(s[1]) >= 0 && hex_value(s[2]) >= 0 &&
            (s[1] != '0' || s[2] != '0')) {
            *out = (char)(hex_value(s[1]) << 4 | hex_value(s[2]));
            s += 2;
        } else {
            *out = query && *s == '+' ? ' ' : *s;
        }
    }
    *out = 0;
}

const char *http_param(const struct http_req *req, const char *name)
{
    const struct http_match *m = &req->conn->match;
    for (int i = 0; i < m->n; i++)
        if (m->entry->var[i] && !strcmp(m->entry->seg[i], name))
            return m->seg[i];
    abort(); /* the handler asks for a variable its own pattern lacks */
}

static int parse_i64(const char *what, const char *name, const char *text, int64_t *ret,
                     struct det_err *err)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (errno || end == text || *end || isspace((unsigned char)*text))
        return det_fail(err, DET_EINVAL, "%s %s: \"%.40s\" is not an integer", what, name, text);
    *ret = v;
    return 0;
}

int http_param_i64(const struct http_req *req, const char *name, int64_t *ret, struct det_err *err)
{
    return parse_i64("path parameter", name, http_param(req, name), ret, err);
}

static void query_parse(struct http_conn *c)
{
    c->query_parsed = true;
    char *at = strchr(c->uri, '?');
    if (!at)
        return;
    char *text = http_strdup(&c->req, at + 1);
    size_t n = 1;
    for (char *p = text; *p; p++)
        n += *p == '&';
    c->query = http_mem(&c->req, n * sizeof *c->query);
    while (text) {
        char *part = strsep(&text, "&");
        if (!*part)
            continue;
        struct http_pair *q = &c->query[c->query_n++];
        q->key = strsep(&part, "=");
        q->value = part ? part : q->key + strlen(q->key);
        http_unescape(q->key, true);
        http_unescape(q->value, true);
    }
}

/* "experimentIdFilter.gt" equals "experiment_id_filter.gt". */
static bool key_equal(const char *camel, const char *key)
{
    for (; *camel && *key; camel++, key++) {
        if (*camel == *key)
            continue;
        if (!isupper((unsigned char)*camel) || *key != '_' ||
            tolower((unsigned char)*camel) != key[1])
            return false;
        key++;
    }
    return !*camel && !*key;
}

size_t http_query_all(const struct http_req *req, const char *name, const char **ret, size_t max)
{
    struct http_conn *c = req->conn;
    if (!c->query_parsed)
        query_parse(c);
    size_t n = 0;
    for (size_t i = 0; i < c->query_n && n < max; i++)
        if (key_equal(name, c->query[i].key))
            ret[n++] = c->query[i].value;
    return n;
}

const char *http_query(const struct http_req *req, const char *name)
{
    const char *v;
    return http_query_all(req, name, &v, 1) ? v : NULL;
}

int http_query_i64(const struct http_req *req, const char *name, int64_t fallback, int64_t *ret,
                   struct det_err *err)
{
    const char *v = http_query(req, name);
    *ret = fallback;
    return v && *v ? parse_i64("query parameter", name, v, ret, err) : 0;
}

int http_query_bool(const struct http_req *req, const char *name, bool fallback, bool *ret,
                    struct det_err *err)
{
    const char *v = http_query(req, name);
    *ret = fallback;
    if (!v || !*v)
        return 0;
    *ret = !strcmp(v, "true") || !strcmp(v, "True") || !strcmp(v, "1");
    if (*ret || !strcmp(v, "false") || !strcmp(v, "False") || !strcmp(v, "0"))
        return 0;
    return det_fail(err, DET_EINVAL, "query parameter %s: \"%.40s\" is neither true nor false",
                    name, v);
}

const char *http_header(const struct http_req *req, const char *name)
{
    if (!strcmp(name, "Cookie:auth"))
        return MHD_lookup_connection_value(req->conn->mhd, MHD_COOKIE_KIND, "auth");
    return MHD_lookup_connection_value(req->conn->mhd, MHD_HEADER_KIND, name);
}

const char *http_address(const struct http_req *req, char out[HTTP_ADDRESS_MAX])
{
    const union MHD_ConnectionInfo *i =
        MHD_get_connection_info(req->conn->mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *a = i ? i->client_addr : NULL;
    snprintf(out, HTTP_ADDRESS_MAX, "?");
    if (a && a->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)a)->sin_addr, out,
                  HTTP_ADDRESS_MAX);
    if (!a || a->sa_family != AF_INET6)
        return out;
    struct in6_addr net = ((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&net))
        inet_ntop(AF_INET, &net.s6_addr[12], out, HTTP_ADDRESS_MAX);
    else if (memset(&net.s6_addr[8], 0, 8))
        inet_ntop(AF_INET6, &net, out, HTTP_ADDRESS_MAX);
    return out;
}

void http_on_answer(struct http_req *req, http_answer_fn *fn, void *arg)
{
    req->conn->on_answer = fn;
    req->conn->on_answer_arg = arg;
}

void *http_mem(struct http_req *req, size_t bytes)
{
    struct http_chunk *k = det_zalloc(sizeof *k + bytes);
    k->next = req->conn->chunks;
    req->conn->chunks = k;
    return k->data;
}

char *http_strdup(struct http_req *req, const char *s)
{
    size_t n = strlen(s) + 1;
    return memcpy(http_mem(req, n), s, n);
}
