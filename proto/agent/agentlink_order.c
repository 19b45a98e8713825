/* Orders and what a start order carries. */
#include "agentlink.h"
#include "agentlink_field.h"
#include "pythonlimits.h"

#include <limits.h>
#include <signal.h>
#include <string.h>

#define AT(type, member) offsetof(struct type, member)

static const char *const order_names[] = {"heartbeat", "start", "signal", "store", "stacks"};
static const char *const signal_names[] = {"KILL", "TERM", "INT", "USR1", "USR2"};
static const int signal_numbers[] = {SIGKILL, SIGTERM, SIGINT, SIGUSR1, SIGUSR2};

static const struct link_field start_fields[] = {
    {"seq", LINK_F_I64, AT(link_order, seq), true, 1, INT64_MAX / 2, NULL},
    {"alloc", LINK_F_ID, AT(link_order, alloc), true, 0, 0, NULL},
    {"container", LINK_F_ID, AT(link_order, container), true, 0, 0, NULL},
    {"task", LINK_F_OBJ, AT(link_order, task), true, 0, 0, NULL},
    {0},
};
static const struct link_field signal_fields[] = {
    {"seq", LINK_F_I64, AT(link_order, seq), true, 1, INT64_MAX / 2, NULL},
    {"alloc", LINK_F_ID, AT(link_order, alloc), true, 0, 0, NULL},
    {"container", LINK_F_ID, AT(link_order, container), false, 0, 0, NULL},
    {"signal", LINK_F_NAME, AT(link_order, signal), true, 0, DET_ARRAY_LEN(signal_names),
     signal_names},
    {0},
};

static const struct link_field stacks_fields[] = {
    {"seq", LINK_F_I64, AT(link_order, seq), true, 1, INT64_MAX / 2, NULL},
    {"alloc", LINK_F_ID, AT(link_order, alloc), true, 0, 0, NULL},
    {"container", LINK_F_ID, AT(link_order, container), true, 0, 0, NULL},
    {0},
};

static int start_decode(struct link_order *o, struct det_err *err)
{
    struct link_spec spec;
    int rc = link_fields(o->json, start_fields, o, err);
    if (rc == 0)
        rc = link_spec_decode(o->task, &spec, err);
    if (rc < 0)
        return det_wrap(err, rc, "start");
    link_spec_finish(&spec);
    return 0;
}

static int signal_decode(struct link_order *o, struct det_err *err)
{
    int rc = link_fields(o->json, signal_fields, o, err);
    if (rc < 0)
        return det_wrap(err, rc, "signal");
    o->signal = signal_numbers[o->signal];
    return 0;
}

static const struct link_field user_fields[] = {
    {"name", LINK_F_STR, AT(link_spec, user_name), true, 0, 256, NULL},
    {"uid", LINK_F_I64, AT(link_spec, uid), true, 0, UINT32_MAX - 1, NULL},
    {"gid", LINK_F_I64, AT(link_spec, gid), true, 0, UINT32_MAX - 1, NULL},
    {0},
};

static bool all_strings(const json_t *arr)
{
    for (size_t i = 0; i < json_array_size(arr); i++)
        if (!json_is_string(json_array_get(arr, i)))
            return false;
    return true;
}

static const struct link_field store_fields[] = {
    {"seq", LINK_F_I64, AT(link_order, seq), true, 1, INT64_MAX / 2, NULL},
    {"place", LINK_F_STR, AT(link_order, watch.place), true, 0, LINK_PLACE_MAX, NULL},
    {"id", LINK_F_ID, AT(link_order, watch.id), false, 0, 0, NULL},
    {"known", LINK_F_ARR, AT(link_order, watch.known), false, 0, LINK_KNOWN_MAX, NULL},
    {"user", LINK_F_OBJ, AT(link_order, watch.user), false, 0, 0, NULL},
    {"owner", LINK_F_I64, AT(link_order, watch.owner), false, 0, INT32_MAX, NULL},
    {0},
};

static int store_decode(struct link_order *o, struct det_err *err)
{
    struct link_spec account;
    int rc = link_fields(o->json, store_fields, o, err);
    if (rc == 0 && o->watch.user)
        rc = link_fields(o->watch.user, user_fields, &account, err);
    if (rc == 0 && (o->watch.place[0] != '/' || !all_strings(o->watch.known)))
        rc = det_fail(err, DET_EINVAL, "place is an absolute path, known a list of strings");
    o->watch.make = json_flag(o->json, "make", false);
    return rc < 0 ? det_wrap(err, rc, "store") : 0;
}

