/* What the API reads of the core. */
#include "agent.h"
#include "alloc.h"
#include "avoid.h"
#include "exp.h"
#include "fit.h"
#include "queue.h"
#include "scheduler.h"
#include "trial.h"
#include <string.h>

static enum core_run_state run_state(const struct alloc *a)
{
    if (!a || a->state <= ALLOC_ASSIGNED)
        return CORE_RUN_QUEUED;
    if (a->state == ALLOC_PULLING)
        return CORE_RUN_PULLING;
    return a->state == ALLOC_STARTING ? CORE_RUN_STARTING : CORE_RUN_RUNNING;
}

static bool is_job(const struct exp *e)
{
    return !exp_state_is_terminal(e->state);
}

/* It keeps its place in the queue and is not served. */
static bool is_set_aside(const struct exp *e)
{
    return e->state == EXP_PAUSED && e->group->running.n + e->group->ending.n == 0;
}

static void sum_trials(const struct exp *e, struct core_exp_view *v)
{
    for (size_t i = 0; i < e->trials.n; i++) {
        const struct trial *t = e->trials.v[i];
        if (!t->alloc)
            continue;
        enum core_run_state s = run_state(t->alloc);
        if (s > v->run_state)
            v->run_state = s;
        v->slots_requested += t->alloc->slots;
        if (t->alloc->state == ALLOC_PENDING)
            continue;
        v->slots_held += t->alloc->slots;
        if (!t->alloc->is_backfill || v->job_state == CORE_JOB_QUEUED)
            v->job_state = t->alloc->is_backfill ? CORE_JOB_BACKFILLED : CORE_JOB_SCHEDULED;
    }
}

bool core_exp_get(const struct core *c, int64_t id, struct core_exp_view *ret)
{
    const struct exp *e = exp_find(c, id);
    if (!e)
        return false;
    *ret = (struct core_exp_view){.id = e->id,
                                  .owner_id = e->owner_id,
                                  .job_id = e->job_id,
                                  .pool = e->pool->name,
                                  .name = e->conf.name,
                                  .config = e->config_text,
                                  .state = e->state,
                                  .run_state = CORE_RUN_QUEUED,
                                  .progress = e->progress,
                                  .priority = queue_priority(e),
                                  .weight = e->group->weight,
                                  .max_slots = e->group->max_slots,
                                  .submitted_us = e->start_us,
                                  .is_set_aside = is_set_aside(e),
                                  .trials_open = e->open};
    sum_trials(e, ret);
    return true;
}

size_t core_exp_trials(const struct core *c, int64_t exp_id, int64_t **ret_ids)
{
    const struct exp *e = exp_find(c, exp_id);
    size_t n = e ? e->trials.n : 0;
    *ret_ids = det_alloc((n + 1) * sizeof **ret_ids);
    for (size_t i = 0; i < n; i++)
        (*ret_ids)[i] = e->trials.v[i]->id;
    return n;
}

const json_t *core_exp_log_policies(const struct core *c, int64_t exp_id)
{
    const struct exp *e = exp_find(c, exp_id);
    return e ? json_arr(e->config, "log_policies") : NULL;
}

int64_t core_jobs_ahead(const struct core *c, int64_t exp_id)
{
    const struct exp *e = exp_find(c, exp_id);
    int64_t n = 0;
    for (size_t i = 0; e && i < c->exps.n; i++) {
        const struct exp *o = c->exps.v[i];
        n += o != e && o->pool == e->pool && is_job(o) && !is_set_aside(o) && queue_cmp(o, e) < 0;
    }
    return n;
}

static int by_queue(const void *x, const void *y)
{
    return queue_cmp(*(const struct exp *const *)x, *(const struct exp *const *)y);
}

int64_t core_job_find(const struct core *c, const char *job_id)
{
    for (size_t i = 0; i < c->exps.n; i++)
        if (is_job(c->exps.v[i]) && strcmp(c->exps.v[i]->job_id, job_id) == 0)
            return c->exps.v[i]->id;
    return 0;
}

