/* The check of the raw form: types, unknown keys, bounds. Nothing is required here. */
#include "expconf_schema.h"

#include "entrypoint.h"
#include "hparam.h"
#include "near.h"
#include "pattern.h"
#include "vec.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DEVICE_KINDS "cpu cuda rocm gpu"
#define SHOWN_MAX    60

static bool all_strings(const json_t *v)
{
    size_t i;
    json_t *item;
    json_array_foreach(v, i, item) if (!json_is_string(item)) return false;
    return json_is_array(v);
}

static bool all_whole(const json_t *v)
{
    size_t i;
    json_t *item;
    int64_t n;
    json_array_foreach(v, i, item)
    {
        if (!expconf_whole(item, &n) || n < 1 || n > INT32_MAX)
            return false;
    }
    return json_is_array(v);
}

static bool in_bounds(const struct expconf_key *key, const json_t *v)
{
    int64_t n;
    int64_t max = key->min || key->max ? key->max : INT32_MAX;
    return expconf_whole(v, &n) && n >= key->min && n <= max;
}

static bool is_length(const json_t *v, int64_t min)
{
    int64_t n;
    enum length_unit unit;
    void *it = json_object_iter((json_t *)v);
    return json_object_size(v) == 1 && length_unit_parse(json_object_iter_key(it), &unit) == 0 &&
           expconf_whole(json_object_iter_value(it), &n) && n >= min && n <= LENGTH_MAX;
}

static bool is_max_length(const json_t *v)
{
    int64_t n;
    return is_length(v, 1) || (expconf_whole(v, &n) && n >= 0 && n <= LENGTH_MAX);
}

static bool is_entrypoint(const json_t *v)
{
    if (json_is_string(v))
        return *json_string_value(v) != '\0';
    return all_strings(v) && json_array_size(v) > 0;
}

static bool is_assignments(const json_t *v)
{
    size_t i;
    json_t *item;
    if (!all_strings(v))
        return false;
    json_array_foreach(v, i, item)
    {
        const char *s = json_string_value(item);
        if (*s == '=' || !strchr(s, '='))
            return false;
    }
    return true;
}

static bool is_text(const json_t *v)
{
    return json_is_string(v);
}

/* A map whose keys are kinds of devices; gpu is an old name of cuda, so not both. */
static bool by_device(const json_t *v, bool (*ok)(const json_t *))
{
    const char *key;
    json_t *item;
    json_object_foreach((json_t *)v, key, item)
    {
        if (!expconf_word_in(DEVICE_KINDS, key) || (!json_is_null(item) && !ok(item)))
            return false;
    }
    return json_is_object(v) && !(json_object_get(v, "gpu") && json_object_get(v, "cuda"));
}

static bool is_ports(const json_t *v)
{
    const char *key;
    json_t *item;
    int64_t n;
    json_object_foreach((json_t *)v, key, item)
    {
        if (!expconf_whole(item, &n) || n < 0 || n > 65535)
            return false;
    }
    return json_is_object(v);
}

static bool all_objects(const json_t *v, bool devices)
{
    size_t i;
    json_t *item;
    json_array_foreach(v, i, item)
    {
        if (json_is_object(item))
            continue;
        det_cleanup(json_decrefp) json_t *device =
            devices && json_is_string(item) ? expconf_device(json_string_value(item)) : NULL;
        if (!device)
            return false;
    }
    return json_is_array(v);
}

static bool type_is_right(const struct expconf_key *key, const json_t *v)
{
    int64_t n;
    switch (key->type) {
    case EXPCONF_STR:
    case EXPCONF_PATTERN: return json_is_string(v);
    case EXPCONF_INT: return in_bounds(key, v);
    case EXPCONF_NUM: return json_is_number(v);
    case EXPCONF_BOOL: return json_is_boolean(v);
    case EXPCONF_ENUM:
        return json_is_string(v) && expconf_word_in(key->choices, json_string_value(v));
    case EXPCONF_OBJECT:
    case EXPCONF_FREE:
    case EXPCONF_HPARAMS: return json_is_object(v);
    case EXPCONF_ANY: return true;
    case EXPCONF_STRS: return all_strings(v);
    case EXPCONF_INTS: return all_whole(v);
    case EXPCONF_OBJECTS:
    case EXPCONF_DEVICES: return all_objects(v, key->type == EXPCONF_DEVICES);
    case EXPCONF_LENGTH: return is_length(v, 0);
    case EXPCONF_MAX_LENGTH: return is_max_length(v);
    case EXPCONF_ENTRYPOINT: return is_entrypoint(v);
    case EXPCONF_IMAGE: return json_is_string(v) || by_device(v, is_text);
    case EXPCONF_ENV_VARS: return is_assignments(v) || by_device(v, is_assignments);
    case EXPCONF_SIZE: return expconf_size(v, &n);
    case EXPCONF_PORTS: return is_ports(v);
    case EXPCONF_PYTHON:
        return json_is_object(v) || all_strings(v) || (json_is_string(v) && *json_string_value(v));
    case EXPCONF_NULL: /* null was passed over before */
    case EXPCONF_TYPE_COUNT: break;
    }
    return false;
}

