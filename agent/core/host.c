#include "host.h"

#include "host_impl.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define RECOVERIES_MAX 2

#define TO(state) (1u << HOST_##state)
static const unsigned host_edges[HOST_STATE_COUNT] = {
    [HOST_WAITING] = TO(STARTING) | TO(OVER),
    [HOST_STARTING] = TO(RUNNING) | TO(ENDED) | TO(OVER),
    [HOST_RUNNING] = TO(ENDED) | TO(OVER),
    [HOST_ENDED] = TO(KNOWN) | TO(OVER),
    [HOST_KNOWN] = 0, /* forgotten, once its det-task is gone */
    [HOST_OVER] = 0,  /* forgotten, once acknowledged */
};

static void move_task(struct host_task *t, enum host_state to)
{
    assert(host_edges[t->state] & 1u << to);
    t->state = to;
}

struct host *host_create(const char *boot, const char *pool, const char *addr,
                         const struct link_slot *slots, size_t slots_n)
{
    struct host *h = det_zalloc(sizeof *h);
    h->boot = det_strdup(boot);
    h->pool = det_strdup(pool ? pool : "");
    h->addr = det_strdup(addr);
    h->next_seq = 1;
    for (size_t i = 0; i < slots_n; i++) {
        struct link_slot s = slots[i];
        s.brand = det_strdup(s.brand ? s.brand : "");
        s.uuid = det_strdup(s.uuid ? s.uuid : "");
        vec_push(&h->slots, s);
    }
    return h;
}

static void exit_finish(struct link_exit *e)
{
    free((char *)e->text);
    free((char *)e->exception);
    free((char *)e->at);
}

static void task_free(struct host_task *t)
{
    free(t->alloc);
    free(t->container);
    exit_finish(&t->exit);
    free((char *)t->silent.phase);
    free((char *)t->unreached.text);
    free(t->slots);
    json_decref(t->held);
    for (size_t i = 0; i < t->marks.n; i++)
        json_decref(t->marks.v[i]);
    vec_free(&t->marks);
    free(t);
}

void host_destroy(struct host *h)
{
    if (!h)
        return;
    struct host_effect e;
    while (host_take(h, &e))
        json_decref(e.task);
    for (size_t i = 0; i < h->tasks.n; i++)
        task_free(h->tasks.v[i]);
    for (size_t i = 0; i < h->slots.n; i++) {
        free((char *)h->slots.v[i].brand);
        free((char *)h->slots.v[i].uuid);
    }
    for (size_t i = 0; i < h->sights.n; i++)
        free((char *)h->sights.v[i].is.text);
    vec_free(&h->sights);
    host_outbox_clear(h);
    vec_free(&h->tasks);
    vec_free(&h->slots);
    vec_free(&h->outbox);
    vec_free(&h->effects);
    for (size_t i = 0; i < HOST_DROPPED_MAX; i++)
        free(h->dropped[i]);
    json_decref(h->seen);
    json_decref(h->clock);
    json_decref(h->gpus);
    free(h->boot);
    free(h->pool);
    free(h->addr);
    free(h);
}

bool host_take(struct host *h, struct host_effect *ret)
{
    if (h->effects.n == 0)
        return false;
    *ret = h->effects.v[0];
    vec_remove(&h->effects, 0);
    return true;
}

static struct host_task *find_task(const struct host *h, const char *alloc)
{
    for (size_t i = 0; i < h->tasks.n; i++)
        if (strcmp(h->tasks.v[i]->alloc, alloc) == 0)
            return h->tasks.v[i];
    return NULL;
}

static struct host_effect *add_effect(struct host *h, enum host_effect_kind kind,
                                      const struct host_task *t)
{
    struct host_effect e = {.kind = kind};
    snprintf(e.alloc, sizeof e.alloc, "%s", t->alloc);
    snprintf(e.container, sizeof e.container, "%s", t->container);
    vec_push(&h->effects, e);
    return &h->effects.v[h->effects.n - 1];
}

