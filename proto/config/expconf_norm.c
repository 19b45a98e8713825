/* From the forms people write to the full forms; and the defaults. Both leave alone what they do
 * not understand: the checks have complained about it. */
#include "expconf_schema.h"

#include "hparam.h"
#include <string.h>

static const char *const device_kinds[] = {"cpu", "cuda", "rocm"};

/* A value for all kinds of device, or a map (with gpu for cuda), to a map. */
static json_t *by_device(const json_t *v)
{
    json_t *out = json_object();
    for (size_t i = 0; i < DET_ARRAY_LEN(device_kinds); i++) {
        json_t *one = json_is_object(v) ? json_object_get(v, device_kinds[i]) : (json_t *)v;
        if (!one && i == 1)
            one = json_object_get(v, "gpu");
        if (one && !json_is_null(one))
            json_set(out, device_kinds[i], json_deep_copy(one));
    }
    return out;
}

/* A map with each whole number in its plain form. */
static json_t *normalise_numbers(const json_t *v)
{
    json_t *out = json_deep_copy(v);
    const char *name;
    json_t *number;
    int64_t n;
    json_object_foreach((json_t *)v, name, number) if (expconf_whole(number, &n))
        json_set(out, name, json_integer(n));
    return out;
}

static json_t *normalise_length(const json_t *v)
{
    int64_t n;
    if (!json_is_object(v))
        return expconf_whole(v, &n) ? json_integer(n) : json_deep_copy(v);
    return normalise_numbers(v);
}

static json_t *normalise_items(const json_t *list, json_t *(*one)(const json_t *))
{
    if (!json_is_array(list))
        return json_deep_copy(list);
    json_t *out = json_array();
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item) json_array_append_new(out, one(item));
    return out;
}

static json_t *normalise_device(const json_t *v)
{
    json_t *full = json_is_string(v) ? expconf_device(json_string_value(v)) : NULL;
    return full ? full : json_deep_copy(v);
}

static json_t *normalise_int(const json_t *v)
{
    int64_t n;
    return expconf_whole(v, &n) ? json_integer(n) : json_deep_copy(v);
}

static json_t *normalise_size(const json_t *v)
{
    int64_t n;
    return expconf_size(v, &n) ? json_integer(n) : json_deep_copy(v);
}

static json_t *normalise_python(const json_t *v)
{
    json_t *out = json_object();
    json_set(out, json_is_array(v) ? "requirements" : "interpreter", json_deep_copy(v));
    return out;
}

/* The full form of a value, new reference; NULL where it is what was written. */
static json_t *full_form(const struct expconf_key *key, const json_t *v)
{
    switch (key->type) {
    case EXPCONF_INT: return normalise_int(v);
    case EXPCONF_INTS: return normalise_items(v, normalise_int);
    case EXPCONF_DEVICES: return normalise_items(v, normalise_device);
    case EXPCONF_LENGTH:
    case EXPCONF_MAX_LENGTH: return normalise_length(v);
    case EXPCONF_IMAGE: return json_is_string(v) || json_is_object(v) ? by_device(v) : NULL;
    case EXPCONF_ENV_VARS: return json_is_array(v) || json_is_object(v) ? by_device(v) : NULL;
    case EXPCONF_SIZE: return normalise_size(v);
    case EXPCONF_PORTS: return normalise_numbers(v);
    case EXPCONF_PYTHON: return json_is_object(v) ? NULL : normalise_python(v);
    case EXPCONF_HPARAMS: return json_is_object(v) ? hparam_normalise(v) : NULL;
    case EXPCONF_STR: /* these are whole as they are written */
    case EXPCONF_NUM:
    case EXPCONF_BOOL:
    case EXPCONF_ENUM:
    case EXPCONF_OBJECT:
    case EXPCONF_FREE:
    case EXPCONF_ANY:
    case EXPCONF_NULL:
    case EXPCONF_STRS:
    case EXPCONF_PATTERN:
    case EXPCONF_OBJECTS:
    case EXPCONF_ENTRYPOINT:
    case EXPCONF_TYPE_COUNT: break;
    }
    return NULL;
}

static void normalise_key(struct expconf_walk *w, const struct expconf_key *key, json_t *obj,
                          const char *name, json_t *v)
{
    if (!v)
        return;
    if (json_is_null(v) || key->type == EXPCONF_ANY) {
        json_object_del(obj, name);
        return;
    }
    json_t *full = full_form(key, v);
    if (full)
        json_set(obj, name, full);
}

void expconf_normalise(json_t *config)
{
    struct expconf_walk w = {.on_key = normalise_key};
    expconf_walk(&w, config);
}

/* ---- defaults ---- */

/* What the default map of images or variables has and v lacks. */
static void fill_devices(json_t *v, const json_t *fallback)
{
    const char *kind;
    json_t *one;
    json_object_foreach((json_t *)fallback, kind, one) if (!json_object_get(v, kind))
        json_set(v, kind, json_deep_copy(one));
}

static void fill_key(struct expconf_walk *w, const struct expconf_key *key, json_t *obj,
                     const char *name, json_t *v)
{
    bool by_kind = key->type == EXPCONF_IMAGE || key->type == EXPCONF_ENV_VARS;
    if (!key->fallback || (v && !by_kind))
        return;
    const char *dot = strrchr(key->path, '.');
    det_cleanup(freep) char *prefix = det_strndup(key->path, dot ? (size_t)(dot - key->path) : 0);
    const char *kind_key = expconf_kind_key(prefix);
    if (kind_key && !expconf_key_takes(key, json_str(obj, kind_key, NULL)))
        return;
    JSON_OWN fallback = json_parse(key->fallback, strlen(key->fallback), NULL);
    if (v)
        fill_devices(v, fallback);
    else
        json_set(obj, name, det_take(fallback));
}

static int by_text(const void *a, const void *b)
{
    return strcmp(json_string_value(*(json_t *const *)a), json_string_value(*(json_t *const *)b));
}

/* Labels are a set: sorted, each once. */
static void sort_labels(json_t *config)
{
    json_t *labels = json_arr(config, "labels");
    size_t n = json_array_size(labels), i;
    det_cleanup(freep) json_t **v = det_alloc((n + 1) * sizeof *v);
    json_t *item;
    json_array_foreach(labels, i, item) v[i] = item;
    qsort(v, n, sizeof *v, by_text);
    json_t *set = json_array();
    for (i = 0; i < n; i++)
        if (i == 0 || by_text(&v[i - 1], &v[i]) != 0)
            json_array_append(set, v[i]);
    json_set(config, "labels", set);
}

void expconf_fill(json_t *config, const struct expconf_defaults *d)
{
    struct expconf_walk w = {.on_key = fill_key};
    expconf_walk(&w, config);
    sort_labels(config);
    json_t *repro = json_obj(config, "reproducibility");
    if (!json_object_get(repro, "experiment_seed"))
        json_set(repro, "experiment_seed", json_integer((uint32_t)d->wall_s));
    if (!json_object_get(config, "name")) {
        det_cleanup(freep) char *words = expconf_three_words(d->name_seed);
        det_cleanup(freep) char *name = det_asprintf("Experiment (%s)", words);
        json_set(config, "name", json_string(name));
    }
}
