/*
 * An experiment and its searcher: what it is told is logged, what it answers is carried out.
 *
 * A search may ask for any number of trials at once; a step makes a limited number of them, and a
 * timer the rest, so that no commit grows without bounds. What waits is no state of its own: as
 * long as something does, no snapshot is taken, and the log replayed after a restart gives it
 * again.
 */
#include "exp.h"

#include "effects.h"
#include "trial.h"
#include <string.h>

/* Trials that one step makes. */
enum { MAKE_MAX = 500 };

static bool takes_operations(const struct exp *e)
{
    return e->state == EXP_ACTIVE || e->state == EXP_PAUSED;
}

static void log_event(struct core *c, struct exp *e, const struct search_event *ev,
                      const struct search_ops *out)
{
    char digest[17];
    e->search_seq++;
    JSON_OWN j = search_event_to_json(ev);
    search_digest_text(search_ops_digest(out), digest);
    json_set(j, "digest", json_string(digest));
    vec_push(&c->search_rows, (struct search_row){e->id, e->search_seq, json_text(j)});
}

static void apply_op(struct core *c, struct exp *e, const struct search_op *op)
{
    struct trial *t = map_get(e->by_request, op->request_id);
    if (op->kind == SEARCH_CREATE && !t) {
        trial_create(c, e, op);
        c->made++;
    } else if (op->kind == SEARCH_VALIDATE_AFTER && t) {
        trial_validate_after(c, t, op->length);
    } else if (op->kind == SEARCH_CLOSE && t) {
        trial_close(c, t, json_string_value(op->reason));
    } else if (op->kind == SEARCH_SHUTDOWN && op->failure) {
        exp_stop(c, e, EXP_STOPPING_ERROR, "every trial failed");
    } else if (op->kind == SEARCH_SHUTDOWN) {
        exp_stop(c, e, op->cancel ? EXP_STOPPING_CANCELED : EXP_STOPPING_COMPLETED,
                 "the search is over");
    }
}

/* ---- trials to be made later ---- */

void exp_drop_todo(struct core *c, struct exp *e)
{
    for (size_t i = e->todo_at; i < e->todo.ops.n; i++)
        search_op_finish(&e->todo.ops.v[i]);
    vec_free(&e->todo.ops);
    e->todo_at = 0;
    timers_set(&c->timers, &e->more, INT64_MAX);
}

/* The first operation for a trial beyond the limit, and what follows about trials not yet made. A
 * client of a custom search names trials in any order: its operations are never put off. */
static bool must_wait(const struct core *c, const struct exp *e, const struct search_op *op)
{
    bool waiting = e->todo_at < e->todo.ops.n;
    if (e->conf.search.kind == SEARCH_CUSTOM || op->kind == SEARCH_SHUTDOWN)
        return false;
    if (op->kind == SEARCH_CREATE)
        return waiting || c->made >= MAKE_MAX;
    return waiting && !map_get(e->by_request, op->request_id);
}

static void put_off(struct core *c, struct exp *e, struct search_op *op)
{
    if (e->todo_at == e->todo.ops.n)
        exp_mark(c, e); /* its row says that trials are owed */
    vec_push(&e->todo.ops, *op);
    op->hparams = op->reason = NULL;
    timers_set(&c->timers, &e->more, c->now_ms + 1);
}

void exp_make_more(struct core *c, struct exp *e)
{
    VEC(struct trial *) made = {0};
    for (; e->todo_at < e->todo.ops.n; e->todo_at++) {
        struct search_op *op = &e->todo.ops.v[e->todo_at];
        if (op->kind == SEARCH_CREATE && c->made >= MAKE_MAX)
            break;
        apply_op(c, e, op);
        search_op_finish(op);
        if (op->kind == SEARCH_CREATE)
            vec_push(&made, map_get(e->by_request, op->request_id));
    }
    timers_set(&c->timers, &e->more, c->now_ms + 1);
    if (e->todo_at == e->todo.ops.n) {
        exp_drop_todo(c, e);
        exp_mark(c, e);
    }
    for (size_t i = 0; i < made.n; i++)
        trial_reconsider(c, made.v[i]);
    vec_free(&made);
}

