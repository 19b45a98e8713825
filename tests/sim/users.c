/* What people do. */
#include "sim.h"

#include <stdio.h>
#include <string.h>

static int64_t some_exp(struct sim *m)
{
    int64_t *ids, id = 0;
    size_t n = core_jobs(sim_master_leader(m)->core, NULL, &ids);
    if (n)
        id = ids[sim_random(m, n)];
    free(ids);
    return id;
}

/* Where there is one that is ending, and takes long: mostly that. */
static int64_t some_ending(struct sim *m)
{
    struct core_exp_view e;
    int64_t *ids, id = 0;
    const struct core *c = sim_master_leader(m)->core;
    size_t n = core_jobs(c, NULL, &ids);
    for (size_t i = 0; i < n; i++)
        if (core_exp_get(c, ids[i], &e) && sim_store_is_ending(e.state) && sim_random(m, 2))
            id = e.id;
    free(ids);
    return id ? id : some_exp(m);
}

/* Of such a one, or any that there ever was. */
static int64_t some_trial(struct sim *m)
{
    struct core_trial_view t;
    int64_t *ids, id = 0;
    const struct core *c = sim_master_leader(m)->core;
    size_t n = core_exp_trials(c, some_ending(m), &ids);
    for (size_t i = 0; i < n; i++)
        if (core_trial_get(c, ids[i], &t) && t.alloc_id && sim_random(m, 2))
            id = t.id;
    free(ids);
    return id ? id : 1 + (int64_t)sim_random(m, m->store.trials.n);
}

/* One that failed or was stopped is looked at more than others. */
static const struct stored_exp *some_ended(struct sim *m)
{
    const struct stored_exp *e = m->store.exps.v[sim_random(m, m->store.exps.n)];
    for (int i = 0; i < 6 && e->r.state != EXP_ERROR; i++)
        e = m->store.exps.v[sim_random(m, m->store.exps.n)];
    return e;
}

static void post(struct sim *m, struct core_event ev)
{
    sim_master_post(m, sim_master_leader(m), &ev,
                    (struct waiter){.token = ++m->next_token, .host = -1});
}

static int trials_of(struct sim *m)
{
    return m->in.trials ? m->in.trials : 1 + (int)sim_random(m, 20);
}

static json_t *halving(struct sim *m, int64_t length)
{
    static const char *const modes[] = {"aggressive", "standard", "conservative"};
    bool adaptive = sim_random(m, 2);
    json_t *j =
        json_make("{s:s, s:{s:I}, s:i, s:i, s:f, s:b, s:b}", "name",
                  adaptive ? "adaptive_asha" : "async_halving", "max_length", "batches", length,
                  "max_trials", trials_of(m), "max_concurrent_trials", (int)sim_random(m, 8),
                  "divisor", 2.0 + (double)sim_random(m, 3), "stop_once", (int)sim_random(m, 2),
                  "smaller_is_better", (int)sim_random(m, 2));
    json_set(j, adaptive ? "max_rungs" : "num_rungs",
             json_integer(1 + (json_int_t)sim_random(m, 4)));
    json_set(j, "mode", json_string(modes[sim_random(m, 3)]));
    return j;
}

static json_t *searcher(struct sim *m)
{
    int64_t length = 20 + (int64_t)sim_random(m, 200);
    switch (sim_random(m, 6)) {
    case 0: return json_make("{s:s, s:{s:I}}", "name", "single", "max_length", "batches", length);
    case 1:
        return json_make("{s:s, s:{s:I}, s:i, s:i}", "name", "random", "max_length", "batches",
                         length, "max_trials", trials_of(m), "max_concurrent_trials",
                         (int)sim_random(m, 8));
    case 2:
        return json_make("{s:s, s:I, s:i}", "name", "grid", "max_length", length,
                         "max_concurrent_trials", (int)sim_random(m, 6));
    case 3: return json_make("{s:s, s:s, s:s}", "name", "custom", "metric", "m", "unit", "batches");
    default: return halving(m, length);
    }
}

