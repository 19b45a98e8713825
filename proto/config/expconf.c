#include "expconf.h"

#include "expconf_schema.h"
#include "yamljson.h"
#include <string.h>

/* New reference: the same value with the keys of every map sorted. */
static json_t *sorted_copy(const json_t *j)
{
    if (json_is_array(j)) {
        json_t *out = json_array();
        size_t i;
        json_t *item;
        json_array_foreach(j, i, item) json_array_append_new(out, sorted_copy(item));
        return out;
    }
    if (!json_is_object(j))
        return json_deep_copy(j);
    size_t n;
    det_cleanup(freep) const char **names = json_sorted_keys(j, &n);
    json_t *out = json_object();
    for (size_t i = 0; i < n; i++)
        json_set(out, names[i], sorted_copy(json_object_get(j, names[i])));
    return out;
}

/* The stages up to the defaults; what they find wrong is in errs. */
static json_t *prepare_config(const json_t *raw, const struct expconf_defaults *d,
                              struct mistakes *errs)
{
    expconf_check(raw, errs);
    json_t *config = json_deep_copy(raw);
    if (!json_is_object(config))
        return config;
    expconf_normalise(config);
    if (d->lower)
        expconf_merge(config, d->lower);
    expconf_check_whole(config, d->unmanaged, errs);
    return config;
}

int expconf_complete(const json_t *raw, const struct expconf_defaults *d, json_t **ret_config,
                     struct mistakes *errs, struct det_err *err)
{
    det_cleanup(mistakes_finish) struct mistakes own = MISTAKES_INIT;
    struct mistakes *m = errs ? errs : &own;
    JSON_OWN config = prepare_config(raw, d, m);
    int rc = mistakes_report(m, "configuration", err);
    if (rc < 0)
        return rc;
    expconf_fill(config, d);
    *ret_config = sorted_copy(config);
    return 0;
}

int expconf_parse(const char *yaml, size_t len, const struct expconf_defaults *d,
                  json_t **ret_config, struct mistakes *errs, struct det_err *err)
{
    json_t *raw = NULL;
    int rc = yamljson_parse(yaml, len, &raw, err);
    if (rc == 0) {
        rc = expconf_complete(raw, d, ret_config, errs, err);
        json_decref(raw);
    } else if (errs) {
        mistakes_add(errs, "", "%s", err ? err->text : "not YAML");
    }
    return rc;
}

int expconf_partial(const json_t *raw, json_t **ret, struct det_err *err)
{
    det_cleanup(mistakes_finish) struct mistakes m = MISTAKES_INIT;
    expconf_check(raw, &m);
    int rc = mistakes_report(&m, "configuration", err);
    if (rc < 0)
        return rc;
    *ret = json_deep_copy(raw);
    expconf_normalise(*ret);
    return 0;
}

/* The map at the dotted path up to its last part, made as needed; NULL where something else is. */
static json_t *parent_of(json_t *config, const char *path, size_t len, const char **ret_last)
{
    json_t *at = config;
    const char *end = path + len;
    for (;;) {
        const char *dot = memchr(path, '.', (size_t)(end - path));
        if (!dot) {
            *ret_last = path;
            return at;
        }
        det_cleanup(freep) char *name = det_strndup(path, (size_t)(dot - path));
        json_t *next = json_object_get(at, name);
        if (!*name || (next && !json_is_object(next) && !json_is_null(next)))
            return NULL;
        if (!json_is_object(next)) {
            if (json_object_set_new(at, name, json_object()) < 0)
                return NULL; /* the name is not UTF-8 */
            next = json_object_get(at, name);
        }
        at = next;
        path = dot + 1;
    }
}

int expconf_override(json_t *config, const char *assignment, struct det_err *err)
{
    const char *equals = strchr(assignment, '=');
    if (!equals || equals == assignment)
        return det_fail(err, DET_EINVAL,
                        "expected a key, = and a value, e.g. "
                        "searcher.max_length.batches=100");
    size_t len = (size_t)(equals - assignment);
    json_t *value = NULL;
    int rc = yamljson_parse(equals + 1, strlen(equals + 1), &value, err);
    if (rc < 0)
        return rc;
    const char *last;
    json_t *parent = parent_of(config, assignment, len, &last);
    det_cleanup(freep) char *name = parent ? det_strndup(last, (size_t)(equals - last)) : NULL;
    if (!parent || !*name || json_object_set(parent, name, value) < 0)
        rc = det_fail(err, DET_EINVAL,
                      "%.*s: no such place: a part of the path is empty, not UTF-8 or no map",
                      (int)(len > 200 ? 200 : len), assignment);
    json_decref(value);
    return rc;
}
