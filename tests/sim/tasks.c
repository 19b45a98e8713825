/* A container, and a model of the harness in it: rendezvous, operations, training, checkpoints,
 * preemption, exit. */
#include "sim.h"

#include <string.h>

struct task *task_find(const struct sim *m, uint64_t uid)
{
    return uid ? imap_get(m->tasks, uid) : NULL;
}

struct task *task_of(const struct sim *m, int host, const char *alloc)
{
    struct task *t = map_get(m->by_alloc, alloc);
    while (t && t->host != host)
        t = t->next;
    return t;
}

struct task *task_create(struct sim *m, int host, const char *alloc, const char *container)
{
    struct task *t = det_zalloc(sizeof *t);
    t->uid = ++m->next_uid;
    t->alloc = det_strdup(alloc);
    memcpy(t->container, container, UUID_STR_MAX);
    t->host = host;
    t->next = map_get(m->by_alloc, alloc);
    map_put(m->by_alloc, alloc, t);
    vec_push(&m->hosts[host].tasks, t);
    imap_put(m->tasks, t->uid, t);
    return t;
}

static void unlist(struct sim *m, struct task *t)
{
    struct sim_host *h = &m->hosts[t->host];
    struct task *first = map_get(m->by_alloc, t->alloc);
    for (size_t i = 0; i < h->tasks.n; i++)
        if (h->tasks.v[i] == t)
            vec_remove(&h->tasks, i);
    if (first == t && t->next)
        map_put(m->by_alloc, t->alloc, t->next);
    else if (first == t)
        map_del(m->by_alloc, t->alloc);
    for (struct task *o = first; o; o = o->next)
        if (o->next == t)
            o->next = t->next;
    imap_del(m->tasks, t->uid);
}

void task_free(struct sim *m, struct task *t)
{
    unlist(m, t);
    tasklife_finish(&t->life);
    vec_free(&t->slots);
    free(t->alloc);
    free(t);
}

static void wake(struct sim *m, const struct task *t, int64_t in_ms)
{
    sim_later(m, in_ms, (struct msg){.kind = M_TASK, .task = t->uid});
}

/* Of every fifth seed a third of the experiments never get anywhere: one mistake ends all their
 * runs. The others take nothing from the seed for it. */
static bool is_broken(const struct sim *m, const struct task *t)
{
    return m->in.seed % 5 == 0 && !t->gc && strtoll(t->alloc, NULL, 10) % 3 == 0;
}

/* Its exit is told. */
void task_over(struct sim *m, struct task *t, enum core_exit_reason reason, int code)
{
    t->stopped = true;
    t->phase = P_ENDED;
    t->exit = (struct core_exit){.reason = reason, .code = code, .rank = code ? 0 : -1};
    if (code && reason == CORE_EXITED && is_broken(m, t)) {
        t->exit.exception = t->uid % 2 ? "KeyError: 7" : "KeyError: 0x1f";
        t->exit.at = "model_def.py, line 3, in f";
    }
    sim_trace(m, "task      %s on %s ends: reason %d, code %d", t->alloc, m->hosts[t->host].id,
              (int)reason, code);
    hosts_hear_ended(m, t);
}

void task_end(struct sim *m, struct task *t, enum core_exit_reason reason, int code)
{
    if (!t->stopped)
        life_end(m, t, reason, code);
}

/* Nothing can be read or kept: a task that knows its store sees that it is not there. */
static bool is_store_away(struct sim *m, struct task *t)
{
    if (!t->has_store || m->hosts[t->host].mounted)
        return false;
    task_end(m, t, CORE_STORE_AWAY, 1);
    return true;
}

/* By its own fault: what restarts are counted for. */
static void crash(struct sim *m, struct task *t)
{
    sim_store_trial(&m->store, t->trial)->crashes++;
    if (sim_random(m, 4))
        task_end(m, t, CORE_EXITED, 1);
    else
        task_end(m, t, CORE_STALLED, 0);
}

