/*
 * Bodies of the API as C values: protobuf's JSON mapping, table driven.
 *
 * A member is found by its lowerCamelCase name or its snake_case form; null counts as unset;
 * members nobody knows are passed over. Integers come as numbers or decimal strings, enums by name
 * or number, doubles also as "NaN", "Infinity", "-Infinity". A member that is unset leaves the
 * caller's value alone, so the caller puts defaults (or a mark for "unset") there first. Errors
 * name the member by its path: "logs[3].rankId: expected an integer, got a string".
 */
#ifndef PROTO_WIRE_H
#define PROTO_WIRE_H

#include "det/err.h"
#include "json.h"
#include <stddef.h>
#include <stdint.h>

enum wire_type {
    WIRE_STR,    /* const char *: borrowed from the JSON */
    WIRE_BOOL,   /* int: 0 or 1, so that -1 can mean unset */
    WIRE_I32,    /* int64_t, within 32 bits signed */
    WIRE_I64,    /* int64_t */
    WIRE_F64,    /* double */
    WIRE_ENUM,   /* int */
    WIRE_TIME,   /* int64_t: wall microseconds of an RFC 3339 text */
    WIRE_OBJECT, /* json_t *: borrowed */
    WIRE_ARRAY,  /* json_t *: borrowed */
    WIRE_ANY,    /* json_t *: borrowed; null counts as unset here too */
};

/* A table of names ends with {NULL, 0}. Of two names of one number the first is the one written. */
struct wire_name {
    const char *name;
    int number;
};

#define WIRE_REQUIRED 1u
struct wire_field {
    const char *name; /* lowerCamelCase */
    enum wire_type type;
    size_t offset; /* of the member in the struct that is filled */
    unsigned flags;
    const struct wire_name *names; /* WIRE_ENUM */
};

/* Fills *ret from obj. where: what obj is in errors ("checkpoint"), "" at the top. DET_EINVAL. */
DET_MUST int wire_decode(const json_t *obj, const char *where, const struct wire_field *fields,
                         size_t n, void *ret, struct det_err *err);
/* A member by either spelling; NULL when unset. Borrowed. */
json_t *wire_get(const json_t *obj, const char *name);
/* One value; `where` names it in errors. */
DET_MUST int wire_i64(const json_t *j, const char *where, int64_t *ret, struct det_err *err);
DET_MUST int wire_f64(const json_t *j, const char *where, double *ret, struct det_err *err);
DET_MUST int wire_enum(const json_t *j, const char *where, const struct wire_name *names, int *ret,
                       struct det_err *err);
/* The same for a query parameter's text: a name or a number. */
DET_MUST int wire_enum_text(const char *text, const char *where, const struct wire_name *names,
                            int *ret, struct det_err *err);
/* "" when there is none. */
const char *wire_name_of(const struct wire_name *names, int number);
/* A NUL-terminated snake_case form of a lowerCamelCase name, cut to size n. */
void wire_snake(const char *camel, char *out, size_t n);

/* The enums of the API. */
extern const struct wire_name wire_order_by[], wire_log_level[], wire_exp_state[],
    wire_trial_state[], wire_checkpoint_state[], wire_trial_sort[], wire_exp_sort[],
    wire_user_sort[], wire_agent_sort[], wire_checkpoint_sort[], wire_filter_option[],
    wire_template_sort[], wire_model_sort[], wire_version_sort[], wire_workspace_sort[],
    wire_project_sort[], wire_metric_type[], wire_early_exit[], wire_job_state[],
    wire_profiler_type[];

#endif