static void create(struct sim *m)
{
    static const int sizes[] = {0, 1, 1, 1, 1, 2, 2, 3, 4, 8};
    char job[40], owner[40];
    int64_t owner_id = 1 + (int64_t)sim_random(m, 3);
    snprintf(owner, sizeof owner, "user-%lld", (long long)owner_id);
    snprintf(job, sizeof job, "00000000-0000-4000-8000-%012llx",
             (unsigned long long)++m->exps_made);
    JSON_OWN config = json_make(
        "{s:s, s:s, s:i, s:{s:I}, s:{s:{s:s, s:f, s:f, s:i}, s:{s:s, s:[i, i]}}, s:{s:i, s:f}}",
        "name", "sim", "entrypoint", "m:T", "max_restarts", (int)sim_random(m, 6),
        "reproducibility", "experiment_seed", (json_int_t)sim_random(m, 1 << 30), "hyperparameters",
        "x", "type", "double", "minval", 0.0, "maxval", 1.0, "count", 3, "y", "type", "categorical",
        "vals", 1, 2, "resources", "slots_per_trial", sizes[sim_random(m, DET_ARRAY_LEN(sizes))],
        "weight", 1.0 + (double)sim_random(m, 3));
    json_set(config, "searcher", searcher(m));
    json_set(config, "checkpoint_storage",
             json_make("{s:s, s:s}", "type", "directory", "container_path", SIM_STORE));
    json_set(json_obj(config, "resources"), "resource_pool", json_string(setup_pool(m)));
    if (sim_random(m, 8) == 0)
        json_set(json_obj(config, "resources"), "max_slots",
                 json_integer((json_int_t)sim_random(m, 6) + 1));
    struct core_event ev = {.kind = CORE_EV_EXP_CREATE};
    ev.create = (struct core_create){.job_id = job,
                                     .owner_id = owner_id,
                                     .owner = owner,
                                     .project_id = 1,
                                     .config = config,
                                     .activate = sim_random(m, 5) != 0};
    post(m, ev);
}

static void set_agent(struct sim *m, bool enabled)
{
    struct sim_host *h = &m->hosts[sim_random(m, (uint64_t)m->hosts_n)];
    struct core_event ev = {.kind = CORE_EV_AGENT_SET};
    ev.agent_set = (struct core_agent_set){.agent_id = h->id,
                                           .enabled = enabled,
                                           .drain = sim_random(m, 2),
                                           .slot = (int)sim_random(m, (uint64_t)h->slots + 1) - 1};
    post(m, ev);
}

static void delete (struct sim *m)
{
    if (!m->store.exps.n)
        return;
    const struct stored_exp *e = m->store.exps.v[sim_random(m, m->store.exps.n)];
    if (!exp_state_is_terminal(e->r.state) || e->r.state == EXP_DELETED)
        return;
    JSON_OWN config = json_parse(e->r.config, strlen(e->r.config), NULL);
    JSON_OWN uuids = sim_random(m, 2) ? json_array() : json_make("[s]", "u");
    struct core_event ev = {.kind = sim_random(m, 3) ? CORE_EV_EXP_DELETE : CORE_EV_EXP_GC};
    ev.gc = (struct core_gc){
        .exp_id = e->r.id, .owner_id = 1, .job_id = e->r.job_id, .config = config, .uuids = uuids};
    post(m, ev);
}

/* A single search goes further, sometimes; rows are read when all that was stepped is in them. */
static void go_on(struct sim *m)
{
    struct sim_master *s = sim_master_leader(m);
    if (!m->store.exps.n || s->batch.state != BATCH_IDLE || s->batch.queued)
        return;
    const struct stored_exp *e = some_ended(m);
    if (!exp_state_is_terminal(e->r.state) || e->r.state == EXP_DELETED)
        return;
    JSON_OWN config = json_parse(e->r.config, strlen(e->r.config), NULL);
    json_t *length = json_obj(json_obj(config, "searcher"), "max_length");
    bool longer = strcmp(json_str(json_obj(config, "searcher"), "name", ""), "single") == 0 &&
                  sim_random(m, 2);
    if (longer)
        json_set(length, "batches", json_integer(json_int(length, "batches", 0) + 50));
    struct core_continue cont;
    sim_store_ended(&m->store, e, &cont);
    cont.config = longer ? config : NULL;
    cont.revision = core_exp_revision(s->core, e->r.id);
    post(m, (struct core_event){.kind = CORE_EV_EXP_CONTINUE, .exp_id = e->r.id, .cont = &cont});
    sim_driver_turn(m, s); /* the rows are borrowed */
    free((void *)cont.events);
    free((void *)cont.trials);
}

