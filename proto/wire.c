#include "wire.h"
#include "clk.h"
#include "near.h"
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 32

void wire_snake(const char *camel, char *out, size_t n)
{
    size_t k = 0;
    for (; *camel && k + 2 < n; camel++) {
        if (isupper((unsigned char)*camel)) {
            out[k++] = '_';
            out[k++] = (char)tolower((unsigned char)*camel);
        } else {
            out[k++] = *camel;
        }
    }
    out[k] = '\0';
}

json_t *wire_get(const json_t *obj, const char *name)
{
    json_t *j = json_object_get(obj, name);
    if (!j) {
        char snake[96];
        wire_snake(name, snake, sizeof snake);
        j = json_object_get(obj, snake);
    }
    return json_is_null(j) ? NULL : j;
}

static const char *type_words(const json_t *j)
{
    static const char *const words[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array", [JSON_STRING] = "a string",
        [JSON_INTEGER] = "a number", [JSON_REAL] = "a number",  [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",      [JSON_NULL] = "null",
    };
    return words[json_typeof(j)];
}

static int fail_expected(const char *where, const char *what, const json_t *j, struct det_err *err)
{
    return det_fail(err, DET_EINVAL, "%s: expected %s, got %s", where, what, type_words(j));
}

static int i64_text(const char *s, int64_t *ret)
{
    char *end;
    errno = 0;
    long long v = strtoll(s, &end, 10);
    if (!*s || isspace((unsigned char)*s) || *end || errno)
        return DET_EINVAL;
    *ret = v;
    return 0;
}

int wire_i64(const json_t *j, const char *where, int64_t *ret, struct det_err *err)
{
    if (json_is_integer(j)) {
        *ret = json_integer_value(j);
        return 0;
    }
    if (json_is_real(j)) { /* protobuf takes 1e3 and 5.0 */
        double v = json_real_value(j);
        if (v != floor(v) || fabs(v) >= 0x1p63)
            return det_fail(err, DET_EINVAL, "%s: %g is not a 64-bit integer", where, v);
        *ret = (int64_t)v;
        return 0;
    }
    if (!json_is_string(j))
        return fail_expected(where, "an integer", j, err);
    if (i64_text(json_string_value(j), ret) < 0)
        return det_fail(err, DET_EINVAL, "%s: \"%.40s\" is not an integer", where,
                        json_string_value(j));
    return 0;
}

int wire_f64(const json_t *j, const char *where, double *ret, struct det_err *err)
{
    if (json_is_number(j)) {
        *ret = json_number_value(j);
        return 0;
    }
    if (!json_is_string(j))
        return fail_expected(where, "a number", j, err);
    const char *s = json_string_value(j);
    if (!strcmp(s, "NaN") || !strcmp(s, "Infinity") || !strcmp(s, "-Infinity")) {
        *ret = *s == 'N' ? NAN : *s == '-' ? -INFINITY : INFINITY;
        return 0;
    }
    char *end;
    double v = strtod(s, &end);
    if (!*s || isspace((unsigned char)*s) || *end || !isfinite(v))
        return det_fail(err, DET_EINVAL, "%s: \"%.40s\" is not a number", where, s);
    *ret = v;
    return 0;
}

const char *wire_name_of(const struct wire_name *names, int number)
{
    for (; names->name; names++)
        if (names->number == number)
            return names->name;
    return "";
}

static int enum_number(int64_t v, const char *where, const struct wire_name *names, int *ret,
                       struct det_err *err)
{
    for (; names->name; names++)
        if (names->number == v) {
            *ret = (int)v;
            return 0;
        }
    return det_fail(err, DET_EINVAL, "%s: there is no value %" PRId64, where, v);
}

int wire_enum_text(const char *text, const char *where, const struct wire_name *names, int *ret,
                   struct det_err *err)
{
    const char *all[NAMES_MAX];
    size_t n = 0;
    for (const struct wire_name *e = names; e->name; e++) {
        if (!strcmp(e->name, text)) {
            *ret = e->number;
            return 0;
        }
        if (n < NAMES_MAX)
            all[n++] = e->name;
    }
    int64_t v;
    if (i64_text(text, &v) == 0)
        return enum_number(v, where, names, ret, err);
    const char *near = near_name(text, all, n);
    if (near)
        return det_fail(err, DET_EINVAL, "%s: unknown name \"%.60s\"; did you mean \"%s\"?", where,
                        text, near);
    return det_fail(err, DET_EINVAL, "%s: unknown name \"%.60s\"; one of %s, %s, ...", where, text,
                    n > 1 ? all[1] : "", n > 2 ? all[2] : "");
}

int wire_enum(const json_t *j, const char *where, const struct wire_name *names, int *ret,
              struct det_err *err)
{
    if (json_is_string(j))
        return wire_enum_text(json_string_value(j), where, names, ret, err);
    if (json_is_integer(j))
        return enum_number(json_integer_value(j), where, names, ret, err);
    return fail_expected(where, "an enum's name or number", j, err);
}

static int decode_i32(const json_t *j, const char *where, int64_t *ret, struct det_err *err)
{
    int64_t v;
    int rc = wire_i64(j, where, &v, err);
    if (rc < 0)
        return rc;
    if (v < INT32_MIN || v > INT32_MAX)
        return det_fail(err, DET_EINVAL, "%s: %" PRId64 " does not fit 32 bits", where, v);
    *ret = v;
    return 0;
}

static int decode_text(const json_t *j, const char *where, enum wire_type type, void *to,
                       struct det_err *err)
{
    if (!json_is_string(j))
        return fail_expected(where, type == WIRE_TIME ? "an RFC 3339 time" : "a string", j, err);
    if (type == WIRE_TIME) {
        int rc = clk_parse(json_string_value(j), to, err);
        return rc < 0 ? det_wrap(err, rc, "%s", where) : 0;
    }
    if (strlen(json_string_value(j)) != json_string_length(j))
        return det_fail(err, DET_EINVAL, "%s: holds a NUL character", where);
    *(const char **)to = json_string_value(j);
    return 0;
}

static int decode_json(json_t *j, const char *where, enum wire_type type, void *to,
                       struct det_err *err)
{
    if (type == WIRE_OBJECT && !json_is_object(j))
        return fail_expected(where, "an object", j, err);
    if (type == WIRE_ARRAY && !json_is_array(j))
        return fail_expected(where, "an array", j, err);
    *(json_t **)to = j;
    return 0;
}

static int decode_one(json_t *j, const char *where, const struct wire_field *f, void *to,
                      struct det_err *err)
{
    switch (f->type) {
    case WIRE_STR:
    case WIRE_TIME: return decode_text(j, where, f->type, to, err);
    case WIRE_BOOL:
        if (!json_is_boolean(j))
            return fail_expected(where, "true or false", j, err);
        *(int *)to = json_is_true(j);
        return 0;
    case WIRE_I32: return decode_i32(j, where, to, err);
    case WIRE_I64: return wire_i64(j, where, to, err);
    case WIRE_F64: return wire_f64(j, where, to, err);
    case WIRE_ENUM: return wire_enum(j, where, f->names, to, err);
    case WIRE_OBJECT:
    case WIRE_ARRAY:
    case WIRE_ANY: break;
    }
    return decode_json(j, where, f->type, to, err);
}

int wire_decode(const json_t *obj, const char *where, const struct wire_field *fields, size_t n,
                void *ret, struct det_err *err)
{
    const char *dot = *where ? "." : "";
    if (!json_is_object(obj))
        return obj ? fail_expected(*where ? where : "body", "an object", obj, err)
                   : det_fail(err, DET_EINVAL, "%s is required", *where ? where : "the body");
    for (size_t i = 0; i < n; i++) {
        struct buf path = BUF_INIT;
        json_t *j = wire_get(obj, fields[i].name);
        int rc = 0;
        if (j || fields[i].flags & WIRE_REQUIRED)
            buf_addf(&path, "%s%s%s", where, dot, fields[i].name);
        if (j)
            rc = decode_one(j, path.p, &fields[i], (char *)ret + fields[i].offset, err);
        else if (fields[i].flags & WIRE_REQUIRED)
            rc = det_fail(err, DET_EINVAL, "%s is required", path.p);
        buf_finish(&path);
        if (rc < 0)
            return rc;
    }
    return 0;
}