static int stacks_decode(struct link_order *o, struct det_err *err)
{
    int rc = link_fields(o->json, stacks_fields, o, err);
    return rc < 0 ? det_wrap(err, rc, "stacks") : 0;
}

static enum link_order_kind order_kind(const char *name)
{
    int kind = 0;
    while (kind < LINK_ORDER_UNKNOWN && strcmp(name, order_names[kind]) != 0)
        kind++;
    return (enum link_order_kind)kind;
}

/* The others are a number at most. */
static int (*const decoders[LINK_ORDER_UNKNOWN + 1])(struct link_order *o, struct det_err *err) = {
    [LINK_START] = start_decode,
    [LINK_SIGNAL] = signal_decode,
    [LINK_STORE] = store_decode,
    [LINK_STACKS] = stacks_decode,
};

int link_order_decode(const char *line, size_t len, struct link_order *ret, struct det_err *err)
{
    *ret = (struct link_order){0};
    if (len > LINK_LINE_MAX)
        return det_fail(err, DET_ETOOBIG, "an order of %zu bytes, at most %zu are allowed", len,
                        LINK_LINE_MAX);
    ret->json = json_parse(line, len, err);
    if (!ret->json)
        return DET_EINVAL;
    const char *name = json_str(ret->json, "order", NULL);
    ret->kind = name ? order_kind(name) : LINK_ORDER_UNKNOWN;
    ret->seq = json_int(ret->json, "seq", 0);
    int rc = !name                 ? det_fail(err, DET_EINVAL, "order: missing")
             : decoders[ret->kind] ? decoders[ret->kind](ret, err)
                                   : 0;
    if (rc < 0)
        link_order_finish(ret);
    return rc;
}

void link_order_finish(struct link_order *o)
{
    json_decref(o->json);
    *o = (struct link_order){0};
}

static const char *signal_name(int number)
{
    for (size_t i = 0; i < DET_ARRAY_LEN(signal_numbers); i++)
        if (signal_numbers[i] == number)
            return signal_names[i];
    return signal_names[0];
}

static void watch_encode(json_t *j, const struct link_watch *w)
{
    json_set(j, "place", json_string_nocheck(w->place));
    if (w->id)
        json_set(j, "id", json_string(w->id));
    if (w->known)
        json_set(j, "known", json_incref((json_t *)w->known));
    if (w->user)
        json_set(j, "user", json_incref((json_t *)w->user));
    if (w->owner > 0)
        json_set(j, "owner", json_integer(w->owner));
    if (w->make)
        json_set(j, "make", json_true());
}

json_t *link_order_json(const struct link_order *o)
{
    json_t *j = json_object();
    if (o->seq > 0)
        json_set(j, "seq", json_integer(o->seq));
    json_set(j, "order", json_string(order_names[o->kind < LINK_ORDER_UNKNOWN ? o->kind : 0]));
    if (o->kind == LINK_SIGNAL || o->kind == LINK_STACKS) {
        json_set(j, "alloc", json_string(o->alloc));
        if (o->container)
            json_set(j, "container", json_string(o->container));
    }
    if (o->kind == LINK_SIGNAL)
        json_set(j, "signal", json_string(signal_name(o->signal)));
    if (o->kind == LINK_STORE)
        watch_encode(j, &o->watch);
    return j;
}

void link_start_write(struct buf *out, const struct link_order *o, const char *task)
{
    buf_add_ch(out, '{');
    json_add_int(out, "seq", o->seq);
    json_add_str(out, "order", order_names[LINK_START]);
    json_add_str(out, "alloc", o->alloc);
    json_add_str(out, "container", o->container);
    json_add_key(out, "task");
    buf_add_str(out, task);
    buf_add_ch(out, '}');
}

/* ---- task ---- */

static const char *const kind_names[] = {"TRIAL", "CHECKPOINT_GC"};

