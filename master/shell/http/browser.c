#include "browser.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { HOST_MAX = 256 };

/* Host without its port and brackets. */
static bool host_name(const char *host, char out[HOST_MAX])
{
    size_t n = *host == '[' ? strcspn(host, "]") : strcspn(host, ":");
    const char *from = *host == '[' ? host + 1 : host;
    n -= (size_t)(from - host);
    if (n == 0 || n >= HOST_MAX)
        return false;
    memcpy(out, from, n);
    out[n] = 0;
    return true;
}

static bool is_address(const char *name)
{
    struct in6_addr any;
    return inet_pton(AF_INET, name, &any) == 1 || inet_pton(AF_INET6, name, &any) == 1;
}

static bool is_listed(const char *name, const char *names)
{
    size_t n = strlen(name);
    for (const char *at = names; at && *at;) {
        size_t len = strcspn(at, " ,");
        if (len == n && !strncasecmp(at, name, n))
            return true;
        at += len + strspn(at + len, " ,");
    }
    return false;
}

/* Names without a dot are given by who runs the network, not by whoever buys one. */
static bool is_own(const char *host, const char *names)
{
    char name[HOST_MAX];
    return host && host_name(host, name) &&
           (!strchr(name, '.') || is_address(name) || is_listed(name, names));
}

/* A proxy in front may speak TLS where the master does not, so the scheme does not count. */
static bool is_from(const char *origin, const char *host)
{
    const char *at = strstr(origin, "://");
    return at && host && !strcasecmp(at + 3, host);
}

int browser_check(const struct browser_ask *a, struct det_err *err)
{
    bool browser = a->origin || a->site || a->by_cookie || a->is_page;
    if (browser && !a->is_tls && !is_own(a->host, a->names))
        return det_fail(err, DET_EPERM,
                        "\"%.100s\" is no name of this master: its setting web.hosts names those "
                        "that browsers may use",
                        a->host ? a->host : "");
    if (a->origin && (a->is_write || a->by_cookie) && !is_from(a->origin, a->host))
        return det_fail(err, DET_EPERM, "asked by a page of %.100s, which is another site",
                        a->origin);
    if (a->by_cookie && a->is_write && !a->is_marked)
        return det_fail(err, DET_EPERM,
                        "what writes with a browser's session carries the header " BROWSER_MARK);
    return 0;
}
