/* What a snapshot keeps of brackets. */
#include "search_impl.h"

#include <math.h>
#include <string.h>

static json_t *rung_to_json(const struct asha_rung *r)
{
    json_t *j = json_array();
    json_array_append_new(j, json_integer(r->outstanding));
    for (size_t i = 0; i < r->entries.n; i++) {
        const struct asha_entry *e = &r->entries.v[i];
        json_array_append_new(
            j, json_make("[o, i, i]", json_double(e->metric), (int)e->trial, (int)e->promoted));
    }
    return j;
}

json_t *asha_save(const struct search *s)
{
    json_t *all = json_array();
    for (size_t b = 0; b < s->brackets.n; b++) {
        const struct asha *a = &s->brackets.v[b];
        json_t *rungs = json_array();
        for (size_t i = 0; i < a->rungs.n; i++)
            json_array_append_new(rungs, rung_to_json(&a->rungs.v[i]));
        json_array_append_new(all, json_make("[I, I, I, o]", (json_int_t)a->created,
                                             (json_int_t)a->invalid, (json_int_t)a->closed, rungs));
    }
    return json_make("{s:o}", "brackets", all);
}

static double metric_of(const json_t *j)
{
    if (json_is_number(j))
        return json_number_value(j);
    const char *s = json_string_value(j);
    return s && strcmp(s, "-Infinity") == 0 ? -INFINITY : INFINITY;
}

static int rung_from_json(struct search *s, struct asha_rung *r, const json_t *j,
                          struct det_err *err)
{
    r->outstanding = json_integer_value(json_array_get(j, 0));
    for (size_t i = 1; i < json_array_size(j); i++) {
        const json_t *e = json_array_get(j, i);
        int64_t trial = json_integer_value(json_array_get(e, 1));
        if (trial < 0 || trial >= (int64_t)s->trials.n)
            return det_fail(err, DET_ECORRUPT, "searcher snapshot: a metric of trial number %lld",
                            (long long)trial);
        struct asha_entry at = {.metric = metric_of(json_array_get(e, 0)),
                                .trial = (uint32_t)trial,
                                .promoted = json_integer_value(json_array_get(e, 2))};
        vec_push(&r->entries, at);
        s->trials.v[trial].has_metric = true; /* the highest rung is the last to come */
        s->trials.v[trial].metric = at.metric;
    }
    return 0;
}

int asha_load(struct search *s, const json_t *j, struct det_err *err)
{
    const json_t *all = json_arr(j, "brackets");
    int rc = json_array_size(all) == s->brackets.n
                 ? 0
                 : det_fail(err, DET_ECORRUPT, "searcher snapshot: %zu brackets, expected %zu",
                            json_array_size(all), s->brackets.n);
    for (size_t b = 0; rc == 0 && b < s->brackets.n; b++) {
        struct asha *a = &s->brackets.v[b];
        const json_t *from = json_array_get(all, b), *rungs = json_array_get(from, 3);
        a->created = json_integer_value(json_array_get(from, 0));
        a->invalid = json_integer_value(json_array_get(from, 1));
        a->closed = json_integer_value(json_array_get(from, 2));
        for (size_t i = 0; rc == 0 && i < a->rungs.n; i++)
            rc = rung_from_json(s, &a->rungs.v[i], json_array_get(rungs, i), err);
    }
    return rc;
}
