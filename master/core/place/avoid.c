#include "avoid.h"

#include "effects.h"
#include "fit.h"
#include "trial.h"
#include <string.h>

enum { TEXT_MAX = 400, PAUSE_MAX_S = 30 };

static bool is_out(const struct avoid *v, unsigned sources)
{
    return v->is_out && (BIT(v->source) & sources);
}

bool avoid_is(const struct trial *t, const char *agent_id, unsigned sources)
{
    for (size_t i = 0; i < t->avoids.n; i++)
        if (is_out(&t->avoids.v[i], sources) && strcmp(t->avoids.v[i].agent, agent_id) == 0)
            return true;
    return false;
}

size_t avoid_count(const struct trial *t, unsigned sources)
{
    size_t n = 0;
    for (size_t i = 0; i < t->avoids.n; i++)
        n += is_out(&t->avoids.v[i], sources);
    return n;
}

bool avoid_any(const struct trial *t, unsigned sources)
{
    return avoid_count(t, sources) > 0;
}

static struct avoid *find_avoid(struct trial *t, const char *agent_id, enum avoid_source source)
{
    for (size_t i = 0; i < t->avoids.n; i++)
        if (t->avoids.v[i].source == source && strcmp(t->avoids.v[i].agent, agent_id) == 0)
            return &t->avoids.v[i];
    return NULL;
}

static void set_until(struct core *c, struct avoid *v, int64_t until_ms)
{
    v->until_ms = until_ms;
    if (until_ms != INT64_MAX && (c->lifts.pos == 0 || until_ms < c->lifts.at_ms))
        timers_set(&c->timers, &c->lifts, until_ms);
}

static struct avoid *leave_out(struct core *c, struct trial *t, const char *agent_id,
                               enum avoid_source source, const char *text, int64_t ms)
{
    struct avoid *v = find_avoid(t, agent_id, source);
    if (!v) {
        vec_push(&t->avoids, (struct avoid){.agent = det_strdup(agent_id), .source = source});
        v = &t->avoids.v[t->avoids.n - 1];
    }
    free(v->text);
    v->text = det_asprintf("%.*s", TEXT_MAX, text);
    v->is_out = true;
    set_until(c, v, ms ? c->now_ms + ms : INT64_MAX);
    trial_mark(c, t);
    return v;
}

void avoid_add(struct core *c, struct trial *t, const char *agent_id, enum avoid_source source,
               const char *text, int64_t ms)
{
    leave_out(c, t, agent_id, source, text, ms);
}

static void lift_avoid(struct trial *t, struct avoid *v)
{
    v->is_out = false;
    t->exp->pool->dirty = true;
}

void avoid_lift(struct core *c, struct trial *t, const char *agent_id, enum avoid_source source)
{
    struct avoid *v = find_avoid(t, agent_id, source);
    if (!v || !v->is_out || trial_state_is_terminal(t->state))
        return;
    lift_avoid(t, v);
    trial_mark(c, t);
}

void avoid_forget(struct trial *t, unsigned sources)
{
    for (size_t i = t->avoids.n; i-- > 0;) {
        if (!(BIT(t->avoids.v[i].source) & sources))
            continue;
        free(t->avoids.v[i].agent);
        free(t->avoids.v[i].text);
        vec_remove(&t->avoids, i);
    }
    if (t->avoids.n == 0)
        vec_free(&t->avoids);
}

/* ---- Hosts that cannot start it ---- */

int64_t avoid_pause_ms(const struct trial *t)
{
    if (t->start_rounds < 2)
        return 0;
    int64_t s = t->start_rounds < 7 ? INT64_C(1) << (t->start_rounds - 2) : PAUSE_MAX_S;
    return 1000 * (s < PAUSE_MAX_S ? s : PAUSE_MAX_S);
}

/* To try again would find the same. Not of a trial that has run: what it was run by was there, and
 * may be on a mount that comes later than its host. */
static bool all_lack_it(const struct trial *t)
{
    if (t->has_run || t->latest)
        return false;
    for (size_t i = 0; i < t->avoids.n; i++)
        if (is_out(&t->avoids.v[i], BIT(AVOID_START)) && !t->avoids.v[i].is_absent)
            return false;
    return true;
}

static bool is_over(const struct core *c, const struct trial *t)
{
    const struct fit *f = &t->exp->pool->fit;
    return (t->start_rounds >= AVOID_ROUNDS || all_lack_it(t)) && c->now_ms >= c->settled_ms &&
           !fit_ever_for(f, t->exp->conf.slots, t, AVOID_ANY);
}

/* All that failed to start it comes back into play when the pause is over. */
static void try_all_again(struct core *c, struct trial *t, const struct alloc *a)
{
    int64_t ms = avoid_pause_ms(t);
    for (size_t i = 0; i < t->avoids.n; i++) {
        struct avoid *v = &t->avoids.v[i];
        if (v->source != AVOID_START || !v->is_out)
            continue;
        if (ms)
            set_until(c, v, c->now_ms + ms);
        else
            lift_avoid(t, v);
    }
    fx_log(c, a, FX_WARNING,
           "No other agent can have trial %lld: those that failed are tried again in %lld s (try "
           "%d of %d).",
           (long long)t->id, (long long)(ms / 1000), t->start_rounds + 1, AVOID_ROUNDS);
}

