#include "world.h"

#include <stdio.h>

void world_init(struct world *w, const struct core_options *o)
{
    *w = (struct world){.o = o ? *o : core_options_default, .now_ms = 1000};
    w->core = core_create(&w->o);
}

void world_finish(struct world *w)
{
    core_effects_finish(&w->fx);
    for (size_t i = 0; i < w->kept.n; i++)
        core_effects_finish(&w->kept.v[i]);
    vec_free(&w->kept);
    json_decref(w->env);
    core_destroy(w->core);
}

static void begin_step(struct world *w)
{
    if (w->keeps)
        vec_push(&w->kept, w->fx);
    else
        core_effects_finish(&w->fx);
    w->fx = (struct core_effects)CORE_EFFECTS_INIT;
}

int world_step(struct world *w, struct core_event ev)
{
    begin_step(w);
    ev.now_ms = w->now_ms;
    ev.now_us = 1700000000000000 + w->now_ms * 1000 - w->behind_us;
    ev.request = ++w->request;
    core_step(w->core, &ev, &w->fx);
    core_check(w->core);
    return world_reply(w)->code;
}

/* ---- Restarts ---- */

static const char *row_id(const struct core_effect *e, char out[64])
{
    if (e->kind == CORE_SAVE_ALLOCATION)
        return e->allocation.id;
    if (e->kind == CORE_SAVE_AGENT)
        return e->agent.agent_id;
    if (e->kind == CORE_SAVE_STORE)
        return e->store.place;
    int64_t id = e->kind == CORE_SAVE_EXPERIMENT        ? e->experiment.id
                 : e->kind == CORE_SAVE_TRIAL           ? e->trial.id
                 : e->kind == CORE_SAVE_SEARCH_SNAPSHOT ? e->search_snapshot.experiment_id
                                                        : 0;
    snprintf(out, 64, "%lld", (long long)id);
    return out;
}

/* What only the first row of a thing has. */
static void keep_first(struct core_effect *e, const struct core_effect *first)
{
    if (e->kind == CORE_SAVE_EXPERIMENT && !e->experiment.config)
        e->experiment.config = first->experiment.config;
    else if (e->kind == CORE_SAVE_TRIAL && !e->trial.hparams)
        e->trial.hparams = first->trial.hparams;
}

static bool lives(const struct core *c, const struct core_effect *e)
{
    struct core_exp_view v;
    if (e->kind == CORE_SAVE_EXPERIMENT)
        return !exp_state_is_terminal(e->experiment.state);
    if (e->kind == CORE_SAVE_TRIAL)
        return core_exp_get(c, e->trial.experiment_id, &v);
    if (e->kind == CORE_SAVE_ALLOCATION)
        return e->allocation.state != ALLOC_TERMINATED;
    if (e->kind == CORE_SAVE_SEARCH_SNAPSHOT)
        return e->search_snapshot.snapshot && core_exp_get(c, e->search_snapshot.experiment_id, &v);
    return e->kind != CORE_SAVE_SEARCH_EVENT || core_exp_get(c, e->search_event.experiment_id, &v);
}

static void restore(struct core *c, const struct core_effect *e)
{
    struct det_err err = {0};
    int rc = 0;
    if (!lives(c, e))
        return;
    if (e->kind == CORE_SAVE_AGENT)
        rc = core_restore_agent(c, &e->agent, &err);
    else if (e->kind == CORE_SAVE_STORE)
        rc = core_restore_store(c, &e->store, &err);
    else if (e->kind == CORE_SAVE_EXPERIMENT)
        rc = core_restore_experiment(c, &e->experiment, &err);
    else if (e->kind == CORE_SAVE_SEARCH_SNAPSHOT)
        rc = core_restore_search_snapshot(c, &e->search_snapshot, &err);
    else if (e->kind == CORE_SAVE_SEARCH_EVENT)
        rc = core_restore_search_event(c, &e->search_event, &err);
    else if (e->kind == CORE_SAVE_TRIAL)
        rc = core_restore_trial(c, &e->trial, &err);
    else
        rc = core_restore_allocation(c, &e->allocation, &err);
    if (rc < 0)
        fail_msg("restore: %s", err.text);
}

struct rows {
    VEC(struct core_effect) list;
};

static void add_row(struct rows *rows, enum core_effect_kind kind, struct core_effect e)
{
    char a[64], b[64];
    size_t at = kind == CORE_SAVE_SEARCH_EVENT ? rows->list.n : 0;
    bool drops = kind == CORE_SAVE_SEARCH_SNAPSHOT && e.kind == CORE_DELETE_SEARCH_SNAPSHOT;
    if (drops)
        e.search_snapshot = (struct row_search_snapshot){.experiment_id = e.exp_id};
    if (e.kind != kind && !drops)
        return;
    e.kind = kind;
    while (at < rows->list.n && strcmp(row_id(&rows->list.v[at], a), row_id(&e, b)))
        at++;
    if (at == rows->list.n)
        vec_push(&rows->list, e);
    keep_first(&e, &rows->list.v[at]);
    rows->list.v[at] = e;
}

