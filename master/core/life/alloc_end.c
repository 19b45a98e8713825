/* How allocations end: preemption, kills, exits and what they mean. */
#include "alloc.h"

#include "agent.h"
#include "effects.h"
#include "queue.h"
#include "store.h"
#include "trial.h"
#include "trial_said.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What comes next is the searcher's to say; of a trial that ends by it the trial's end tells. */
static void log_done(struct core *c, const struct alloc *a)
{
    struct buf text = BUF_INIT;
    trial_said(a->trial, &text);
    if (!a->trial->closed)
        fx_log(c, a, FX_INFO, "Run %lld ended: %s.", (long long)a->run_id, buf_str(&text));
    buf_finish(&text);
}

static void log_end(struct core *c, const struct alloc *a)
{
    const struct failure *f = &a->failure;
    if (f->is_set)
        fx_log(c, a, FX_ERROR, "Run %lld ended: %s%s", (long long)a->run_id, f->text,
               f->transient ? " (not the trial's fault)" : "");
    else if (a->was_ours)
        fx_log(c, a, FX_INFO, "Run %lld ended: killed.", (long long)a->run_id);
    else if (a->acked && a->trial && trial_op_done(a->trial))
        log_done(c, a);
    else if (a->acked)
        fx_log(c, a, FX_INFO, "Run %lld ended as asked.", (long long)a->run_id);
    else
        fx_log(c, a, FX_INFO, "Run %lld ended by itself.", (long long)a->run_id);
}

const char *alloc_end_text(const struct alloc *a)
{
    if (a->failure.is_set)
        return a->failure.text;
    if (!a->was_ours && a->acked && a->trial && trial_op_done(a->trial))
        return "it trained as far as it was asked to";
    return a->was_ours ? "killed" : a->acked ? "stopped as asked" : "ended by itself";
}

static void port_give(struct core *c, int port)
{
    if (port < 0)
        return;
    c->ports.v[port] = false;
    if ((size_t)port < c->port_free)
        c->port_free = (size_t)port;
}

/* Takes it off every list; the row is written and the memory freed at the end of the step. */
static void finish_alloc(struct core *c, struct alloc *a)
{
    timers_set(&c->timers, &a->timer, INT64_MAX);
    port_give(c, a->port);
    a->port = -1;
    alloc_goto(c, a, ALLOC_TERMINATED);
    queue_update(c, a);
    a->end_us = fx_end_us(c, a->placed_us ? a->placed_us : a->start_us);
    fx_timeline(c, a, "end", "%s", alloc_end_text(a));
    map_del(c->alloc_by_id, a->id);
    const char *id = fx_str(c->out, a->id);
    fx_add(c->out, CORE_ALLOC_END)->alloc_id = id;
    if (a->kind == KIND_GC)
        gc_on_alloc_end(c, a);
    else
        trial_on_alloc_end(c, a->trial, a);
}

static void withdraw_alloc(struct core *c, struct alloc *a, const char *reason)
{
    fx_log(c, a, FX_INFO, "Taken off the queue: %s.", reason);
    fx_timeline(c, a, "kill", "%s", reason);
    a->kill = KILL_USER;
    a->was_ours = true;
    finish_alloc(c, a);
}

