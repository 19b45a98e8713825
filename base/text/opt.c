#include "opt.h"

#include "mem.h"
#include "near.h"
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

struct args {
    int argc, at;
    char **argv;
};

static bool is_end(const struct opt *o)
{
    return !o->name;
}

/* An option's name, or the only one that starts with it; a table ends at a NULL name. What is not
 * there is known by its whole name only. */
static const struct opt *find_long(const struct opt *table, const char *name, size_t n, bool *many)
{
    const struct opt *found = NULL;
    *many = false;
    for (const struct opt *o = table; !is_end(o); o++) {
        if (!*o->name || strncmp(o->name, name, n) != 0)
            continue;
        if (!o->name[n]) {
            *many = false;
            return o;
        }
        if (o->kind == OPT_ABSENT)
            continue;
        *many = found != NULL;
        found = o;
    }
    return *many ? NULL : found;
}

static const struct opt *find_short(const struct opt *table, char c)
{
    for (const struct opt *o = table; !is_end(o); o++)
        if (o->short_name == c)
            return o;
    return NULL;
}

static int fail_unknown(const struct opt *table, const char *name, struct det_err *err)
{
    const char *best = NULL;
    size_t best_distance = SIZE_MAX;
    for (const struct opt *o = table; !is_end(o); o++) {
        bool is_there = *o->name && o->kind != OPT_ABSENT;
        size_t d = is_there ? near_distance(name, o->name) : SIZE_MAX;
        if (d < best_distance) {
            best_distance = d;
            best = o->name;
        }
    }
    if (best && near_enough(name, best_distance))
        return det_fail(err, DET_EINVAL, "unknown option --%s; did you mean --%s?", name, best);
    return det_fail(err, DET_EINVAL, "unknown option --%s; --help lists the options", name);
}

static int fail_ambiguous(const struct opt *table, const char *name, struct det_err *err)
{
    struct buf list = BUF_INIT;
    for (const struct opt *o = table; !is_end(o); o++)
        if (o->kind != OPT_ABSENT && strncmp(o->name, name, strlen(name)) == 0)
            buf_addf(&list, "%s--%s", list.len ? ", " : "", o->name);
    int rc = det_fail(err, DET_EINVAL, "option --%s is ambiguous: %s", name, buf_str(&list));
    buf_finish(&list);
    return rc;
}

static int set_flag(const struct opt *o, const char *value, struct det_err *err)
{
    bool off = value && strcmp(value, "false") == 0;
    if (value && !off && strcmp(value, "true") != 0)
        return det_fail(err, DET_EINVAL, "option --%s takes no value (or true, false)", o->name);
    *(bool *)o->target = !off;
    return 0;
}

static int set_int(const struct opt *o, const char *value, struct det_err *err)
{
    char *end;
    errno = 0;
    long long v = strtoll(value, &end, 10);
    if (errno || end == value || *end)
        return det_fail(err, DET_EINVAL, "option --%s: \"%s\" is not a whole number", o->name,
                        value);
    if (o->kind == OPT_COUNT && v < 1)
        return det_fail(err, DET_EINVAL, "option --%s: expected 1 or more, got %s", o->name, value);
    *(int64_t *)o->target = v;
    return 0;
}

static void list_push(struct opt_list *l, const char *s)
{
    /* Grown at powers of two, so that the list needs no capacity of its own. */
    if ((l->n & (l->n - 1)) == 0)
        l->v = det_reallocarray(l->v, l->n ? l->n * 2 : 1, sizeof *l->v);
    l->v[l->n++] = s;
}

static int set_value(const struct opt *o, const char *value, struct det_err *err)
{
    switch (o->kind) {
    case OPT_FLAG: return set_flag(o, value, err);
    case OPT_INT:
    case OPT_COUNT: return set_int(o, value, err);
    case OPT_STR: *(const char **)o->target = value; return 0;
    case OPT_STR_LIST: list_push(o->target, value); return 0;
    case OPT_ABSENT: /* it was refused before */ break;
    }
    return 0;
}

