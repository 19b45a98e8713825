/*
 * The deadlines of allocations, and what happens at each. Those that follow from what an allocation
 * is (ready, done) are set in one place, for all that a step has changed: no path can forget one.
 *
 * A timer that fires late fires because the master itself stood still or could not commit: what it
 * waited for may have happened and not been told yet, so the wait begins again.
 */
#include "alloc.h"

#include "effects.h"
#include "queue.h"
#include "trial.h"

enum { LATE_MS = 2000 };

static bool is_placed(const struct alloc *a)
{
    return a->state > ALLOC_PENDING && a->state < ALLOC_TERMINATING;
}

/* Nothing is left for it to do but to exit. A collection has one job, that takes its time. */
bool alloc_should_end(const struct alloc *a)
{
    if (!is_placed(a))
        return false;
    return a->kind == KIND_GC ? a->is_ready : a->acked || trial_op_done(a->trial);
}

static void keep_deadline(int64_t *at_ms, bool wanted, int64_t then_ms)
{
    if (!wanted)
        *at_ms = INT64_MAX;
    else if (*at_ms == INT64_MAX)
        *at_ms = then_ms;
}

static int64_t done_timeout(const struct core *c, const struct alloc *a)
{
    return a->kind == KIND_GC ? c->o.gc_timeout_ms : c->o.preempt_timeout_ms;
}

void alloc_deadlines(struct core *c, struct alloc *a)
{
    keep_deadline(&a->ready_ms, is_placed(a) && !a->is_ready, c->now_ms + c->o.ready_timeout_ms);
    keep_deadline(&a->done_ms, alloc_should_end(a), c->now_ms + done_timeout(c, a));
    alloc_rearm(c, a);
}

void alloc_rearm(struct core *c, struct alloc *a)
{
    const int64_t all[] = {a->hold_ms, a->preempt_ms, a->kill_ms, a->start_ms,
                           a->exit_ms, a->ready_ms,   a->done_ms, a->shield_ms};
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < DET_ARRAY_LEN(all); i++)
        if (all[i] < first)
            first = all[i];
    timers_set(&c->timers, &a->timer, first);
}

/* True once it is over; a late one begins again. */
static bool is_over(struct core *c, int64_t *at_ms)
{
    int64_t late = c->now_ms - *at_ms;
    if (*at_ms == INT64_MAX || late < 0)
        return false;
    *at_ms = INT64_MAX;
    return late <= LATE_MS;
}

static void resend_orders(struct core *c, struct alloc *a)
{
    bool waits = a->kill != KILL_NONE;
    for (size_t i = 0; i < a->containers.n; i++) {
        if (a->containers.v[i]->state == ALLOC_TERMINATED)
            continue;
        waits |= a->containers.v[i]->state == ALLOC_ASSIGNED;
        alloc_resend(c, a->containers.v[i]);
    }
    if (a->kill != KILL_NONE)
        fx_log(c, a, FX_WARNING, "Run %lld has not ended yet; its agent is told again.",
               (long long)a->run_id);
    a->kill_ms = a->kill != KILL_NONE ? c->now_ms + c->o.kill_resend_ms : INT64_MAX;
    a->start_ms = a->kill == KILL_NONE && waits ? c->now_ms + c->o.start_resend_ms : INT64_MAX;
}

void alloc_on_timer(struct core *c, struct alloc *a)
{
    int64_t now = c->now_ms;
    if (a->hold_ms <= now) {
        a->hold_ms = INT64_MAX;
        alloc_mark(c, a); /* a restart must not hold it again */
        queue_update(c, a);
    }
    if (a->shield_ms <= now) {
        a->shield_ms = INT64_MAX;
        a->pool->dirty = true;
        alloc_mark(c, a);
    }
    if (a->preempt_ms <= now)
        alloc_kill(c, a, KILL_TIMEOUT, "it did not stop within %lld s of being asked",
                   (long long)(c->o.preempt_timeout_ms / 1000));
    if (a->exit_ms <= now)
        alloc_kill(c, a, KILL_INVALID_HP,
                   "it did not exit after reporting invalid hyperparameters");
    if (is_over(c, &a->ready_ms))
        alloc_never_ready(c, a);
    if (is_over(c, &a->done_ms))
        alloc_kill(c, a, KILL_TIMEOUT, "it did not end within %lld s of having nothing left to do",
                   (long long)(done_timeout(c, a) / 1000));
    if (a->kill_ms <= now || a->start_ms <= now)
        resend_orders(c, a);
    if (a->state != ALLOC_TERMINATED)
        alloc_deadlines(c, a);
}