static void add_range(struct buf *out, const struct expconf_key *key, const json_t *v)
{
    int64_t n;
    buf_addf(out, "a whole number from %" PRId64, key->min);
    if (key->max && (key->max != INT32_MAX || (expconf_whole(v, &n) && n > key->max)))
        buf_addf(out, " to %" PRId64, key->max);
}

static void add_choices(struct buf *out, const char *words)
{
    buf_add_str(out, "one of ");
    for (const char *s = words; *s; s++)
        if (*s == ' ')
            buf_add_str(out, ", ");
        else
            buf_add_ch(out, *s);
}

static void add_expected(struct buf *out, const struct expconf_key *key, const json_t *v)
{
    static const char *const words[EXPCONF_TYPE_COUNT] = {
        [EXPCONF_STR] = "text",
        [EXPCONF_NUM] = "a number",
        [EXPCONF_BOOL] = "true or false",
        [EXPCONF_OBJECT] = "a map",
        [EXPCONF_FREE] = "a map",
        [EXPCONF_ANY] = "anything",
        [EXPCONF_NULL] = "nothing here (an internal key)",
        [EXPCONF_STRS] = "a list of text",
        [EXPCONF_INTS] = "a list of whole numbers from 1",
        [EXPCONF_OBJECTS] = "a list of maps",
        [EXPCONF_DEVICES] = "a list of devices",
        [EXPCONF_LENGTH] = "a length: exactly one of batches, records, epochs, with a whole number "
                           "from 0",
        [EXPCONF_MAX_LENGTH] = "a length: exactly one of batches, records, epochs, with a whole "
                               "number from 1",
        [EXPCONF_ENTRYPOINT] = "a command as text or as a list of text",
        [EXPCONF_IMAGE] = "an image, or a map of images by cpu, cuda, rocm",
        [EXPCONF_ENV_VARS] = "a list of KEY=value, or a map of such lists by cpu, cuda, rocm",
        [EXPCONF_SIZE] = "a number of bytes, or a size such as 4g or 1.5 GiB",
        [EXPCONF_PORTS] = "a map of names to ports from 0 to 65535",
        [EXPCONF_HPARAMS] = "a map of hyperparameters",
        [EXPCONF_PATTERN] = "a regular expression",
    };
    if (key->rule)
        buf_add_str(out, key->rule);
    else if (key->type == EXPCONF_INT)
        add_range(out, key, v);
    else if (key->type == EXPCONF_ENUM)
        add_choices(out, key->choices);
    else
        buf_add_str(out, words[key->type]);
}

/* A length or a list of numbers is shown as it is: the mistake lies in it. */
static void add_got(struct buf *out, const struct expconf_key *key, const json_t *v)
{
    bool whole = (key->type == EXPCONF_LENGTH || key->type == EXPCONF_MAX_LENGTH ||
                  key->type == EXPCONF_INTS) &&
                 !json_is_string(v);
    struct buf text = BUF_INIT;
    if (whole)
        json_write(&text, v);
    if (whole && text.len <= SHOWN_MAX)
        mistakes_quote(out, buf_str(&text), SHOWN_MAX);
    else
        mistakes_describe(out, v);
    buf_finish(&text);
}

static void add_mistake(struct expconf_walk *w, const struct expconf_key *key, const json_t *v)
{
    struct buf text = BUF_INIT;
    buf_add_str(&text, "expected ");
    add_expected(&text, key, v);
    buf_add_str(&text, ", got ");
    add_got(&text, key, v);
    if (key->example)
        buf_addf(&text, "; write e.g. %s", key->example);
    mistakes_add(w->errs, buf_str(&w->where), "%s", buf_str(&text));
    buf_finish(&text);
}

static void check_pattern(struct expconf_walk *w, const json_t *v)
{
    struct pattern *p = NULL;
    struct det_err err;
    if (pattern_compile(json_string_value(v), &p, &err) < 0)
        mistakes_add(w->errs, buf_str(&w->where), "%s", err.text);
    pattern_destroy(p);
}

