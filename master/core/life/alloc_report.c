/* What agents and processes report about a living allocation. */
#include "alloc.h"

#include "effects.h"
#include <stdio.h>
#include <string.h>

void alloc_on_state(struct core *c, struct container *k, enum core_task_state state)
{
    static const enum alloc_state states[] = {ALLOC_STARTING, ALLOC_RUNNING};
    struct alloc *a = k->alloc;
    if (state == CORE_TASK_ENDED || k->state >= states[state])
        return;
    container_goto(c, k, states[state]);
    if (a->state < k->state)
        alloc_goto(c, a, k->state);
    if (k->state == ALLOC_RUNNING) {
        fx_timeline(c, a, "running", "%s", k->agent_id);
        fx_log(c, a, FX_INFO, "Run %lld runs on agent %s, container %s.", (long long)a->run_id,
               k->agent_id, k->id);
    }
    if (k->state == ALLOC_RUNNING && a->kind == KIND_GC)
        alloc_on_ready(c, a);
}

void alloc_on_silent(struct core *c, struct container *k, const struct core_silent *s)
{
    memset(&k->silent, 0, sizeof k->silent);
    if (!s->phase || k->state == ALLOC_TERMINATED)
        return;
    snprintf(k->silent.phase, sizeof k->silent.phase, "%s", s->phase);
    k->silent.rank = s->rank;
    k->silent.since_ms = c->now_ms - s->silent_ms;
    k->silent.timeout_ms = s->timeout_ms;
}

static void say_unreached(struct core *c, const struct container *k)
{
    fx_log(c, k->alloc, FX_WARNING,
           "The task on agent %s gets no answer from the master: %s. Its agent does. After %d s of "
           "this the run ends as one that could not be started there.",
           k->agent_id, k->unreached.text, ALLOC_UNREACHED_MS / 1000);
}

void alloc_on_unreached(struct core *c, struct container *k, const struct core_unreached *u)
{
    bool is_news = !k->unreached.text[0];
    if (!u->text || !*u->text || k->state == ALLOC_TERMINATED || alloc_is_ending(k->alloc)) {
        k->unreached.text[0] = 0;
        return;
    }
    snprintf(k->unreached.text, sizeof k->unreached.text, "%s", u->text);
    if (is_news) {
        k->unreached.since_ms = c->now_ms;
        say_unreached(c, k);
    } else if (c->now_ms - k->unreached.since_ms >= ALLOC_UNREACHED_MS) {
        alloc_unreached(c, k);
    }
}

void alloc_on_ack(struct core *c, struct alloc *a)
{
    if (a->acked)
        return;
    a->acked = true;
    alloc_mark(c, a);
}

void alloc_on_ready(struct core *c, struct alloc *a)
{
    if (a->is_ready || a->state == ALLOC_PENDING)
        return;
    a->is_ready = true;
    alloc_mark(c, a);
    fx_timeline(c, a, "ready", "%s", "");
    fx_log(c, a, FX_INFO, "Run %lld is ready.", (long long)a->run_id);
}

static void send_rendezvous(struct core *c, struct alloc *a)
{
    size_t n = a->containers.n;
    struct core_rendezvous r = {.alloc_id = fx_str(c->out, a->id),
                                .n = n,
                                .containers = fx_mem(c->out, n * sizeof(char *)),
                                .addresses = fx_mem(c->out, n * sizeof(char *)),
                                .slots = fx_mem(c->out, n * sizeof(int))};
    for (size_t i = 0; i < n; i++) {
        const struct container *k = a->containers.v[i];
        r.containers[i] = fx_str(c->out, k->id);
        r.addresses[i] = fx_str(c->out, k->agent ? k->agent->addr : "");
        r.slots[i] = (int)k->slots.n;
    }
    r.ports = a->ports ? fx_str(c->out, a->ports) : NULL;
    fx_add(c->out, CORE_RENDEZVOUS)->rendezvous = r;
}

/* Once all have met they are what the others were told. */
static void keep_ports(struct alloc *a, const struct container *k, const char *ports)
{
    if (k->node != 0 || a->is_ready)
        return;
    free(a->ports);
    a->ports = det_strdup(ports);
}

int alloc_on_rendezvous(struct core *c, struct alloc *a, const char *container, const char *ports,
                        struct det_err *err)
{
    struct container *k = alloc_container(a, container);
    if (!k || k->state == ALLOC_TERMINATED)
        return det_fail(err, DET_ENOENT, "container %s of allocation %s not found", container,
                        a->id);
    if (alloc_is_ending(a) && !a->is_ready)
        return det_fail(err, DET_ESTATE, "allocation %s is ending", a->id);
    alloc_on_state(c, k,
                   CORE_TASK_RUNNING); /* it evidently runs, whatever its agent has yet to say */
    k->arrived = true;
    keep_ports(a, k, ports);
    for (size_t i = 0; !a->is_ready && i < a->containers.n; i++)
        if (!a->containers.v[i]->arrived)
            return 0;
    alloc_on_ready(c, a);
    send_rendezvous(c, a);
    return 0;
}

int alloc_on_daemon(struct core *c, struct alloc *a, const char *container, struct det_err *err)
{
    struct container *k = alloc_container(a, container);
    if (!k)
        return det_fail(err, DET_ENOENT, "container %s of allocation %s not found", container,
                        a->id);
    if (a->containers.n == 1 || k->daemon)
        return 0;
    k->daemon = true;
    alloc_mark(c, a);
    for (size_t i = 0; i < a->containers.n; i++)
        if (a->containers.v[i]->state != ALLOC_TERMINATED && !a->containers.v[i]->daemon)
            return 0;
    alloc_kill(c, a, KILL_DAEMONS, "only daemons are left");
    return 0;
}

void alloc_on_invalid_hp(struct core *c, struct alloc *a)
{
    if (a->exit_ms != INT64_MAX || a->kill != KILL_NONE)
        return;
    a->exit_ms = c->now_ms + c->o.invalid_hp_exit_ms;
    alloc_rearm(c, a);
}
