#include "task_spec.h"

#include "store.h"
#include <string.h>

/* The environment while it is written. What the user sets takes the place of ours. */
struct env {
    struct buf *out;
    json_t *user; /* NULL: nothing */
};

static bool env_begin(const struct env *e, const char *name)
{
    if (e->user && json_object_get(e->user, name))
        return false;
    json_add_key(e->out, name);
    return true;
}

static void set_str(const struct env *e, const char *name, const char *value)
{
    if (env_begin(e, name))
        json_write_string(e->out, value, strlen(value));
}

static void set_int(const struct env *e, const char *name, int64_t value)
{
    if (!env_begin(e, name))
        return;
    buf_add_ch(e->out, '"');
    buf_add_i64(e->out, value);
    buf_add_ch(e->out, '"');
}

/* Ports that allocations on the same host must not share: each takes its own index. */
static void set_ports(const struct env *e, int index)
{
    set_int(e, "C10D_PORT", 29400 + index);
    set_int(e, "DTRAIN_SSH_PORT", 12350 + 20 * index);
    set_int(e, "INTER_TRAIN_PROCESS_COMM_PORT_1", 12360 + 20 * index);
    set_int(e, "INTER_TRAIN_PROCESS_COMM_PORT_2", 12365 + 20 * index);
}

static void set_trial(const struct env *e, const struct alloc *a)
{
    const struct trial *t = a->trial;
    set_int(e, "DET_EXPERIMENT_ID", t->exp->id);
    set_int(e, "DET_TRIAL_ID", t->id);
    set_int(e, "DET_TRIAL_RUN_ID", a->run_id);
    set_int(e, "DET_TRIAL_SEED", t->seed);
    set_str(e, "DET_EXPERIMENT_CONFIG", t->exp->config_text);
    det_cleanup(freep) char *hparams = json_text(t->hparams);
    set_str(e, "DET_HPARAMS", hparams);
    if (t->latest || t->warm_start)
        set_str(e, "DET_LATEST_CHECKPOINT", t->latest ? t->latest : t->warm_start);
    set_int(e, "DET_STEPS_COMPLETED", t->latest ? t->latest_steps : 0);
}

static bool shell_sets(const char *name)
{
    return strcmp(name, "DET_SESSION_TOKEN") == 0 || strcmp(name, "DET_CLUSTER_ID") == 0 ||
           strcmp(name, "DET_MASTER_ID") == 0;
}

/* The user's variables for the kind of device: from lists of NAME=value. NULL: none. */
static json_t *user_variables(const json_t *config, enum core_device device)
{
    static const char *const kinds[] = {"cpu", "cuda", "rocm"};
    const json_t *all = json_path(config, "environment.environment_variables");
    const json_t *list = json_is_array(all) ? all : json_arr(all, kinds[device]);
    json_t *set = json_array_size(list) ? json_object() : NULL;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *pair = json_string_value(json_array_get(list, i));
        const char *eq = pair ? strchr(pair, '=') : NULL;
        if (!eq || eq == pair)
            continue;
        det_cleanup(freep) char *name = det_strndup(pair, (size_t)(eq - pair));
        if (!shell_sets(name))
            json_set(set, name, json_string(eq + 1));
    }
    return set;
}

static void add_user(const struct env *e)
{
    const char *name;
    json_t *value;
    json_object_foreach(e->user, name, value)
    {
        buf_add_ch(e->out, ',');
        json_write_string(e->out, name, strlen(name));
        buf_add_ch(e->out, ':');
        json_write(e->out, value);
    }
}

static enum core_device device_of(const struct container *k)
{
    for (size_t i = 0; k->agent && i < k->agent->slots.n; i++)
        if (k->agent->slots.v[i].holder == k)
            return k->agent->slots.v[i].type;
    return CORE_CPU;
}

static void set_metadata(const struct env *e, const struct alloc *a)
{
    det_cleanup(buf_finish) struct buf meta = BUF_INIT;
    buf_add_ch(&meta, '{');
    json_add_str(&meta, "allocation_id", a->id);
    json_add_str(&meta, "task_id", a->task_id);
    buf_add_ch(&meta, '}');
    set_str(e, "DET_TASK_LOGGING_METADATA", buf_str(&meta));
}

static const char *kind_text(const struct alloc *a)
{
    return a->kind == KIND_GC ? "CHECKPOINT_GC" : "TRIAL";
}

void task_env(const struct container *k, const json_t *config, struct buf *out)
{
    const struct alloc *a = k->alloc;
    JSON_OWN user = a->trial ? user_variables(config, device_of(k)) : NULL;
    const struct env e = {.out = out, .user = user};
    const struct store *store = store_of_alloc(a);
    buf_add_ch(out, '{');
    set_str(&e, "DET_TASK_ID", a->task_id);
    set_str(&e, "DET_ALLOCATION_ID", a->id);
    set_str(&e, "DET_TASK_TYPE", kind_text(a));
    set_str(&e, "DET_CONTAINER_ID", k->id);
    set_str(&e, "DET_RESOURCES_ID", k->id);
    set_str(&e, "DET_RESOURCES_TYPE", "docker-container");
    set_metadata(&e, a);
    if (store && store->id[0])
        set_str(&e, "DET_STORE_ID", store->id);
    if (a->trial) {
        set_trial(&e, a);
        set_ports(&e, a->port);
    }
    if (user)
        add_user(&e);
    buf_add_ch(out, '}');
}

static void add_item(struct buf *out, size_t i, int64_t v)
{
    buf_add_ch(out, i ? ',' : '[');
    buf_add_i64(out, v);
}

static void add_slots(struct buf *out, const struct container *k)
{
    json_add_key(out, "slots");
    for (size_t i = 0; i < k->slots.n; i++)
        add_item(out, i, k->slots.v[i]);
    buf_add_str(out, k->slots.n ? "]" : "[]");
    json_add_key(out, "slot_counts");
    for (size_t i = 0; i < k->alloc->containers.n; i++)
        add_item(out, i, (int64_t)k->alloc->containers.v[i]->slots.n);
    buf_add_ch(out, ']');
}

/* path: where it is in the configuration, dotted. */
static void add_part(struct buf *out, const json_t *config, const char *key, const char *path)
{
    const json_t *part = json_path(config, path);
    if (part)
        json_add(out, key, part);
}

void task_spec(const struct container *k, const json_t *config, struct buf *out)
{
    const struct alloc *a = k->alloc;
    buf_add_ch(out, '{');
    json_add_str(out, "task_id", a->task_id);
    json_add_str(out, "kind", kind_text(a));
    json_add_int(out, "run_id", a->run_id);
    json_add_int(out, "node", k->node);
    json_add_int(out, "nodes", (int64_t)a->containers.n);
    add_slots(out, k);
    add_part(out, config, "entrypoint", "entrypoint");
    add_part(out, config, "checkpoint_storage", "checkpoint_storage");
    if (a->trial)
        add_part(out, config, "python", "environment.python");
    if (a->kind == KIND_GC && a->gc_work)
        json_add(out, "gc", a->gc_work);
    buf_add_ch(out, '}');
}
