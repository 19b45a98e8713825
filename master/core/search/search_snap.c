/* Snapshots of searches, and the events of their log, as JSON. */
#include "search_impl.h"

#include <math.h>
#include <string.h>

static const char *const event_names[SEARCH_EV_COUNT] = {
    "initial", "validated", "exited", "closed", "progress", "operations", "reopened"};
static const char *const exit_names[SEARCH_EXIT_COUNT] = {"errored", "user_canceled", "invalid_hp",
                                                          "init_invalid_hp", "user_requested_stop"};

static int find_name(const char *const *names, int n, const char *name)
{
    for (int i = 0; name && i < n; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

static bool has_reason(int kind)
{
    return kind == SEARCH_EV_EXITED || kind == SEARCH_EV_REOPENED;
}

json_t *search_event_to_json(const struct search_event *ev)
{
    json_t *j = json_object();
    json_set(j, "event", json_string(event_names[ev->kind]));
    if (ev->request_id)
        json_set(j, "request_id", json_string(ev->request_id));
    if (ev->kind == SEARCH_EV_VALIDATED) {
        json_set(j, "length", json_integer(ev->length));
        json_set(j, "metric", ev->value ? json_deep_copy(ev->value) : json_double(ev->metric));
    }
    if (ev->kind == SEARCH_EV_PROGRESS)
        json_set(j, "units", json_double(ev->units));
    if (ev->kind == SEARCH_EV_OPERATIONS) {
        json_set(j, "ack", json_integer(ev->ack));
        json_set(j, "operations", ev->operations ? json_deep_copy(ev->operations) : json_array());
    }
    if (ev->kind == SEARCH_EV_REOPENED)
        json_set(j, "length", json_integer(ev->length));
    if (has_reason(ev->kind))
        json_set(j, "reason", json_string(exit_names[ev->reason]));
    return j;
}

int search_event_from_json(const json_t *j, struct search_event *ret, struct det_err *err)
{
    int kind = find_name(event_names, SEARCH_EV_COUNT, json_str(j, "event", NULL));
    if (kind < 0)
        return det_fail(err, DET_ECORRUPT, "searcher event of an unknown kind: %s",
                        json_str(j, "event", "(none)"));
    int reason = 0;
    if (has_reason(kind))
        reason = find_name(exit_names, SEARCH_EXIT_COUNT, json_str(j, "reason", NULL));
    if (reason < 0)
        return det_fail(err, DET_ECORRUPT, "searcher event: unknown exit reason %s",
                        json_str(j, "reason", "(none)"));
    *ret = (struct search_event){.kind = (enum search_event_kind)kind,
                                 .request_id = json_str(j, "request_id", NULL),
                                 .length = json_int(j, "length", 0),
                                 .metric = json_num(j, "metric", 0),
                                 .value = json_object_get(j, "metric"),
                                 .reason = (enum search_exit)reason,
                                 .units = json_num(j, "units", 0),
                                 .ack = json_int(j, "ack", 0),
                                 .operations = json_arr(j, "operations")};
    return 0;
}

#define RNG_HEX (624 * 8)

static json_t *rng_to_json(const struct mt19937 *r)
{
    char hex[RNG_HEX];
    for (int i = 0; i < 624; i++) {
        uint32_t word = r->mt[i];
        for (int k = 8; k-- > 0; word >>= 4)
            hex[8 * i + k] = "0123456789abcdef"[word & 15];
    }
    return json_make("{s:o, s:i}", "mt", json_stringn_nocheck(hex, RNG_HEX), "pos", (int)r->pos);
}

static int rng_from_json(const json_t *j, struct mt19937 *r, struct det_err *err)
{
    const char *hex = json_str(j, "mt", "");
    int64_t pos = json_int(j, "pos", -1);
    if (strlen(hex) != RNG_HEX || strspn(hex, "0123456789abcdef") != RNG_HEX || pos < 0 ||
        pos > 624)
        return det_fail(err, DET_ECORRUPT, "searcher snapshot: the generator's state is damaged");
    for (int i = 0; i < RNG_HEX; i++) {
        uint32_t digit = (uint32_t)(hex[i] <= '9' ? hex[i] - '0' : hex[i] - 'a' + 10);
        r->mt[i / 8] = r->mt[i / 8] << 4 | digit;
    }
    r->pos = (uint32_t)pos;
    return 0;
}

/* A trial is [id, flags], and with brackets [id, flags, bracket, rung]. Units come again with the
 * next progress. */
enum { EXITED = 1, CLOSED = 2, INVALID = 4, DONE = 8, PENDING = 16, WAITS = 32 };

static json_t *trial_to_json(const struct search *s, const struct search_trial *t)
{
    int flags = (t->exited ? EXITED : 0) | (t->closed ? CLOSED : 0) | (t->invalid ? INVALID : 0) |
                (t->done ? DONE : 0) | (t->pending ? PENDING : 0) | (t->waits ? WAITS : 0);
    if (s->brackets.n == 0)
        return json_make("[s, i]", t->request_id, flags);
    return json_make("[s, i, i, i]", t->request_id, flags, t->bracket, t->rung);
}

json_t *search_snapshot(const struct search *s)
{
    const struct search_method *m = search_method_of(s->conf.kind);
    json_t *trials = json_array();
    for (size_t i = 0; i < s->trials.n; i++)
        json_array_append_new(trials, trial_to_json(s, &s->trials.v[i]));
    json_t *j = json_object();
    json_set(j, "version", json_integer(1));
    json_set(j, "method", json_string(m->name));
    json_set(j, "rng", rng_to_json(&s->rng));
    json_set(j, "made", json_integer(s->made));
    json_set(j, "failures", json_integer(s->failures));
    json_set(j, "cancels", json_integer(s->cancels));
    json_set(j, "shut", json_boolean(s->shut));
    json_set(j, "trials", trials);
    if (m->save)
        json_set(j, "state", m->save(s));
    return j;
}

static int restore_place(struct search *s, struct search_trial *t, const json_t *j,
                         struct det_err *err)
{
    int64_t bracket = json_integer_value(json_array_get(j, 2));
    int64_t rung = json_integer_value(json_array_get(j, 3));
    if (bracket < 0 || bracket >= (int64_t)s->brackets.n || rung < 0 ||
        rung >= (int64_t)s->brackets.v[bracket].rungs.n)
        return det_fail(err, DET_ECORRUPT,
                        "searcher snapshot: trial %s in rung %lld of bracket "
                        "%lld",
                        t->request_id, (long long)rung, (long long)bracket);
    t->bracket = (int)bracket;
    t->rung = (int)rung;
    return 0;
}

static int restore_trial(struct search *s, const json_t *j, struct det_err *err)
{
    const char *id = json_string_value(json_array_get(j, 0));
    int64_t flags = json_integer_value(json_array_get(j, 1));
    if (!id || !uuid_is_valid(id) || search_trial_find(s, id) != SEARCH_NO_TRIAL)
        return det_fail(err, DET_ECORRUPT, "searcher snapshot: bad trial %s", id ? id : "(none)");
    size_t k = search_trial_add(s, id);
    struct search_trial *t = &s->trials.v[k];
    t->exited = flags & EXITED;
    t->closed = flags & CLOSED;
    t->invalid = flags & INVALID;
    t->done = flags & DONE;
    t->pending = flags & PENDING;
    t->waits = flags & WAITS;
    s->waiting += t->waits;
    if (t->closed) {
        s->open--;
        if (!t->invalid)
            s->units_closed += (double)s->conf.max_length;
    }
    return s->brackets.n ? restore_place(s, t, j, err) : 0;
}

int search_restore(struct search *s, const json_t *j, struct det_err *err)
{
    const struct search_method *m = search_method_of(s->conf.kind);
    if (strcmp(json_str(j, "method", ""), m->name) != 0)
        return det_fail(err, DET_ECORRUPT,
                        "searcher snapshot is of method %s, the experiment's is %s",
                        json_str(j, "method", "(none)"), m->name);
    int rc = rng_from_json(json_obj(j, "rng"), &s->rng, err);
    const json_t *trials = json_arr(j, "trials");
    for (size_t i = 0; rc == 0 && i < json_array_size(trials); i++)
        rc = restore_trial(s, json_array_get(trials, i), err);
    s->made = json_int(j, "made", 0);
    s->failures = json_int(j, "failures", 0);
    s->cancels = json_int(j, "cancels", 0);
    s->shut = json_flag(j, "shut", false);
    return rc == 0 && m->load ? m->load(s, json_obj(j, "state"), err) : rc;
}

/* ---- brackets of halving: [created, invalid, closed, [rung..]], a rung is [outstanding,
 * [metric, trial, promoted]..] ---- */
