#include "batch_event.h"

#include "mem.h"

#include <string.h>

static const char *own_string(struct batch_event *e, const char *s)
{
    if (!s)
        return NULL;
    if (e->strings_n == e->strings_cap) {
        e->strings_cap = e->strings_cap ? e->strings_cap * 2 : 8;
        e->strings = det_reallocarray(e->strings, e->strings_cap, sizeof *e->strings);
    }
    return e->strings[e->strings_n++] = det_strdup(s);
}

static void own_task(struct batch_event *e, struct core_task_in *t)
{
    t->alloc = own_string(e, t->alloc);
    t->container = own_string(e, t->container);
    t->exit.text = own_string(e, t->exit.text);
    t->exit.exception = own_string(e, t->exit.exception);
    t->exit.at = own_string(e, t->exit.at);
    t->silent.phase = own_string(e, t->silent.phase);
    t->unreached.text = own_string(e, t->unreached.text);
}

/* Of n tasks, all in one array of the event's. */
static void own_marks(struct batch_event *e, struct core_task_in *tasks, size_t n)
{
    size_t all = 0, k = 0;
    for (size_t i = 0; i < n; i++)
        all += tasks[i].marks_n;
    if (all == 0)
        return;
    struct core_mark *marks = e->arrays[3] = det_alloc(all * sizeof *marks);
    for (size_t i = 0; i < n; i++) {
        const struct core_mark *from = tasks[i].marks;
        tasks[i].marks = marks + k;
        for (size_t m = 0; m < tasks[i].marks_n; m++, k++) {
            marks[k] = from[m];
            marks[k].kind = own_string(e, from[m].kind);
            marks[k].detail = own_string(e, from[m].detail);
        }
    }
}

static void own_hello(struct batch_event *e, struct core_hello *h)
{
    struct core_slot_in *slots = det_alloc((h->slots_n + 1) * sizeof *slots);
    struct core_task_in *tasks = det_alloc((h->tasks_n + 1) * sizeof *tasks);
    for (size_t i = 0; i < h->slots_n; i++) {
        slots[i] = h->slots[i];
        slots[i].brand = own_string(e, slots[i].brand);
        slots[i].uuid = own_string(e, slots[i].uuid);
    }
    for (size_t i = 0; i < h->tasks_n; i++) {
        tasks[i] = h->tasks[i];
        own_task(e, &tasks[i]);
    }
    own_marks(e, tasks, h->tasks_n);
    struct core_slot_sight *unfit = det_alloc((h->unfit_n + 1) * sizeof *unfit);
    for (size_t i = 0; i < h->unfit_n; i++) {
        unfit[i] = h->unfit[i];
        unfit[i].text = own_string(e, unfit[i].text);
    }
    h->unfit = e->arrays[2] = unfit;
    h->version = own_string(e, h->version);
    h->pool = own_string(e, h->pool);
    h->addr = own_string(e, h->addr);
    h->slots = e->arrays[0] = slots;
    h->tasks = e->arrays[1] = tasks;
}

static void own_gc(struct batch_event *e, struct core_gc *g)
{
    g->job_id = own_string(e, g->job_id);
    g->action = own_string(e, g->action);
    e->json[0] = json_incref(g->config);
    e->json[1] = json_incref(g->uuids);
    e->json[2] = json_incref(g->globs);
}

static void own_create(struct batch_event *e, struct core_create *c)
{
    c->job_id = own_string(e, c->job_id);
    c->warm_start = own_string(e, c->warm_start);
    c->owner = own_string(e, c->owner);
    e->json[0] = json_incref(c->config);
}

static void own_store(struct batch_event *e, struct core_store_in *s)
{
    s->place = own_string(e, s->place);
    s->id = own_string(e, s->id);
    s->text = own_string(e, s->text);
}