static struct host_task *add_task(struct host *h, const char *alloc, const char *container,
                                  enum host_state state)
{
    struct host_task *t = det_zalloc(sizeof *t);
    t->state = state;
    t->alloc = det_strdup(alloc);
    t->container = det_strdup(container);
    t->exit = (struct link_exit){.rank = -1, .text = det_strdup("")};
    vec_push(&h->tasks, t);
    return t;
}

static void remember_dropped(struct host *h, const char *container)
{
    char **at = &h->dropped[h->dropped_n++ % HOST_DROPPED_MAX];
    free(*at);
    *at = det_strdup(container);
}

static bool was_here(const struct host *h, const char *container)
{
    for (size_t i = 0; i < HOST_DROPPED_MAX && h->dropped[i]; i++)
        if (strcmp(h->dropped[i], container) == 0)
            return true;
    return false;
}

static void drop_task(struct host *h, struct host_task *t)
{
    remember_dropped(h, t->container);
    for (size_t i = 0; i < h->tasks.n; i++)
        if (h->tasks.v[i] == t) {
            vec_remove(&h->tasks, i);
            break;
        }
    task_free(t);
}

/* ---- orders ---- */

static const struct link_slot *slot_of(const struct host *h, int id)
{
    for (size_t i = 0; i < h->slots.n; i++)
        if (h->slots.v[i].id == id)
            return &h->slots.v[i];
    return NULL;
}

static bool holds_slot(const struct host_task *t, int id)
{
    bool has_any = t->state == HOST_STARTING || t->state == HOST_RUNNING;
    for (size_t i = 0; has_any && i < t->slots_n; i++)
        if (t->slots[i] == id)
            return true;
    return false;
}

static const struct host_task *holder_of(const struct host *h, int id)
{
    for (size_t i = 0; i < h->tasks.n; i++)
        if (holds_slot(h->tasks.v[i], id))
            return h->tasks.v[i];
    return NULL;
}

static int check_slots(const struct host *h, const int *slots, size_t n, struct det_err *err)
{
    for (size_t i = 0; i < n; i++)
        if (!slot_of(h, slots[i]))
            return det_fail(err, DET_ENOENT, "this agent has no slot %d", slots[i]);
    return 0;
}

static void take_slots(struct host_task *t, const int *slots, size_t n)
{
    t->slots = n ? det_memdup(slots, n * sizeof *slots) : NULL;
    t->slots_n = n;
}

static bool slots_are_free(const struct host *h, const struct host_task *t)
{
    for (size_t i = 0; i < t->slots_n; i++)
        if (holder_of(h, t->slots[i]) || host_is_unseen(h, t->slots[i]))
            return false;
    return true;
}

/* Starts, oldest first, what waited for slots that are free now. */
static void start_held(struct host *h)
{
    for (size_t i = 0; i < h->tasks.n; i++) {
        struct host_task *t = h->tasks.v[i];
        if (t->state != HOST_WAITING || !slots_are_free(h, t))
            continue;
        move_task(t, HOST_STARTING);
        add_effect(h, HOST_START, t)->task = det_take(t->held);
    }
}

/* Not what another task has by now. */
static void settle_slots(struct host *h, const struct host_task *t)
{
    for (size_t i = 0; i < t->slots_n; i++)
        if (!holder_of(h, t->slots[i]) && host_unsee(h, t->slots[i]))
            add_effect(h, HOST_SETTLE, t)->slot = t->slots[i];
}

/* to: ENDED, or OVER when there is no det-task. */
static void end_task(struct host *h, struct host_task *t, enum host_state to,
                     const struct link_exit *e)
{
    bool was_started = t->state != HOST_WAITING;
    struct link_exit copy = *e;
    copy.text = det_strdup(e->text ? e->text : "");
    copy.exception = det_strdup(e->exception);
    copy.at = det_strdup(e->at);
    exit_finish(&t->exit);
    t->exit = copy;
    move_task(t, to);
    json_decref(det_take(t->held));
    if (was_started)
        settle_slots(h, t);
    t->exit_seq = host_tell(h, LINK_EV_EXIT, t);
    start_held(h);
}