struct spec_parts {
    struct link_spec s;
    int kind;
    json_t *slots, *slot_counts, *user, *gc;
};
static const struct link_field spec_fields[] = {
    {"task_id", LINK_F_ID, AT(spec_parts, s.task_id), true, 0, 0, NULL},
    {"kind", LINK_F_NAME, AT(spec_parts, kind), true, 0, DET_ARRAY_LEN(kind_names), kind_names},
    {"run_id", LINK_F_I64, AT(spec_parts, s.run_id), false, 0, INT64_MAX / 2, NULL},
    {"slots", LINK_F_ARR, AT(spec_parts, slots), true, 0, LINK_SLOTS_MAX, NULL},
    {"node", LINK_F_INT, AT(spec_parts, s.node), false, 0, LINK_NODES_MAX - 1, NULL},
    {"nodes", LINK_F_INT, AT(spec_parts, s.nodes), false, 1, LINK_NODES_MAX, NULL},
    {"slot_counts", LINK_F_ARR, AT(spec_parts, slot_counts), false, 0, LINK_NODES_MAX, NULL},
    {"entrypoint", LINK_F_ANY, AT(spec_parts, s.entrypoint), false, 0, 0, NULL},
    {"env", LINK_F_OBJ, AT(spec_parts, s.env), true, 0, 0, NULL},
    {"token", LINK_F_STR, AT(spec_parts, s.token), true, 0, 4096, NULL},
    {"user", LINK_F_OBJ, AT(spec_parts, user), false, 0, 0, NULL},
    {"owner", LINK_F_I64, AT(spec_parts, s.owner), false, 0, INT32_MAX, NULL},
    {"stall_timeout_ms", LINK_F_I64, AT(spec_parts, s.stall_timeout_ms), false, 0, INT64_MAX / 2,
     NULL},
    {"context", LINK_F_STR, AT(spec_parts, s.context), false, 0, (int64_t)LINK_LINE_MAX, NULL},
    {"checkpoint_storage", LINK_F_OBJ, AT(spec_parts, s.checkpoint_storage), false, 0, 0, NULL},
    {"python", LINK_F_OBJ, AT(spec_parts, s.python), false, 0, 0, NULL},
    {"gc", LINK_F_OBJ, AT(spec_parts, gc), false, 0, 0, NULL},
    {0},
};
const char *const link_gc_names[LINK_GC_COUNT] = {"purge", "quarantine", "restore", "cut", "list"};
static const struct link_field gc_fields[] = {
    {"uuids", LINK_F_ARR, AT(link_spec, gc_uuids), true, 0, 1000000, NULL},
    {"action", LINK_F_NAME, AT(link_spec, gc_action), false, 0, DET_ARRAY_LEN(link_gc_names),
     link_gc_names},
    {"globs", LINK_F_ARR, AT(link_spec, gc_globs), false, 0, 1000, NULL},
    {"trees", LINK_F_ARR, AT(link_spec, gc_trees), false, 0, 1000, NULL},
    {0},
};

struct python_parts {
    const char *interpreter, *index_url;
    const json_t *requirements, *constraints, *extra_index_urls, *system_site_packages;
};
static const struct link_field python_fields[] = {
    {"interpreter", LINK_F_STR, AT(python_parts, interpreter), false, 0, PYTHON_PATH_MAX, NULL},
    {"requirements", LINK_F_ARR, AT(python_parts, requirements), false, 0, PYTHON_LINES_MAX, NULL},
    {"constraints", LINK_F_ARR, AT(python_parts, constraints), false, 0, PYTHON_LINES_MAX, NULL},
    {"index_url", LINK_F_STR, AT(python_parts, index_url), false, 0, PYTHON_URL_MAX, NULL},
    {"extra_index_urls", LINK_F_ARR, AT(python_parts, extra_index_urls), false, 0, PYTHON_URLS_MAX,
     NULL},
    {"system_site_packages", LINK_F_ANY, AT(python_parts, system_site_packages), false, 0, 0, NULL},
    {0},
};

/* The rest of it is read by the task's own process. */
static int decode_python(struct link_spec *s, struct det_err *err)
{
    struct python_parts p = {0};
    int rc = s->python ? link_fields(s->python, python_fields, &p, err) : 0;
    if (rc == 0 && p.interpreter && !*p.interpreter)
        rc = det_fail(err, DET_EINVAL, "interpreter: empty");
    if (rc == 0 && !(all_strings(p.requirements) && all_strings(p.constraints) &&
                     all_strings(p.extra_index_urls)))
        rc = det_fail(err, DET_EINVAL,
                      "requirements, constraints and extra_index_urls are lists of strings");
    if (rc == 0 && p.system_site_packages && !json_is_boolean(p.system_site_packages))
        rc = det_fail(err, DET_EINVAL, "system_site_packages: true or false is wanted");
    s->interpreter = p.interpreter;
    s->requirements = json_array_size(p.requirements) ? p.requirements : NULL;
    return rc < 0 ? det_wrap(err, rc, "python") : 0;
}

