/* Agents and their slots. */
#include "api_handlers.h"
#include "agents.h"
#include "api_gpus.h"
#include "api_util.h"
#include "clk.h"
#include "driver.h"
#include "joins.h"
#include "shell.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *device_json(const struct core_slot_view *s)
{
    return json_make("{s:i,s:s,s:s,s:s}", "id", s->id, "brand", s->brand, "uuid", s->uuid, "type",
                     api_device_type(s->type));
}

static const char *container_state(enum alloc_state s)
{
    switch (s) {
    case ALLOC_PULLING: return "STATE_PULLING";
    case ALLOC_STARTING: return "STATE_STARTING";
    case ALLOC_RUNNING:
    case ALLOC_WAITING:
    case ALLOC_TERMINATING: return "STATE_RUNNING";
    case ALLOC_TERMINATED: return "STATE_TERMINATED";
    case ALLOC_PENDING:
    case ALLOC_ASSIGNED:
    case ALLOC_STATE_COUNT: break;
    }
    return "STATE_ASSIGNED";
}

/* Whose it is, and since when. */
static void put_holder(const struct core *core, const char *alloc_id, json_t *j)
{
    struct core_alloc_view a;
    char time[CLK_RFC3339_MAX];
    if (!alloc_id || !core_alloc_get(core, alloc_id, &a))
        return;
    if (a.trial_id)
        json_set(j, "trialId", json_integer(a.trial_id));
    if (a.placed_us) {
        clk_format(a.placed_us, time);
        json_set(j, "placedTime", json_string(time));
    }
}

static json_t *container_json(const struct core *core, const char *agent_id, const char *id,
                              enum alloc_state state, const char *parent)
{
    json_t *devices = json_array();
    struct core_slot_view s;
    for (size_t i = 0; core_slot_at(core, agent_id, i, &s); i++)
        if (s.container && !strcmp(s.container, id))
            json_array_append_new(devices, device_json(&s));
    json_t *j =
        json_make("{s:s,s:s,s:s,s:o,s:b}", "parent", parent ? parent : "", "id", id, "state",
                  container_state(state), "devices", devices, "permissionDenied", 0);
    put_holder(core, parent, j);
    return j;
}

static json_t *slot_json(struct shell *sh, const char *agent_id, const struct core_slot_view *s)
{
    const struct core *core = api_core(sh);
    json_t *gpu = gpus_json(sh, agent_id, s->id);
    char id[16];
    snprintf(id, sizeof id, "%d", s->id);
    json_t *j = json_make("{s:s,s:o,s:b,s:b,s:s,s:s,s:b}", "id", id, "device", device_json(s),
                          "enabled", s->enabled, "draining", s->draining, "state",
                          core_slot_state_text(s->state), "stateText", s->why, "forced", s->forced);
    if (gpu)
        json_set(j, "gpu", gpu);
    json_set(j, "container",
             s->container
                 ? container_json(core, agent_id, s->container, s->container_state, s->alloc_id)
                 : NULL);
    return j;
}

static json_t *slots_json(struct shell *sh, const char *agent_id)
{
    const struct core *core = api_core(sh);
    json_t *map = json_object();
    struct core_slot_view s;
    char key[256];
    for (size_t i = 0; core_slot_at(core, agent_id, i, &s); i++) {
        snprintf(key, sizeof key, "/agents/%.200s/slots/%d", agent_id, s.id);
        json_set(map, key, slot_json(sh, agent_id, &s));
    }
    return map;
}

static json_t *stores_json(const struct core *core, const char *agent_id)
{
    json_t *list = json_array();
    struct core_sight_view v;
    for (size_t i = 0; core_agent_sight(core, agent_id, i, &v); i++)
        json_array_append_new(list,
                              json_make("{s:s,s:s,s:s,s:s}", "agentId", agent_id, "place", v.place,
                                        "state", core_store_kind_text(v.kind), "text", v.text));
    return list;
}

static json_t *certificate_json(const struct join_view *v)
{
    char time[CLK_RFC3339_MAX];
    const char *state = v->state == CERT_REVOKED   ? "REVOKED"
                        : v->state == CERT_EXPIRED ? "EXPIRED"
                                                   : "GOOD";
    clk_format(v->until_s * 1000000, time);
    json_t *j = json_make("{s:s,s:s}", "agentId", v->agent_id, "state", state);
    json_set(j, "expiry", v->until_s ? json_string(time) : NULL);
    return j;
}

/* Also of agents that are not here. */
static json_t *certificates_json(const struct joins *joins)
{
    json_t *list = json_array();
    struct join_view *all;
    size_t n = joins_all(joins, &all);
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, certificate_json(&all[i]));
    free(all);
    return list;
}

static json_t *agent_json(struct shell *sh, const struct core_agent_view *a)
{
    const struct core *core = api_core(sh);
    char time[CLK_RFC3339_MAX];
    json_t *containers = json_object();
    struct core_container_view v;
    for (size_t i = 0; core_agent_container(core, a->id, i, &v); i++)
        json_set(containers, v.id, container_json(core, a->id, v.id, v.state, v.alloc_id));
    struct join_view joined;
    clk_format(a->registered_us, time);
    json_t *j = json_make(
        "{s:s,s:s,s:o,s:o,s:s,s:[s],s:b,s:b,s:s,s:[s],s:o,s:f}", "id", a->id, "registeredTime",
        time, "slots", slots_json(sh, a->id), "containers", containers, "label", "", "addresses",
        a->addr ? a->addr : "", "enabled", a->enabled && a->connected, "draining", a->draining,
        "version", a->version ? a->version : "", "resourcePools", a->pool, "stores",
        stores_json(core, a->id), "clockAheadSeconds", agents_clock_ahead_s(sh->agents, a->id));
    json_set(j, "certificate",
             joins_get(sh->joins, a->id, &joined) ? certificate_json(&joined) : NULL);
    return j;
}

