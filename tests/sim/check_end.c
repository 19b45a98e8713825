/* What must hold when everything has come to its end. */
#include "search_replay.h"
#include "sim.h"

#include <string.h>

static json_t *parse(const char *text)
{
    return json_parse(text, strlen(text), NULL);
}

/* I5: trials, answers and snapshot follow from the configuration, the seed and the log alone. */
static void check_search(struct sim *m, const struct stored_exp *e)
{
    JSON_OWN config = parse(e->r.config);
    JSON_OWN snapshot = e->snapshot ? parse(e->snapshot) : NULL;
    JSON_OWN events = json_array();
    JSON_OWN trials = json_array();
    for (size_t i = 0; i < e->log.n; i++)
        json_array_append_new(events, json_make("[i, o]", (int)i + 1, parse(e->log.v[i])));
    for (size_t i = 0; i < e->trials.n; i++) {
        const struct row_trial *t = &sim_store_trial(&m->store, e->trials.v[i])->r;
        json_array_append_new(trials, json_make("[I, s, I, o]", (json_int_t)t->id, t->request_id,
                                                (json_int_t)t->seed, parse(t->hparams)));
    }
    struct search_log log = {.config = config,
                             .events = events,
                             .trials = trials,
                             .snapshot = snapshot,
                             .snapshot_seq = e->snapshot_seq};
    struct search_verdict v;
    struct det_err err = {0};
    if (search_replay(&log, &v, &err) < 0)
        sim_fail(m, "I5: experiment %lld: %s", (long long)e->r.id, err.text);
    if (!v.equal)
        sim_fail(m, "I5: experiment %lld replays differently after event %lld: %s",
                 (long long)e->r.id, (long long)v.seq, v.what);
}

/* How often the event's trial was opened again, this time included. */
static int64_t lives(struct map *reopened, const json_t *event)
{
    const char *id = json_str(event, "request_id", "");
    uintptr_t n = (uintptr_t)map_get(reopened, id);
    if (strcmp(json_str(event, "event", ""), "reopened") == 0)
        map_put(reopened, id, (void *)++n);
    return (int64_t)n;
}

/* I5: the searcher heard of everything once. */
static void check_log(struct sim *m, const struct stored_exp *e)
{
    struct map *heard = map_create(), *reopened = map_create();
    for (size_t i = 0; i < e->log.n; i++) {
        JSON_OWN j = json_parse(e->log.v[i], strlen(e->log.v[i]), NULL);
        json_object_del(j, "metric");
        json_object_del(j, "reason");
        json_object_del(j, "digest"); /* of what the searcher said to it */
        json_set(j, "life", json_integer(lives(reopened, j)));
        det_cleanup(freep) char *key = json_text(j);
        bool again = map_put(heard, key, m);
        if (again && json_int(j, "length", 0) != 1) /* the lowest rungs may all be 1 */
            sim_fail(m, "I5: experiment %lld heard twice of %s", (long long)e->r.id, key);
    }
    map_destroy(heard);
    map_destroy(reopened);
}

static void check_core(struct sim *m, const struct sim_master *s)
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
    check_core(m, sim_master_leader(m));
    if (imap_size(m->tasks))
        sim_fail(m, "I3: %zu tasks are left on agents", imap_size(m->tasks));
    for (size_t i = 0; i < m->store.exps.n; i++) {
        const struct stored_exp *e = m->store.exps.v[i];
        if (sim_store_is_live(e))
            sim_fail(m, "experiment %lld is left in state %s", (long long)e->r.id,
                     exp_state_text(e->r.state));
        if (!e->r.config)
            continue; /* refused as it was made */
        check_search(m, e);
        if (!e->is_custom) /* hears of progress too, and its client may repeat itself */
            check_log(m, e);
    }
}
