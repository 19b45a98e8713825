#include "agents_event.h"

#include "mem.h"

#include <assert.h>
#include <stdlib.h>

static_assert((int)LINK_ROCM == (int)CORE_ROCM && (int)LINK_CPU == (int)CORE_CPU, "same order");
static_assert((int)LINK_EXITED == (int)CORE_EXITED && (int)LINK_ABSENT == (int)CORE_ABSENT &&
                  (int)LINK_EXIT_REASON_COUNT == (int)CORE_EXIT_REASON_COUNT,
              "same order");
static_assert((int)LINK_STARTING == (int)CORE_TASK_STARTING &&
                  (int)LINK_ENDED == (int)CORE_TASK_ENDED,
              "same order");

static_assert((int)LINK_STORE_PRESENT + 1 == (int)CORE_STORE_PRESENT &&
                  (int)LINK_STORE_FAILED + 1 == (int)CORE_STORE_FAILED,
              "same order");

static_assert((int)LINK_SLOT_USABLE == (int)CORE_SLOT_USABLE &&
                  (int)LINK_SLOT_STATE_COUNT == (int)CORE_SLOT_STATE_COUNT,
              "same order");

static struct core_slot_sight sight_in(const struct link_slot_sight *s)
{
    return (struct core_slot_sight){s->slot, (enum core_slot_state)s->state, s->text};
}

static struct core_task_in task_in(const struct link_task *t)
{
    return (struct core_task_in){
        .alloc = t->alloc,
        .container = t->container,
        .state = (enum core_task_state)t->state,
        .exit = {(enum core_exit_reason)t->exit.reason, t->exit.code, t->exit.signal, t->exit.rank,
                 t->exit.text, t->exit.exception, t->exit.at},
        .silent = {t->silent.phase, t->silent.rank, t->silent.silent_ms, t->silent.timeout_ms},
        .unreached = {t->unreached.text},
    };
}

static void marks_in(struct core_task_in *t, const struct link_task *from, int64_t ahead_us)
{
    struct core_mark *marks = from->marks_n ? det_zalloc(from->marks_n * sizeof *marks) : NULL;
    for (size_t i = 0; i < from->marks_n; i++) {
        const struct link_mark *m = &from->marks[i];
        marks[i] = (struct core_mark){m->kind, m->detail, m->at_us - ahead_us, m->duration_us};
    }
    t->marks = marks;
    t->marks_n = from->marks_n;
}

static struct core_hello hello_in(const struct link_hello *h, int64_t ahead_us)
{
    struct core_slot_in *slots = det_zalloc((h->slots_n + 1) * sizeof *slots);
    struct core_task_in *tasks = det_zalloc((h->tasks_n + 1) * sizeof *tasks);
    for (size_t i = 0; i < h->slots_n; i++) {
        const struct link_slot *s = &h->slots[i];
        slots[i] = (struct core_slot_in){
            s->id, (enum core_device)s->type, s->brand, s->uuid, s->island, s->numa};
    }
    for (size_t i = 0; i < h->tasks_n; i++) {
        tasks[i] = task_in(&h->tasks[i]);
        marks_in(&tasks[i], &h->tasks[i], ahead_us);
    }
    struct core_slot_sight *unfit = det_zalloc((h->unfit_n + 1) * sizeof *unfit);
    for (size_t i = 0; i < h->unfit_n; i++)
        unfit[i] = sight_in(&h->unfit[i]);
    return (struct core_hello){.version = h->version,
                               .pool = h->pool,
                               .addr = h->addr,
                               .slots = slots,
                               .slots_n = h->slots_n,
                               .tasks = tasks,
                               .tasks_n = h->tasks_n,
                               .looks = h->looks,
                               .judges = h->judges,
                               .unfit = unfit,
                               .unfit_n = h->unfit_n};
}

void agents_event_init(struct core_event *ev, const char *agent_id, const struct link_event *e,
                       int64_t ahead_us)
{
    *ev = (struct core_event){.agent_id = agent_id};
    if (e->kind == LINK_EV_HELLO) {
        ev->kind = CORE_EV_AGENT_HELLO;
        ev->hello = hello_in(&e->hello, ahead_us);
        return;
    }
    if (e->kind == LINK_EV_STORE) {
        ev->kind = CORE_EV_AGENT_STORE;
        ev->store = (struct core_store_in){
            e->store.place, e->store.id, (enum core_store_kind)(e->store.state + 1), e->store.text};
        return;
    }
    if (e->kind == LINK_EV_SLOT) {
        ev->kind = CORE_EV_AGENT_SLOT;
        ev->sight = sight_in(&e->sight);
        return;
    }
    ev->kind = e->kind == LINK_EV_EXIT ? CORE_EV_AGENT_EXIT : CORE_EV_AGENT_STATE;
    ev->task = task_in(&e->task);
    marks_in(&ev->task, &e->task, ahead_us);
    ev->alloc_id = e->task.alloc;
    ev->container = e->task.container;
}

void agents_event_finish(struct core_event *ev)
{
    if (ev->kind == CORE_EV_AGENT_STORE || ev->kind == CORE_EV_AGENT_SLOT)
        return;
    if (ev->kind != CORE_EV_AGENT_HELLO) {
        free((void *)ev->task.marks);
        return;
    }
    for (size_t i = 0; i < ev->hello.tasks_n; i++)
        free((void *)ev->hello.tasks[i].marks);
    free((void *)ev->hello.slots);
    free((void *)ev->hello.tasks);
    free((void *)ev->hello.unfit);
}
