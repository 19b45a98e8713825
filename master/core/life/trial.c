#include "trial.h"

#include "alike.h"
#include "alloc.h"
#include "avoid.h"
#include "effects.h"
#include "exp.h"
#include "names.h"
#include "trial_said.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

#define STOPS                                                                                      \
    (BIT(TRIAL_STOPPING_COMPLETED) | BIT(TRIAL_STOPPING_CANCELED) | BIT(TRIAL_STOPPING_KILLED) |   \
     BIT(TRIAL_STOPPING_ERROR))

static bool is_stopping(const struct trial *t)
{
    return BIT(t->state) & STOPS;
}

static void trial_goto(struct core *c, struct trial *t, enum trial_state to)
{
    t->state = edges_go(c, MACHINE_TRIAL, t->state, to);
    trial_mark(c, t);
}

void trial_mark(struct core *c, struct trial *t)
{
    if (!t->dirty)
        vec_push(&c->dirty_trials, t);
    t->dirty = true;
}

struct trial *trial_find(const struct core *c, int64_t id)
{
    return id > 0 ? imap_get(c->trial_by_id, (uint64_t)id) : NULL;
}

void trial_enlist(struct core *c, struct trial *t)
{
    imap_put(c->trial_by_id, (uint64_t)t->id, t);
    vec_push(&t->exp->trials, t);
    map_put(t->exp->by_request, t->request_id, t);
    t->exp->open += !trial_state_is_terminal(t->state);
    t->exp->mistaken += t->mistake != NULL;
}

/* The request id follows from the search's seed, the task's must not: it names logs and tokens. */
static char *make_task_id(const struct core *c, const struct exp *e, const char *request_id)
{
    char text[160], uuid[UUID_STR_MAX];
    snprintf(text, sizeof text, "task %s %lld %s", c->nonce, (long long)e->id, request_id);
    name_uuid(text, uuid);
    return det_asprintf("%lld.%s", (long long)e->id, uuid);
}

struct trial *trial_create(struct core *c, struct exp *e, const struct search_op *op)
{
    struct trial *t = det_zalloc(sizeof *t);
    t->id = ++c->last_trial;
    t->exp = e;
    memcpy(t->request_id, op->request_id, UUID_STR_MAX);
    t->task_id = make_task_id(c, e, op->request_id);
    t->state = e->state == EXP_PAUSED ? TRIAL_PAUSED : TRIAL_ACTIVE;
    t->seed = op->trial_seed;
    t->hparams = json_incref(op->hparams);
    t->warm_start = det_strdup(e->warm_start);
    t->start_us = c->now_us;
    t->exit_reason = -1;
    t->is_new = true;
    trial_enlist(c, t);
    trial_mark(c, t);
    return t;
}

static void forget_policies(struct trial *t)
{
    avoid_forget(t, AVOID_ANY);
    t->start_rounds = 0;
    free(t->no_retry);
    t->no_retry = NULL;
}

static void forget_said(struct trial *t)
{
    free(t->said);
    t->said = NULL;
}

static void forget_reason(struct trial *t)
{
    free(t->closed_for);
    free(t->invalid_for);
    t->closed_for = t->invalid_for = NULL;
}

void trial_reopen(struct core *c, struct trial *t)
{
    assert(trial_state_is_terminal(t->state) && !t->alloc && t->hparams);
    trial_goto(c, t, TRIAL_ACTIVE);
    t->end_us = t->restarts = t->op_last = 0;
    t->op_length = t->exit_reason = -1;
    trial_forget_losses(t);
    t->op = OP_NONE;
    t->closed = false;
    forget_policies(t);
    forget_said(t);
    forget_reason(t);
    alike_forget(t);
    t->exp->open++;
}

void trial_destroy(struct trial *t)
{
    if (!t)
        return;
    json_decref(t->hparams);
    forget_policies(t);
    forget_said(t);
    forget_reason(t);
    free(t->task_id);
    free(t->warm_start);
    free(t->latest);
    free(t->lost);
    free(t->mistake);
    free(t->mistake_at);
    free(t);
}

void trial_forget_losses(struct trial *t)
{
    t->transients = 0;
    free(t->lost);
    t->lost = NULL;
}

bool trial_op_done(const struct trial *t)
{
    return t->op == OP_NONE || t->op == OP_DONE;
}

/* In the moment in which it is closed: others validate until it has ended. */
static void keep_said(struct trial *t)
{
    struct buf text = BUF_INIT;
    trial_said(t, &text);
    free(t->said);
    t->said = buf_steal(&text);
}

