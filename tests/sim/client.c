/* The clients of custom searches. What they want follows from the events they hear and from the
 * store: one that hears the same again says the same again. */
#include "sim.h"

#include "hash.h"
#include <stdio.h>
#include <string.h>

enum { POLL_MS = 3000, LENGTH_MIN = 10, LENGTH_MAX = 200 };

static uint64_t draw(const char *text, int64_t salt)
{
    char key[80];
    int n = snprintf(key, sizeof key, "%.50s %lld", text, (long long)salt);
    return hash_fnv64(key, (size_t)n) >> 7;
}

static json_t *validate(const char *id, int64_t length)
{
    return json_make("{s:{s:{s:s, s:I}}}", "trialOperation", "validateAfter", "requestId", id,
                     "length", length);
}

static void begin(json_t *ops, int64_t exp_id)
{
    char id[64]; // of two numbers at their longest
    int64_t n = 1 + exp_id % 5;
    for (int64_t i = 0; i < n; i++) {
        snprintf(id, sizeof id, "%08llx-0000-4000-8000-%012llx", (unsigned long long)exp_id,
                 (unsigned long long)i);
        json_array_append_new(ops, json_make("{s:{s:s, s:s}}", "createTrial", "requestId", id,
                                             "hyperparams", "{\"x\": 0.5}"));
        json_array_append_new(ops, validate(id, LENGTH_MIN + (int64_t)(draw(id, 0) % 60)));
    }
}

static void go_on(json_t *ops, const json_t *validated)
{
    const char *id = json_str(validated, "requestId", "");
    int64_t length = strtoll(json_str(validated, "validateAfterLength", "0"), NULL, 10);
    if (length < LENGTH_MAX && draw(id, length) % 2)
        json_array_append_new(ops, validate(id, 2 * length));
    else
        json_array_append_new(ops, json_make("{s:{s:s,s:s}}", "closeTrial", "requestId", id,
                                             "reason", "it was long enough."));
}

static void shut_down(json_t *ops, const struct stored_exp *e)
{
    json_array_append_new(ops, json_make("{s:{s:b}}", "shutDown", "cancel", e->r.id % 3 == 0));
}

/* It has seen enough, whatever else runs. */
static bool is_content(const json_t *validated)
{
    return validated && draw(json_str(validated, "requestId", ""), -1) % 8 == 0;
}

/* Of a search that is paused: it ends it. */
static bool is_tired(struct sim *m, const struct stored_exp *e)
{
    return e->r.state == EXP_PAUSED && sim_chance(m, 30);
}

static bool all_ended(struct sim *m, const struct stored_exp *e)
{
    for (size_t i = 0; i < e->trials.n; i++)
        if (!trial_state_is_terminal(sim_store_trial(&m->store, e->trials.v[i])->r.state))
            return false;
    return true;
}

static void decide(struct sim *m, const struct stored_exp *e, const json_t *event, json_t *ops)
{
    if (json_obj(event, "initialOperations"))
        begin(ops, e->r.id);
    else if (is_content(json_obj(event, "validationCompleted")))
        shut_down(ops, e);
    else if (json_obj(event, "validationCompleted"))
        go_on(ops, json_obj(event, "validationCompleted"));
    else if (json_obj(event, "trialClosed") && all_ended(m, e))
        shut_down(ops, e);
}

void client_hear(struct sim *m, int64_t exp_id, const char *text)
{
    const struct stored_exp *e = sim_store_exp(&m->store, exp_id);
    JSON_OWN events = json_parse(text, strlen(text), NULL);
    JSON_OWN ops = json_array();
    size_t n = json_array_size(events);
    int64_t ack = n ? json_int(json_array_get(events, n - 1), "id", -1) : -1;
    if (!e || !n || (ack < 0 && !is_tired(m, e))) /* nothing has happened, or it is not active */
        return;
    if (ack < 0)
        shut_down(ops, e);
    for (size_t i = 0; i < n; i++)
        decide(m, e, json_array_get(events, i), ops);
    struct core_event ev = {.kind = CORE_EV_SEARCH_OPS, .exp_id = exp_id};
    ev.search.ack = ack < 0 ? 0 : ack;
    ev.search.operations = ops;
    for (int copies = sim_chance(m, 50) ? 2 : sim_chance(m, 50) ? 0 : 1; copies > 0; copies--)
        sim_master_post(m, sim_master_leader(m), &ev,
                        (struct waiter){.token = ++m->next_token, .host = -1});
}

void client_poll(struct sim *m)
{
    struct sim_master *s = sim_master_leader(m);
    for (size_t i = 0; i < m->store.exps.n; i++) {
        const struct stored_exp *e = m->store.exps.v[i];
        if (!e->is_custom || !sim_store_is_live(e) || e->r.state == EXP_DELETING ||
            sim_chance(m, 200))
            continue;
        struct core_event ev = {.kind = CORE_EV_SEARCH_EVENTS, .exp_id = e->r.id};
        sim_master_post(m, s, &ev, (struct waiter){.token = ++m->next_token, .host = -1});
    }
    sim_later(m, 500 + (int64_t)sim_random(m, POLL_MS), (struct msg){.kind = M_CLIENTS});
}