/* The rows of a kind as they are in the end, in the order in which they were first written. */
static struct rows rows_of(const struct world *w, enum core_effect_kind kind)
{
    struct rows rows = {0};
    for (size_t i = 0; i < w->kept.n; i++)
        for (size_t k = 0; k < w->kept.v[i].n; k++)
            add_row(&rows, kind, w->kept.v[i].v[k]);
    for (size_t k = 0; k < w->fx.n; k++)
        add_row(&rows, kind, w->fx.v[k]);
    return rows;
}

static void restore_all(struct core *c, const struct world *w, enum core_effect_kind kind)
{
    struct rows rows = rows_of(w, kind);
    for (size_t i = 0; i < rows.list.n; i++)
        restore(c, &rows.list.v[i]);
    vec_free(&rows.list);
}

/* Those of one experiment. */
static size_t take(const struct rows *from, int64_t exp, struct row_search_event *events,
                   struct row_trial *trials)
{
    size_t n = 0;
    for (size_t i = 0; i < from->list.n; i++) {
        const struct core_effect *e = &from->list.v[i];
        if (events && e->search_event.experiment_id == exp)
            events[n++] = e->search_event;
        else if (trials && e->trial.experiment_id == exp)
            trials[n++] = e->trial;
    }
    return n;
}

int world_continue(struct world *w, int64_t exp, const char *over)
{
    struct rows exps = rows_of(w, CORE_SAVE_EXPERIMENT);
    struct rows logged = rows_of(w, CORE_SAVE_SEARCH_EVENT), made = rows_of(w, CORE_SAVE_TRIAL);
    struct row_search_event *events = det_alloc((logged.list.n + 1) * sizeof *events);
    struct row_trial *trials = det_alloc((made.list.n + 1) * sizeof *trials);
    struct core_continue in = {.revision = core_exp_revision(w->core, exp) - w->revision_is_old,
                               .row = exps.list.v[exp - 1].experiment,
                               .events = events,
                               .events_n = take(&logged, exp, events, NULL),
                               .trials = trials,
                               .trials_n = take(&made, exp, NULL, trials)};
    JSON_OWN config = json_parse(in.row.config, strlen(in.row.config), NULL);
    JSON_OWN edits = over ? json_parse(over, strlen(over), NULL) : NULL;
    if (edits)
        json_object_update_recursive(config, edits);
    in.config = edits ? config : NULL;
    int rc = world_step(
        w, (struct core_event){.kind = CORE_EV_EXP_CONTINUE, .exp_id = exp, .cont = &in});
    vec_free(&exps.list);
    vec_free(&logged.list);
    vec_free(&made.list);
    free(events);
    free(trials);
    return rc;
}

void world_restart(struct world *w)
{
    static const enum core_effect_kind order[] = {
        CORE_SAVE_AGENT,        CORE_SAVE_STORE, CORE_SAVE_EXPERIMENT, CORE_SAVE_SEARCH_SNAPSHOT,
        CORE_SAVE_SEARCH_EVENT, CORE_SAVE_TRIAL, CORE_SAVE_ALLOCATION};
    assert_true(w->keeps);
    begin_step(w);
    core_destroy(w->core);
    w->core = core_create(&w->o);
    for (size_t i = 0; i < DET_ARRAY_LEN(order); i++)
        restore_all(w->core, w, order[i]);
    core_restored(w->core, w->now_ms, 1700000000000000 + w->now_ms * 1000, &w->fx);
    core_check(w->core);
}

const struct core_reply *world_reply(const struct world *w)
{
    const struct core_reply *r = NULL;
    for (size_t i = 0; i < w->fx.n; i++)
        if (w->fx.v[i].kind == CORE_REPLY) {
            assert_null(r);
            r = &w->fx.v[i].reply;
            assert_int_equal(r->request, w->request);
        }
    assert_non_null(r);
    return r;
}

void world_wait(struct world *w, int64_t ms)
{
    w->now_ms += ms;
    world_step(w, (struct core_event){.kind = CORE_EV_TICK});
}

void world_hello(struct world *w, const char *agent, int slots, const struct core_task_in *tasks,
                 size_t tasks_n)
{
    struct core_slot_in s[64];
    for (int i = 0; i < slots; i++)
        s[i] = (struct core_slot_in){.id = i, .type = CORE_CPU, .brand = "cpu", .uuid = ""};
    struct core_event ev = {.kind = CORE_EV_AGENT_HELLO, .agent_id = agent};
    ev.hello = (struct core_hello){.version = "0.27.0",
                                   .pool = "",
                                   .addr = agent,
                                   .slots = s,
                                   .slots_n = (size_t)slots,
                                   .tasks = tasks,
                                   .tasks_n = tasks_n};
    assert_int_equal(world_step(w, ev), 0);
}

