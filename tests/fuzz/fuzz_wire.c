/*
 * A body of the API from any bytes, through a table with a field of every type. What is taken is
 * within its type and, written out again, is taken as the same; what is refused says why. The bytes
 * are also a query parameter's text.
 */
#include "clk.h"
#include "wire.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct body {
    const char *str;
    int flag, kind;
    int64_t small, large, time_us;
    double real;
    json_t *object, *array, *any;
};

static const struct wire_field fields[] = {
    {"someText", WIRE_STR, offsetof(struct body, str), WIRE_REQUIRED, NULL},
    {"someFlag", WIRE_BOOL, offsetof(struct body, flag), 0, NULL},
    {"someKind", WIRE_ENUM, offsetof(struct body, kind), 0, wire_exp_state},
    {"smallNumber", WIRE_I32, offsetof(struct body, small), 0, NULL},
    {"largeNumber", WIRE_I64, offsetof(struct body, large), 0, NULL},
    {"startTime", WIRE_TIME, offsetof(struct body, time_us), 0, NULL},
    {"realNumber", WIRE_F64, offsetof(struct body, real), 0, NULL},
    {"someObject", WIRE_OBJECT, offsetof(struct body, object), 0, NULL},
    {"someArray", WIRE_ARRAY, offsetof(struct body, array), 0, NULL},
    {"anyValue", WIRE_ANY, offsetof(struct body, any), 0, NULL},
};
#define FIELD_COUNT (sizeof fields / sizeof *fields)

static void require(bool ok)
{
    if (!ok)
        abort();
}

static void check_text(const struct det_err *err)
{
    require(*err->text && memchr(err->text, 0, sizeof err->text));
}

static int decode(const json_t *j, struct body *b, struct det_err *err)
{
    *b = (struct body){.flag = -1, .kind = wire_exp_state[0].number};
    return wire_decode(j, "body", fields, FIELD_COUNT, b, err);
}

/* What was taken, as a client would send it: by the other spelling, and numbers as text. */
static json_t *write_body(const struct body *b)
{
    char when[CLK_RFC3339_MAX], small[24], large[24];
    snprintf(small, sizeof small, "%lld", (long long)b->small);
    snprintf(large, sizeof large, "%lld", (long long)b->large);
    clk_format(b->time_us, when);
    json_t *j = json_make("{s:s, s:s, s:s, s:s}", "some_text", b->str, "some_kind",
                          wire_name_of(wire_exp_state, b->kind), "small_number", small,
                          "large_number", large);
    json_object_set_new(j, "start_time", json_string(when));
    if (isfinite(b->real))
        json_object_set_new(j, "real_number", json_real(b->real));
    return j;
}

static void check_body(const json_t *j)
{
    struct det_err err = {0};
    struct body b, again;
    if (decode(j, &b, &err) < 0) {
        check_text(&err);
        return;
    }
    require(b.str && b.flag >= -1 && b.flag <= 1 && *wire_name_of(wire_exp_state, b.kind));
    require(b.small >= INT32_MIN && b.small <= INT32_MAX);
    require(!b.object || json_is_object(b.object));
    require(!b.array || json_is_array(b.array));
    JSON_OWN out = write_body(&b);
    require(decode(out, &again, &err) == 0);
    require(!strcmp(again.str, b.str) && again.kind == b.kind);
    require(again.small == b.small && again.large == b.large && again.time_us == b.time_us);
    require(!isfinite(b.real) || again.real == b.real);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct det_err err = {0};
    JSON_OWN j = json_parse((const char *)data, size, &err);
    if (j)
        check_body(j);
    else
        check_text(&err);

    int number = 0;
    det_cleanup(freep) char *text = det_strndup((const char *)data, size);
    if (wire_enum_text(text, "sortBy", wire_trial_sort, &number, &err) == 0)
        require(*wire_name_of(wire_trial_sort, number));
    else
        check_text(&err);
    return 0;
}
