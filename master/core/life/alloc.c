#include "alloc.h"

#include "agent.h"
#include "effects.h"
#include "names.h"
#include "queue.h"
#include "store.h"
#include "task_spec.h"
#include "trial.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void alloc_mark(struct core *c, struct alloc *a)
{
    if (!a->dirty)
        vec_push(&c->dirty_allocs, a);
    a->dirty = true;
}

void alloc_goto(struct core *c, struct alloc *a, enum alloc_state to)
{
    a->state = edges_go(c, MACHINE_ALLOC, a->state, to);
    alloc_mark(c, a);
}

void container_goto(struct core *c, struct container *k, enum alloc_state to)
{
    k->state = edges_go(c, MACHINE_CONTAINER, k->state, to);
    alloc_mark(c, k->alloc);
}

struct alloc *alloc_find(const struct core *c, const char *id)
{
    return id ? map_get(c->alloc_by_id, id) : NULL;
}

struct container *alloc_container(const struct alloc *a, const char *id)
{
    for (size_t i = 0; id && i < a->containers.n; i++)
        if (strcmp(a->containers.v[i]->id, id) == 0)
            return a->containers.v[i];
    return NULL;
}

bool alloc_is_preemptible(const struct alloc *a)
{
    return a->kind == KIND_TRIAL;
}

bool alloc_is_ending(const struct alloc *a)
{
    return a->preempt || a->kill != KILL_NONE || a->state >= ALLOC_TERMINATING;
}

void alloc_enlist(struct core *c, struct alloc *a)
{
    a->hash = name_hash(a->id);
    a->timer.kind = TIMER_ALLOC;
    vec_push(&c->allocs, a);
    size_t i = c->allocs.n - 1;
    for (; i > 0 && c->allocs.v[i - 1]->seq > a->seq; i--)
        c->allocs.v[i] = c->allocs.v[i - 1];
    c->allocs.v[i] = a;
    map_put(c->alloc_by_id, a->id, a);
    alloc_rearm(c, a);
}

struct alloc *alloc_request(struct core *c, const struct alloc_request *r)
{
    struct alloc *a = det_zalloc(sizeof *a);
    a->seq = ++c->last_alloc;
    a->id = det_asprintf("%s.%lld%s%.*s", r->task_id, (long long)r->run_id, *c->nonce ? "." : "",
                         CORE_LIFE_MARK, c->nonce);
    a->task_id = det_strdup(r->task_id);
    a->kind = r->kind;
    a->exp = r->exp;
    a->trial = r->trial;
    a->exp_id = r->exp_id;
    a->owner_id = r->owner_id;
    a->run_id = r->run_id;
    a->slots = r->slots;
    a->pool = r->pool;
    a->gc_config = json_incref(r->gc_config);
    a->gc_work = json_incref(r->gc_work);
    a->store = r->gc_config ? store_of(c, r->gc_config, r->owner_id) : NULL;
    a->port = -1;
    a->is_new = true;
    a->start_us = c->now_us;
    a->hold_for_ms = r->hold_ms > c->now_ms ? r->hold_ms - c->now_ms : 0;
    a->hold_ms = a->hold_for_ms ? r->hold_ms : INT64_MAX;
    a->preempt_ms = a->kill_ms = a->start_ms = a->exit_ms = INT64_MAX;
    a->ready_ms = a->done_ms = a->shield_ms = INT64_MAX;
    alloc_enlist(c, a);
    queue_update(c, a);
    alloc_mark(c, a);
    fx_log(c, a, FX_INFO, "Queued: %s, run %lld, %lld slot%s in pool %s.", a->id,
           (long long)a->run_id, (long long)a->slots, a->slots == 1 ? "" : "s", a->pool->name);
    fx_timeline(c, a, "queued", "%lld slot%s in pool %s", (long long)a->slots,
                a->slots == 1 ? "" : "s", a->pool->name);
    return a;
}

void alloc_destroy(struct alloc *a)
{
    for (size_t i = 0; i < a->containers.n; i++) {
        struct container *k = a->containers.v[i];
        vec_free(&k->slots);
        free(k->agent_id);
        free(k);
    }
    vec_free(&a->containers);
    json_decref(a->gc_config);
    json_decref(a->gc_work);
    free(a->failure.text);
    free(a->failure.exception);
    free(a->failure.at);
    free(a->ports);
    free(a->id);
    free(a->task_id);
    free(a);
}

static bool port_is_taken(const struct core *c, size_t at)
{
    return at < c->ports.n && c->ports.v[at];
}

