#include "reconcile.h"

#include "agent.h"
#include "alloc.h"
#include "avoid.h"
#include "effects.h"
#include "slots.h"
#include "store.h"
#include <string.h>

/* The timer fires late when the master itself did not run: that time does not count. */
enum { LATE_MS = 2000 };

static struct container *find_container(const struct core *c, const struct agent *a,
                                        const struct core_task_in *task)
{
    struct alloc *al = alloc_find(c, task->alloc);
    struct container *k = al ? alloc_container(al, task->container) : NULL;
    return k && k->agent == a ? k : NULL;
}

static void order_kill(struct core *c, const struct agent *a, const struct core_task_in *task)
{
    struct core_kill o = {.agent_id = fx_str(c->out, a->id),
                          .alloc_id = fx_str(c->out, task->alloc),
                          .container = fx_str(c->out, task->container)};
    fx_add(c->out, CORE_ORDER_KILL)->kill = o;
}

static void on_marks(struct core *c, const struct container *k, const struct core_task_in *task)
{
    for (size_t i = 0; i < task->marks_n; i++)
        fx_mark(c, k->alloc, k->node, &task->marks[i]);
}

static void on_state(struct core *c, struct container *k, const struct core_task_in *task)
{
    alloc_on_state(c, k, task->state);
    alloc_on_silent(c, k, &task->silent);
    alloc_on_unreached(c, k, &task->unreached);
}

static void on_task(struct core *c, struct agent *a, const struct core_task_in *task)
{
    struct container *k = find_container(c, a, task);
    if (!k) {
        if (task->state != CORE_TASK_ENDED)
            order_kill(c, a, task);
    } else if (task->state == CORE_TASK_ENDED) {
        on_marks(c, k, task);
        alloc_on_exit(c, k, &task->exit);
    } else {
        on_state(c, k, task);
        if (k->alloc->kill != KILL_NONE)
            alloc_resend(c, k);
    }
}

static bool says_container(const struct core_hello *h, const struct container *k)
{
    for (size_t i = 0; i < h->tasks_n; i++)
        if (h->tasks[i].alloc && strcmp(h->tasks[i].alloc, k->alloc->id) == 0 &&
            h->tasks[i].container && strcmp(h->tasks[i].container, k->id) == 0)
            return true;
    return false;
}

/* A container the agent does not have: never arrived there (sent again), or gone. */
static void on_missing(struct core *c, struct container *k)
{
    struct core_exit gone = {
        .reason = CORE_LOST, .rank = -1, .text = "its agent does not have it any more"};
    if (k->state == ALLOC_ASSIGNED && k->alloc->kill == KILL_NONE)
        alloc_resend(c, k);
    else
        alloc_on_exit(c, k, &gone);
}

static void on_hello(struct core *c, struct agent *a, const struct core_hello *h)
{
    VEC(struct container *) mine = {0};
    agent_update(c, a, h);
    store_greet(c, a);
    avoid_on_hello(c, a->id);
    for (size_t i = 0; i < a->containers.n; i++)
        vec_push(&mine, a->containers.v[i]);
    for (size_t i = 0; i < h->tasks_n; i++)
        on_task(c, a, &h->tasks[i]);
    for (size_t i = 0; i < mine.n; i++)
        if (mine.v[i]->state != ALLOC_TERMINATED && !says_container(h, mine.v[i]))
            on_missing(c, mine.v[i]);
    vec_free(&mine);
}

int reconcile_store(struct core *c, struct agent *a, const struct core_store_in *in,
                    struct det_err *err)
{
    bool has_id = in->kind != CORE_STORE_PRESENT || (in->id && uuid_is_valid(in->id));
    if (!in->place || !has_id || in->kind == CORE_STORE_UNSEEN || in->kind >= CORE_STORE_KIND_COUNT)
        return det_fail(err, DET_EINVAL,
                        "store: agent %s says of %s neither what it is nor that "
                        "it is not there",
                        a->id, in->place ? in->place : "no place");
    store_on_seen(c, a, in);
    return 0;
}

static int check_hello(const struct core_event *ev, struct det_err *err)
{
    const struct core_hello *h = &ev->hello;
    if (!ev->agent_id || !*ev->agent_id)
        return det_fail(err, DET_EINVAL, "an agent needs an id");
    for (size_t i = 0; i < h->slots_n; i++)
        if (h->slots[i].id < 0)
            return det_fail(err, DET_EINVAL, "slot id %d of agent %s; expected 0 or more",
                            h->slots[i].id, ev->agent_id);
    for (size_t i = 0; i < h->unfit_n; i++)
        if (h->unfit[i].state >= CORE_SLOT_STATE_COUNT)
            return det_fail(err, DET_EINVAL, "slot %d of agent %s is in state %d", h->unfit[i].slot,
                            ev->agent_id, (int)h->unfit[i].state);
    for (size_t i = 0; i < h->tasks_n; i++)
        if (!h->tasks[i].alloc || !h->tasks[i].container)
            return det_fail(err, DET_EINVAL, "task %zu of agent %s has no allocation or container",
                            i, ev->agent_id);
    return 0;
}

int reconcile_hello(struct core *c, const struct core_event *ev, struct det_err *err)
{
    int rc = check_hello(ev, err);
    if (rc == 0)
        on_hello(c, agent_get(c, ev->agent_id), &ev->hello);
    return rc;
}

void reconcile_state(struct core *c, struct agent *a, const struct core_task_in *task)
{
    struct container *k = find_container(c, a, task);
    if (!k)
        return;
    on_marks(c, k, task);
    on_state(c, k, task);
}

void reconcile_exit(struct core *c, struct agent *a, const struct core_task_in *task)
{
    struct container *k = find_container(c, a, task);
    if (!k)
        return;
    on_marks(c, k, task);
    alloc_on_exit(c, k, &task->exit);
}

void reconcile_lease(struct core *c, struct agent *a)
{
    int64_t late = c->now_ms - a->lease.at_ms;
    if (late > LATE_MS) {
        timers_set(&c->timers, &a->lease, c->now_ms + a->pool->o.agent_reconnect_wait_ms);
        return;
    }
    while (a->containers.n)
        alloc_on_agent_gone(c, a->containers.v[0]);
    agent_goto(c, a, AGENT_ABSENT);
}
