#include "settings.h"

#include "near.h"
#include "mem.h"
#include <string.h>

/* ---- paths ---- */

/* What follows prefix in path ("a.b" of "a.b.c" is "c"); NULL if path is not below it. */
static const char *path_below(const char *path, const char *prefix)
{
    size_t n = strlen(prefix);
    if (n == 0)
        return path;
    return strncmp(path, prefix, n) == 0 && path[n] == '.' ? path + n + 1 : NULL;
}

/* The entry whose path is exactly "prefix.name", NULL if none. *ret_map, *ret_list: whether some
 * entry lies below it. */
static const struct setting *find_child(const struct settings *t, const char *prefix,
                                        const char *name, bool *ret_map, bool *ret_list)
{
    const struct setting *leaf = NULL;
    size_t n = strlen(name);
    *ret_map = *ret_list = false;
    for (size_t i = 0; i < t->n; i++) {
        const char *rest = path_below(t->v[i].path, prefix);
        if (!rest || strncmp(rest, name, n) != 0)
            continue;
        if (!rest[n])
            leaf = &t->v[i];
        *ret_map |= rest[n] == '.';
        *ret_list |= strncmp(rest + n, "[].", 3) == 0;
    }
    return leaf;
}

/* The name most like `name` among the children of prefix; caller frees, NULL if none is near. */
static char *find_nearest(const struct settings *t, const char *prefix, const char *name)
{
    char *best = NULL;
    size_t best_distance = SIZE_MAX;
    for (size_t i = 0; i < t->n; i++) {
        const char *rest = path_below(t->v[i].path, prefix);
        if (!rest)
            continue;
        char *word = det_strndup(rest, strcspn(rest, ".["));
        size_t d = near_distance(name, word);
        bool better = d < best_distance;
        best_distance = better ? d : best_distance;
        free(better ? best : word);
        best = better ? word : best;
    }
    if (best && near_enough(name, best_distance))
        return best;
    free(best);
    return NULL;
}

/* ---- checking ---- */

struct walk {
    const struct settings *t;
    const json_t *lines;
    struct mistakes *errs;
    struct buf where; /* the real path, with indices */
};

static void cut_buf(struct buf *b, size_t len)
{
    b->len = len;
    if (b->p)
        b->p[len] = '\0';
}

static void add_mistake(struct walk *w, const char *what)
{
    const json_t *line = w->lines ? json_object_get(w->lines, buf_str(&w->where)) : NULL;
    if (line) {
        det_cleanup(freep) char *at =
            det_asprintf("line %lld: %s", (long long)json_integer_value(line), buf_str(&w->where));
        mistakes_add(w->errs, at, "%s", what);
    } else {
        mistakes_add(w->errs, buf_str(&w->where), "%s", what);
    }
}

static void check_leaf(struct walk *w, const struct setting *s, const json_t *v)
{
    if (json_is_null(v) || setting_fits(s, v))
        return;
    struct buf what = BUF_INIT;
    buf_add_str(&what, "expected ");
    setting_describe(s, &what);
    buf_add_str(&what, ", got ");
    mistakes_describe(&what, s->secret && json_is_string(v) ? NULL : v);
    add_mistake(w, buf_str(&what));
    buf_finish(&what);
}

static void check_map(struct walk *w, const char *prefix, const json_t *map);

static void check_list(struct walk *w, const char *prefix, const json_t *list)
{
    det_cleanup(freep) char *inner = det_asprintf("%s[]", prefix);
    size_t i, before = w->where.len;
    json_t *v;
    json_array_foreach(list, i, v)
    {
        buf_addf(&w->where, "[%zu]", i);
        if (json_is_object(v))
            check_map(w, inner, v);
        else
            add_mistake(w, "expected a map");
        cut_buf(&w->where, before);
    }
}

static void complain_unknown(struct walk *w, const char *prefix, const char *name)
{
    det_cleanup(freep) char *near = find_nearest(w->t, prefix, name);
    det_cleanup(freep) char *what = near ? det_asprintf("no such setting; did you mean %s?", near)
                                         : det_strdup("no such setting; --print-example shows all");
    add_mistake(w, what);
}

static void check_child(struct walk *w, const char *prefix, const char *name, const json_t *v)
{
    bool map, list;
    const struct setting *leaf = find_child(w->t, prefix, name, &map, &list);
    det_cleanup(freep) char *path = det_asprintf("%s%s%s", prefix, *prefix ? "." : "", name);
    if (strpbrk(name, ".[") || (!leaf && !map && !list))
        complain_unknown(w, prefix, name);
    else if (leaf)
        check_leaf(w, leaf, v);
    else if (map && json_is_object(v))
        check_map(w, path, v);
    else if (list && json_is_array(v))
        check_list(w, path, v);
    else if (!json_is_null(v))
        add_mistake(w, map ? "expected a map of settings" : "expected a list of maps");
}

static void check_map(struct walk *w, const char *prefix, const json_t *map)
{
    const char *name;
    json_t *v;
    size_t before = w->where.len;
    json_object_foreach((json_t *)map, name, v)
    {
        buf_addf(&w->where, "%s%s", before ? "." : "", name);
        check_child(w, prefix, name, v);
        cut_buf(&w->where, before);
    }
}

void settings_check(const struct settings *t, const json_t *raw, const json_t *lines,
                    struct mistakes *errs)
{
    struct walk w = {.t = t, .lines = lines, .errs = errs};
    if (json_is_object(raw))
        check_map(&w, "", raw);
    else if (!json_is_null(raw))
        mistakes_add(errs, "", "expected a map of settings");
    buf_finish(&w.where);
}