static int fail_absent(const struct opt *o, struct det_err *err)
{
    return det_fail(err, DET_EINVAL, "there is no --%s here: %s", o->name, o->help);
}

/* The value of an option that needs one: what is attached to it, else the next argument. */
static int take_value(struct args *a, const struct opt *o, const char *attached, const char **ret,
                      struct det_err *err)
{
    *ret = attached;
    if (attached || o->kind == OPT_FLAG)
        return 0;
    if (a->at >= a->argc)
        return det_fail(err, DET_EINVAL, "option --%s needs a value%s%s", o->name,
                        o->arg ? ": " : "", o->arg ? o->arg : "");
    *ret = a->argv[a->at++];
    return 0;
}

static int parse_long(const struct opt *table, struct args *a, const char *text,
                      struct det_err *err)
{
    size_t n = strcspn(text, "=");
    bool many;
    const struct opt *o = find_long(table, text, n, &many);
    if (!o) {
        det_cleanup(freep) char *name = det_strndup(text, n);
        return many ? fail_ambiguous(table, name, err) : fail_unknown(table, name, err);
    }
    if (o->kind == OPT_ABSENT)
        return fail_absent(o, err);
    const char *value;
    int rc = take_value(a, o, text[n] == '=' ? text + n + 1 : NULL, &value, err);
    return rc < 0 ? rc : set_value(o, value, err);
}

/* "-f", "-m URL", "-mURL", "-abc" for three flags. */
static int parse_short(const struct opt *table, struct args *a, const char *text,
                       struct det_err *err)
{
    for (; *text; text++) {
        const struct opt *o = find_short(table, *text);
        if (!o)
            return det_fail(err, DET_EINVAL, "unknown option -%c; --help lists the options", *text);
        if (o->kind == OPT_ABSENT)
            return fail_absent(o, err);
        if (o->kind != OPT_FLAG) {
            const char *value;
            int rc = take_value(a, o, text[1] ? text + 1 : NULL, &value, err);
            return rc < 0 ? rc : set_value(o, value, err);
        }
        *(bool *)o->target = true;
    }
    return 0;
}

int opt_parse(const struct opt *table, int argc, char **argv, int first, struct opt_list *pos,
              struct det_err *err)
{
    struct args a = {.argc = argc, .at = first, .argv = argv};
    bool only_positional = false;
    while (a.at < argc) {
        const char *s = argv[a.at++];
        int rc = 0;
        if (only_positional || s[0] != '-' || !s[1] || isdigit((unsigned char)s[1]))
            list_push(pos, s);
        else if (strcmp(s, "--") == 0)
            only_positional = true;
        else if (s[1] == '-')
            rc = parse_long(table, &a, s + 2, err);
        else
            rc = parse_short(table, &a, s + 1, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

void opt_help(const struct opt *table, struct buf *out)
{
    for (const struct opt *o = table; !is_end(o); o++) {
        struct buf left = BUF_INIT;
        if (o->kind == OPT_ABSENT)
            continue;
        if (o->short_name)
            buf_addf(&left, "  -%c%s", o->short_name, *o->name ? ", " : "");
        else
            buf_add_str(&left, "      ");
        if (*o->name)
            buf_addf(&left, "--%s", o->name);
        if (o->kind != OPT_FLAG)
            buf_addf(&left, " %s", o->arg ? o->arg : "VALUE");
        const char *gap = left.len > 30 ? "\n" : "";
        buf_addf(out, "%s%s%*s%s\n", buf_str(&left), gap, *gap ? 32 : (int)(32 - left.len), "",
                 o->help ? o->help : "");
        buf_finish(&left);
    }
}

void opt_list_finish(struct opt_list *l)
{
    free(l->v);
    *l = (struct opt_list){0};
}