/* The lowest free index. */
static int port_take(struct core *c)
{
    while (port_is_taken(c, c->port_free))
        c->port_free++;
    size_t at = c->port_free;
    while (c->ports.n <= at)
        vec_push(&c->ports, false);
    c->ports.v[at] = true;
    return (int)at;
}

/* The container's id follows from the cluster, the leadership, the allocation and its place. */
static void container_id(const struct core *c, const struct alloc *a, int node,
                         char out[UUID_STR_MAX])
{
    char text[256];
    snprintf(text, sizeof text, "container %s %s %s %d", c->cluster_id, c->nonce, a->id, node);
    name_uuid_quick(text, out);
}

static json_t *whole_config(const struct alloc *a)
{
    const char *text = a->trial ? a->exp->config_text : NULL;
    return text ? json_parse(text, strlen(text), NULL) : json_incref(a->gc_config);
}

static void send_start(struct core *c, struct container *k)
{
    const struct alloc *a = k->alloc;
    if (k->agent->state != AGENT_UP)
        return;
    det_cleanup(buf_finish) struct buf task = BUF_INIT, env = BUF_INIT;
    JSON_OWN config = whole_config(a);
    task_spec(k, config, &task);
    task_env(k, config, &env);
    struct core_start s = {.agent_id = fx_str(c->out, k->agent->id),
                           .alloc_id = fx_str(c->out, a->id),
                           .container = fx_str(c->out, k->id),
                           .exp_id = a->exp_id,
                           .trial_id = a->trial ? a->trial->id : 0,
                           .run_id = a->run_id,
                           .owner_id = a->owner_id,
                           .stall_timeout_s = json_int(config, "stall_timeout", -1),
                           .task_id = fx_str(c->out, a->task_id),
                           .kind = a->kind == KIND_GC ? "CHECKPOINT_GC" : "TRIAL",
                           .task = fx_str(c->out, buf_str(&task)),
                           .env = fx_str(c->out, buf_str(&env))};
    fx_add(c->out, CORE_ORDER_START)->start = s;
}

static void send_kill(struct core *c, struct container *k)
{
    if (!k->agent || k->agent->state != AGENT_UP)
        return;
    struct core_kill o = {.agent_id = fx_str(c->out, k->agent->id),
                          .alloc_id = fx_str(c->out, k->alloc->id),
                          .container = fx_str(c->out, k->id)};
    fx_add(c->out, CORE_ORDER_KILL)->kill = o;
}

void alloc_resend(struct core *c, struct container *k)
{
    if (k->alloc->kill != KILL_NONE)
        send_kill(c, k);
    else if (k->state == ALLOC_ASSIGNED)
        send_start(c, k);
}

/* A script over the Core API says nothing of the checkpoint that it is given. */
static void log_placed(struct core *c, const struct alloc *a, const char *where)
{
    const struct trial *t = a->trial;
    const char *agents = a->containers.n > 1 ? "agents" : "agent";
    if (t && t->latest)
        fx_log(c, a, FX_INFO, "Assigned to %s %s; run %lld is given checkpoint %s of batch %lld.",
               agents, where, (long long)a->run_id, t->latest, (long long)t->latest_steps);
    else if (t && t->warm_start)
        fx_log(c, a, FX_INFO, "Assigned to %s %s; run %lld is given checkpoint %s to begin with.",
               agents, where, (long long)a->run_id, t->warm_start);
    else
        fx_log(c, a, FX_INFO, "Assigned to %s %s.", agents, where);
}

void alloc_place(struct core *c, struct alloc *a, const struct placement_node *nodes, size_t n)
{
    struct buf where = BUF_INIT;
    a->port = port_take(c);
    for (size_t i = 0; i < n; i++) {
        struct container *k = det_zalloc(sizeof *k);
        k->alloc = a;
        k->node = (int)i;
        k->state = ALLOC_ASSIGNED;
        container_id(c, a, k->node, k->id);
        vec_push(&a->containers, k);
        a->live++;
        agent_attach(c, nodes[i].agent, k, nodes[i].slots);
        buf_addf(&where, "%s%s", i ? ", " : "", k->agent_id);
    }
    alloc_goto(c, a, ALLOC_ASSIGNED);
    a->placed_us = fx_end_us(c, a->start_us);
    queue_update(c, a);
    for (size_t i = 0; i < a->containers.n; i++)
        send_start(c, a->containers.v[i]);
    a->start_ms = c->now_ms + c->o.start_resend_ms;
    alloc_rearm(c, a);
    log_placed(c, a, buf_str(&where));
    fx_timeline(c, a, "placed", "%s", buf_str(&where));
    buf_finish(&where);
}
