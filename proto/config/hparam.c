#include "hparam.h"

#include "expconf_schema.h"
#include "near.h"
#include <limits.h>
#include <math.h>
#include <string.h>

static const char *const types[] = {"const", "int", "double", "log", "categorical"};
enum { CONST, INT, DOUBLE, LOG, CATEGORICAL, TYPES };

static int type_of(const json_t *leaf)
{
    const char *name = json_str(leaf, "type", "");
    for (int i = 0; i < TYPES; i++)
        if (strcmp(name, types[i]) == 0)
            return i;
    return -1;
}

bool hparam_is_leaf(const json_t *v)
{
    return json_object_get(v, "type") != NULL;
}

/* ---- checking ---- */

/* The keys each type takes; NULL ends a row. */
static const char *const keys_of[TYPES][6] = {
    [CONST] = {"type", "val"},
    [INT] = {"type", "minval", "maxval", "count"},
    [DOUBLE] = {"type", "minval", "maxval", "count"},
    [LOG] = {"type", "base", "minval", "maxval", "count"},
    [CATEGORICAL] = {"type", "vals"},
};

struct leaf_check {
    const json_t *leaf;
    const char *where;
    struct mistakes *m;
};

static void add_mistake(const struct leaf_check *c, const char *key, const char *expected)
{
    det_cleanup(freep) char *path = det_asprintf("%s.%s", c->where, key);
    const json_t *v = json_object_get(c->leaf, key);
    struct buf got = BUF_INIT;
    mistakes_describe(&got, v);
    if (v)
        mistakes_add(c->m, path, "expected %s, got %s", expected, buf_str(&got));
    else
        mistakes_add(c->m, path, "missing; expected %s", expected);
    buf_finish(&got);
}

static void check_keys(const struct leaf_check *c, int type)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)c->leaf, key, v)
    {
        size_t n = 0;
        bool known = false;
        for (; keys_of[type][n]; n++)
            known |= strcmp(key, keys_of[type][n]) == 0;
        if (known)
            continue;
        det_cleanup(freep) char *path = det_asprintf("%s.%s", c->where, key);
        const char *near = near_name(key, keys_of[type], n);
        mistakes_add(c->m, path, "unknown key of a hyperparameter of type %s%s%s%s", types[type],
                     near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    }
}

static void check_count(const struct leaf_check *c)
{
    int64_t n;
    const json_t *v = json_object_get(c->leaf, "count");
    if (v && !json_is_null(v) && (!expconf_whole(v, &n) || n < 1))
        add_mistake(c, "count", "a whole number from 1; write e.g. count: 5");
}

static void check_int(const struct leaf_check *c)
{
    int64_t lo, hi;
    bool lo_ok = expconf_whole(json_object_get(c->leaf, "minval"), &lo);
    bool hi_ok = expconf_whole(json_object_get(c->leaf, "maxval"), &hi);
    if (!lo_ok)
        add_mistake(c, "minval", "a whole number");
    if (!hi_ok)
        add_mistake(c, "maxval", "a whole number");
    if (lo_ok && hi_ok && lo >= hi)
        add_mistake(c, "maxval", "a number above minval");
    check_count(c);
}

static void check_range(const struct leaf_check *c)
{
    const json_t *lo = json_object_get(c->leaf, "minval"), *hi = json_object_get(c->leaf, "maxval");
    if (!json_is_number(lo))
        add_mistake(c, "minval", "a number");
    if (!json_is_number(hi))
        add_mistake(c, "maxval", "a number");
    if (json_is_number(lo) && json_is_number(hi)) {
        double a = json_number_value(lo), b = json_number_value(hi);
        if (!(a < b))
            add_mistake(c, "maxval", "a number above minval");
        else if (!isfinite(b - a))
            add_mistake(c, "maxval", "a range that a double can hold");
    }
    check_count(c);
}

static void check_log(const struct leaf_check *c)
{
    const json_t *base = json_object_get(c->leaf, "base");
    check_range(c);
    if (!json_is_number(base) || !(json_number_value(base) > 0)) {
        add_mistake(c, "base", "a number above 0; write e.g. base: 10");
        return;
    }
    double b = json_number_value(base);
    if (!isfinite(pow(b, json_num(c->leaf, "minval", 0))) ||
        !isfinite(pow(b, json_num(c->leaf, "maxval", 0))))
        add_mistake(c, "base", "a base and exponents whose power a double can hold");
}

