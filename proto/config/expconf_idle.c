/* What a configuration says that nothing acts on. */
#include "entrypoint.h"
#include "expconf_schema.h"

#include <string.h>

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

void expconf_idle(const json_t *config, struct mistakes *ret)
{
    struct expconf_walk w = {.on_key = on_key, .errs = ret};
    expconf_walk(&w, (json_t *)config);
    say_what_stall_counts(config, ret);
}