static const char base_config[] =
    "{\"name\":\"t\",\"entrypoint\":\"model_def:T\",\"max_restarts\":2,"
    "\"hyperparameters\":{\"lr\":{\"type\":\"const\",\"val\":0.1}},"
    "\"reproducibility\":{\"experiment_seed\":0},"
    "\"resources\":{\"slots_per_trial\":1,\"resource_pool\":\"\",\"weight\":1,\"priority\":null,"
    "\"max_slots\":null},"
    "\"environment\":{\"environment_variables\":{\"cpu\":[\"A=b=c\"]}},"
    "\"checkpoint_storage\":{\"type\":\"directory\",\"container_path\":\"/tmp\"},"
    "\"searcher\":{\"name\":\"single\",\"metric\":\"loss\",\"smaller_is_better\":true,"
    "\"max_length\":{\"batches\":100}}}";

json_t *world_config(const char *json)
{
    json_t *c = json_parse(base_config, strlen(base_config), NULL);
    JSON_OWN over = json_parse(json, strlen(json), NULL);
    assert_non_null(c);
    assert_non_null(over);
    json_object_update_recursive(c, over);
    return c;
}

int64_t world_create(struct world *w, const char *json)
{
    JSON_OWN config = world_config(json);
    struct core_event ev = {.kind = CORE_EV_EXP_CREATE};
    ev.create = (struct core_create){.job_id = "00000000-0000-4000-8000-000000000000",
                                     .owner_id = 1,
                                     .project_id = 1,
                                     .config = config,
                                     .activate = true};
    assert_int_equal(world_step(w, ev), 0);
    return world_reply(w)->id;
}

struct core_trial_view world_trial(const struct world *w, int64_t id)
{
    struct core_trial_view v = {0};
    core_trial_get(w->core, id, &v);
    return v;
}

void world_run(struct world *w, int64_t trial)
{
    struct core_trial_view t = world_trial(w, trial);
    struct core_container_view k;
    assert_non_null(t.alloc_id);
    for (int s = CORE_TASK_STARTING; s <= CORE_TASK_RUNNING; s++)
        for (size_t i = 0; core_alloc_container(w->core, t.alloc_id, i, &k); i++) {
            struct core_event ev = {.kind = CORE_EV_AGENT_STATE, .agent_id = k.agent_id};
            ev.task = (struct core_task_in){
                .alloc = t.alloc_id, .container = k.id, .state = (enum core_task_state)s};
            assert_int_equal(world_step(w, ev), 0);
        }
    for (size_t i = 0; core_alloc_container(w->core, t.alloc_id, i, &k); i++)
        assert_int_equal(world_step(w, (struct core_event){.kind = CORE_EV_RENDEZVOUS,
                                                           .alloc_id = t.alloc_id,
                                                           .container = k.id}),
                         0);
    assert_int_equal(world_count(w, CORE_RENDEZVOUS), 1);
}

void world_exit(struct world *w, int64_t trial, size_t i, struct core_exit e)
{
    struct core_trial_view t = world_trial(w, trial);
    struct core_container_view k;
    assert_true(core_alloc_container(w->core, t.alloc_id, i, &k));
    struct core_event ev = {.kind = CORE_EV_AGENT_EXIT, .agent_id = k.agent_id};
    ev.task = (struct core_task_in){
        .alloc = t.alloc_id, .container = k.id, .state = CORE_TASK_ENDED, .exit = e};
    assert_int_equal(world_step(w, ev), 0);
}

int world_op(struct world *w, int64_t trial, int64_t length, double metric)
{
    JSON_OWN m = json_double(metric);
    struct core_event ev = {.kind = CORE_EV_OP_COMPLETED, .trial_id = trial};
    ev.op.length = length;
    ev.op.metric = m;
    return world_step(w, ev);
}

void world_complete(struct world *w, int64_t trial, double metric)
{
    struct core_trial_view t = world_trial(w, trial);
    struct core_alloc_view a;
    assert_int_equal(world_op(w, trial, t.op_length, metric), 0);
    assert_int_equal(
        world_step(w, (struct core_event){.kind = CORE_EV_ACK_PREEMPTION, .alloc_id = t.alloc_id}),
        0);
    assert_true(core_alloc_get(w->core, t.alloc_id, &a));
    for (size_t i = 0; i < a.containers; i++)
        world_exit(w, trial, i, EXIT_CODE(0));
}

size_t world_count(const struct world *w, enum core_effect_kind kind)
{
    size_t n = 0;
    for (size_t i = 0; i < w->fx.n; i++)
        n += w->fx.v[i].kind == kind;
    return n;
}

const struct core_effect *world_effect(const struct world *w, enum core_effect_kind kind, size_t i)
{
    for (size_t k = 0; k < w->fx.n; k++)
        if (w->fx.v[k].kind == kind && i-- == 0)
            return &w->fx.v[k];
    return NULL;
}

const char *world_env(struct world *w, const char *name)
{
    const struct core_effect *e = world_effect(w, CORE_ORDER_START, 0);
    assert_non_null(e);
    json_decref(w->env);
    w->env = json_parse(e->start.env, strlen(e->start.env), NULL);
    assert_non_null(w->env);
    return json_str(w->env, name, NULL);
}

bool world_logged(struct world *w, const char *text)
{
    for (size_t i = 0; world_effect(w, CORE_TASK_LOG, i); i++)
        if (strstr(world_effect(w, CORE_TASK_LOG, i)->log.text, text))
            return true;
    return false;
}
