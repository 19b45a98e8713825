/* A container and the harness in it: rendezvous, operations, training, checkpoints, preemption,
 * exit. */
#include "sim.h"

#include <string.h>

enum { RETRY_MS = 2000 };

struct task *task_find(struct sim *m, uint64_t uid)
{
    return uid ? imap_get(m->tasks, uid) : NULL;
}

struct task *task_of(struct sim *m, int agent, const char *alloc)
{
    struct host *h = &m->hosts[agent];
    for (size_t i = 0; i < h->tasks.n; i++)
        if (strcmp(h->tasks.v[i]->alloc, alloc) == 0)
            return h->tasks.v[i];
    return NULL;
}

void task_free(struct task *t)
{
    free(t->alloc);
    free(t);
}

static void wake(struct sim *m, const struct task *t, int64_t in_ms)
{
    sim_later(m, in_ms, (struct msg){.kind = M_TASK, .task = t->uid});
}

void task_end(struct sim *m, struct task *t, enum core_exit_reason reason, int code)
{
    if (t->stopped)
        return;
    t->stopped = true;
    t->phase = P_ENDED;
    t->exit = (struct core_exit){.reason = reason, .code = code, .rank = code ? 0 : -1};
    host_report(m, t, true, CORE_TASK_ENDED);
    for (size_t i = 0; i < m->hosts[t->agent].tasks.n; i++) /* who waits for its slots */
        if (m->hosts[t->agent].tasks.v[i]->phase == P_QUEUED)
            wake(m, m->hosts[t->agent].tasks.v[i], 1);
}

/* A request of the harness: asked until answered. True when the answer to this phase is there. */
static bool ask(struct sim *m, struct task *t, struct core_event ev)
{
    if (t->answered && t->waiting) {
        t->answered = false;
        t->waiting = 0;
        return true;
    }
    if (t->waiting && m->now_ms < t->asked_ms + RETRY_MS)
        return false;
    t->waiting = ++m->next_token;
    t->asked_ms = m->now_ms;
    master_post(m, &ev, (struct waiter){.token = t->waiting, .agent = -1, .task = t->uid});
    wake(m, t, RETRY_MS);
    return false;
}

static void enter(struct sim *m, struct task *t, enum phase p, int64_t in_ms)
{
    t->phase = p;
    t->waiting = 0;
    t->answered = false;
    wake(m, t, in_ms);
}

/* Slots another task still dies on must be free first. */
static bool slots_are_free(struct sim *m, const struct task *t)
{
    const struct host *h = &m->hosts[t->agent];
    for (size_t i = 0; i < h->tasks.n; i++) {
        const struct task *o = h->tasks.v[i];
        if (o == t || o->stopped || o->phase == P_QUEUED)
            continue;
        for (int a = 0; a < t->slots_n; a++)
            for (int b = 0; b < o->slots_n; b++)
                if (t->slots[a] == o->slots[b])
                    return false;
    }
    return true;
}

static void run_rendezvous(struct sim *m, struct task *t)
{
    struct core_event ev = {
        .kind = CORE_EV_RENDEZVOUS, .alloc_id = t->alloc, .container = t->container};
    if (t->met) {
        map_put(m->started, t->container, m);
        enter(m, t, t->node ? P_PASSIVE : P_OPERATION, 1 + (int64_t)sim_random(m, 50));
    } else if (ask(m, t, ev) && t->answer == DET_ENOENT) {
        task_end(m, t, CORE_EXITED, 1);
    }
}

/* Follows the chief: fails when it is gone. */
static void run_passive(struct sim *m, struct task *t)
{
    for (int i = 0; i < m->hosts_n; i++) {
        struct task *o = task_of(m, i, t->alloc);
        if (!o || o == t || o->node != 0)
            continue;
        if (!o->stopped) {
            wake(m, t, 200);
            return;
        }
        task_end(m, t, CORE_EXITED, o->exit.reason == CORE_EXITED ? o->exit.code : 1);
        return;
    }
    /* The chief's host is gone, or its agent has forgotten it: its exit code is not known here. */
    struct stored_trial *s = store_trial(&m->store, t->trial);
    task_end(m, t, CORE_EXITED, s && s->final ? 0 : 1);
}

static void run_operation(struct sim *m, struct task *t)
{
    struct core_trial_view v;
    if (!m->core) {
        wake(m, t, 500);
    } else if (!core_trial_get(m->core, t->trial, &v) || v.run_id != t->run) {
        task_end(m, t, CORE_EXITED, 1);
    } else if (v.op_completed) {
        enter(m, t, P_ACK, 1);
    } else {
        t->length = v.op_length;
        enter(m, t, P_TRAIN, 1);
    }
}

