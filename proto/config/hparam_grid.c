/* The grid over a space: one axis a leaf, points in lexicographic order of the axes' values. */
#include "hparam.h"

#include "vec.h"
#include <math.h>
#include <string.h>

static double value_at(const json_t *leaf, size_t i, size_t n)
{
    double lo = json_num(leaf, "minval", 0), hi = json_num(leaf, "maxval", 0);
    return n == 1 ? (lo + hi) / 2 : lo + (double)i * (hi - lo) / (double)(n - 1);
}

static int64_t clamp_whole(const json_t *leaf, double v)
{
    int64_t lo = json_int(leaf, "minval", 0), hi = json_int(leaf, "maxval", 0);
    double r = round(v); /* halves away from zero */
    return r <= (double)lo ? lo : r >= (double)hi ? hi : (int64_t)r;
}

/* Values of an int, double or log leaf; a number of values above the limit is cut just above it. */
static size_t count_steps(const json_t *leaf, bool is_int)
{
    int64_t count = json_int(leaf, "count", 1);
    uint64_t n = count < 1 ? 1 : (uint64_t)count;
    uint64_t range = (uint64_t)json_int(leaf, "maxval", 0) - (uint64_t)json_int(leaf, "minval", 0);
    if (is_int && range < n - 1)
        n = range + 1;
    return n > HPARAM_GRID_MAX ? HPARAM_GRID_MAX + 1 : (size_t)n;
}

static size_t axis_len(const json_t *leaf)
{
    const char *type = json_str(leaf, "type", "const");
    if (strcmp(type, "const") == 0)
        return 1;
    if (strcmp(type, "categorical") == 0)
        return json_array_size(json_object_get(leaf, "vals"));
    return count_steps(leaf, strcmp(type, "int") == 0);
}

static json_t *axis_value(const json_t *leaf, size_t i)
{
    const char *type = json_str(leaf, "type", "const");
    if (strcmp(type, "const") == 0)
        return json_deep_copy(json_object_get(leaf, "val"));
    if (strcmp(type, "categorical") == 0)
        return json_deep_copy(json_array_get(json_object_get(leaf, "vals"), i));
    bool is_int = strcmp(type, "int") == 0;
    double v = value_at(leaf, i, count_steps(leaf, is_int));
    if (is_int)
        return json_integer(clamp_whole(leaf, v));
    return json_real(strcmp(type, "log") == 0 ? pow(json_num(leaf, "base", 10), v) : v);
}

static size_t points_below(const json_t *space)
{
    size_t points = 1;
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)space, key, v)
    {
        points *= hparam_is_leaf(v) ? axis_len(v) : points_below(v);
        if (points > HPARAM_GRID_MAX)
            return HPARAM_GRID_MAX + 1;
    }
    return points;
}

size_t hparam_grid_points(const json_t *space)
{
    return points_below(space);
}

typedef VEC(size_t) sizes;

static void axis_lens(const json_t *space, sizes *out)
{
    size_t n;
    det_cleanup(freep) const char **names = json_sorted_keys(space, &n);
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_object_get(space, names[i]);
        if (hparam_is_leaf(v))
            vec_push(out, axis_len(v));
        else
            axis_lens(v, out);
    }
}

/* digits: which value each leaf takes, in the order of axis_lens(); moves past those used. */
static json_t *make_point(const json_t *space, const size_t **digits)
{
    size_t n;
    det_cleanup(freep) const char **names = json_sorted_keys(space, &n);
    json_t *out = json_object();
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_object_get(space, names[i]);
        json_set(out, names[i],
                 hparam_is_leaf(v) ? axis_value(v, *(*digits)++) : make_point(v, digits));
    }
    return out;
}

json_t *hparam_grid_point(const json_t *space, size_t index)
{
    sizes radix = {0};
    axis_lens(space, &radix);
    for (size_t k = radix.n; k-- > 0;) { /* the last axis is the fastest */
        size_t len = radix.v[k];
        radix.v[k] = index % len;
        index /= len;
    }
    const size_t *digits = radix.v;
    json_t *out = make_point(space, &digits);
    vec_free(&radix);
    return out;
}