static int check_env(const json_t *env, struct det_err *err)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)env, key, v)
    {
        if (!json_is_string(v))
            return det_fail(err, DET_EINVAL, "env.%s: a string is wanted", key);
        if (!key[0] || strchr(key, '='))
            return det_fail(err, DET_EINVAL, "env: '%.40s' is not the name of a variable", key);
    }
    return 0;
}

static int check_entrypoint(const struct spec_parts *p, struct det_err *err)
{
    const json_t *e = p->s.entrypoint;
    if (p->kind != 0)
        return p->s.gc_uuids ? 0 : det_fail(err, DET_EINVAL, "gc: missing");
    if (json_is_string(e) || (json_is_array(e) && json_array_size(e) > 0 && all_strings(e)))
        return 0;
    return det_fail(err, DET_EINVAL, "entrypoint: a string or a list of strings is wanted");
}

static int check_nodes(struct spec_parts *p, struct det_err *err)
{
    struct link_spec *s = &p->s;
    if (s->node >= s->nodes)
        return det_fail(err, DET_EINVAL, "node: %d of %d nodes", s->node, s->nodes);
    if (p->slot_counts && json_array_size(p->slot_counts) != (size_t)s->nodes)
        return det_fail(err, DET_EINVAL, "slot_counts: %zu counts of %d nodes",
                        json_array_size(p->slot_counts), s->nodes);
    if (!p->slot_counts && s->nodes > 1)
        return det_fail(err, DET_EINVAL, "slot_counts: missing");
    s->slots_n = json_array_size(p->slots);
    int rc = link_ints(p->slots, "slots", 0, LINK_SLOTS_MAX - 1, &s->slots, err);
    if (rc == 0)
        rc = link_ints(p->slot_counts, "slot_counts", 0, LINK_SLOTS_MAX, &s->slot_counts, err);
    if (rc == 0 && !s->slot_counts) {
        s->slot_counts = det_alloc(sizeof *s->slot_counts);
        s->slot_counts[0] = (int)s->slots_n;
    }
    if (rc == 0 && s->slot_counts[s->node] != (int)s->slots_n)
        rc = det_fail(err, DET_EINVAL, "slot_counts[%d]: %d, but there are %zu slots", s->node,
                      s->slot_counts[s->node], s->slots_n);
    return rc;
}

static int spec_parts_decode(const json_t *task, struct spec_parts *p, struct det_err *err)
{
    int rc = link_fields(task, spec_fields, p, err);
    if (rc == 0 && p->user)
        rc = link_fields(p->user, user_fields, &p->s, err);
    if (rc == 0 && p->gc)
        rc = link_fields(p->gc, gc_fields, &p->s, err);
    if (rc == 0 &&
        !(all_strings(p->s.gc_uuids) && all_strings(p->s.gc_globs) && all_strings(p->s.gc_trees)))
        rc = det_fail(err, DET_EINVAL, "gc: uuids, globs and trees are lists of strings");
    if (rc == 0 && p->s.gc_action != LINK_GC_PURGE && p->s.gc_trees)
        rc = det_fail(err, DET_EINVAL, "gc: trees belong to the action purge");
    if (rc == 0 && (p->s.gc_action == LINK_GC_CUT) != (json_array_size(p->s.gc_globs) > 0))
        rc = det_fail(err, DET_EINVAL, "gc: globs belong to the action cut, which needs some");
    if (rc == 0)
        rc = decode_python(&p->s, err);
    if (rc == 0)
        rc = check_env(p->s.env, err);
    if (rc == 0)
        rc = check_entrypoint(p, err);
    return rc == 0 ? check_nodes(p, err) : rc;
}

int link_spec_decode(const json_t *task, struct link_spec *ret, struct det_err *err)
{
    struct spec_parts p = {.s = {.nodes = 1}};
    int rc = spec_parts_decode(task, &p, err);
    if (rc < 0) {
        link_spec_finish(&p.s);
        return det_wrap(err, rc, "task");
    }
    p.s.kind = kind_names[p.kind];
    p.s.has_user = p.user != NULL;
    *ret = p.s;
    return 0;
}

void link_spec_finish(struct link_spec *s)
{
    free(s->slots);
    free(s->slot_counts);
    s->slots = s->slot_counts = NULL;
}
