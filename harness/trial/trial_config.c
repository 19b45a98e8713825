/* Hyperparameters and the configuration, as the trial asks for them. */
#include "trial_context.h"

#include "near.h"
#include "vec.h"

#include <math.h>
#include <string.h>

static const char *type_name(const json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "a list";
    case JSON_STRING: return "a string";
    case JSON_INTEGER: return "a whole number";
    case JSON_REAL: return "a number";
    case JSON_TRUE:
    case JSON_FALSE: return "a bool";
    case JSON_NULL: break;
    }
    return "null";
}

static void wrong_type(struct det_trial_context *ctx, const char *section, const char *name,
                       const json_t *v, const char *wanted)
{
    trial_fail(ctx, DET_EINVAL, "%s.%s is %s; the trial asks for %s", section, name, type_name(v),
               wanted);
}

/* ---- hyperparameters ---- */

/* Where the path `name` breaks off: the innermost object or value that is there, how much of the
 * name leads to it in *ret_bytes, and the first part that is not there in *ret_part. */
static const json_t *broken_at(const json_t *hparams, const char *name, size_t *ret_bytes,
                               char **ret_part)
{
    const json_t *at = hparams;
    const char *part = name;
    for (;;) {
        size_t n = strcspn(part, ".");
        const json_t *next = json_object_getn(at, part, n);
        if (!next || !part[n]) {
            *ret_bytes = part == name ? 0 : (size_t)(part - name) - 1;
            *ret_part = det_strndup(part, n);
            return at;
        }
        at = next;
        part += n + 1;
    }
}

/* "lr, momentum; did you mean \"lr\"?" */
static void list_names(struct buf *out, const json_t *object, const char *wanted)
{
    const char *key, *near;
    json_t *value;
    VEC(const char *) names = {0};
    json_object_foreach((json_t *)object, key, value)
    {
        buf_addf(out, "%s%s", names.n ? ", " : "", key);
        vec_push(&names, key);
    }
    if (names.n == 0)
        buf_add_str(out, "nothing");
    if ((near = near_name(wanted, names.v, names.n)))
        buf_addf(out, "; did you mean \"%s\"?", near);
    vec_free(&names);
}

static void report_missing(struct det_trial_context *ctx, const char *name)
{
    size_t bytes = 0;
    det_cleanup(freep) char *part = NULL;
    det_cleanup(buf_finish) struct buf has = BUF_INIT;
    const json_t *at = broken_at(ctx->config->hparams, name, &bytes, &part);
    if (at && !json_is_object(at))
        buf_addf(&has, "is %s", type_name(at));
    else
        buf_add_str(&has, "has: ");
    if (!at || json_is_object(at))
        list_names(&has, at, part);
    trial_fail(ctx, DET_EINVAL,
               "hyperparameters.%s is not in the configuration; "
               "hyperparameters%s%.*s %s",
               name, bytes ? "." : "", (int)bytes, name, buf_str(&has));
}

static const json_t *find_hparam(struct det_trial_context *ctx, const char *name)
{
    const json_t *v = ctx->config->hparams ? json_path(ctx->config->hparams, name) : NULL;
    if (!v)
        report_missing(ctx, name);
    return v;
}

double det_hparam_f64(struct det_trial_context *ctx, const char *name)
{
    const json_t *v = find_hparam(ctx, name);
    if (v && !json_is_number(v))
        wrong_type(ctx, "hyperparameters", name, v, "a number");
    return json_number_value(v);
}

int64_t det_hparam_i64(struct det_trial_context *ctx, const char *name)
{
    const json_t *v = find_hparam(ctx, name);
    if (json_is_integer(v))
        return json_integer_value(v);
    double d = json_number_value(v);
    if (json_is_real(v) && d == floor(d) && fabs(d) <= 0x1p53)
        return (int64_t)d;
    if (v)
        wrong_type(ctx, "hyperparameters", name, v, "a whole number");
    return 0;
}

const char *det_hparam_str(struct det_trial_context *ctx, const char *name)
{
    const json_t *v = find_hparam(ctx, name);
    if (v && !json_is_string(v))
        wrong_type(ctx, "hyperparameters", name, v, "a string");
    return json_string_value(v);
}

bool det_hparam_bool(struct det_trial_context *ctx, const char *name)
{
    const json_t *v = find_hparam(ctx, name);
    if (v && !json_is_boolean(v))
        wrong_type(ctx, "hyperparameters", name, v, "true or false");
    return json_is_true(v);
}

bool det_hparam_has(struct det_trial_context *ctx, const char *name)
{
    return ctx->config->hparams && json_path(ctx->config->hparams, name);
}

/* ---- the data section ---- */

/* What may stand there, by jansson's types. */
enum {
    MAY_STRING = 1 << JSON_STRING,
    MAY_INTEGER = 1 << JSON_INTEGER,
    MAY_NUMBER = MAY_INTEGER | 1 << JSON_REAL,
    MAY_BOOL = 1 << JSON_TRUE | 1 << JSON_FALSE
};

/* NULL where it is absent or null, or where something else stands, which is a failure. */
static const json_t *find_data(struct det_trial_context *ctx, const char *name, int may,
                               const char *wanted)
{
    const json_t *data = json_obj(ctx->config->experiment_config, "data");
    const json_t *v = data ? json_path(data, name) : NULL;
    if (!v || json_is_null(v))
        return NULL;
    if (may >> json_typeof(v) & 1)
        return v;
    wrong_type(ctx, "data", name, v, wanted);
    return NULL;
}

const char *det_data_str(struct det_trial_context *ctx, const char *name, const char *fallback)
{
    const json_t *v = find_data(ctx, name, MAY_STRING, "a string");
    return v ? json_string_value(v) : fallback;
}

int64_t det_data_i64(struct det_trial_context *ctx, const char *name, int64_t fallback)
{
    const json_t *v = find_data(ctx, name, MAY_INTEGER, "a whole number");
    return v ? json_integer_value(v) : fallback;
}

double det_data_f64(struct det_trial_context *ctx, const char *name, double fallback)
{
    const json_t *v = find_data(ctx, name, MAY_NUMBER, "a number");
    return v ? json_number_value(v) : fallback;
}

bool det_data_bool(struct det_trial_context *ctx, const char *name, bool fallback)
{
    const json_t *v = find_data(ctx, name, MAY_BOOL, "true or false");
    return v ? json_is_true(v) : fallback;
}

/* ---- the whole ---- */

static const char *text_of(char **cache, const json_t *v)
{
    if (!*cache)
        *cache = v ? json_text(v) : det_strdup("null");
    return *cache;
}

const char *det_hparams_json(struct det_trial_context *ctx)
{
    return text_of(&ctx->hparams_text, ctx->config->hparams);
}

const char *det_trial_experiment_config_json(struct det_trial_context *ctx)
{
    return text_of(&ctx->config_text, ctx->config->experiment_config);
}

const char *det_trial_data_config_json(struct det_trial_context *ctx)
{
    return text_of(&ctx->data_text, json_obj(ctx->config->experiment_config, "data"));
}