/* The last line of its log: why it ended here. */
static void log_closed(struct core *c, struct trial *t)
{
    if (!t->said)
        keep_said(t);
    fx_log(c, &(struct alloc){.task_id = t->task_id}, FX_INFO, "Trial %lld ended: %s.",
           (long long)t->id, t->said);
    forget_said(t);
}

static void log_invalid(struct core *c, const struct trial *t)
{
    fx_log(c, &(struct alloc){.task_id = t->task_id}, FX_INFO,
           "Trial %lld ended: it said that its hyperparameters are invalid%s%s.", (long long)t->id,
           t->invalid_for ? ": " : "", t->invalid_for ? t->invalid_for : "");
}

static void finish_trial(struct core *c, struct trial *t, enum trial_state to, int exit_reason)
{
    if (to == TRIAL_COMPLETED && t->closed && exit_reason < 0)
        log_closed(c, t);
    else if (to == TRIAL_COMPLETED &&
             (exit_reason == SEARCH_INVALID_HP || exit_reason == SEARCH_INIT_INVALID_HP))
        log_invalid(c, t);
    forget_said(t);
    trial_goto(c, t, to);
    t->end_us = fx_end_us(c, t->start_us);
    if (to == TRIAL_ERROR)
        exit_reason = SEARCH_ERRORED;
    else if (to == TRIAL_CANCELED)
        exit_reason = SEARCH_USER_CANCELED;
    t->exit_reason = exit_reason;
    t->exp->open--;
    exp_on_trial_end(c, t->exp, t);
}

static enum trial_state end_of(enum trial_state stopping)
{
    if (stopping == TRIAL_STOPPING_COMPLETED)
        return TRIAL_COMPLETED;
    return stopping == TRIAL_STOPPING_ERROR ? TRIAL_ERROR : TRIAL_CANCELED;
}

/* Losses in a row are retried at once, then after 1, 2, 4 .. 30 s, so that a broken host is not
 * hammered. */
static int64_t hold_until(const struct core *c, const struct trial *t)
{
    if (t->is_paused)
        return c->now_ms + avoid_pause_ms(t);
    if (t->transients < 2)
        return 0;
    int64_t s = t->transients < 7 ? INT64_C(1) << (t->transients - 2) : 30;
    return c->now_ms + 1000 * (s < 30 ? s : 30);
}

static void request_run(struct core *c, struct trial *t)
{
    if (!t->run_fresh)
        t->run_id++;
    t->run_fresh = false;
    trial_mark(c, t);
    struct alloc_request r = {.kind = KIND_TRIAL,
                              .exp = t->exp,
                              .trial = t,
                              .task_id = t->task_id,
                              .exp_id = t->exp->id,
                              .owner_id = t->exp->owner_id,
                              .run_id = t->run_id,
                              .slots = t->exp->conf.slots,
                              .pool = t->exp->pool,
                              .hold_ms = hold_until(c, t)};
    t->alloc = alloc_request(c, &r);
}

void trial_reconsider(struct core *c, struct trial *t)
{
    if (t->alloc || trial_state_is_terminal(t->state))
        return;
    if (is_stopping(t))
        finish_trial(c, t, end_of(t->state), -1);
    else if (trial_op_done(t) && t->closed)
        finish_trial(c, t, TRIAL_COMPLETED, t->exit_reason);
    else if (t->state == TRIAL_ACTIVE && !trial_op_done(t) && !trial_give_up(c, t))
        request_run(c, t);
}

void trial_validate_after(struct core *c, struct trial *t, int64_t length)
{
    t->op = OP_OPEN;
    t->op_length = length;
    trial_mark(c, t);
}

void trial_close(struct core *c, struct trial *t, const char *reason)
{
    t->closed = true;
    free(t->closed_for);
    t->closed_for = det_strdup(reason);
    if (trial_op_done(t)) /* most searches close a trial as they make it */
        keep_said(t);
    trial_mark(c, t);
}

void trial_set(struct core *c, struct trial *t, enum trial_state to, const char *reason)
{
    if (trial_state_is_terminal(t->state) || !edges_may(MACHINE_TRIAL, t->state, to))
        return;
    trial_goto(c, t, to);
    struct alloc *a = t->alloc;
    bool unwanted = to == TRIAL_STOPPING_COMPLETED && !trial_op_done(t); /* the search is over */
    if (a && (to == TRIAL_PAUSED || to == TRIAL_STOPPING_CANCELED || unwanted))
        alloc_preempt(c, a, to == TRIAL_PAUSED ? KILL_PAUSE : KILL_USER, reason);
    else if (a && (to == TRIAL_STOPPING_KILLED || to == TRIAL_STOPPING_ERROR))
        alloc_kill(c, a, KILL_USER, "%s", reason);
    trial_reconsider(c, t);
}