static bool give_up(struct core *c, struct trial *t, const struct alloc *a)
{
    struct buf who = BUF_INIT;
    avoid_text(t, &who);
    fx_log(c, a, FX_ERROR, "Trial %lld cannot be started on any agent that could have it: %s.",
           (long long)t->id, buf_str(&who));
    buf_finish(&who);
    trial_set(c, t, TRIAL_STOPPING_ERROR, "no agent could start it");
    return true;
}

bool avoid_on_failed_start(struct core *c, struct trial *t, const struct alloc *a)
{
    const char *agent = a->containers.v[a->failure.node]->agent_id;
    struct avoid *v = leave_out(c, t, agent, AVOID_START, a->failure.text, AVOID_MS);
    v->failures++;
    v->is_absent = a->failure.reason == CORE_ABSENT;
    fx_log(c, a, FX_WARNING,
           "Agent %s could not start trial %lld; it is left out for %d min, or until it connects "
           "anew.",
           agent, (long long)t->id, AVOID_MS / 60000);
    t->is_paused = false;
    if (fit_could(&t->exp->pool->fit, a))
        return false;
    t->start_rounds++;
    if (is_over(c, t))
        return give_up(c, t, a);
    t->is_paused = t->start_rounds < AVOID_ROUNDS;
    if (t->is_paused)
        try_all_again(c, t, a);
    return false;
}

void avoid_on_progress(struct core *c, struct trial *t)
{
    if (t->has_run && t->start_rounds == 0)
        return;
    t->has_run = true;
    t->start_rounds = 0;
    trial_mark(c, t);
}

/* ---- Until when; a trial that has ended keeps what it avoided ---- */

static void lift_due(struct core *c, struct trial *t)
{
    if (trial_state_is_terminal(t->state))
        return;
    for (size_t i = 0; i < t->avoids.n; i++) {
        struct avoid *v = &t->avoids.v[i];
        if (!v->is_out || v->until_ms == INT64_MAX)
            continue;
        if (v->until_ms <= c->now_ms) {
            lift_avoid(t, v);
            trial_mark(c, t);
        } else {
            set_until(c, v, v->until_ms);
        }
    }
}

void avoid_on_timer(struct core *c)
{
    timers_set(&c->timers, &c->lifts, INT64_MAX);
    for (size_t i = 0; i < c->exps.n; i++)
        for (size_t k = 0; k < c->exps.v[i]->trials.n; k++)
            lift_due(c, c->exps.v[i]->trials.v[k]);
}

/* Without the timer nobody waits for it. */
void avoid_on_hello(struct core *c, const char *agent_id)
{
    if (c->lifts.pos == 0)
        return;
    for (size_t i = 0; i < c->exps.n; i++)
        for (size_t k = 0; k < c->exps.v[i]->trials.n; k++)
            avoid_lift(c, c->exps.v[i]->trials.v[k], agent_id, AVOID_START);
}

void avoid_restored(struct core *c, struct trial *t)
{
    if (trial_state_is_terminal(t->state))
        return;
    for (size_t i = 0; i < t->avoids.n; i++)
        if (t->avoids.v[i].source == AVOID_START && t->avoids.v[i].is_out)
            set_until(c, &t->avoids.v[i], c->now_ms + AVOID_MS);
}

/* ---- Words ---- */

static const char *const source_names[AVOID_SOURCE_COUNT] = {
    [AVOID_POLICY] = "LOG_POLICY", [AVOID_START] = "START"};

json_t *avoid_json(const struct trial *t)
{
    json_t *list = json_array();
    for (size_t i = 0; i < t->avoids.n; i++) {
        const struct avoid *v = &t->avoids.v[i];
        JSON_OWN text = json_lossy(v->text, strlen(v->text));
        json_array_append_new(list,
                              json_make("{s:s,s:s,s:O,s:i,s:b,s:b}", "agent", v->agent, "source",
                                        source_names[v->source], "text", text, "failures",
                                        v->failures, "out", v->is_out, "absent", v->is_absent));
    }
    return list;
}

void avoid_text(const struct trial *t, struct buf *out)
{
    for (size_t i = 0; i < t->avoids.n; i++) {
        const struct avoid *v = &t->avoids.v[i];
        buf_addf(out, "%sagent %s: %s", i ? "; " : "", v->agent, v->text);
        if (v->failures > 0)
            buf_addf(out, " (%d time%s)", v->failures, v->failures == 1 ? "" : "s");
    }
}

void avoid_load(struct trial *t, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *j = json_array_get(list, i);
        const char *name = json_str(j, "source", "");
        for (int s = 0; s < AVOID_SOURCE_COUNT; s++)
            if (strcmp(name, source_names[s]) == 0)
                vec_push(&t->avoids, (struct avoid){.agent = det_strdup(json_str(j, "agent", "")),
                                                    .source = (enum avoid_source)s,
                                                    .text = det_strdup(json_str(j, "text", "")),
                                                    .failures = (int)json_int(j, "failures", 0),
                                                    .is_out = json_flag(j, "out", true),
                                                    .is_absent = json_flag(j, "absent", false),
                                                    .until_ms = INT64_MAX});
    }
}
