/* What harnesses report about a trial, and what the end of a run means for it
 * (docs/contract/trial.md 1). */
#include "trial.h"

#include "alike.h"
#include "alloc.h"
#include "avoid.h"
#include "effects.h"
#include "exp.h"
#include <string.h>

enum { LOST_TEXT_MAX = 400, INVALID_TEXT_MAX = 400 };

/* Numbers, and the strings that stand for the doubles JSON lacks. */
static int metric_value(const json_t *j, double *ret, struct det_err *err)
{
    JSON_OWN box = json_object();
    json_object_set(box, "metric", (json_t *)j);
    double a = json_num(box, "metric", 0), b = json_num(box, "metric", 1);
    if (!j || (a == 0 && b == 1))
        return det_fail(err, DET_EINVAL, "searcherMetric: expected a number");
    *ret = a;
    return 0;
}

/* A repeat of what is known already (its answer was lost) is fine and changes nothing. What comes
 * after its run has ended is no news: that run's last checkpoint is missing, so another run does
 * the operation again. */
int trial_on_op_completed(struct core *c, struct trial *t, int64_t length, const json_t *metric,
                          struct det_err *err)
{
    double value = 0;
    bool any = t->exp->conf.search.kind == SEARCH_CUSTOM;
    int rc = any ? 0 : metric_value(metric, &value, err);
    if (rc < 0)
        return rc;
    if (t->op != OP_NONE && length != t->op_length && length == t->op_last)
        return 0; /* its answer was lost, and the searcher asks for more already */
    if (t->op == OP_NONE || length != t->op_length)
        return det_fail(err, DET_EINVAL,
                        "the current operation of trial %lld has length %lld, not %lld",
                        (long long)t->id, (long long)t->op_length, (long long)length);
    if (trial_state_is_terminal(t->state) || trial_op_done(t))
        return 0;
    if (!t->alloc)
        return det_fail(err, DET_ESTALE, "run %lld of trial %lld has ended", (long long)t->run_id,
                        (long long)t->id);
    bool again = t->op == OP_REDO;
    fx_timeline(c, t->alloc, "validation", "length %lld, metric %g", (long long)length, value);
    t->op = OP_DONE;
    t->op_last = length;
    trial_mark(c, t);
    if (!again)
        exp_tell(c, t->exp,
                 &(struct search_event){.kind = SEARCH_EV_VALIDATED,
                                        .request_id = t->request_id,
                                        .length = length,
                                        .metric = value,
                                        .value = any ? metric : NULL});
    return 0;
}

/* What a run says first of why is what it met; later words only tell that it ends. A reason without
 * words gives way to one that has them. */
void trial_on_early_exit(struct core *c, struct trial *t, enum core_early_exit reason,
                         const char *text)
{
    if (trial_state_is_terminal(t->state))
        return;
    bool has_news = text && *text && !t->invalid_for;
    if (has_news || t->exit_reason < 0)
        t->exit_reason =
            reason == CORE_EXIT_INVALID_HP ? SEARCH_INVALID_HP : SEARCH_INIT_INVALID_HP;
    if (has_news)
        t->invalid_for = det_asprintf("%.*s", INVALID_TEXT_MAX, text);
    trial_mark(c, t);
    if (t->alloc)
        alloc_on_invalid_hp(c, t->alloc);
}

void trial_on_checkpoint(struct core *c, struct trial *t, const char *uuid, int64_t steps)
{
    if (t->latest && steps < t->latest_steps)
        return;
    if (t->alloc)
        fx_timeline(c, t->alloc, "checkpoint", "%s at batch %lld", uuid, (long long)steps);
    char *copy = det_strdup(uuid);
    free(t->latest);
    t->latest = copy;
    t->latest_steps = steps;
    avoid_on_progress(c, t);
    if (t->transients == 0)
        return;
    trial_forget_losses(t);
    trial_mark(c, t);
}

static void complete_op(struct core *c, struct trial *t, int reason)
{
    t->exit_reason = reason;
    t->closed = true;
    t->op = OP_DONE;
    trial_reconsider(c, t);
}