static void patch(struct sim *m)
{
    struct core_event ev = {.kind = CORE_EV_EXP_PATCH, .exp_id = some_exp(m)};
    ev.patch = (struct core_patch){.has_priority = true,
                                   .priority = 1 + (int)sim_random(m, 99),
                                   .has_weight = true,
                                   .weight = 0.5 + (double)sim_random(m, 4),
                                   .has_max_slots = sim_random(m, 4) == 0,
                                   .max_slots = (int64_t)sim_random(m, 9) - 1};
    if (ev.patch.max_slots == 0)
        ev.patch.max_slots = -1;
    post(m, ev);
}

/* To another place in the queue, or to another pool. */
static void move(struct sim *m)
{
    struct core_event ev = {.kind = CORE_EV_EXP_PATCH, .exp_id = some_exp(m)};
    if (sim_random(m, 3) == 0)
        ev.patch.pool = setup_pool(m);
    else if (sim_random(m, 2))
        ev.patch.ahead_of = some_exp(m);
    else
        ev.patch.behind_of = some_exp(m);
    post(m, ev);
}

void user_act(struct sim *m)
{
    static const enum core_event_kind kinds[] = {CORE_EV_EXP_PAUSE, CORE_EV_EXP_ACTIVATE,
                                                 CORE_EV_EXP_ACTIVATE, CORE_EV_EXP_PAUSE};
    uint64_t dice = sim_random(m, 100);
    int64_t *ids;
    if (!sim_master_serves(m, sim_master_leader(m)))
        return;
    size_t live = core_jobs(sim_master_leader(m)->core, NULL, &ids);
    free(ids);
    if (live < 3 || (dice < 30 && live < 25))
        create(m);
    else if (dice < 55)
        post(m, (struct core_event){.kind = kinds[dice % 4], .exp_id = some_exp(m)});
    else if (dice < 60)
        post(m, (struct core_event){.kind = CORE_EV_EXP_CANCEL, .exp_id = some_exp(m)});
    else if (dice < 65)
        post(m, (struct core_event){.kind = CORE_EV_EXP_KILL, .exp_id = some_ending(m)});
    else if (dice < 70 && m->store.trials.n)
        post(m, (struct core_event){.kind = CORE_EV_TRIAL_KILL, .trial_id = some_trial(m)});
    else if (dice < 76)
        set_agent(m, dice % 3 != 0);
    else if (dice < 84)
        delete (m);
    else if (dice < 89)
        patch(m);
    else if (dice < 96)
        move(m);
    else if (dice < 99)
        go_on(m);
}

static int64_t slots_of(const struct stored_exp *e)
{
    JSON_OWN config = json_parse(e->r.config, strlen(e->r.config), NULL);
    return json_int(json_obj(config, "resources"), "slots_per_trial", 1);
}

static void enable_all(struct sim *m)
{
    for (int i = 0; i < m->hosts_n; i++)
        for (int slot = -1; slot < m->hosts[i].slots; slot++) {
            struct core_event ev = {.kind = CORE_EV_AGENT_SET};
            ev.agent_set =
                (struct core_agent_set){.agent_id = m->hosts[i].id, .slot = slot, .enabled = true};
            post(m, ev);
        }
}

/* What was let in while no agent was there, and can never run, is given up. */
void user_release(struct sim *m)
{
    int64_t *ids;
    const struct core *c = sim_master_leader(m)->core;
    size_t n = core_jobs(c, NULL, &ids);
    enable_all(m);
    for (size_t i = 0; i < n; i++) {
        bool exceeded = false;
        const struct stored_exp *e = sim_store_exp(&m->store, ids[i]);
        if (e && core_fits(c, e->r.resource_pool, slots_of(e), &exceeded, NULL) < 0)
            post(m, (struct core_event){.kind = CORE_EV_EXP_KILL, .exp_id = ids[i]});
        else
            post(m, (struct core_event){.kind = CORE_EV_EXP_ACTIVATE, .exp_id = ids[i]});
    }
    free(ids);
}
