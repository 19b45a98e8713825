#include "http_route.h"

#include "http_conn.h"
#include "mem.h"

#include <string.h>

/* Cuts text at '/' in place; the leading one is dropped, a trailing one ignored. -1: too many. */
static int cut_path(char *text, char **seg)
{
    int n = 0;
    char *at = text;
    while (*at == '/')
        at++;
    while (*at) {
        if (n == HTTP_SEGMENTS_MAX)
            return -1;
        seg[n++] = at;
        at = strchrnul(at, '/');
        if (*at)
            *at++ = 0;
    }
    return n;
}

static bool entry_equal(const struct http_entry *a, const struct http_entry *b)
{
    if (a->n != b->n || a->route->method != b->route->method)
        return false;
    for (int i = 0; i < a->n; i++)
        if (a->var[i] != b->var[i] || (!a->var[i] && strcmp(a->seg[i], b->seg[i])))
            return false;
    return true;
}

static int entry_init(struct http_entry *e, const struct http_route *route, struct det_err *err)
{
    *e = (struct http_entry){.route = route, .text = det_strdup(route->pattern)};
    char *seg[HTTP_SEGMENTS_MAX];
    e->n = cut_path(e->text, seg);
    if (e->n < 0 || route->pattern[0] != '/')
        return det_fail(err, DET_EINVAL, "route %s: malformed", route->pattern);
    for (int i = 0; i < e->n; i++) {
        size_t len = strlen(seg[i]);
        e->var[i] = seg[i][0] == '{';
        if (e->var[i] && (len < 3 || seg[i][len - 1] != '}'))
            return det_fail(err, DET_EINVAL, "route %s: malformed variable", route->pattern);
        e->seg[i] = seg[i] + (e->var[i] ? 1 : 0);
        if (e->var[i])
            seg[i][len - 1] = 0;
    }
    return 0;
}

int http_router_add(struct http_router *r, const struct http_route *route, struct det_err *err)
{
    struct http_entry e;
    int rc = entry_init(&e, route, err);
    for (size_t i = 0; rc == 0 && i < r->n; i++)
        if (entry_equal(&r->v[i], &e))
            rc = det_fail(err, DET_EINVAL, "route %s: there twice", route->pattern);
    if (rc < 0) {
        free(e.text);
        return rc;
    }
    if (r->n == r->cap) {
        r->cap = r->cap ? r->cap * 2 : 64;
        r->v = det_reallocarray(r->v, r->cap, sizeof *r->v);
    }
    r->v[r->n++] = e;
    return 0;
}

void http_router_finish(struct http_router *r)
{
    for (size_t i = 0; i < r->n; i++)
        free(r->v[i].text);
    free(r->v);
    *r = (struct http_router){0};
}

static bool entry_fits(const struct http_entry *e, const struct http_match *m)
{
    if (e->n != m->n)
        return false;
    for (int i = 0; i < e->n; i++)
        if (!e->var[i] && strcmp(e->seg[i], m->seg[i]))
            return false;
    return true;
}

/* The leftmost difference decides: a literal beats a variable. */
static bool entry_better(const struct http_entry *a, const struct http_entry *b)
{
    for (int i = 0; i < a->n; i++)
        if (a->var[i] != b->var[i])
            return !a->var[i];
    return false;
}

int http_router_find(const struct http_router *r, enum http_method method, const char *path,
                     struct http_match *m)
{
    *m = (struct http_match){.text = det_strdup(path)};
    m->n = cut_path(m->text, m->seg);
    for (int i = 0; i < m->n; i++)
        http_unescape(m->seg[i], false);
    bool other = false;
    for (size_t i = 0; m->n >= 0 && i < r->n; i++) {
        const struct http_entry *e = &r->v[i];
        if (!entry_fits(e, m))
            continue;
        if (e->route->method != method)
            other = true;
        else if (!m->entry || entry_better(e, m->entry))
            m->entry = e;
    }
    if (m->entry)
        return 0;
    return other ? DET_EUNIMPL : DET_ENOENT;
}

void http_match_finish(struct http_match *m)
{
    free(m->text);
    *m = (struct http_match){0};
}
