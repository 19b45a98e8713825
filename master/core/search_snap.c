/* Snapshots of searches, and the events of their log, as JSON. */
#include "search_impl.h"

#include <stdio.h>
#include <string.h>

static const char *const event_names[SEARCH_EV_COUNT] = {"initial", "validated", "exited", "closed",
                                                         "progress"};
static const char *const exit_names[SEARCH_EXIT_COUNT] = {
    "errored", "user_canceled", "invalid_hp", "init_invalid_hp", "user_requested_stop"};

static int find_name(const char *const *names, int n, const char *name)
{
    for (int i = 0; name && i < n; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

json_t *search_event_to_json(const struct search_event *ev)
{
    json_t *j = json_object();
    json_set(j, "event", json_string(event_names[ev->kind]));
    if (ev->request_id)
        json_set(j, "request_id", json_string(ev->request_id));
    if (ev->kind == SEARCH_EV_VALIDATED) {
        json_set(j, "length", json_integer(ev->length));
        json_set(j, "metric", json_double(ev->metric));
    }
    if (ev->kind == SEARCH_EV_EXITED)
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
    if (kind == SEARCH_EV_EXITED)
        reason = find_name(exit_names, SEARCH_EXIT_COUNT, json_str(j, "reason", NULL));
    if (reason < 0)
        return det_fail(err, DET_ECORRUPT, "searcher event: unknown exit reason %s",
                        json_str(j, "reason", "(none)"));
    *ret = (struct search_event){.kind = (enum search_event_kind)kind,
                                 .request_id = json_str(j, "request_id", NULL),
                                 .length = json_int(j, "length", 0),
                                 .metric = json_num(j, "metric", 0),
                                 .reason = (enum search_exit)reason};
    return 0;
}

static json_t *rng_to_json(const struct mt19937 *r)
{
    char hex[624 * 8 + 1];
    for (int i = 0; i < 624; i++)
        snprintf(hex + 8 * i, 9, "%08x", r->mt[i]);
    return json_make("{s:s, s:i}", "mt", hex, "pos", (int)r->pos);
}

static int rng_from_json(const json_t *j, struct mt19937 *r, struct det_err *err)
{
    const char *hex = json_str(j, "mt", "");
    int64_t pos = json_int(j, "pos", -1);
    if (strlen(hex) != 624 * 8 || strspn(hex, "0123456789abcdef") != 624 * 8 || pos < 0 ||
        pos > 624)
        return det_fail(err, DET_ECORRUPT, "searcher snapshot: the generator's state is damaged");
    for (int i = 0; i < 624; i++) {
        char word[9];
        memcpy(word, hex + 8 * i, 8);
        word[8] = '\0';
        r->mt[i] = (uint32_t)strtoul(word, NULL, 16);
    }
    r->pos = (uint32_t)pos;
    return 0;
}

/* A trial is [id, flags]: 1 exited, 2 closed, 4 invalid. Units come again with the next progress.
 */
json_t *search_snapshot(const struct search *s)
{
    json_t *trials = json_array();
    for (size_t i = 0; i < s->trials.n; i++) {
        const struct search_trial *t = &s->trials.v[i];
        int flags = t->exited | t->closed << 1 | t->invalid << 2;
        json_array_append_new(trials, json_make("[s, i]", t->request_id, flags));
    }
    json_t *j = json_object();
    json_set(j, "version", json_integer(1));
    json_set(j, "method", json_string(search_method_of(s->conf.kind)->name));
    json_set(j, "rng", rng_to_json(&s->rng));
    json_set(j, "made", json_integer(s->made));
    json_set(j, "failures", json_integer(s->failures));
    json_set(j, "cancels", json_integer(s->cancels));
    json_set(j, "shut", json_boolean(s->shut));
    json_set(j, "trials", trials);
    return j;
}

static int restore_trial(struct search *s, const json_t *j, struct det_err *err)
{
    const char *id = json_string_value(json_array_get(j, 0));
    int64_t flags = json_integer_value(json_array_get(j, 1));
    if (!id || !uuid_is_valid(id) || search_trial_find(s, id))
        return det_fail(err, DET_ECORRUPT, "searcher snapshot: bad trial %s", id ? id : "(none)");
    struct search_trial *t = search_trial_add(s, id);
    t->exited = flags & 1;
    t->closed = flags & 2;
    t->invalid = flags & 4;
    if (t->closed) {
        s->open--;
        s->closed++;
        if (!t->invalid)
            s->units_closed += (double)s->conf.max_length;
    }
    return 0;
}

int search_restore(struct search *s, const json_t *j, struct det_err *err)
{
    const char *name = search_method_of(s->conf.kind)->name;
    if (strcmp(json_str(j, "method", ""), name) != 0)
        return det_fail(err, DET_ECORRUPT,
                        "searcher snapshot is of method %s, the experiment's is %s",
                        json_str(j, "method", "(none)"), name);
    int rc = rng_from_json(json_obj(j, "rng"), &s->rng, err);
    const json_t *trials = json_arr(j, "trials");
    for (size_t i = 0; rc == 0 && i < json_array_size(trials); i++)
        rc = restore_trial(s, json_array_get(trials, i), err);
    s->made = json_int(j, "made", 0);
    s->failures = json_int(j, "failures", 0);
    s->cancels = json_int(j, "cancels", 0);
    s->shut = json_flag(j, "shut", false);
    return rc;
}
