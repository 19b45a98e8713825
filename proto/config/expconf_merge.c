/* Merging a lower configuration below a higher one; the rules stand in expconf.h. */
#include "expconf_schema.h"

#include "hparam.h"
#include <string.h>

static void merge_object(json_t *high, const json_t *low, const char *prefix);

/* Maps without a schema: union, the higher wins, nested maps the same way. */
static void merge_free(json_t *high, const json_t *low)
{
    const char *name;
    json_t *v;
    json_object_foreach((json_t *)low, name, v)
    {
        json_t *mine = json_object_get(high, name);
        if (!mine || json_is_null(mine))
            json_set(high, name, json_deep_copy(v));
        else if (json_is_object(mine) && json_is_object(v))
            merge_free(mine, v);
    }
}

/* A hyperparameter is atomic; only groups merge. */
static void merge_space(json_t *high, const json_t *low)
{
    const char *name;
    json_t *v;
    json_object_foreach((json_t *)low, name, v)
    {
        json_t *mine = json_object_get(high, name);
        if (!mine)
            json_set(high, name, json_deep_copy(v));
        else if (json_is_object(mine) && json_is_object(v) && !hparam_is_leaf(mine) &&
                 !hparam_is_leaf(v))
            merge_space(mine, v);
    }
}

/* Lower entries first: in a process's environment the later of two wins. */
static void merge_variables(json_t *high, const json_t *low)
{
    const char *kind;
    json_t *v;
    json_object_foreach((json_t *)low, kind, v)
    {
        json_t *mine = json_object_get(high, kind);
        json_t *both = json_deep_copy(v);
        if (json_is_array(both) && json_is_array(mine))
            json_array_extend(both, mine);
        json_set(high, kind, both);
    }
}

/* Whether the list has an entry that `v` would repeat: by the member `key`, or as a whole. */
static bool has_entry(const json_t *list, const json_t *v, const char *key)
{
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item)
    {
        if (key ? json_equal(json_object_get(item, key), json_object_get(v, key))
                : json_equal(item, v))
            return true;
    }
    return false;
}

static void append_missing(json_t *high, const json_t *low, const char *key)
{
    size_t i;
    json_t *item;
    json_array_foreach(low, i, item) if (!has_entry(high, item, key))
        json_array_append_new(high, json_deep_copy(item));
}

/* Lists that are joined instead of replaced, and what makes two entries the same. */
static void merge_list(json_t *high, const json_t *low, const char *path)
{
    static const struct {
        const char *path, *key;
    } joined[] = {
        {"bind_mounts", "container_path"},
        {"resources.devices", "container_path"},
        {"environment.proxy_ports", "proxy_port"},
        {"log_policies", NULL},
        {"labels", NULL},
    };
    for (size_t i = 0; i < DET_ARRAY_LEN(joined); i++)
        if (strcmp(joined[i].path, path) == 0)
            append_missing(high, low, joined[i].key);
}

/* Objects of another kind: only the keys that all kinds have. */
static void merge_common(json_t *high, const json_t *low, const char *prefix, const char *kind_key)
{
    for (size_t i = 0; i < expconf_keys_n; i++) {
        const struct expconf_key *key = &expconf_keys[i];
        const char *name = expconf_key_child(key, prefix);
        if (!name || key->kinds || strcmp(name, kind_key) == 0 || json_object_get(high, name))
            continue;
        json_t *v = json_object_get(low, name);
        if (v)
            json_set(high, name, json_deep_copy(v));
    }
}

static void merge_value(const struct expconf_key *key, json_t *high, const json_t *low)
{
    if (json_is_array(high) && json_is_array(low))
        merge_list(high, low, key->path);
    if (!json_is_object(high) || !json_is_object(low))
        return;
    const char *kind_key = expconf_kind_key(key->path);
    const char *kind = kind_key ? json_str(high, kind_key, NULL) : NULL;
    if (key->type == EXPCONF_HPARAMS)
        merge_space(high, low);
    else if (key->type == EXPCONF_ENV_VARS)
        merge_variables(high, low);
    else if (kind && strcmp(kind, json_str(low, kind_key, kind)) != 0)
        merge_common(high, low, key->path, kind_key);
    else if (key->type == EXPCONF_OBJECT)
        merge_object(high, low, key->path);
    else if (key->type != EXPCONF_LENGTH && key->type != EXPCONF_MAX_LENGTH)
        merge_free(high, low);
}

static void merge_object(json_t *high, const json_t *low, const char *prefix)
{
    const char *name;
    json_t *v;
    json_object_foreach((json_t *)low, name, v)
    {
        json_t *mine = json_object_get(high, name);
        const struct expconf_key *key = expconf_key_find(prefix, name);
        if (!mine || json_is_null(mine))
            json_set(high, name, json_deep_copy(v));
        else if (key)
            merge_value(key, mine, v);
    }
}

void expconf_merge(json_t *high, const json_t *low)
{
    merge_object(high, low, "");
}
