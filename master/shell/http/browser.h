/*
 * What a browser sends for a page that is not ours: refused before anybody's session is looked at.
 *
 * A session's cookie is SameSite=Strict; besides, a request that writes with one carries the header
 * X-Det-Page, which a form of another site cannot send, and Origin, where it is told, is the name
 * that the request was sent to. That name (Host) must be one of the master's own: a site whose name
 * is made to lead to this master's address would else be the same to the browser (under TLS it has
 * no certificate). Programs with a token tell no Origin and have no cookie: nothing is asked of
 * them.
 */
#ifndef SHELL_BROWSER_H
#define SHELL_BROWSER_H

#include "det/err.h"
#include <stdbool.h>

#define BROWSER_MARK "X-Det-Page"

struct browser_ask {
    const char *host, *origin, *site; /* Host, Origin, Sec-Fetch-Site; NULL: not sent */
    bool is_marked;                   /* has BROWSER_MARK */
    bool is_write, by_cookie, is_page, is_tls;
    /* That Host may be besides addresses and names without a dot; blanks between. */
    const char *names;
};
/* 0, or DET_EPERM with why not. Pure. */
DET_MUST int browser_check(const struct browser_ask *a, struct det_err *err);

#endif