static void check_entrypoint(struct expconf_walk *w, const json_t *v)
{
    const char *e = json_is_string(v) ? json_string_value(v) : "";
    const char *dot = entrypoint_meant_colon(e), *where = buf_str(&w->where);
    int n = (int)strlen(e), module = (int)strcspn(e, ": ");
    if (n > SHOWN_MAX)
        return;
    if (entrypoint_is_bare_file(e))
        mistakes_add(w->errs, where,
                     "\"%s\" would be run as a command that is looked for on PATH only: write "
                     "python3 %s for a program, or %.*s:Class for a trial",
                     e, e, n - 3, e);
    else if (entrypoint_has_blanks(e))
        mistakes_add(w->errs, where,
                     "\"%s\" would be run as a command; a trial is named module:Class without "
                     "blanks: write %.*s:%s",
                     e, module, e, strchr(e, ':') + 1 + strspn(strchr(e, ':') + 1, " "));
    else if (dot)
        mistakes_add(w->errs, where,
                     "\"%s\" would be run as a command; a trial is named module:Class: write "
                     "%.*s:%s",
                     e, (int)(dot - e), e, dot + 1);
}

static void on_key(struct expconf_walk *w, const struct expconf_key *key, json_t *obj,
                   const char *name, json_t *v)
{
    if (!v || json_is_null(v))
        return; /* as if it were not given */
    if (!type_is_right(key, v) || (key->ok && !key->ok(v)))
        add_mistake(w, key, v);
    else if (key->type == EXPCONF_HPARAMS)
        hparam_check(v, buf_str(&w->where), w->errs);
    else if (key->type == EXPCONF_PATTERN)
        check_pattern(w, v);
    else if (key->type == EXPCONF_ENTRYPOINT)
        check_entrypoint(w, v);
}

/* Kinds whose further keys nobody here can judge. */
static bool takes_any_key(const char *prefix, const char *kind)
{
    return strcmp(prefix, "searcher") == 0 && kind &&
           expconf_word_in("custom adaptive adaptive_simple sync_halving", kind);
}

static void complain_unknown(struct expconf_walk *w, const char *prefix, const char *name)
{
    VEC(const char *) names = {0};
    for (size_t i = 0; i < expconf_keys_n; i++) {
        const char *child = expconf_key_child(&expconf_keys[i], prefix);
        if (child)
            vec_push(&names, child);
    }
    struct buf path = BUF_INIT;
    buf_addf(&path, "%s%s%s", buf_str(&w->where), w->where.len ? "." : "", name);
    const char *near = near_name(name, names.v, names.n);
    mistakes_add(w->errs, buf_str(&path), "unknown key%s%s%s", near ? "; did you mean " : "",
                 near ? near : "", near ? "?" : "");
    buf_finish(&path);
    vec_free(&names);
}

/* Of a one-of object whose kind is known: keys of other kinds are mistakes. */
static void check_kind(struct expconf_walk *w, const struct expconf_key *key, const char *kind,
                       const char *name)
{
    if (expconf_key_takes(key, kind))
        return;
    det_cleanup(freep) char *path = det_asprintf("%s.%s", buf_str(&w->where), name);
    mistakes_add(w->errs, path, "not a key of %s %s; it belongs to: %s", buf_str(&w->where), kind,
                 key->kinds);
}

static void on_object(struct expconf_walk *w, const char *prefix, json_t *obj)
{
    const char *kind_key = expconf_kind_key(prefix);
    const char *kind = kind_key ? json_str(obj, kind_key, NULL) : NULL;
    const struct expconf_key *kinds = kind ? expconf_key_find(prefix, kind_key) : NULL;
    if (kinds && !expconf_word_in(kinds->choices, kind))
        kind = NULL; /* a mistake of its own, reported at the key */
    const char *name;
    json_t *v;
    json_object_foreach(obj, name, v)
    {
        const struct expconf_key *key = expconf_key_find(prefix, name);
        if (takes_any_key(prefix, kind))
            continue;
        if (!key)
            complain_unknown(w, prefix, name);
        else if (!json_is_null(v))
            check_kind(w, key, kind, name);
    }
}

void expconf_check(const json_t *raw, struct mistakes *errs)
{
    if (!json_is_object(raw)) {
        mistakes_add(errs, "", "expected a map of keys such as name: and searcher:");
        return;
    }
    struct expconf_walk w = {.on_object = on_object, .on_key = on_key, .errs = errs};
    expconf_walk(&w, (json_t *)raw);
}
