#include "webhooks.h"

#include "mem.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static const uint8_t mapped[12] = {[10] = 0xff, 0xff}, nat64[12] = {0, 0x64, 0xff, 0x9b};

static void put_v4(const void *v4, uint8_t ret[16])
{
    memcpy(ret, mapped, sizeof mapped);
    memcpy(ret + 12, v4, 4);
}

/* What stands for an IPv4 address is that one. */
static void put_v6(const struct in6_addr *v6, uint8_t ret[16])
{
    const uint8_t *a = v6->s6_addr;
    if (IN6_IS_ADDR_V4COMPAT(v6) || memcmp(a, nat64, sizeof nat64) == 0)
        put_v4(a + 12, ret);
    else if (a[0] == 0x20 && a[1] == 0x02)
        put_v4(a + 2, ret);
    else
        memcpy(ret, a, 16);
}

static bool is_in(const uint8_t a[16], const struct webhook_network *n)
{
    int bytes = n->bits / 8, rest = n->bits % 8;
    return memcmp(a, n->addr, (size_t)bytes) == 0 &&
           (rest == 0 || ((a[bytes] ^ n->addr[bytes]) >> (8 - rest)) == 0);
}

static bool is_in_any(const uint8_t a[16], const struct webhook_network *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (is_in(a, &v[i]))
            return true;
    return false;
}

#define V4(a, b, c, d, n)                                                                          \
    {                                                                                              \
        {[10] = 0xff, 0xff, a, b, c, d}, 96 + (n)                                                  \
    }
/* What no setting opens. Those behind the ranges of standards are where clouds give a host its
 * secrets. */
static const struct webhook_network never[] = {
    V4(0, 0, 0, 0, 8),
    V4(169, 254, 0, 0, 16),
    V4(224, 0, 0, 0, 3),
    V4(100, 100, 100, 200, 32),
    V4(168, 63, 129, 16, 32),
    V4(192, 0, 0, 192, 32),
    {{0}, 128},
    {{0xfe, 0x80}, 10},
    {{0xff}, 8},
    {{0xfd, 0, 0x0e, 0xc2}, 32},
    {{0xfd, 0x20, 0, 0xce, [14] = 0x02, 0x54}, 128},
    {{0xfd, 0, 0, 0xc1, [12] = 0xa9, 0xfe, 0xa9, 0xfe}, 128},
};
static const struct webhook_network own[] = {V4(127, 0, 0, 0, 8), {{[15] = 1}, 128}};

static bool may_dial(const struct webhook_networks *nets, const uint8_t a[16])
{
    if (is_in_any(a, never, DET_ARRAY_LEN(never)))
        return false;
    return nets->is_given ? is_in_any(a, nets->v, nets->n) : !is_in_any(a, own, DET_ARRAY_LEN(own));
}

static bool put_address(const struct sockaddr *a, uint8_t ret[16])
{
    if (a->sa_family == AF_INET)
        put_v4(&((const struct sockaddr_in *)a)->sin_addr, ret);
    else if (a->sa_family == AF_INET6)
        put_v6(&((const struct sockaddr_in6 *)a)->sin6_addr, ret);
    else
        return false;
    return true;
}

bool webhook_may_dial(const struct webhook_networks *nets, const struct sockaddr *a)
{
    uint8_t whole[16];
    return put_address(a, whole) && may_dial(nets, whole);
}

bool webhook_same_address(const struct sockaddr *a, const struct sockaddr *b)
{
    uint8_t of_a[16], of_b[16];
    return put_address(a, of_a) && put_address(b, of_b) && memcmp(of_a, of_b, sizeof of_a) == 0;
}

/* "10.0.0.0/8"; an address alone is all of its bits. */
static int read_network(const char *word, struct webhook_network *ret)
{
    char addr[INET6_ADDRSTRLEN];
    struct in6_addr v6;
    uint8_t v4[4];
    size_t n = strcspn(word, "/");
    const char *bits = word[n] ? word + n + 1 : NULL;
    if (n >= sizeof addr ||
        (bits && (strspn(bits, "0123456789") != strlen(bits) || !*bits || strlen(bits) > 3)))
        return DET_EINVAL;
    memcpy(addr, word, n);
    addr[n] = '\0';
    bool is_v4 = inet_pton(AF_INET, addr, v4) == 1;
    if (!is_v4 && inet_pton(AF_INET6, addr, &v6) != 1)
        return DET_EINVAL;
    int most = is_v4 ? 32 : 128;
    ret->bits = bits ? (int)atol(bits) : most;
    if (ret->bits > most)
        return DET_EINVAL;
    ret->bits += is_v4 ? 96 : 0;
    if (is_v4)
        put_v4(v4, ret->addr);
    else
        memcpy(ret->addr, v6.s6_addr, 16);
    return 0;
}

