/* Agents and their slots. */
#include "api_handlers.h"
#include "agents.h"
#include "api_gpus.h"
#include "api_util.h"
#include "buf.h"
#include "clk.h"
#include "driver.h"
#include "joins.h"
#include "shell.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Large clusters have thousands of slots: they are written as text at once, without a value for
 * each. */
static void write_device(struct buf *out, const struct core_slot_view *s)
{
    buf_add_ch(out, '{');
    json_add_int(out, "id", s->id);
    json_add_str(out, "brand", s->brand);
    json_add_str(out, "uuid", s->uuid);
    json_add_str(out, "type", api_device_type(s->type));
    buf_add_ch(out, '}');
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
static void write_holder(struct buf *out, const struct core *core, const char *alloc_id)
{
    struct core_alloc_view a;
    char time[CLK_RFC3339_MAX];
    if (!alloc_id || !core_alloc_get(core, alloc_id, &a))
        return;
    if (a.trial_id)
        json_add_int(out, "trialId", a.trial_id);
    if (a.placed_us) {
        clk_format(a.placed_us, time);
        json_add_str(out, "placedTime", time);
    }
}

static void write_devices(struct buf *out, const struct core *core, const char *agent_id,
                          const char *container)
{
    struct core_slot_view s;
    bool first = true;
    buf_add_ch(out, '[');
    for (size_t i = 0; core_slot_at(core, agent_id, i, &s); i++)
        if (s.container && !strcmp(s.container, container)) {
            if (!first)
                buf_add_ch(out, ',');
            first = false;
            write_device(out, &s);
        }
    buf_add_ch(out, ']');
}

static void write_container(struct buf *out, const struct core *core, const char *agent_id,
                            const struct core_container_view *v)
{
    buf_add_ch(out, '{');
    json_add_str(out, "parent", v->alloc_id ? v->alloc_id : "");
    json_add_str(out, "id", v->id);
    json_add_str(out, "state", container_state(v->state));
    json_add_key(out, "devices");
    write_devices(out, core, agent_id, v->id);
    json_add_flag(out, "permissionDenied", false);
    write_holder(out, core, v->alloc_id);
    buf_add_ch(out, '}');
}

static void write_slot(struct buf *out, struct shell *sh, const char *agent_id,
                       const struct core_slot_view *s)
{
    JSON_OWN gpu = gpus_json(sh, agent_id, s->id);
    buf_addf(out, "{\"id\":\"%d\"", s->id);
    json_add_key(out, "device");
    write_device(out, s);
    json_add_flag(out, "enabled", s->enabled);
    json_add_flag(out, "draining", s->draining);
    json_add_str(out, "state", core_slot_state_text(s->state));
    json_add_str(out, "stateText", s->why);
    json_add_flag(out, "forced", s->forced);
    if (s->island >= 0)
        json_add_int(out, "island", s->island);
    if (s->numa >= 0)
        json_add_int(out, "numaNode", s->numa);
    if (gpu)
        json_add(out, "gpu", gpu);
    json_add_key(out, "container");
    if (s->container)
        write_container(out, api_core(sh), agent_id,
                        &(struct core_container_view){.id = s->container,
                                                      .alloc_id = s->alloc_id,
                                                      .state = s->container_state});
    else
        buf_add_str(out, "null");
    buf_add_ch(out, '}');
}

static void write_slots(struct buf *out, struct shell *sh, const char *agent_id)
{
    const struct core *core = api_core(sh);
    struct core_slot_view s;
    char key[256];
    buf_add_ch(out, '{');
    for (size_t i = 0; core_slot_at(core, agent_id, i, &s); i++) {
        snprintf(key, sizeof key, "/agents/%.200s/slots/%d", agent_id, s.id);
        if (i)
            buf_add_ch(out, ',');
        json_write_string(out, key, strlen(key));
        buf_add_ch(out, ':');
        write_slot(out, sh, agent_id, &s);
    }
    buf_add_ch(out, '}');
}

static void write_containers(struct buf *out, const struct core *core, const char *agent_id)
{
    struct core_container_view v;
    buf_add_ch(out, '{');
    for (size_t i = 0; core_agent_container(core, agent_id, i, &v); i++) {
        if (i)
            buf_add_ch(out, ',');
        json_write_string(out, v.id, strlen(v.id));
        buf_add_ch(out, ':');
        write_container(out, core, agent_id, &v);
    }
    buf_add_ch(out, '}');
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

static void write_agent(struct buf *out, struct shell *sh, const struct core_agent_view *a)
{
    const struct core *core = api_core(sh);
    char time[CLK_RFC3339_MAX];
    struct join_view joined;
    JSON_OWN stores = stores_json(core, a->id);
    JSON_OWN certificate = joins_get(sh->joins, a->id, &joined) ? certificate_json(&joined) : NULL;
    clk_format(a->registered_us, time);
    buf_add_ch(out, '{');
    json_add_str(out, "id", a->id);
    json_add_str(out, "registeredTime", time);
    json_add_key(out, "slots");
    write_slots(out, sh, a->id);
    json_add_key(out, "containers");
    write_containers(out, core, a->id);
    json_add_str(out, "label", "");
    JSON_OWN rest =
        json_make("{s:[s],s:b,s:b,s:s,s:[s],s:O,s:f}", "addresses", a->addr ? a->addr : "",
                  "enabled", a->enabled && a->connected, "draining", a->draining, "version",
                  a->version ? a->version : "", "resourcePools", a->pool, "stores", stores,
                  "clockAheadSeconds", agents_clock_ahead_s(sh->agents, a->id));
    const char *key;
    json_t *value;
    json_object_foreach(rest, key, value) json_add(out, key, value);
    json_add(out, "certificate", certificate);
    buf_add_ch(out, '}');
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

/* What begins with "{", which is closed here. */
static void reply_object(struct http_req *req, struct buf *out)
{
    buf_add_ch(out, '}');
    http_reply_buf(req, 200, out);
    buf_finish(out);
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
        struct buf out = BUF_INIT;
        buf_add_str(&out, "{\"agents\":[");
        for (size_t i = start; i < end; i++) {
            if (i > start)
                buf_add_ch(&out, ',');
            write_agent(&out, sh, &all.v[p.desc ? all.n - 1 - i : i].v);
        }
        buf_add_ch(&out, ']');
        JSON_OWN certificates = certificates_json(sh->joins);
        JSON_OWN pagination = api_pagination(&p, start, end, all.n);
        json_add(&out, "certificates", certificates);
        json_add(&out, "pagination", pagination);
        reply_object(req, &out);
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
    if (!agent_of(sh, req, &a))
        return;
    struct buf out = BUF_INIT;
    buf_add_str(&out, "{\"agent\":");
    write_agent(&out, sh, &a);
    reply_object(req, &out);
}

void api_get_slots(struct shell *sh, struct http_req *req)
{
    struct core_agent_view a;
    struct core_slot_view s;
    if (!agent_of(sh, req, &a))
        return;
    struct buf out = BUF_INIT;
    buf_add_str(&out, "{\"slots\":[");
    for (size_t i = 0; core_slot_at(api_core(sh), a.id, i, &s); i++) {
        if (i)
            buf_add_ch(&out, ',');
        write_slot(&out, sh, a.id, &s);
    }
    buf_add_ch(&out, ']');
    reply_object(req, &out);
}

void api_get_slot(struct shell *sh, struct http_req *req)
{
    struct core_slot_view s;
    if (!slot_of(sh, req, &s))
        return;
    struct buf out = BUF_INIT;
    buf_add_str(&out, "{\"slot\":");
    write_slot(&out, sh, http_param(req, "agentId"), &s);
    reply_object(req, &out);
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

static void set_enabled(struct shell *sh, struct http_req *req, int slot, bool enabled)
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
        set_enabled(sh, req, -1, enabled);
}

static void set_slot(struct shell *sh, struct http_req *req, bool enabled)
{
    struct core_slot_view s;
    if (slot_of(sh, req, &s))
        set_enabled(sh, req, s.id, enabled);
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