struct seen_agent {
    struct core_agent_view v;
    size_t at; /* by id */
};

static int by_time(const void *a, const void *b)
{
    const struct seen_agent *x = a, *y = b;
    if (x->v.registered_us != y->v.registered_us)
        return x->v.registered_us < y->v.registered_us ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

void api_get_agents(struct shell *sh, struct http_req *req)
{
    struct db_page p;
    VEC(struct seen_agent) all = {0};
    struct core_agent_view v;
    size_t start, end;
    if (!api_page(req, wire_agent_sort, &p))
        return;
    for (size_t i = 0; core_agent_at(api_core(sh), i, &v); i++)
        vec_push(&all, (struct seen_agent){v, i});
    if (p.sort == 2 && all.n)
        qsort(all.v, all.n, sizeof *all.v, by_time);
    if (api_slice(req, &p, all.n, &start, &end)) {
        json_t *list = json_array();
        for (size_t i = start; i < end; i++)
            json_array_append_new(list, agent_json(sh, &all.v[p.desc ? all.n - 1 - i : i].v));
        api_reply_json(req, json_make("{s:o,s:o,s:o}", "agents", list, "certificates",
                                      certificates_json(sh->joins), "pagination",
                                      api_pagination(&p, start, end, all.n)));
    }
    vec_free(&all);
}

/* The agent of the path; false when answered. */
static bool agent_of(struct shell *sh, struct http_req *req, struct core_agent_view *ret)
{
    const char *id = http_param(req, "agentId");
    if (core_agent_get(api_core(sh), id, ret))
        return true;
    http_fail(req, DET_ENOENT, "agent \"%.100s\" not found", id);
    return false;
}

static bool slot_of(struct shell *sh, struct http_req *req, struct core_slot_view *ret)
{
    struct core_agent_view a;
    int64_t id;
    if (!agent_of(sh, req, &a) || !api_id(req, "slotId", &id))
        return false;
    for (size_t i = 0; core_slot_at(api_core(sh), a.id, i, ret); i++)
        if (ret->id == id)
            return true;
    http_fail(req, DET_ENOENT, "agent %.100s has no slot %" PRId64, a.id, id);
    return false;
}

void api_get_agent(struct shell *sh, struct http_req *req)
{
    struct core_agent_view a;
    if (agent_of(sh, req, &a))
        api_reply_json(req, json_make("{s:o}", "agent", agent_json(sh, &a)));
}

void api_get_slots(struct shell *sh, struct http_req *req)
{
    struct core_agent_view a;
    struct core_slot_view s;
    if (!agent_of(sh, req, &a))
        return;
    json_t *list = json_array();
    for (size_t i = 0; core_slot_at(api_core(sh), a.id, i, &s); i++)
        json_array_append_new(list, slot_json(sh, a.id, &s));
    api_reply_json(req, json_make("{s:o}", "slots", list));
}

void api_get_slot(struct shell *sh, struct http_req *req)
{
    struct core_slot_view s;
    if (slot_of(sh, req, &s))
        api_reply_json(req,
                       json_make("{s:o}", "slot", slot_json(sh, http_param(req, "agentId"), &s)));
}

static void on_agent_set(void *arg, const struct core_reply *r)
{
    struct api_call *c = arg;
    if (r->code < 0)
        api_reply_core(c->req, r);
    else
        api_get_agent(c->sh, c->req);
}

static void on_slot_set(void *arg, const struct core_reply *r)
{
    struct api_call *c = arg;
    if (r->code < 0)
        api_reply_core(c->req, r);
    else
        api_get_slot(c->sh, c->req);
}

static void set(struct shell *sh, struct http_req *req, int slot, bool enabled)
{
    struct {
        int drain;
    } b = {0};
    static const struct wire_field fields[] = {{"drain", WIRE_BOOL, 0, 0, NULL}};
    json_t *body;
    if (!api_decode(req, fields, 1, &b, &body))
        return;
    json_decref(body);
    struct core_event ev = {.kind = CORE_EV_AGENT_SET};
    ev.agent_set = (struct core_agent_set){.agent_id = http_param(req, "agentId"),
                                           .slot = slot,
                                           .enabled = enabled,
                                           .drain = !enabled && b.drain == 1};
    ev.agent_id = ev.agent_set.agent_id;
    driver_post(sh->driver, &ev, slot < 0 ? on_agent_set : on_slot_set, api_call(sh, req));
}

static void set_agent(struct shell *sh, struct http_req *req, bool enabled)
{
    struct core_agent_view a;
    if (!agent_of(sh, req, &a))
        return;
    if (!enabled && !a.connected)
        http_fail(req, DET_ESTATE, "agent %.100s is not connected now; try again when it is back",
                  a.id);
    else
        set(sh, req, -1, enabled);
}

static void set_slot(struct shell *sh, struct http_req *req, bool enabled)
{
    struct core_slot_view s;
    if (slot_of(sh, req, &s))
        set(sh, req, s.id, enabled);
}

void api_enable_agent(struct shell *sh, struct http_req *req)
{
    set_agent(sh, req, true);
}

void api_disable_agent(struct shell *sh, struct http_req *req)
{
    set_agent(sh, req, false);
}

void api_enable_slot(struct shell *sh, struct http_req *req)
{
    set_slot(sh, req, true);
}

void api_disable_slot(struct shell *sh, struct http_req *req)
{
    set_slot(sh, req, false);
}
