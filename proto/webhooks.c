#include "webhooks.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static bool may_dial_v4(const unsigned char a[4])
{
    return a[0] != 0 && a[0] < 224 && !(a[0] == 169 && a[1] == 254);
}

static bool may_dial_v6(const struct in6_addr *a)
{
    if (IN6_IS_ADDR_V4MAPPED(a) || IN6_IS_ADDR_V4COMPAT(a))
        return IN6_IS_ADDR_LOOPBACK(a) || may_dial_v4(a->s6_addr + 12);
    /* fd00:ec2::254 is a cloud's too, though it is of those that anybody may use at home. */
    static const unsigned char ec2[16] = {0xfd, 0, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54};
    return !IN6_IS_ADDR_UNSPECIFIED(a) && !IN6_IS_ADDR_LINKLOCAL(a) && !IN6_IS_ADDR_MULTICAST(a) &&
           memcmp(a->s6_addr, ec2, sizeof ec2) != 0;
}

bool webhook_may_dial(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET)
        return may_dial_v4((const unsigned char *)&((const struct sockaddr_in *)a)->sin_addr);
    return a->sa_family == AF_INET6 && may_dial_v6(&((const struct sockaddr_in6 *)a)->sin6_addr);
}

/* An address in digits, where it is one. */
static bool is_dialled(const char *host, bool is_v6)
{
    struct in6_addr v6;
    unsigned char v4[4];
    if (is_v6)
        return inet_pton(AF_INET6, host, &v6) == 1 && may_dial_v6(&v6);
    if (inet_pton(AF_INET, host, v4) == 1)
        return may_dial_v4(v4);
    const char *dot = strrchr(host, '.'), *last = dot ? dot + 1 : host;
    return !isdigit((unsigned char)*last); /* 2852039166 and 0xa9.0xfe.43518 are addresses, too */
}

/* Of "host:port", "[v6]:port" or without a port, up to its end. */
static int read_host(const char *s, size_t n, struct webhook_url *ret, struct det_err *err)
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
    if (!is_dialled(host, is_v6))
        return det_fail(err, DET_EINVAL,
                        "url: no webhook is sent to %s: write a host's name, or an address that is "
                        "not link-local, multicast or written in another way than 192.0.2.1",
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

int webhook_read_url(const char *url, struct webhook_url *ret, struct det_err *err)
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
    return read_host(url + scheme, host, ret, err);
}