/* Without a word of a det-task: there is none. */
static void end_as(struct host *h, struct host_task *t, enum link_exit_reason reason,
                   const char *why)
{
    end_task(h, t, HOST_OVER, &(struct link_exit){.reason = reason, .rank = -1, .text = why});
}

static void on_start(struct host *h, const struct link_order *o)
{
    struct link_spec spec;
    struct det_err err = {0};
    if (find_task(h, o->alloc) || was_here(h, o->container))
        return;
    int rc = link_spec_decode(o->task, &spec, &err);
    if (rc == 0) {
        rc = check_slots(h, spec.slots, spec.slots_n, &err);
        if (rc < 0)
            link_spec_finish(&spec);
    }
    if (rc < 0) {
        host_refuse(h, o->alloc, o->container, err.text);
        return;
    }
    struct host_task *t = add_task(h, o->alloc, o->container, HOST_WAITING);
    take_slots(t, spec.slots, spec.slots_n);
    link_spec_finish(&spec);
    host_tell(h, LINK_EV_STATE, t);
    t->held = json_incref(o->task);
    start_held(h);
}

/* A task that is not here has left nothing that could be signalled: the master learns that it is
 * gone. */
static void answer_lost(struct host *h, const struct link_order *o)
{
    struct host_task t = {
        .alloc = (char *)o->alloc,
        .container = (char *)(o->container ? o->container : o->alloc),
        .state = HOST_OVER,
        .exit = {.reason = LINK_LOST, .rank = -1, .text = "the agent knows of no such task"}};
    host_tell(h, LINK_EV_EXIT, &t);
}

/* There is no process yet: only a kill means something. */
static void signal_waiting(struct host *h, struct host_task *t, int signal)
{
    if (signal == SIGKILL)
        end_as(h, t, LINK_KILLED, "killed before it could start");
}

static void signal_task(struct host *h, struct host_task *t, int signal)
{
    if (t->signal != SIGKILL)
        t->signal = signal;
    add_effect(h, HOST_SIGNAL, t)->signal = signal;
}

static void on_signal(struct host *h, const struct link_order *o)
{
    struct host_task *t = find_task(h, o->alloc);
    if (!t) {
        answer_lost(h, o);
        return;
    }
    switch (t->state) {
    case HOST_WAITING: signal_waiting(h, t, o->signal); break;
    case HOST_STARTING:
    case HOST_RUNNING: signal_task(h, t, o->signal); break;
    case HOST_KNOWN: /* not to that master, it seems */ host_tell(h, LINK_EV_EXIT, t); break;
    case HOST_ENDED:
    case HOST_OVER: /* told already, and again until it is acknowledged */
    case HOST_STATE_COUNT: break;
    }
}

/* A look and nothing more: who is not there is not missed. */
static void on_stacks(struct host *h, const struct link_order *o)
{
    const struct host_task *t = find_task(h, o->alloc);
    if (t && t->state == HOST_RUNNING && strcmp(t->container, o->container) == 0)
        add_effect(h, HOST_STACKS, t);
}

static void on_store(struct host *h, const struct link_order *o)
{
    struct host_effect e = {.kind = HOST_LOOK, .task = json_incref(o->json)};
    vec_push(&h->effects, e);
    h->is_looking = true;
}

void host_on_order(struct host *h, const struct link_order *o)
{
    switch (o->kind) {
    case LINK_START: on_start(h, o); break;
    case LINK_SIGNAL: on_signal(h, o); break;
    case LINK_STORE: on_store(h, o); break;
    case LINK_STACKS: on_stacks(h, o); break;
    case LINK_HEARTBEAT:
    case LINK_ORDER_UNKNOWN: /* of a later master */ break;
    }
}