static void check_leaf(const struct leaf_check *c)
{
    int type = type_of(c->leaf);
    if (type < 0) {
        add_mistake(c, "type", "one of const, int, double, log, categorical");
        return;
    }
    check_keys(c, type);
    if (type == CONST && !json_object_get(c->leaf, "val"))
        add_mistake(c, "val", "the constant's value");
    if (type == INT)
        check_int(c);
    if (type == DOUBLE)
        check_range(c);
    if (type == LOG)
        check_log(c);
    if (type == CATEGORICAL && json_array_size(json_object_get(c->leaf, "vals")) == 0)
        add_mistake(c, "vals", "a list with at least one value");
}

void hparam_check(const json_t *space, const char *where, struct mistakes *m)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)space, key, v)
    {
        det_cleanup(freep) char *path = det_asprintf("%s.%s", where, key);
        if (hparam_is_leaf(v))
            check_leaf(&(struct leaf_check){.leaf = v, .where = path, .m = m});
        else if (json_is_object(v))
            hparam_check(v, path, m);
    }
}

static void check_counts_below(const json_t *v, const char *where, struct mistakes *m)
{
    size_t i;
    json_t *item;
    if (hparam_is_leaf(v)) {
        int type = type_of(v);
        const json_t *count = json_object_get(v, "count");
        if ((type == INT || type == DOUBLE || type == LOG) && (!count || json_is_null(count)))
            mistakes_add(m, where, "the grid searcher needs a count here; write e.g. count: 5");
        check_counts_below(json_object_get(v, "val"), where, m);
    } else if (json_is_object(v)) {
        hparam_check_counts(v, where, m);
    }
    json_array_foreach(v, i, item)
    {
        det_cleanup(freep) char *path = det_asprintf("%s[%zu]", where, i);
        check_counts_below(item, path, m);
    }
}

void hparam_check_counts(const json_t *space, const char *where, struct mistakes *m)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)space, key, v)
    {
        det_cleanup(freep) char *path = det_asprintf("%s.%s", where, key);
        check_counts_below(v, path, m);
    }
}

/* ---- the stored form ---- */

static json_t *normalise_leaf(const json_t *leaf)
{
    static const char *const whole_keys[] = {"minval", "maxval", "count"};
    json_t *out = json_deep_copy(leaf);
    int type = type_of(leaf);
    if (type != INT && type != DOUBLE && type != LOG)
        return out;
    for (size_t i = type == INT ? 0 : 2; i < DET_ARRAY_LEN(whole_keys); i++) {
        int64_t n;
        if (expconf_whole(json_object_get(out, whole_keys[i]), &n))
            json_set(out, whole_keys[i], json_integer(n));
    }
    if (!json_object_get(out, "count"))
        json_set(out, "count", NULL);
    return out;
}

json_t *hparam_normalise(const json_t *space)
{
    json_t *out = json_object();
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)space, key, v)
    {
        if (hparam_is_leaf(v))
            json_set(out, key, normalise_leaf(v));
        else if (json_is_object(v))
            json_set(out, key, hparam_normalise(v));
        else
            json_set(out, key, json_make("{s:s,s:o}", "type", "const", "val", json_deep_copy(v)));
    }
    return out;
}

/* ---- sampling ---- */

static json_t *sample_leaf(const json_t *leaf, struct mt19937 *r)
{
    double lo = json_num(leaf, "minval", 0), hi = json_num(leaf, "maxval", 0);
    const json_t *vals = json_object_get(leaf, "vals");
    switch (type_of(leaf)) {
    case INT: {
        uint64_t from = (uint64_t)json_int(leaf, "minval", 0);
        uint64_t range = (uint64_t)json_int(leaf, "maxval", 0) - from;
        return json_integer((int64_t)(from + mt19937_bounded(r, range)));
    }
    case DOUBLE: return json_real(mt19937_uniform(r, lo, hi));
    case LOG: return json_real(pow(json_num(leaf, "base", 10), mt19937_uniform(r, lo, hi)));
    case CATEGORICAL: {
        size_t i = (size_t)mt19937_bounded(r, json_array_size(vals) - 1);
        return json_deep_copy(json_array_get(vals, i));
    }
    default: return json_deep_copy(json_object_get(leaf, "val"));
    }
}

json_t *hparam_sample(const json_t *space, struct mt19937 *r)
{
    size_t n;
    det_cleanup(freep) const char **names = json_sorted_keys(space, &n);
    json_t *out = json_object();
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_object_get(space, names[i]);
        json_set(out, names[i], hparam_is_leaf(v) ? sample_leaf(v, r) : hparam_sample(v, r));
    }
    return out;
}
