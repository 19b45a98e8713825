/* Route table: which handler a method and path belong to. No I/O. */
#ifndef SHELL_HTTP_ROUTE_H
#define SHELL_HTTP_ROUTE_H

#include "http.h"

enum { HTTP_SEGMENTS_MAX = 12 };

struct http_entry {
    const struct http_route *route;
    char *text;                         /* the pattern, cut into segments */
    const char *seg[HTTP_SEGMENTS_MAX]; /* a variable's is its name */
    bool var[HTTP_SEGMENTS_MAX];
    int n;
};
struct http_router {
    struct http_entry *v;
    size_t n, cap;
};
struct http_match {
    const struct http_entry *entry;
    char *text; /* the path, cut and decoded */
    char *seg[HTTP_SEGMENTS_MAX];
    int n;
};

DET_MUST int http_router_add(struct http_router *r, const struct http_route *route,
                             struct det_err *err);
void http_router_finish(struct http_router *r);
/* path is raw (percent-encoded), without the query. Literal segments win over variables, from the
 * left. 0; DET_ENOENT: no such path; DET_EUNIMPL: the path has other methods. Free m by
 * http_match_finish. */
int http_router_find(const struct http_router *r, enum http_method method, const char *path,
                     struct http_match *m);
void http_match_finish(struct http_match *m);

#endif