void host_refuse(struct host *h, const char *alloc, const char *container, const char *why)
{
    if (find_task(h, alloc))
        return;
    struct host_task *t = add_task(h, alloc, container, HOST_WAITING);
    end_as(h, t, LINK_START_FAILED, why);
}

/* ---- det-task ---- */

void host_adopt(struct host *h, const char *alloc, const char *container, const int *slots,
                size_t slots_n)
{
    if (find_task(h, alloc))
        return;
    struct host_task *t = add_task(h, alloc, container, HOST_RUNNING); /* until its det-task says
                                                                        * that it has ended */
    t->is_silent = true;
    take_slots(t, slots, slots_n);
}

void host_on_running(struct host *h, const char *alloc)
{
    struct host_task *t = find_task(h, alloc);
    if (!t)
        return;
    bool has_news = t->marks.n > t->marks_told || t->has_silence_news;
    t->is_silent = false;
    if (t->state == HOST_STARTING)
        move_task(t, HOST_RUNNING);
    else if (t->state != HOST_RUNNING || !has_news)
        return;
    host_tell(h, LINK_EV_STATE, t);
}

static bool has_mark(const struct host_task *t, const json_t *mark)
{
    for (size_t i = 0; i < t->marks.n; i++)
        if (json_equal(t->marks.v[i], mark))
            return true;
    return false;
}

void host_on_marks(struct host *h, const char *alloc, const json_t *marks)
{
    struct link_mark *checked;
    size_t n;
    struct host_task *t = find_task(h, alloc);
    if (!t || host_has_ended(t) || link_marks_decode(marks, &checked, &n, NULL) < 0)
        return;
    free(checked);
    for (size_t i = 0; i < n && t->marks.n < LINK_MARKS_MAX; i++)
        if (!has_mark(t, json_array_get(marks, i)))
            vec_push(&t->marks, json_incref(json_array_get(marks, i)));
}

/* Marks that events up to seq carried are known to the master. */
static void take_acked_marks(struct host *h, int64_t seq)
{
    for (size_t i = 0; i < h->tasks.n; i++) {
        struct host_task *t = h->tasks.v[i];
        if (t->marks_seq == 0 || t->marks_seq > seq)
            continue;
        t->marks_acked = t->marks_told;
        t->marks_seq = 0;
    }
}

static bool is_same(const struct link_silent *a, const struct link_silent *b)
{
    bool both = a->phase && b->phase;
    return both ? strcmp(a->phase, b->phase) == 0 && a->rank == b->rank &&
                      a->batches == b->batches && a->silent_ms == b->silent_ms &&
                      a->timeout_ms == b->timeout_ms
                : !a->phase && !b->phase;
}

void host_on_silent(struct host *h, const char *alloc, const struct link_silent *s)
{
    static const struct link_silent none;
    struct host_task *t = find_task(h, alloc);
    if (!t || host_has_ended(t) || is_same(&t->silent, s ? s : &none))
        return;
    free((char *)t->silent.phase);
    t->silent = s ? *s : none;
    t->silent.phase = s ? det_strdup(s->phase) : NULL;
    t->has_silence_news = true;
}

enum { UNREACHED_TELL = 3 };

bool host_on_unreached(struct host *h, const char *alloc, const struct link_unreached *u)
{
    struct host_task *t = find_task(h, alloc);
    if (!t || host_has_ended(t))
        return false;
    if (!u || !h->is_greeted) {
        host_reached(t);
        return false;
    }
    if (t->unreached_heard > 0 && t->unreached_ms == u->for_ms)
        return false; /* it tells something else */
    t->unreached_ms = u->for_ms;
    if (++t->unreached_heard < UNREACHED_TELL)
        return false;
    free((char *)t->unreached.text);
    t->unreached = (struct link_unreached){det_strdup(u->text), u->for_ms};
    t->has_silence_news = true;
    return t->unreached_heard == UNREACHED_TELL;
}