size_t core_jobs(const struct core *c, const char *pool, int64_t **ret_ids)
{
    VEC(const struct exp *) keys = {0};
    for (size_t i = 0; i < c->exps.n; i++) {
        const struct exp *e = c->exps.v[i];
        if (is_job(e) && (!pool || strcmp(e->pool->name, pool) == 0))
            vec_push(&keys, e);
    }
    if (keys.n)
        qsort(keys.v, keys.n, sizeof *keys.v, by_queue);
    size_t n = keys.n;
    *ret_ids = det_alloc((n + 1) * sizeof **ret_ids);
    for (size_t i = 0; i < n; i++)
        (*ret_ids)[i] = keys.v[i]->id;
    vec_free(&keys);
    return n;
}

bool core_trial_get(const struct core *c, int64_t id, struct core_trial_view *ret)
{
    const struct trial *t = trial_find(c, id);
    if (!t)
        return false;
    *ret = (struct core_trial_view){
        .id = t->id,
        .exp_id = t->exp->id,
        .run_id = t->run_id,
        .restarts = t->restarts,
        .request_id = t->request_id,
        .task_id = t->task_id,
        .alloc_id = t->alloc ? t->alloc->id : NULL,
        .state = t->state,
        .run_state = !t->alloc && trial_op_done(t) ? CORE_RUN_IDLE : run_state(t->alloc),
        .has_op = t->op != OP_NONE,
        .op_length = t->op_length,
        .op_completed = trial_op_done(t),
        .latest_checkpoint = t->latest,
        .latest_steps = t->latest_steps};
    return true;
}

static enum core_wait wait_of(const struct core *c, const struct alloc *a)
{
    if (a->state != ALLOC_PENDING)
        return CORE_WAIT_NONE;
    if (a->queued_as != QUEUE_PENDING)
        return CORE_WAIT_HOLD;
    return sched_wait(c, a->kind == KIND_TRIAL ? a->exp->group : &a->pool->collections);
}

static void alloc_view(const struct core *c, const struct alloc *a, struct core_alloc_view *ret)
{
    *ret = (struct core_alloc_view){
        .id = a->id,
        .task_id = a->task_id,
        .kind = a->kind == KIND_GC ? "CHECKPOINT_GC" : "TRIAL",
        .pool = a->pool->name,
        .name = a->exp ? a->exp->conf.name : json_str(a->gc_config, "name", ""),
        .exp_id = a->exp_id,
        .trial_id = a->trial ? a->trial->id : 0,
        .run_id = a->run_id,
        .owner_id = a->owner_id,
        .state = a->state,
        .is_ready = a->is_ready,
        .preempt = a->preempt,
        .slots = a->slots,
        .requested_us = a->start_us,
        .placed_us = a->placed_us,
        .containers = a->containers.n,
        .is_backfill = a->is_backfill,
        .wait = wait_of(c, a),
        .avoids = a->trial ? avoid_count(a->trial, AVOID_ANY) : 0,
        .priority = a->exp ? queue_priority(a->exp) : a->pool->o.default_priority,
    };
}

void core_last_ids(const struct core *c, int64_t *ret_exp, int64_t *ret_trial)
{
    *ret_exp = c->last_exp;
    *ret_trial = c->last_trial;
}

bool core_alloc_get(const struct core *c, const char *alloc_id, struct core_alloc_view *ret)
{
    const struct alloc *a = alloc_find(c, alloc_id);
    if (a)
        alloc_view(c, a, ret);
    return a;
}

bool core_alloc_at(const struct core *c, size_t i, struct core_alloc_view *ret)
{
    if (i >= c->allocs.n)
        return false;
    alloc_view(c, c->allocs.v[i], ret);
    return true;
}

static void container_view(const struct container *k, struct core_container_view *ret)
{
    *ret = (struct core_container_view){.id = k->id,
                                        .agent_id = k->agent_id,
                                        .alloc_id = k->alloc->id,
                                        .state = k->state,
                                        .slots = k->slots.v,
                                        .slots_n = k->slots.n};
}

bool core_alloc_container(const struct core *c, const char *alloc_id, size_t i,
                          struct core_container_view *ret)
{
    const struct alloc *a = alloc_find(c, alloc_id);
    if (!a || i >= a->containers.n)
        return false;
    container_view(a->containers.v[i], ret);
    return true;
}