void task_answer(struct sim *m, struct task *t, uint64_t token, int code)
{
    if (t->waiting != token || t->stopped)
        return;
    t->answered = true;
    t->answer = code;
    wake(m, t, 1);
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
    ev.trial_id = ev.run_id ? t->trial : 0;
    request_send(m, t, ev, t->waiting);
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

enum { POLL_MS = 10000 };

static void run_rendezvous(struct sim *m, struct task *t)
{
    if (t->met) {
        map_put(m->started, t->container, m);
        life_step(m, t, (struct tasklife_event){.kind = TASKLIFE_MET});
        if (t->node == 0 && is_store_away(m, t))
            return;
        if (sim_chance(m, 20))
            request_send(m, t, (struct core_event){.kind = CORE_EV_WAITING}, 0);
        enter(m, t, t->node ? P_PASSIVE : P_OPERATION, 1 + (int64_t)sim_random(m, 50));
    } else if (ask(m, t, (struct core_event){.kind = CORE_EV_RENDEZVOUS})) {
        if (t->answer == DET_ENOENT)
            task_end(m, t, CORE_EXITED, 1);
        else
            wake(m, t, POLL_MS); /* a master that ends lets nobody wait */
    }
}

/* Follows the chief: fails when it is gone. */
static void run_passive(struct sim *m, struct task *t)
{
    for (struct task *o = map_get(m->by_alloc, t->alloc); o; o = o->next) {
        if (o == t || o->node != 0 || (o->is_dead && o->phase == P_ENDED && !o->stopped))
            continue;
        if (!o->stopped) {
            wake(m, t, 200);
            return;
        }
        task_end(m, t, CORE_EXITED, o->exit.reason == CORE_EXITED ? o->exit.code : 1);
        return;
    }
    /* The chief's host is gone, or its agent has forgotten it: its exit code is not known here. */
    task_end(m, t, CORE_EXITED, 0);
}

/* It hears what was committed: the master answers no sooner. */
static void run_operation(struct sim *m, struct task *t)
{
    const struct stored_trial *row = sim_store_trial(&m->store, t->trial);
    if (row->r.run_id != t->run) {
        task_end(m, t, CORE_EXITED, 1); /* a twin replaced it */
        return;
    }
    if (!request_reach(m, t) || sim_store_back_ms(m) > m->now_ms) {
        wake(m, t, 500);
        return;
    }
    JSON_OWN core = json_parse(row->r.core, strlen(row->r.core), NULL);
    int64_t length = json_int(core, "op_length", -1);
    bool done = json_flag(core, "op_complete", false) && !json_flag(core, "op_redo", false);
    if (length < 0 || done || trial_state_is_terminal(row->r.state)) {
        enter(m, t, P_ACK, 1);
        return;
    }
    t->length = length;
    if (is_broken(m, t))
        crash(m, t);
    else
        enter(m, t, P_TRAIN, 1);
}

static void send_checkpoint(struct sim *m, struct task *t)
{
    struct core_event ev = {.kind = CORE_EV_CHECKPOINT, .trial_id = t->trial, .run_id = t->run};
    ev.checkpoint.steps = (int64_t)t->progress;
    request_send(m, t, ev, 0);
}

/* InvalidHP, or a script that just ends: nothing more is expected of it. */
static void exit_early(struct sim *m, struct task *t)
{
    struct core_event ev = {.kind = CORE_EV_EARLY_EXIT, .trial_id = t->trial, .run_id = t->run};
    ev.exit_early.reason = CORE_EXIT_INVALID_HP;
    ev.exit_early.text = "a loss is NaN";
    if (sim_random(m, 2))
        request_send(m, t, ev, 0);
    sim_store_trial(&m->store, t->trial)->gave_up = true;
    task_end(m, t, CORE_EXITED, 0);
}

static bool goes_wrong(struct sim *m, struct task *t)
{
    if (sim_chance(m, 15)) {
        m->got.faults++;
        if (sim_chance(m, 500))
            crash(m, t);
        else
            life_die(m, t); /* and trains on until there is another one */
    } else if (sim_chance(m, 2)) {
        exit_early(m, t);
    }
    return t->phase == P_ENDED;
}

static void run_train(struct sim *m, struct task *t)
{
    struct core_alloc_view a;
    struct sim_master *s = request_reach(m, t);
    if (goes_wrong(m, t))
        return;
    t->progress += 1 + (double)sim_random(m, 20);
    if (t->progress > (double)t->length)
        t->progress = (double)t->length;
    struct core_event ev = {
        .kind = CORE_EV_PROGRESS, .trial_id = t->trial, .run_id = t->run, .units = t->progress};
    request_send(m, t, ev, 0);
    if (sim_random(m, 4) == 0) {
        if (is_store_away(m, t))
            return;
        send_checkpoint(m, t);
    }
    if (s && core_alloc_get(s->core, t->alloc, &a))
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
    struct core_event ev = {.kind = CORE_EV_OP_COMPLETED, .run_id = t->run};
    ev.op.length = t->length;
    if (!t->waiting)
        t->metric = (double)sim_random(m, 1000);
    if (!ask(m, t, ev))
        return;
    if (t->answer)
        task_end(m, t, CORE_EXITED, 1);
    else
        enter(m, t, P_FINAL, 30);
}

/* The last checkpoint is waited for. */
static void run_final(struct sim *m, struct task *t)
{
    struct core_event ev = {.kind = CORE_EV_CHECKPOINT, .run_id = t->run};
    ev.checkpoint.steps = (int64_t)t->progress;
    if (!t->waiting && is_store_away(m, t))
        return;
    if (!t->waiting && sim_chance(m, 20)) { /* between the operation and its checkpoint */
        life_die(m, t);
        return;
    }
    if (!ask(m, t, ev))
        return;
    if (t->answer == DET_ESTALE)
        task_end(m, t, CORE_EXITED, 1);
    else
        enter(m, t, P_OPERATION, 1);
}

static void run_ack(struct sim *m, struct task *t)
{
    if (!ask(m, t, (struct core_event){.kind = CORE_EV_ACK_PREEMPTION}))
        return;
    if (t->phase == P_PREEMPTED && is_store_away(m, t))
        return;
    if (t->phase == P_PREEMPTED)
        send_checkpoint(m, t);
    task_end(m, t, CORE_EXITED, 0);
}

void task_begin(struct sim *m, struct task *t)
{
    life_begin(m, t);
    t->has_begun = true;
    t->begun_ms = m->now_ms;
    enter(m, t, P_STARTING, 5);
    if (m->now_ms < m->hosts[t->host].broken_until)
        task_end(m, t, sim_random(m, 4) ? CORE_START_FAILED : CORE_ABSENT, 0);
    else if (sim_random(m, 2))
        life_step(m, t, (struct tasklife_event){.kind = TASKLIFE_STEP, .step = "a hook"});
}

static void start_ranks(struct sim *m, struct task *t)
{
    life_step(m, t, (struct tasklife_event){.kind = TASKLIFE_RANKS});
    t->has_run = true;
    enter(m, t, P_RENDEZVOUS, 5);
    hosts_hear_running(m, t);
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
    if (t->phase == P_ENDED || (t->phase == P_STARTING && t->is_dead))
        return;
    if (t->phase == P_STARTING) {
        start_ranks(m, t);
    } else if (t->gc) {
        if (!is_store_away(m, t))
            task_end(m, t, CORE_EXITED, sim_chance(m, 30));
    } else if (run[t->phase]) {
        run[t->phase](m, t);
    }
}