void host_on_ended(struct host *h, const char *alloc, const struct link_exit *e)
{
    struct host_task *t = find_task(h, alloc);
    if (t && (t->state == HOST_STARTING || t->state == HOST_RUNNING))
        end_task(h, t, HOST_ENDED, e);
}

/* The successor runs a task that was not begun: what was asked of it holds for that one too. */
static void recover_task(struct host *h, struct host_task *t)
{
    add_effect(h, HOST_RECOVER, t);
    if (t->signal)
        add_effect(h, HOST_SIGNAL, t)->signal = t->signal;
}

static void forget_task(struct host *h, struct host_task *t)
{
    add_effect(h, HOST_FORGET, t);
    drop_task(h, t);
}

void host_on_gone(struct host *h, const char *alloc)
{
    struct host_task *t = find_task(h, alloc);
    if (!t)
        return;
    switch (t->state) {
    case HOST_STARTING:
    case HOST_RUNNING:
        if (t->recoveries++ < RECOVERIES_MAX)
            recover_task(h, t);
        else
            end_as(h, t, LINK_LOST, "det-task ended without a word");
        break;
    case HOST_ENDED: move_task(t, HOST_OVER); break;
    case HOST_KNOWN: forget_task(h, t); break;
    case HOST_WAITING:
    case HOST_OVER:
    case HOST_STATE_COUNT: /* it has no det-task */ break;
    }
}

/* Exits up to seq are known to the master. */
static void take_acked_exits(struct host *h, int64_t seq)
{
    for (size_t i = 0; i < h->tasks.n;) {
        struct host_task *t = h->tasks.v[i];
        bool is_acked = t->exit_seq > 0 && t->exit_seq <= seq;
        if (is_acked && t->state == HOST_OVER) {
            forget_task(h, t);
            continue;
        }
        if (is_acked && t->state == HOST_ENDED) {
            move_task(t, HOST_KNOWN);
            add_effect(h, HOST_ACKED, t);
        }
        i++;
    }
}

void host_on_ack(struct host *h, int64_t seq)
{
    host_outbox_ack(h, seq);
    if (seq >= h->next_seq)
        return; /* a number that was never given out */
    take_acked_marks(h, seq);
    take_acked_exits(h, seq);
}

void host_on_slot(struct host *h, const struct link_slot_sight *s)
{
    host_sees(h, s);
    start_held(h);
}

bool host_slot_has_task(const struct host *h, int slot)
{
    return holder_of(h, slot) != NULL;
}

struct host_counts host_count(const struct host *h)
{
    struct host_counts c = {.slots = h->slots.n, .known = h->tasks.n};
    for (size_t i = 0; i < h->slots.n; i++)
        c.slots_used += holder_of(h, h->slots.v[i].id) != NULL;
    for (size_t i = 0; i < h->tasks.n; i++)
        c.tasks += !host_has_ended(h->tasks.v[i]);
    return c;
}

static size_t count_holders(const struct host *h, int id)
{
    size_t n = 0;
    for (size_t i = 0; i < h->tasks.n; i++)
        n += !h->tasks.v[i]->is_silent && holds_slot(h->tasks.v[i], id);
    return n;
}

void host_check(const struct host *h)
{
    for (size_t i = 0; i < h->slots.n; i++)
        assert(count_holders(h, h->slots.v[i].id) <= 1);
    for (size_t i = 0; i < h->outbox.n; i++)
        assert(h->outbox.v[i].seq == h->next_seq - (int64_t)(h->outbox.n - i));
    for (size_t i = 0; i < h->tasks.n; i++)
        assert(!h->tasks.v[i]->held == (h->tasks.v[i]->state != HOST_WAITING));
    for (size_t i = 0; i < h->tasks.n; i++)
        assert(h->tasks.v[i]->marks_acked <= h->tasks.v[i]->marks.n);
}
