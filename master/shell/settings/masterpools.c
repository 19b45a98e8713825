#include "masterpools.h"

#include "mem.h"
#include "settings.h"
#include <string.h>

/* Nothing is set: as --print-example has it. */
static bool is_blank(const json_t *j)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)j, key, v) if (!is_blank(v)) return false;
    return json_is_null(j) || json_is_object(j);
}

static bool is_named_before(const json_t *list, size_t i, const char *name)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(json_str(json_array_get(list, k), "pool_name", ""), name) == 0)
            return true;
    return false;
}

static void check_quotas(const json_t *raw, struct mistakes *errs)
{
    const json_t *list = json_arr(raw, "quotas");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *q = json_array_get(list, i);
        det_cleanup(freep) char *where = det_asprintf("quotas[%zu]", i);
        if (is_blank(q))
            continue;
        if (!*json_str(q, "user", ""))
            mistakes_add(errs, where, "user is missing; write a name, or \"*\" for everybody");
        if (!json_is_integer(json_object_get(q, "slots")))
            mistakes_add(errs, where, "slots is missing; write how many he may hold");
    }
}

void masterpools_check(const json_t *raw, struct mistakes *errs)
{
    check_quotas(raw, errs);
    const json_t *list = json_arr(raw, "resource_pools");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_str(json_array_get(list, i), "pool_name", "");
        det_cleanup(freep) char *where = det_asprintf("resource_pools[%zu].pool_name", i);
        if (!*name && is_blank(json_array_get(list, i)))
            continue;
        if (!*name)
            mistakes_add(errs, where, "missing; write the name that agents give as theirs");
        else if (is_named_before(list, i, name))
            mistakes_add(errs, where, "%s is there already; one entry for each pool", name);
    }
}

static const char *text_at(const json_t *j, const char *path)
{
    const json_t *v = json_path(j, path);
    return json_is_string(v) ? json_string_value(v) : NULL;
}

static int64_t int_at(const json_t *j, const char *path, int64_t otherwise)
{
    const json_t *v = json_path(j, path);
    return json_is_integer(v) ? json_integer_value(v) : otherwise;
}

static bool flag_at(const json_t *j, const char *path, bool otherwise)
{
    const json_t *v = json_path(j, path);
    return json_is_boolean(v) ? json_is_true(v) : otherwise;
}

static int choice_at(const json_t *j, const char *path, const char *choices, int otherwise)
{
    const char *word = text_at(j, path);
    return word ? setting_choice(choices, word) : otherwise;
}

static struct core_pool_options pool_of(const struct core_options *o, const json_t *j)
{
    return (struct core_pool_options){
        .name = text_at(j, "pool_name"),
        .description = text_at(j, "description"),
        .scheduler = (enum core_scheduler)choice_at(
            j, "scheduler.type", "fair_share priority fifo round_robin", (int)o->scheduler),
        .fitting = (enum core_fitting)choice_at(j, "scheduler.fitting_policy", "best worst",
                                                (int)o->fitting),
        .preemption = flag_at(j, "scheduler.priority.preemption", o->preemption),
        .default_priority =
            (int)int_at(j, "scheduler.priority.default_priority", o->default_priority),
        .allow_heterogeneous_fits =
            flag_at(j, "scheduler.allow_heterogeneous_fits", o->allow_heterogeneous_fits),
        .max_aux_containers = (int)int_at(j, "max_aux_containers_per_agent", o->max_aux_containers),
        .agent_reconnect_wait_ms =
            int_at(j, "agent_reconnect_wait", o->agent_reconnect_wait_ms / 1000) * 1000,
        .starvation_wait_ms =
            int_at(j, "scheduler.starvation_wait", o->starvation_wait_ms / 1000) * 1000,
    };
}

void masterpools_read(struct masterconf *c)
{
    const json_t *list = json_arr(c->tree, "resource_pools");
    size_t n = json_array_size(list);
    c->pools = det_reallocarray(NULL, n ? n : 1, sizeof *c->pools);
    for (size_t i = 0; i < n; i++)
        if (!is_blank(json_array_get(list, i)))
            c->pools[c->core.pools_n++] = pool_of(&c->core, json_array_get(list, i));
    c->core.pools = c->pools;
    list = json_arr(c->tree, "quotas");
    n = json_array_size(list);
    c->quotas = det_reallocarray(NULL, n ? n : 1, sizeof *c->quotas);
    for (size_t i = 0; i < n; i++) {
        const json_t *q = json_array_get(list, i);
        if (!is_blank(q))
            c->quotas[c->core.quotas_n++] =
                (struct core_quota){text_at(q, "user"), text_at(q, "pool"), int_at(q, "slots", 0)};
    }
    c->core.quotas = c->quotas;
}

void masterpools_finish(struct masterconf *c)
{
    free(c->pools);
    free(c->quotas);
}