/* After a restart: what the replayed log asked for, less what was made. */
void exp_resume_todo(struct core *c, struct exp *e)
{
    struct search_ops all = e->todo;
    e->todo = (struct search_ops){0};
    for (size_t i = 0; i < all.ops.n; i++) {
        struct search_op *op = &all.ops.v[i];
        if (takes_operations(e) && op->kind != SEARCH_SHUTDOWN &&
            !map_get(e->by_request, op->request_id))
            put_off(c, e, op);
    }
    search_ops_finish(&all);
}

/* ---- events ---- */

static void carry_out(struct core *c, struct exp *e, struct search_ops *out)
{
    for (size_t i = 0; i < out->ops.n; i++)
        if (takes_operations(e)) {
            if (must_wait(c, e, &out->ops.v[i]))
                put_off(c, e, &out->ops.v[i]);
            else
                apply_op(c, e, &out->ops.v[i]);
        }
    for (size_t i = 0; i < out->ops.n; i++) {
        struct trial *t = map_get(e->by_request, out->ops.v[i].request_id);
        if (t && !exp_has_ended(e))
            trial_reconsider(c, t);
    }
}

void exp_tell(struct core *c, struct exp *e, const struct search_event *ev)
{
    struct search_ops out = {0};
    search_step(e->search, ev, &out);
    if (ev->kind != SEARCH_EV_INITIAL)
        log_event(c, e, ev, &out);
    carry_out(c, e, &out);
    search_ops_finish(&out);
    if (json_array_size(search_undelivered(e->search)) > 0)
        fx_add(c->out, CORE_SEARCH_WAKE)->exp_id = e->id;
}

void exp_on_progress(struct core *c, struct exp *e, struct trial *t, double units)
{
    struct search_event ev = {
        .kind = SEARCH_EV_PROGRESS, .request_id = t->request_id, .units = units};
    if (e->conf.search.kind == SEARCH_CUSTOM)
        exp_tell(c, e, &ev);
    else
        search_step(e->search, &ev, &(struct search_ops){0});
    e->progress = search_progress(e->search);
}

/* ---- the client of a custom search ---- */

static int check_custom(const struct exp *e, struct det_err *err)
{
    if (e->conf.search.kind == SEARCH_CUSTOM && e->search)
        return 0;
    return det_fail(err, DET_ESTATE,
                    "experiment %lld has no custom searcher (searcher.name: custom)",
                    (long long)e->id);
}

static json_t *inactive_event(const char *state)
{
    det_cleanup(freep) char *name = det_asprintf("STATE_%s", state);
    return json_make("[{s:i, s:{s:s}}]", "id", -1, "experimentInactive", "experimentState", name);
}

char *core_inactive_event(const char *state)
{
    JSON_OWN events = inactive_event(state);
    return json_text(events);
}

int exp_search_events(struct core *c, struct exp *e, const char **ret_events, struct det_err *err)
{
    int rc = check_custom(e, err);
    if (rc < 0)
        return rc;
    if (e->state == EXP_ACTIVE) {
        *ret_events = fx_json(c->out, search_undelivered(e->search));
        return 0;
    }
    JSON_OWN inactive = inactive_event(exp_state_text(e->state));
    *ret_events = fx_json(c->out, inactive);
    return 0;
}

int exp_search_ops(struct core *c, struct exp *e, int64_t ack, const json_t *operations,
                   struct det_err *err)
{
    int rc = check_custom(e, err);
    if (rc == 0 && ack)
        rc = search_check_ack(e->search, ack, err);
    if (rc < 0)
        return rc;
    exp_tell(
        c, e,
        &(struct search_event){.kind = SEARCH_EV_OPERATIONS, .ack = ack, .operations = operations});
    if (!exp_has_ended(e)) {
        e->progress = search_progress(e->search);
        exp_mark(c, e);
    }
    return 0;
}