int webhook_read_networks(const char *text, struct webhook_networks *ret, struct det_err *err)
{
    char word[64];
    *ret = (struct webhook_networks){.is_given = text[strspn(text, " ,")] != '\0'};
    if (strcmp(text, "none") == 0)
        return 0;
    for (const char *at = text + strspn(text, " ,"); *at; at += strspn(at, " ,")) {
        size_t n = strcspn(at, " ,");
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        if (ret->n == WEBHOOK_NETWORKS_MAX)
            return det_fail(err, DET_EINVAL, "expected at most %d networks", WEBHOOK_NETWORKS_MAX);
        if (n >= sizeof word || read_network(word, &ret->v[ret->n]) < 0)
            return det_fail(err, DET_EINVAL,
                            "\"%s\": expected networks, blanks between, such as 10.0.0.0/8, or "
                            "none",
                            word);
        ret->n++;
        at += n;
    }
    return 0;
}

/* An address in digits, where it is one. */
static bool is_dialled(const struct webhook_networks *nets, const char *host, bool is_v6)
{
    struct in6_addr v6;
    uint8_t v4[4], whole[16];
    if (is_v6) {
        if (inet_pton(AF_INET6, host, &v6) != 1)
            return false;
        put_v6(&v6, whole);
        return may_dial(nets, whole);
    }
    if (inet_pton(AF_INET, host, v4) == 1) {
        put_v4(v4, whole);
        return may_dial(nets, whole);
    }
    const char *dot = strrchr(host, '.'), *last = dot ? dot + 1 : host;
    return !isdigit((unsigned char)*last); /* 2852039166 and 0xa9.0xfe.43518 are addresses, too */
}

/* Of "host:port", "[v6]:port" or without a port, up to its end. */
static int read_host(const char *s, size_t n, const struct webhook_networks *nets,
                     struct webhook_url *ret, struct det_err *err)
{
    char host[256];
    bool is_v6 = n > 0 && *s == '[';
    const char *end = is_v6 ? memchr(s, ']', n) : memchr(s, ':', n);
    ret->host = s + is_v6;
    ret->host_len = end ? (size_t)(end - ret->host) : n - is_v6;
    if (ret->host_len == 0 || ret->host_len >= sizeof host || (is_v6 && !end))
        return det_fail(err, DET_EINVAL, "url: a host is missing");
    memcpy(host, ret->host, ret->host_len);
    host[ret->host_len] = '\0';
    if (host[strspn(host, is_v6 ? "0123456789abcdefABCDEF:."
                                : "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789.-_")])
        return det_fail(err, DET_EINVAL, "url: a host of letters, digits, - and .");
    if (!is_dialled(nets, host, is_v6))
        return det_fail(err, DET_EINVAL,
                        "url: no webhook is sent to %s: write a host's name, or an address as "
                        "192.0.2.1 that is not link-local and in the master's setting "
                        "webhooks.networks (none there: not this host's own)",
                        host);
    const char *port = end ? end + is_v6 : s + n;
    size_t left = (size_t)(s + n - port);
    if (left == 0)
        return 0;
    char digits[6] = "";
    if (*port == ':' && left > 1 && left <= sizeof digits)
        memcpy(digits, port + 1, left - 1);
    return digits[0] && strspn(digits, "0123456789") == left - 1 && atol(digits) > 0 &&
                   atol(digits) < 65536
               ? 0
               : det_fail(err, DET_EINVAL, "url: a port of 1 to 65535");
}

int webhook_read_url(const char *url, const struct webhook_networks *nets, struct webhook_url *ret,
                     struct det_err *err)
{
    size_t n = strlen(url), scheme = strncasecmp(url, "https://", 8) == 0  ? 8
                                     : strncasecmp(url, "http://", 7) == 0 ? 7
                                                                           : 0;
    if (scheme == 0 || n > WEBHOOK_URL_MAX)
        return det_fail(err, DET_EINVAL,
                        "url: expected http://HOST/.. or https://HOST/.., of at most %d bytes",
                        WEBHOOK_URL_MAX);
    for (const char *c = url; *c; c++)
        if (*c <= ' ' || *c > '~' || *c == '#' || *c == '\\')
            return det_fail(err, DET_EINVAL,
                            "url: spaces, #, \\, control characters and letters beyond ASCII as "
                            "%%XX");
    size_t host = strcspn(url + scheme, "/?");
    if (memchr(url + scheme, '@', host))
        return det_fail(err, DET_EINVAL, "url: no user and password before the host");
    ret->base_len = scheme + host;
    ret->path = url + scheme + host;
    return read_host(url + scheme, host, nets, ret, err);
}