static void save_checkpoint(struct sim *m, struct task *t, bool final)
{
    struct stored_trial *s = store_trial(&m->store, t->trial);
    if (!store_write(m, t->trial, t->run, t->progress, true))
        return;
    s->final |= final;
    struct core_event ev = {.kind = CORE_EV_CHECKPOINT, .trial_id = t->trial, .run_id = t->run};
    ev.checkpoint.uuid = s->r.latest_checkpoint;
    ev.checkpoint.steps = (int64_t)t->progress;
    master_post(m, &ev, (struct waiter){.agent = -1});
}

static void run_train(struct sim *m, struct task *t)
{
    struct core_alloc_view a;
    if (sim_chance(m, 15)) {
        m->faults++;
        if (sim_chance(m, 500)) { /* its own fault */
            store_trial(&m->store, t->trial)->crashes++;
            task_end(m, t, CORE_EXITED, 1);
        } else {
            task_end(m, t, CORE_LOST, 0);
        }
        return;
    }
    if (sim_chance(m, 2)) { /* InvalidHP, or a script that just ends: nothing more is expected */
        struct core_event ev = {.kind = CORE_EV_EARLY_EXIT, .trial_id = t->trial, .run_id = t->run};
        ev.exit_reason = CORE_EXIT_INVALID_HP;
        if (sim_random(m, 2))
            master_post(m, &ev, (struct waiter){.agent = -1});
        store_trial(&m->store, t->trial)->final = true;
        task_end(m, t, CORE_EXITED, 0);
        return;
    }
    t->progress += 1 + (double)sim_random(m, 20);
    if (t->progress > (double)t->length)
        t->progress = (double)t->length;
    store_write(m, t->trial, t->run, t->progress, false);
    struct core_event ev = {.kind = CORE_EV_PROGRESS, .trial_id = t->trial, .run_id = t->run,
                            .units = t->progress};
    master_post(m, &ev, (struct waiter){.agent = -1});
    if (sim_random(m, 4) == 0)
        save_checkpoint(m, t, false);
    if (m->core && core_alloc_get(m->core, t->alloc, &a))
        t->preempt |= a.preempt;
    if (t->progress >= (double)t->length)
        enter(m, t, P_COMPLETE, 20);
    else if (t->preempt)
        enter(m, t, P_PREEMPTED, 1);
    else
        wake(m, t, 100 + (int64_t)sim_random(m, 400));
}

static void run_complete(struct sim *m, struct task *t)
{
    JSON_OWN metric = json_real((double)sim_random(m, 1000));
    struct core_event ev = {.kind = CORE_EV_OP_COMPLETED, .trial_id = t->trial, .run_id = t->run};
    ev.op.length = t->length;
    ev.op.metric = metric;
    if (!ask(m, t, ev))
        return;
    if (t->answer)
        task_end(m, t, CORE_EXITED, 1);
    else
        enter(m, t, P_FINAL, 30);
}

static void run_final(struct sim *m, struct task *t)
{
    if (sim_chance(m, 20)) { /* between the operation and its checkpoint */
        task_end(m, t, CORE_LOST, 0);
        return;
    }
    save_checkpoint(m, t, true);
    enter(m, t, P_OPERATION, 1);
}

static void run_ack(struct sim *m, struct task *t)
{
    if (!ask(m, t, (struct core_event){.kind = CORE_EV_ACK_PREEMPTION, .alloc_id = t->alloc}))
        return;
    if (t->phase == P_PREEMPTED)
        save_checkpoint(m, t, false);
    task_end(m, t, CORE_EXITED, 0);
}

void task_run(struct sim *m, struct task *t)
{
    static void (*const run[])(struct sim *, struct task *) = {
        [P_RENDEZVOUS] = run_rendezvous,
        [P_PASSIVE] = run_passive,
        [P_OPERATION] = run_operation,
        [P_TRAIN] = run_train,
        [P_COMPLETE] = run_complete,
        [P_FINAL] = run_final,
        [P_ACK] = run_ack,
        [P_PREEMPTED] = run_ack,
    };
    if (t->stopped)
        return;
    if (t->phase == P_QUEUED && slots_are_free(m, t)) {
        enter(m, t, P_STARTING, 5);
        host_report(m, t, false, CORE_TASK_STARTING);
    } else if (t->phase == P_STARTING) {
        enter(m, t, P_RENDEZVOUS, 5);
        host_report(m, t, false, CORE_TASK_RUNNING);
    } else if (t->phase != P_QUEUED && t->gc) {
        task_end(m, t, CORE_EXITED, 0);
    } else if (run[t->phase]) {
        run[t->phase](m, t);
    }
}
