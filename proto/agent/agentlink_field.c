#include "agentlink_field.h"

#include <ctype.h>
#include <string.h>

bool link_id_is_valid(const char *s)
{
    size_t n = s ? strlen(s) : 0;
    if (n == 0 || n > LINK_ID_MAX || strcmp(s, ".") == 0 || strcmp(s, "..") == 0)
        return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && !strchr("._-", *s))
            return false;
    return true;
}

static int put_string(const json_t *v, const struct link_field *f, void *at, struct det_err *err)
{
    const char *s = json_string_value(v);
    if (!s)
        return det_fail(err, DET_EINVAL, "%s: a string is wanted", f->key);
    if (f->kind == LINK_F_ID && !link_id_is_valid(s))
        return det_fail(err, DET_EINVAL,
                        "%s: '%.40s' is not an id (letters, digits, '.', '_', '-')", f->key, s);
    if (f->kind == LINK_F_STR && (int64_t)json_string_length(v) > f->max)
        return det_fail(err, DET_ETOOBIG, "%s: %zu bytes, at most %lld are allowed", f->key,
                        json_string_length(v), (long long)f->max);
    *(const char **)at = s;
    return 0;
}

static int put_int(const json_t *v, const struct link_field *f, void *at, struct det_err *err)
{
    json_int_t n = json_integer_value(v);
    if (!json_is_integer(v) || n < f->min || n > f->max)
        return det_fail(err, DET_EINVAL, "%s: an integer from %lld to %lld is wanted", f->key,
                        (long long)f->min, (long long)f->max);
    if (f->kind == LINK_F_INT)
        *(int *)at = (int)n;
    else
        *(int64_t *)at = n;
    return 0;
}

static int put_name(const json_t *v, const struct link_field *f, void *at, struct det_err *err)
{
    const char *s = json_string_value(v);
    for (int i = 0; s && i < f->max; i++)
        if (strcmp(s, f->names[i]) == 0) {
            *(int *)at = i;
            return 0;
        }
    if (s && f->kind == LINK_F_NEWS) {
        *(int *)at = (int)f->min;
        return 0;
    }
    return det_fail(err, DET_EINVAL, "%s: '%.40s' is not known; the first known name is '%s'",
                    f->key, s ? s : "(no string)", f->names[0]);
}

static int put_json(json_t *v, const struct link_field *f, void *at, struct det_err *err)
{
    if (f->kind == LINK_F_OBJ && !json_is_object(v))
        return det_fail(err, DET_EINVAL, "%s: an object is wanted", f->key);
    if (f->kind == LINK_F_ARR && !json_is_array(v))
        return det_fail(err, DET_EINVAL, "%s: an array is wanted", f->key);
    if (f->kind == LINK_F_ARR && (int64_t)json_array_size(v) > f->max)
        return det_fail(err, DET_ETOOBIG, "%s: %zu elements, at most %lld are allowed", f->key,
                        json_array_size(v), (long long)f->max);
    *(json_t **)at = v;
    return 0;
}

static int put_field(json_t *v, const struct link_field *f, void *at, struct det_err *err)
{
    switch (f->kind) {
    case LINK_F_STR:
    case LINK_F_ID: return put_string(v, f, at, err);
    case LINK_F_INT:
    case LINK_F_I64: return put_int(v, f, at, err);
    case LINK_F_NAME:
    case LINK_F_NEWS: return put_name(v, f, at, err);
    case LINK_F_OBJ:
    case LINK_F_ARR:
    case LINK_F_ANY: break;
    }
    return put_json(v, f, at, err);
}

int link_fields(const json_t *obj, const struct link_field *rows, void *out, struct det_err *err)
{
    if (!json_is_object(obj))
        return det_fail(err, DET_EINVAL, "an object is wanted");
    for (const struct link_field *f = rows; f->key; f++) {
        json_t *v = json_object_get(obj, f->key);
        if (!v || json_is_null(v)) {
            if (f->required)
                return det_fail(err, DET_EINVAL, "%s: missing", f->key);
            continue;
        }
        int rc = put_field(v, f, (char *)out + f->offset, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int link_ints(const json_t *arr, const char *key, int min, int max, int **ret, struct det_err *err)
{
    size_t n = json_array_size(arr);
    det_cleanup(freep) int *v = n ? det_reallocarray(NULL, n, sizeof *v) : NULL;
    for (size_t i = 0; i < n; i++) {
        const json_t *e = json_array_get(arr, i);
        json_int_t x = json_integer_value(e);
        if (!json_is_integer(e) || x < min || x > max)
            return det_fail(err, DET_EINVAL, "%s[%zu]: an integer from %d to %d is wanted", key, i,
                            min, max);
        v[i] = (int)x;
    }
    *ret = det_take(v);
    return 0;
}
