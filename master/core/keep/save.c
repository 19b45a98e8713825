#include "save.h"

#include "alloc.h"
#include "effects.h"
#include "exp.h"
#include "trial.h"

/* The more trials, the rarer a snapshot: the cost stays linear. */
enum { SNAPSHOT_MIN = 64 };

void save_parked(struct core *c, int64_t exp_id, int64_t trial_id, bool has_ended)
{
    fx_add(c->out, CORE_SAVE_PARKED)->parked = (struct row_parked){exp_id, trial_id, has_ended};
}

static void save_exp(struct core *c, struct exp *e)
{
    e->dirty = false;
    if (e->parked)
        save_parked(c, e->id, 0, exp_has_ended(e));
    if (e->state == EXP_DELETED || e->parked)
        return;
    if (e->state_only) {
        struct core_effect *fx = fx_add(c->out, CORE_SAVE_EXP_STATE);
        fx->exp_state.id = e->id;
        fx->exp_state.state = e->state;
        fx->exp_state.undeleted = fx_str(c->out, e->undeleted);
        return;
    }
    det_cleanup(buf_finish) struct buf core = BUF_INIT;
    save_exp_core(&core, e, c->now_ms);
    struct row_experiment r = {
        .is_new = e->is_new,
        .id = e->id,
        .job_id = fx_str(c->out, e->job_id),
        .owner_id = e->owner_id,
        .project_id = e->project_id,
        .parent_id = e->parent_id,
        .config = e->is_new || e->config_changed ? fx_str(c->out, e->config_text) : NULL,
        .submission = e->submission,
        .start_us = e->start_us,
        .state = e->state,
        .end_us = e->end_us,
        .progress = e->progress,
        .resource_pool = fx_str(c->out, e->pool->name),
        .priority = e->group->priority,
        .weight = e->group->weight,
        .max_slots = e->group->max_slots,
        .queue_position = e->group->position,
        .core = fx_str(c->out, buf_str(&core))};
    fx_add(c->out, CORE_SAVE_EXPERIMENT)->experiment = r;
    e->is_new = e->config_changed = false;
    e->submission = NULL;
}

static void save_trial(struct core *c, struct trial *t)
{
    if (t->parked || t->exp->parked) {
        t->dirty = false;
        if (!t->exp->parked)
            save_parked(c, t->exp->id, t->id, trial_state_is_terminal(t->state));
        return;
    }
    det_cleanup(buf_finish) struct buf core = BUF_INIT;
    save_trial_core(&core, t);
    struct row_trial r = {.is_new = t->is_new,
                          .id = t->id,
                          .experiment_id = t->exp->id,
                          .request_id = fx_str(c->out, t->request_id),
                          .task_id = fx_str(c->out, t->task_id),
                          .hparams =
                              t->is_new || t->hparams_changed ? fx_json(c->out, t->hparams) : NULL,
                          .seed = t->seed,
                          .start_us = t->start_us,
                          .warm_start_checkpoint = fx_str(c->out, t->warm_start),
                          .state = t->state,
                          .run_id = t->run_id,
                          .restarts = t->restarts,
                          .end_us = t->end_us,
                          .core = fx_str(c->out, buf_str(&core))};
    fx_add(c->out, CORE_SAVE_TRIAL)->trial = r;
    t->dirty = t->is_new = t->hparams_changed = false;
}

static void save_alloc(struct core *c, struct alloc *a)
{
    if (a->parked) {
        a->dirty = false;
        return;
    }
    det_cleanup(buf_finish) struct buf core = BUF_INIT;
    save_alloc_core(&core, a);
    bool ended = a->state == ALLOC_TERMINATED;
    const char *reason = ended ? alloc_end_text(a) : NULL;
    struct row_allocation r = {
        .is_new = a->is_new,
        .id = fx_str(c->out, a->id),
        .task_id = fx_str(c->out, a->task_id),
        .experiment_id = a->exp_id,
        .trial_id = a->trial ? a->trial->id : 0,
        .run_id = a->run_id,
        .kind = a->kind == KIND_GC ? "CHECKPOINT_GC" : "TRIAL",
        .slots = a->slots,
        .resource_pool = fx_str(c->out, a->pool->name),
        .start_us = a->start_us,
        .state = a->state,
        .is_ready = a->is_ready,
        .placed_us = a->placed_us,
        .end_us = a->end_us,
        .exit_reason = fx_str(c->out, reason),
        .status_code = a->failure.is_set
                           ? (a->failure.signal ? 128 + a->failure.signal : a->failure.code)
                       : ended && !a->was_ours ? 0
                                               : -1,
        .core = fx_str(c->out, buf_str(&core))};
    fx_add(c->out, CORE_SAVE_ALLOCATION)->allocation = r;
    a->dirty = a->is_new = false;
}