void alloc_kill(struct core *c, struct alloc *a, enum kill_why why, const char *fmt, ...)
{
    char reason[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(reason, sizeof reason, fmt, ap);
    va_end(ap);
    if (a->kill != KILL_NONE || a->state == ALLOC_TERMINATED)
        return;
    if (a->state == ALLOC_PENDING) {
        withdraw_alloc(c, a, reason);
        return;
    }
    a->kill = why;
    a->was_ours = !a->failure.is_set && why != KILL_DAEMONS;
    fx_timeline(c, a, "kill", "%s", reason);
    fx_log(c, a, FX_INFO, "Killing run %lld: %s.", (long long)a->run_id, reason);
    alloc_goto(c, a, ALLOC_TERMINATING);
    queue_update(c, a);
    for (size_t i = 0; i < a->containers.n; i++)
        if (a->containers.v[i]->state != ALLOC_TERMINATED)
            alloc_resend(c, a->containers.v[i]);
    a->preempt_ms = a->start_ms = a->exit_ms = INT64_MAX;
    a->kill_ms = c->now_ms + c->o.kill_resend_ms;
    alloc_rearm(c, a);
}

void alloc_preempt(struct core *c, struct alloc *a, enum kill_why why, const char *reason)
{
    if (a->preempt || a->kill != KILL_NONE || a->state == ALLOC_TERMINATED)
        return;
    if (a->state == ALLOC_PENDING || !a->is_ready) {
        alloc_kill(c, a, why, "%s, before it was ready", reason);
        return;
    }
    a->preempt = true;
    queue_update(c, a);
    a->preempt_ms = c->now_ms + c->o.preempt_timeout_ms;
    fx_timeline(c, a, "preempted", "%s", reason);
    fx_log(c, a, FX_INFO, "Asked to stop at the next boundary: %s.", reason);
    const char *id = fx_str(c->out, a->id);
    fx_add(c->out, CORE_PREEMPT)->alloc_id = id;
    alloc_mark(c, a);
    alloc_rearm(c, a);
}

static const char *const reason_words[CORE_EXIT_REASON_COUNT] = {
    "exited",
    "was killed",
    "stalled",
    "could not be started",
    "was lost",
    "ended without its checkpoint store",
    "could not be started"};

/* The text of one that exited or stalled is the whole sentence; of the rest it is why. Caller
 * frees. */
static char *exit_text(const struct core_exit *e)
{
    struct buf b = BUF_INIT;
    bool said = e->text && *e->text;
    if (said && (e->reason == CORE_EXITED || e->reason == CORE_STALLED))
        return det_strdup(e->text);
    if (e->rank >= 0)
        buf_addf(&b, "rank %d ", e->rank);
    else
        buf_add_str(&b, "the task ");
    buf_add_str(&b, reason_words[e->reason]);
    if (e->reason == CORE_EXITED)
        buf_addf(&b, e->signal ? " by signal %d" : " with code %d",
                 e->signal ? e->signal : e->code);
    if (said)
        buf_addf(&b, ": %s", e->text);
    return buf_steal(&b);
}

static void set_failure(struct alloc *a, int node, const struct core_exit *e)
{
    struct failure *f = &a->failure;
    bool transient = e->reason != CORE_EXITED && e->reason != CORE_STALLED;
    if (f->is_set) {
        f->transient |= transient;
        return;
    }
    *f = (struct failure){.is_set = true,
                          .transient = transient,
                          .reason = e->reason,
                          .node = node,
                          .code = e->code,
                          .signal = e->signal,
                          .rank = e->rank};
    f->text = exit_text(e);
    f->exception = det_strdup(e->exception);
    f->at = det_strdup(e->at);
}

/* The host that the others wait for. */
static int first_missing(const struct alloc *a)
{
    for (size_t i = 0; i < a->containers.n; i++)
        if (!a->containers.v[i]->arrived)
            return (int)i;
    return 0;
}

void alloc_never_ready(struct core *c, struct alloc *a)
{
    char text[160];
    snprintf(text, sizeof text, "not all of its containers were ready within %lld s",
             (long long)(c->o.ready_timeout_ms / 1000));
    set_failure(a, first_missing(a),
                &(struct core_exit){.reason = CORE_START_FAILED, .rank = -1, .text = text});
    alloc_kill(c, a, KILL_FAILED, "%s", text);
}

void alloc_unreached(struct core *c, struct container *k)
{
    char text[480];
    snprintf(text, sizeof text, "its processes on agent %s get no answer from the master: %s",
             k->agent_id, k->unreached.text);
    set_failure(k->alloc, k->node,
                &(struct core_exit){.reason = CORE_START_FAILED, .rank = -1, .text = text});
    alloc_kill(c, k->alloc, KILL_FAILED, "%s", text);
}

/* A run says that it heard its pause before it saves: who fails after that has followed it, and
 * what it did not save is trained again from its last checkpoint, with no restart used. */
static void log_late_failure(struct core *c, const struct alloc *a, const struct core_exit *e)
{
    det_cleanup(freep) char *text = exit_text(e);
    if (a->trial && !trial_op_done(a->trial))
        fx_log(c, a, FX_WARNING,
               "Run %lld: %s after it was asked to stop. What it trained since its last checkpoint "
               "is trained again.",
               (long long)a->run_id, text);
}

/* What this exit says about the run as a whole. */
static void judge_exit(struct core *c, struct alloc *a, const struct container *k,
                       const struct core_exit *e)
{
    bool clean = e->reason == CORE_EXITED && e->code == 0 && e->signal == 0;
    bool after_end = k->daemon && a->kill == KILL_DAEMONS;
    bool follows = e->reason == CORE_KILLED && a->kill != KILL_NONE; /* as the others have to */
    if (clean || after_end || follows || a->was_ours)
        return;
    if (a->acked && (e->reason == CORE_EXITED || e->reason == CORE_STALLED)) {
        log_late_failure(c, a, e);
        return;
    }
    a->unclean = true;
    set_failure(a, k->node, e);
}

static bool only_daemons_live(const struct alloc *a)
{
    for (size_t i = 0; i < a->containers.n; i++)
        if (a->containers.v[i]->state != ALLOC_TERMINATED && !a->containers.v[i]->daemon)
            return false;
    return true;
}

void alloc_on_exit(struct core *c, struct container *k, const struct core_exit *e)
{
    struct alloc *a = k->alloc;
    if (k->state == ALLOC_TERMINATED)
        return;
    container_goto(c, k, ALLOC_TERMINATED);
    k->silent.phase[0] = 0;
    k->unreached.text[0] = 0;
    a->live--;
    if (e->reason == CORE_STORE_AWAY)
        store_on_away(c, k->agent, a, e->text);
    agent_detach(c, k);
    a->pool->dirty = true;
    judge_exit(c, a, k, e);
    if (a->live == 0) {
        log_end(c, a);
        finish_alloc(c, a);
    } else if (a->failure.is_set) {
        alloc_kill(c, a, KILL_FAILED, "%s", a->failure.text);
    } else if (only_daemons_live(a)) {
        alloc_kill(c, a, KILL_DAEMONS, "only daemons are left");
    }
}

void alloc_on_agent_gone(struct core *c, struct container *k)
{
    char text[320];
    snprintf(text, sizeof text, "agent %s did not come back in time", k->agent_id);
    k->alloc->unconfirmed = true;
    alloc_on_exit(c, k, &(struct core_exit){.reason = CORE_LOST, .rank = -1, .text = text});
}