/* Before anything follows from the failure: what would follow waits, as in any pause. */
static void hold_exp(struct core *c, const struct trial *t, const struct alloc *a)
{
    struct exp *e = t->exp;
    exp_hold(c, e, alike_sentence(t));
    fx_log(c, a, FX_ERROR,
           "Experiment %lld is held (paused): %s. `det experiment activate %lld` lets it go on.",
           (long long)e->id, e->held, (long long)e->id);
}

static void judge_search(struct core *c, struct trial *t, const struct alloc *a)
{
    bool was_judged = t->exp->is_judged;
    bool is_alike = alike_on_failure(t, &a->failure);
    if (t->exp->is_judged != was_judged)
        exp_mark(c, t->exp);
    if (is_alike)
        hold_exp(c, t, a);
}

/* Its own fault: max_restarts times it may try again. */
static void on_error(struct core *c, struct trial *t, const struct alloc *a)
{
    int64_t max = t->exp->conf.max_restarts;
    trial_mark(c, t);
    judge_search(c, t, a);
    if (t->no_retry) {
        fx_log(c, a, FX_ERROR,
               "Trial %lld failed and is not restarted: its log matched \"%s\" (log policy "
               "cancel_retries).",
               (long long)t->id, t->no_retry);
        trial_set(c, t, TRIAL_STOPPING_ERROR, "");
        return;
    }
    if (t->restarts >= max) {
        if (max > 0)
            fx_log(c, a, FX_ERROR, "Trial %lld failed; its %lld restarts are used up.",
                   (long long)t->id, (long long)max);
        else
            fx_log(c, a, FX_ERROR, "Trial %lld failed; max_restarts is 0.", (long long)t->id);
        trial_set(c, t, TRIAL_STOPPING_ERROR, "");
        return;
    }
    t->restarts++;
    if (trial_give_up(c, t))
        return;
    fx_timeline(c, a, "restart", "%lld of %lld, from %s", (long long)t->restarts, (long long)max,
                t->latest ? t->latest : "its beginning");
    fx_log(c, a, FX_WARNING, "Trial %lld restarts from %s (restart %lld of %lld).",
           (long long)t->id, t->latest ? t->latest : "its beginning", (long long)t->restarts,
           (long long)max);
    trial_reconsider(c, t);
}

/* The old run may still live somewhere: what it reports from now on is refused. */
static void fence_run(struct core *c, struct trial *t)
{
    t->run_id++;
    t->run_fresh = true;
    trial_mark(c, t);
}

/* No fault of its own: the next run waits a little, and says for what. */
static void on_loss(struct core *c, struct trial *t, const struct alloc *a)
{
    const char *agent = a->containers.v[a->failure.node]->agent_id, *text = a->failure.text;
    bool named = strstr(text, agent); /* most say where: their words are used in logs too */
    free(t->lost);
    t->lost = det_asprintf("%s%s%s%.*s", named ? "" : "agent ", named ? "" : agent,
                           named ? "" : ": ", LOST_TEXT_MAX, text);
    t->is_paused = false;
    t->transients++;
    trial_mark(c, t);
    trial_reconsider(c, t);
}

void trial_on_alloc_end(struct core *c, struct trial *t, const struct alloc *a)
{
    bool transient = a->failure.is_set && a->failure.transient;
    bool error = a->failure.is_set && !transient;
    bool in_order = !a->unclean && (!a->was_ours || a->acked);
    t->alloc = NULL;
    if (a->unconfirmed)
        fence_run(c, t);
    if (t->op == OP_DONE && !in_order) {
        t->op = OP_REDO;
        trial_mark(c, t);
    }
    if (t->state != TRIAL_ACTIVE && t->state != TRIAL_PAUSED) {
        if (error)
            trial_set(c, t, TRIAL_STOPPING_ERROR, "");
        trial_reconsider(c, t);
    } else if (t->exit_reason >= 0) {
        complete_op(c, t, t->exit_reason);
    } else if (transient &&
               (a->failure.reason == CORE_START_FAILED || a->failure.reason == CORE_ABSENT)) {
        if (!avoid_on_failed_start(c, t, a))
            trial_reconsider(c, t);
    } else if (transient) {
        on_loss(c, t, a);
    } else if (error) {
        on_error(c, t, a);
    } else if (in_order && !a->acked && !trial_op_done(t)) {
        complete_op(c, t, SEARCH_USER_STOP);
    } else {
        trial_reconsider(c, t);
    }
}