static const char *ids_text(struct core *c, const struct slot_ids *ids)
{
    JSON_OWN list = json_array();
    for (size_t i = 0; i < ids->v.n; i++)
        json_array_append_new(list, json_integer(ids->v.v[i]));
    return fx_json(c->out, list);
}

static void save_agent(struct core *c, struct agent *a)
{
    struct row_agent r = {.agent_id = fx_str(c->out, a->id),
                          .enabled = !a->off,
                          .draining = a->off == OFF_DRAINING,
                          .slots_disabled = ids_text(c, &a->slots_off),
                          .slots_forced = ids_text(c, &a->slots_forced)};
    fx_add(c->out, CORE_SAVE_AGENT)->agent = r;
    a->dirty = false;
}

static void save_store(struct core *c, struct store *s)
{
    struct row_store r = {.place = fx_str(c->out, s->place),
                          .id = s->id[0] ? fx_str(c->out, s->id) : NULL,
                          .known = s->known ? fx_json(c->out, s->known) : NULL,
                          .made_on = fx_str(c->out, s->made_on),
                          .owner_id = s->owner_id,
                          .used_us = s->used_us};
    fx_add(c->out, CORE_SAVE_STORE)->store = r;
    s->dirty = false;
}

static void save_snapshot(struct core *c, struct exp *e)
{
    JSON_OWN snap = search_snapshot(e->search);
    e->snap_seq = e->search_seq;
    const char *text = fx_json(c->out, snap);
    fx_add(c->out, CORE_SAVE_SEARCH_SNAPSHOT)->search_snapshot =
        (struct row_search_snapshot){e->id, e->snap_seq, text};
}

/* An experiment that ended keeps its log, and its last snapshot for replays to arrive at. */
static void save_search(struct core *c)
{
    for (size_t i = 0; i < c->search_rows.n; i++) {
        struct search_row *r = &c->search_rows.v[i];
        struct exp *e = exp_find(c, r->exp_id);
        if (!e->parked)
            fx_add(c->out, CORE_SAVE_SEARCH_EVENT)->search_event =
                (struct row_search_event){r->exp_id, r->seq, fx_str(c->out, r->text)};
        free(r->text);
        if (e->parked || exp_has_ended(e) || e->todo_at < e->todo.ops.n || r->seq != e->search_seq)
            continue;
        if (e->search_seq - e->snap_seq >= SNAPSHOT_MIN + (int64_t)e->trials.n)
            save_snapshot(c, e);
    }
    c->search_rows.n = 0;
    for (size_t i = 0; i < c->dirty_exps.n; i++)
        if (exp_has_ended(c->dirty_exps.v[i]) && c->dirty_exps.v[i]->search &&
            !c->dirty_exps.v[i]->parked)
            save_snapshot(c, c->dirty_exps.v[i]);
}

static void drop_exp(struct core *c, struct exp *e)
{
    if (e->state == EXP_DELETED && !e->parked) {
        fx_add(c->out, CORE_DELETE_EXPERIMENT)->exp_id = e->id;
        imap_put(c->deleted, (uint64_t)e->id, c);
    }
    exp_drop(c, e);
}

static void drop_alloc(struct core *c, struct alloc *a)
{
    vec_remove(&c->allocs, vec_bound(&c->allocs, e, (*e)->seq < a->seq));
    alloc_destroy(a);
}

void save_flush(struct core *c)
{
    for (size_t i = 0; i < c->dirty_exps.n; i++)
        save_exp(c, c->dirty_exps.v[i]);
    save_search(c);
    for (size_t i = 0; i < c->dirty_trials.n; i++)
        save_trial(c, c->dirty_trials.v[i]);
    for (size_t i = 0; i < c->dirty_allocs.n; i++)
        save_alloc(c, c->dirty_allocs.v[i]);
    for (size_t i = 0; i < c->dirty_agents.n; i++)
        save_agent(c, c->dirty_agents.v[i]);
    for (size_t i = 0; i < c->dirty_stores.n; i++)
        save_store(c, c->dirty_stores.v[i]);
    for (size_t i = 0; i < c->dirty_allocs.n; i++)
        if (c->dirty_allocs.v[i]->state == ALLOC_TERMINATED)
            drop_alloc(c, c->dirty_allocs.v[i]);
    for (size_t i = 0; i < c->dirty_exps.n; i++)
        if (exp_has_ended(c->dirty_exps.v[i]))
            drop_exp(c, c->dirty_exps.v[i]);
    c->dirty_exps.n = c->dirty_trials.n = c->dirty_allocs.n = c->dirty_agents.n =
        c->dirty_stores.n = 0;
}
