/* What must hold when everything has come to its end. */
#include "conf.h"
#include "sim.h"

#include <string.h>

/* The trials that the search asks for, against those that were made. */
static void compare(struct sim *m, const struct stored_exp *e, const struct search_ops *ops,
                    size_t *at)
{
    for (size_t i = 0; i < ops->ops.n; i++) {
        const struct search_op *op = &ops->ops.v[i];
        if (op->kind != SEARCH_CREATE || *at >= e->trials.n)
            continue;
        const struct row_trial *t = &store_trial(&m->store, e->trials.v[(*at)++])->r;
        det_cleanup(freep) char *hparams = json_text(op->hparams);
        if (strcmp(t->request_id, op->request_id) != 0 || strcmp(t->hparams, hparams) != 0 ||
            t->seed != op->trial_seed)
            sim_fail(m, "I5: experiment %lld: trial %lld does not follow from seed and log",
                     (long long)e->r.id, (long long)t->id);
    }
}

static void hear(struct sim *m, const struct stored_exp *e, struct search *s,
                 const struct search_event *ev, size_t *at)
{
    struct search_ops ops = {0};
    search_step(s, ev, &ops);
    compare(m, e, &ops, at);
    search_ops_finish(&ops);
}

/* I5: the trials follow from the configuration, the seed and the ordered log alone. */
static void check_search(struct sim *m, const struct stored_exp *e)
{
    JSON_OWN config = json_parse(e->r.config, strlen(e->r.config), NULL);
    struct conf conf;
    struct search *s = NULL;
    struct det_err err = {0};
    size_t at = 0;
    if (conf_read(config, &conf, &err) < 0 || search_create(&conf.search, &s, &err) < 0)
        sim_fail(m, "I5: experiment %lld: %s", (long long)e->r.id, err.text);
    hear(m, e, s, &(struct search_event){.kind = SEARCH_EV_INITIAL}, &at);
    for (size_t i = 0; i < e->log.n; i++) {
        struct search_event ev;
        JSON_OWN j = json_parse(e->log.v[i], strlen(e->log.v[i]), NULL);
        if (search_event_from_json(j, &ev, &err) < 0)
            sim_fail(m, "I5: experiment %lld: %s", (long long)e->r.id, err.text);
        hear(m, e, s, &ev, &at);
    }
    if (at < e->trials.n)
        sim_fail(m, "I5: experiment %lld has %zu trials, its log asks for %zu", (long long)e->r.id,
                 e->trials.n, at);
    search_destroy(s);
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
        bool again = map_put(heard, key, m);
        if (again && json_int(j, "length", 0) != 1) /* the lowest rungs may all be 1 */
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
