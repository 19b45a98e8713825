/* A task's life is det-task's own, agent/life/: what it asks for takes its time here, or is
 * answered by nobody. */
#include "sim.h"

#define KILL_MS 10000 /* I3: what an order to kill may take */

static void later(struct sim *m, const struct task *t, int64_t in_ms, enum tasklife_event_kind kind)
{
    sim_later(m, in_ms,
              (struct msg){.kind = M_LIFE, .task = t->uid, .index = (int)kind, .conn = t->lives});
}

/* Nothing of it computes or asks any more. */
static void end_harness(struct task *t)
{
    t->phase = P_ENDED;
    t->waiting = 0;
}

/* ---- what it asks for ---- */

static void strike(struct sim *m, struct task *t)
{
    t->is_gone = sim_random(m, 4) != 0;
    life_step(m, t, (struct tasklife_event){.kind = TASKLIFE_STRUCK, .is_gone = t->is_gone});
}

static void read_pipes(struct sim *m, struct task *t)
{
    if (sim_random(m, 8)) /* else something holds them open */
        life_step(m, t, (struct tasklife_event){.kind = TASKLIFE_SILENT});
}

static void send_reports(struct sim *m, struct task *t)
{
    int64_t limit_ms = t->life.hurry ? 400 : t->life.is_successor ? 5000 : 10000;
    later(m, t, sim_random(m, 10) ? 1 : limit_ms, TASKLIFE_REPORTED);
}

static void send_log(struct sim *m, struct task *t)
{
    if (sim_random(m, 5)) /* else there is no master */
        later(m, t, 1 + (int64_t)sim_random(m, 20), TASKLIFE_LOG_EMPTY);
}

static void tell_exit(struct sim *m, struct task *t)
{
    if (t->phase != P_ENDED || !t->is_gone)
        sim_fail(m, "I3: the exit of %s is told while it runs", t->container);
    if (t->killed_ms && m->now_ms > t->killed_ms + KILL_MS)
        sim_fail(m, "I3: %s ends %lld ms after it was to be killed", t->container,
                 (long long)(m->now_ms - t->killed_ms));
    const struct link_exit *e = &t->life.exit;
    task_over(m, t, (enum core_exit_reason)e->reason, e->code);
}

static void leave(struct sim *m, struct task *t)
{
    if (t->is_dead)
        return;
    t->is_dead = true;
    t->lives++;
    t->killed_ms = 0;
    hosts_hear_gone(m, t);
}

static void perform(struct sim *m, struct task *t, enum tasklife_effect effect)
{
    switch (effect) {
    case TASKLIFE_LOOK: later(m, t, 1 + (int64_t)sim_random(m, 10000), TASKLIFE_LOOKED); break;
    case TASKLIFE_STOP: end_harness(t); break;
    case TASKLIFE_STRIKE: strike(m, t); break;
    case TASKLIFE_READ_PIPES: read_pipes(m, t); break;
    case TASKLIFE_SEND_REPORTS: send_reports(m, t); break;
    case TASKLIFE_HURRY_REPORTS: later(m, t, 400, TASKLIFE_REPORTED); break;
    case TASKLIFE_SEND_LOG:
    case TASKLIFE_SEND_REST: send_log(m, t); break;
    case TASKLIFE_TELL_EXIT: tell_exit(m, t); break;
    case TASKLIFE_FINISH:
    case TASKLIFE_QUIT: leave(m, t); break;
    case TASKLIFE_SAY_EXIT: /* into its log */
    case TASKLIFE_SAY_STRAGGLE:
    case TASKLIFE_SAY_UNDYING:
    case TASKLIFE_ASK_TO_END: /* ranks here end when they are killed */
    case TASKLIFE_EFFECT_COUNT: break;
    }
}

/* ---- what it is told ---- */

static void arm(struct sim *m, struct task *t)
{
    int64_t by_ms = t->life.deadline_ms;
    if (by_ms == t->tick_ms || by_ms == TASKLIFE_NEVER || t->is_dead)
        return;
    t->tick_ms = by_ms;
    later(m, t, by_ms > m->now_ms ? by_ms - m->now_ms : 0, TASKLIFE_TICK);
}

void life_step(struct sim *m, struct task *t, struct tasklife_event e)
{
    enum tasklife_effect effect;
    if (t->is_dead)
        return;
    tasklife_step(&t->life, &e, m->now_ms);
    tasklife_check(&t->life);
    if (t->is_performing)
        return;
    t->is_performing = true;
    while (tasklife_take(&t->life, &effect))
        perform(m, t, effect);
    t->is_performing = false;
    arm(m, t);
}

void life_begin(struct sim *m, struct task *t)
{
    tasklife_finish(&t->life);
    tasklife_init(&t->life, 0, m->now_ms);
    t->is_dead = false;
    t->tick_ms = 0;
}

void life_recover(struct sim *m, struct task *t)
{
    const struct link_exit e = {.reason = LINK_LOST, .rank = -1, .text = ""};
    life_begin(m, t);
    life_step(m, t, (struct tasklife_event){.kind = TASKLIFE_RECOVER, .exit = e});
}

void life_die(struct sim *m, struct task *t)
{
    sim_trace(m, "task      %s on %s loses its det-task", t->alloc, m->hosts[t->host].id);
    leave(m, t);
}

void life_lose_power(struct task *t)
{
    end_harness(t);
    t->is_dead = true;
    t->lives++;
    t->killed_ms = 0;
}

void life_on(struct sim *m, const struct msg *msg)
{
    struct task *t = task_find(m, msg->task);
    if (!t || msg->conn != t->lives)
        return;
    if (msg->index == TASKLIFE_TICK && m->now_ms >= t->tick_ms)
        t->tick_ms = 0;
    life_step(m, t,
              (struct tasklife_event){.kind = (enum tasklife_event_kind)msg->index,
                                      .all_ended = true,
                                      .first_ended = true});
}

/* The chief, or what stands for it here, has ended; the host's other ranks end with it, or later,
 * or not before they are killed. */
static void end_ranks(struct sim *m, struct task *t, const struct link_exit *e)
{
    bool all = sim_random(m, 4) != 0;
    end_harness(t);
    if (e->code || e->reason != LINK_EXITED)
        life_step(m, t, (struct tasklife_event){.kind = TASKLIFE_RANK_FAILED, .exit = *e});
    life_step(
        m, t,
        (struct tasklife_event){.kind = TASKLIFE_CHILDREN, .all_ended = all, .first_ended = true});
    if (!all)
        later(m, t, 1 + (int64_t)sim_random(m, e->code ? 3000 : 12000), TASKLIFE_CHILDREN);
}

static void kill_task(struct sim *m, struct task *t)
{
    if (!t->killed_ms)
        t->killed_ms = m->now_ms;
    life_step(m, t, (struct tasklife_event){.kind = TASKLIFE_KILL});
}

void life_end(struct sim *m, struct task *t, enum core_exit_reason reason, int code)
{
    struct link_exit e = {.reason = (enum link_exit_reason)reason, .code = code, .text = ""};
    if (t->is_dead) {
        end_harness(t); /* whoever comes in its place finds nothing */
    } else if (reason == CORE_KILLED) {
        kill_task(m, t);
    } else if (reason == CORE_START_FAILED || reason == CORE_ABSENT) {
        life_step(m, t, (struct tasklife_event){.kind = TASKLIFE_FAILED, .exit = e});
    } else if (reason == CORE_STALLED) {
        life_step(m, t, (struct tasklife_event){.kind = TASKLIFE_STALLED, .exit = e});
    } else {
        end_ranks(m, t, &e);
    }
}
