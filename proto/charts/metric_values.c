#include "metric_values.h"

static bool is_escaped(const struct buf *out, const struct metric_value *v, size_t from)
{
    return memchr(out->p + from + v->name, '\\', v->name_len) != NULL;
}

static struct metric_value write_member(struct buf *out, size_t from, const char *key,
                                        const json_t *j)
{
    struct metric_value v = {.number = json_number_value(j)};
    json_write_string(out, key, strlen(key));
    buf_add_ch(out, ':');
    v.text = out->len - from;
    json_write(out, j);
    v.text_len = out->len - from - v.text;
    return v;
}

size_t metric_values_write(struct buf *out, const json_t *values, struct metric_values *ret)
{
    const char *key;
    json_t *j;
    size_t from = out->len, before = ret->n;
    bool is_plain = json_object_size(values) <= METRIC_CHUNK_NAMES;
    buf_add_ch(out, '{');
    json_object_foreach((json_t *)values, key, j)
    {
        if (out->len > from + 1)
            buf_add_ch(out, ',');
        size_t name = out->len - from + 1;
        struct metric_value v = write_member(out, from, key, j);
        v.name = name;
        v.name_len = v.text - name - 2;
        is_plain = is_plain && json_is_number(j) && !is_escaped(out, &v, from);
        if (is_plain)
            vec_push(ret, v);
    }
    buf_add_ch(out, '}');
    if (!is_plain)
        ret->n = before;
    return ret->n - before;
}