/* What the members of its kind point to. */
static void own_members(struct batch_event *e, const struct core_event *ev)
{
    switch (ev->kind) {
    case CORE_EV_EXP_CREATE: own_create(e, &e->ev.create); break;
    case CORE_EV_EXP_PATCH: e->ev.patch.pool = own_string(e, ev->patch.pool); break;
    case CORE_EV_EXP_DELETE:
    case CORE_EV_EXP_GC: own_gc(e, &e->ev.gc); break;
    case CORE_EV_AGENT_SET: e->ev.agent_set.agent_id = own_string(e, ev->agent_set.agent_id); break;
    case CORE_EV_AGENT_STORE: own_store(e, &e->ev.store); break;
    case CORE_EV_AGENT_SLOT: e->ev.sight.text = own_string(e, ev->sight.text); break;
    case CORE_EV_STORE_ADOPT:
        e->ev.adopt.place = own_string(e, ev->adopt.place);
        e->json[0] = json_incref(ev->adopt.known);
        break;
    case CORE_EV_AGENT_HELLO: own_hello(e, &e->ev.hello); break;
    case CORE_EV_AGENT_STATE:
    case CORE_EV_AGENT_EXIT:
        own_task(e, &e->ev.task);
        own_marks(e, &e->ev.task, 1);
        break;
    case CORE_EV_OP_COMPLETED: e->ev.op.metric = e->json[0] = json_deep_copy(ev->op.metric); break;
    case CORE_EV_SEARCH_OPS: e->json[0] = json_incref((json_t *)ev->search.operations); break;
    case CORE_EV_CHECKPOINT: e->ev.checkpoint.uuid = own_string(e, ev->checkpoint.uuid); break;
    case CORE_EV_RENDEZVOUS: e->ev.ports = own_string(e, ev->ports); break;
    case CORE_EV_EXP_PURGED: e->ev.purge_failed = own_string(e, ev->purge_failed); break;
    case CORE_EV_EARLY_EXIT: e->ev.exit_early.text = own_string(e, ev->exit_early.text); break;
    case CORE_EV_LOG_POLICY: e->ev.policy.pattern = own_string(e, ev->policy.pattern); break;
    case CORE_EV_TICK: /* what these say is in the event itself */
    case CORE_EV_EXP_ACTIVATE:
    case CORE_EV_EXP_PAUSE:
    case CORE_EV_EXP_CANCEL:
    case CORE_EV_EXP_KILL:
    case CORE_EV_EXP_CONTINUE: /* the caller's until its answer */
    case CORE_EV_EXP_EDIT:
    case CORE_EV_SEARCH_EVENTS:
    case CORE_EV_TRIAL_KILL:
    case CORE_EV_IDS_SEEN:
    case CORE_EV_EXP_ID:
    case CORE_EV_TRIAL_ID:
    case CORE_EV_AGENT_LOST:
    case CORE_EV_PROGRESS:
    case CORE_EV_ACK_PREEMPTION:
    case CORE_EV_READY:
    case CORE_EV_WAITING:
    case CORE_EV_DAEMON:
    case CORE_EVENT_KIND_COUNT: break;
    }
}

struct batch_event *batch_event_copy(const struct core_event *ev, void *whose)
{
    struct batch_event *e = det_zalloc(sizeof *e);
    e->ev = *ev;
    e->whose = whose;
    e->ev.alloc_id = own_string(e, ev->alloc_id);
    e->ev.container = own_string(e, ev->container);
    e->ev.agent_id = own_string(e, ev->agent_id);
    own_members(e, ev);
    return e;
}

void batch_event_destroy(struct batch_event *e)
{
    for (size_t i = 0; i < e->strings_n; i++)
        free(e->strings[i]);
    free(e->strings);
    free(e->arrays[0]);
    free(e->arrays[1]);
    free(e->arrays[2]);
    free(e->arrays[3]);
    json_decref(e->json[0]);
    json_decref(e->json[1]);
    json_decref(e->json[2]);
    free(e);
}
