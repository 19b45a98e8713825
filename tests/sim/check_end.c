/* What must hold when everything has come to its end. */
#include "sim.h"

#include <string.h>

/* I5: the trials follow from the configuration and the seed alone. */
static void check_search(struct sim *m, const struct stored_exp *e)
{
    JSON_OWN config = json_parse(e->r.config, strlen(e->r.config), NULL);
    struct core *fresh = core_create(&m->o);
    struct core_effects fx = CORE_EFFECTS_INIT;
    struct core_event ev = {.kind = CORE_EV_EXP_CREATE, .now_ms = 1};
    ev.create = (struct core_create){.job_id = e->r.job_id, .config = config};
    core_step(fresh, &ev, &fx);
    for (size_t i = 0, k = 0; i < fx.n && k < e->trials.n; i++) {
        const struct row_trial *want = &fx.v[i].trial;
        if (fx.v[i].kind != CORE_SAVE_TRIAL)
            continue;
        const struct row_trial *t = &store_trial(&m->store, e->trials.v[k++])->r;
        if (strcmp(t->request_id, want->request_id) != 0 ||
            strcmp(t->hparams, want->hparams) != 0 || t->seed != want->seed)
            sim_fail(m, "I5: experiment %lld: trial %lld does not follow from its seed",
                     (long long)e->r.id, (long long)t->id);
    }
    core_effects_finish(&fx);
    core_destroy(fresh);
}

/* I5: the searcher heard of everything once. */
static void check_log(struct sim *m, const struct stored_exp *e)
{
    struct map *heard = map_create();
    for (size_t i = 0; i < e->log.n; i++) {
        JSON_OWN j = json_parse(e->log.v[i], strlen(e->log.v[i]), NULL);
        json_object_del(j, "metric");
        json_object_del(j, "reason");
        det_cleanup(freep) char *key = json_text(j);
        if (map_put(heard, key, m))
            sim_fail(m, "I5: experiment %lld heard twice of %s", (long long)e->r.id, key);
    }
    map_destroy(heard);
}

static void check_core(struct sim *m, const struct master *s)
{
    struct core_agent_view a;
    struct core_alloc_view al;
    if (!s->core)
        sim_fail(m, "no master leads at the end");
    if (core_alloc_at(s->core, 0, &al))
        sim_fail(m, "allocation %s is left in state %s", al.id, alloc_state_text(al.state));
    for (size_t i = 0; core_agent_at(s->core, i, &a); i++)
        if (!a.connected || a.slots_free != a.slots)
            sim_fail(m, "I4: agent %s: %zu of %zu slots are free", a.id, a.slots_free, a.slots);
}

void check_end(struct sim *m)
{
    check_core(m, master_leader(m));
    if (imap_size(m->tasks))
        sim_fail(m, "I3: %zu tasks are left on agents", imap_size(m->tasks));
    for (size_t i = 0; i < m->store.exps.n; i++) {
        const struct stored_exp *e = m->store.exps.v[i];
        if (store_is_live(e))
            sim_fail(m, "experiment %lld is left in state %s", (long long)e->r.id,
                     exp_state_text(e->r.state));
        check_search(m, e);
        check_log(m, e);
    }
}
