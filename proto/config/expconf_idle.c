/* What a configuration says that nothing acts on, or that acts otherwise than it looks. */
#include "entrypoint.h"
#include "expconf_schema.h"
#include "hparam.h"

#include <string.h>

enum { LIST_ITEMS_MAX = 16, LIST_TEXT_MAX = 80 };

static bool is_default(const struct expconf_key *key, const json_t *v)
{
    if (!key->fallback)
        return false;
    JSON_OWN fallback = json_parse(key->fallback, strlen(key->fallback), NULL);
    return json_equal(v, fallback);
}

/* A place for tasks that is where the host has it needs nobody to act. */
static bool is_where_it_is(const json_t *obj, const char *name, const json_t *v)
{
    const char *host = json_str(obj, "host_path", NULL);
    return host && strcmp(name, "container_path") == 0 && strcmp(json_string_value(v), host) == 0;
}

static void on_key(struct expconf_walk *w, const struct expconf_key *key, json_t *obj,
                   const char *name, json_t *v)
{
    if (!key->idle || !v || json_is_null(v) || is_default(key, v) || is_where_it_is(obj, name, v))
        return;
    mistakes_add(w->errs, w->where.p, "has no effect: %s", key->idle);
}

/* A command says itself when it gets on; one that says nothing cannot be told from one that hangs.
 */
static void say_what_stall_counts(const json_t *config, struct mistakes *ret)
{
    const char *class = json_str(config, "entrypoint", "");
    if (json_int(config, "stall_timeout", 0) > 0 && !entrypoint_is_class(class))
        mistakes_add(ret, "stall_timeout",
                     "of a command it counts from its first "
                     "context.train.report_training_metrics() (determined.core): one that never "
                     "calls that is not ended by it");
}

/* Of plain values only: one of lists or groups is no row of values to try. */
static bool is_plain_list(const json_t *v)
{
    size_t i;
    json_t *item;
    json_array_foreach(v, i, item)
    {
        if (json_is_array(item) || json_is_object(item))
            return false;
    }
    return json_array_size(v) > 1;
}

static char *short_text(const json_t *list)
{
    det_cleanup(freep) char *text =
        json_array_size(list) <= LIST_ITEMS_MAX ? json_text(list) : NULL;
    return text && strlen(text) <= LIST_TEXT_MAX ? det_take(text) : det_strdup("[...]");
}

/* Elsewhere a list is what a grid goes through; here each trial gets the whole of it. */
static void say_what_lists_are(const json_t *space, const char *where, struct mistakes *ret)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)space, key, v)
    {
        det_cleanup(freep) char *path = det_asprintf("%s.%s", where, key);
        const json_t *list = hparam_is_leaf(v) ? json_object_get(v, "val") : NULL;
        if (is_plain_list(list)) {
            det_cleanup(freep) char *text = short_text(list);
            mistakes_add(ret, path,
                         "one constant, a list: each trial of the grid gets the whole of it. For "
                         "a trial with each of its values write {type: categorical, vals: %s}",
                         text);
        } else if (!hparam_is_leaf(v) && json_is_object(v)) {
            say_what_lists_are(v, path, ret);
        }
    }
}

void expconf_idle(const json_t *config, struct mistakes *ret)
{
    struct expconf_walk w = {.on_key = on_key, .errs = ret};
    expconf_walk(&w, (json_t *)config);
    say_what_stall_counts(config, ret);
    if (strcmp(json_str(json_object_get(config, "searcher"), "name", ""), "grid") == 0)
        say_what_lists_are(json_object_get(config, "hyperparameters"), "hyperparameters", ret);
}
