#include "task_spec.h"

#include "store.h"
#include <string.h>

static void set_str(json_t *env, const char *name, const char *value)
{
    json_set(env, name, json_string(value ? value : ""));
}

/* Text that is known to be UTF-8. */
static void set_text(json_t *env, const char *name, const char *text)
{
    json_set(env, name, json_stringn_nocheck(text, strlen(text)));
}

static void set_int(json_t *env, const char *name, int64_t value)
{
    json_set(env, name, json_sprintf("%lld", (long long)value));
}

/* Ports that allocations on the same host must not share: each takes its own index. */
static void set_ports(json_t *env, int index)
{
    set_int(env, "C10D_PORT", 29400 + index);
    set_int(env, "DTRAIN_SSH_PORT", 12350 + 20 * index);
    set_int(env, "INTER_TRAIN_PROCESS_COMM_PORT_1", 12360 + 20 * index);
    set_int(env, "INTER_TRAIN_PROCESS_COMM_PORT_2", 12365 + 20 * index);
}

static void set_trial(json_t *env, const struct alloc *a)
{
    const struct trial *t = a->trial;
    set_int(env, "DET_EXPERIMENT_ID", t->exp->id);
    set_int(env, "DET_TRIAL_ID", t->id);
    set_int(env, "DET_TRIAL_RUN_ID", a->run_id);
    set_int(env, "DET_TRIAL_SEED", t->seed);
    set_text(env, "DET_EXPERIMENT_CONFIG", t->exp->config_text);
    det_cleanup(freep) char *hparams = json_text(t->hparams);
    set_text(env, "DET_HPARAMS", hparams);
    if (t->latest || t->warm_start)
        set_str(env, "DET_LATEST_CHECKPOINT", t->latest ? t->latest : t->warm_start);
    set_int(env, "DET_STEPS_COMPLETED", t->latest ? t->latest_steps : 0);
}

/* The user's variables for the kind of device: a map of lists of NAME=value. */
static void set_user(json_t *env, const json_t *config, enum core_device device)
{
    static const char *const kinds[] = {"cpu", "cuda", "rocm"};
    const json_t *all = json_path(config, "environment.environment_variables");
    const json_t *list = json_is_array(all) ? all : json_arr(all, kinds[device]);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *pair = json_string_value(json_array_get(list, i));
        const char *eq = pair ? strchr(pair, '=') : NULL;
        if (!eq || eq == pair)
            continue;
        det_cleanup(freep) char *name = det_strndup(pair, (size_t)(eq - pair));
        set_str(env, name, eq + 1);
    }
}

static enum core_device device_of(const struct container *k)
{
    for (size_t i = 0; k->agent && i < k->agent->slots.n; i++)
        if (k->agent->slots.v[i].holder == k)
            return k->agent->slots.v[i].type;
    return CORE_CPU;
}

static json_t *environment(const struct container *k, const json_t *config)
{
    const struct alloc *a = k->alloc;
    json_t *env = json_object();
    set_str(env, "DET_TASK_ID", a->task_id);
    set_str(env, "DET_ALLOCATION_ID", a->id);
    set_str(env, "DET_TASK_TYPE", a->kind == KIND_GC ? "CHECKPOINT_GC" : "TRIAL");
    set_str(env, "DET_CONTAINER_ID", k->id);
    set_str(env, "DET_RESOURCES_ID", k->id);
    set_str(env, "DET_RESOURCES_TYPE", "docker-container");
    JSON_OWN meta = json_make("{s:s, s:s}", "allocation_id", a->id, "task_id", a->task_id);
    det_cleanup(freep) char *meta_text = json_text(meta);
    set_str(env, "DET_TASK_LOGGING_METADATA", meta_text);
    const struct store *store = store_of_alloc(a);
    if (store && store->id[0])
        set_str(env, "DET_STORE_ID", store->id);
    if (a->trial) {
        set_trial(env, a);
        set_ports(env, a->port);
        set_user(env, config, device_of(k));
    }
    return env;
}

json_t *task_spec(const struct container *k)
{
    const struct alloc *a = k->alloc;
    const json_t *config = a->exp && a->exp->config ? a->exp->config : a->gc_config;
    json_t *slots = json_array(), *counts = json_array(), *task = json_object();
    for (size_t i = 0; i < k->slots.n; i++)
        json_array_append_new(slots, json_integer(k->slots.v[i]));
    for (size_t i = 0; i < a->containers.n; i++)
        json_array_append_new(counts, json_integer((json_int_t)a->containers.v[i]->slots.n));
    json_set(task, "task_id", json_string(a->task_id));
    json_set(task, "kind", json_string(a->kind == KIND_GC ? "CHECKPOINT_GC" : "TRIAL"));
    json_set(task, "run_id", json_integer(a->run_id));
    json_set(task, "slots", slots);
    json_set(task, "node", json_integer(k->node));
    json_set(task, "nodes", json_integer((json_int_t)a->containers.n));
    json_set(task, "slot_counts", counts);
    json_set(task, "entrypoint", json_incref(json_object_get(config, "entrypoint")));
    json_set(task, "env", environment(k, config));
    json_set(task, "checkpoint_storage",
             json_incref(json_object_get(config, "checkpoint_storage")));
    if (a->kind == KIND_GC)
        json_set(task, "gc", json_incref(a->gc_work));
    return task;
}
