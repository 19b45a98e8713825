/*
 * Asynchronous successive halving (docs/contract/search.md 5; Li et al. 2020, "A System for
 * Massively Parallel Hyperparameter Tuning"). One bracket of it is the async_halving searcher;
 * adaptive_asha runs several side by side.
 *
 * A trial stands in one rung at a time and is `pending` until it validated there. Lengths are
 * absolute, and metrics are kept so that less is better.
 *
 * Two things beyond the contract keep every search from getting stuck: a trial that ends while it
 * waits for its promotion has its metric already and is not entered a second time, and a trial that
 * was told to close is not promoted any more.
 */
#include "search_impl.h"

#include "hparam.h"
#include <float.h>
#include <math.h>

#define NOBODY SIZE_MAX

static int64_t to_int(double v, int64_t lo, int64_t hi)
{
    if (!(v > (double)lo))
        return lo;
    return v >= (double)hi ? hi : (int64_t)v;
}

int asha_add(struct search *s, int64_t rungs, int64_t max_trials, int64_t concurrent,
             struct det_err *err)
{
    if (rungs < 1 || rungs > SEARCH_RUNGS_MAX)
        return det_fail(err, DET_EINVAL, "searcher: a bracket of %lld rungs; expected 1 to %d",
                        (long long)rungs, SEARCH_RUNGS_MAX);
    int64_t first = to_int(pow(s->conf.divisor, (double)(rungs - 1)), 1, max_trials);
    if (concurrent > 0)
        first = concurrent < max_trials ? concurrent : max_trials;
    if (first > SEARCH_BURST_MAX)
        return det_fail(err, DET_EINVAL,
                        "searcher.max_concurrent_trials: %lld trials would start at once; write %d "
                        "or less",
                        (long long)first, SEARCH_BURST_MAX);
    struct asha a = {.max_trials = max_trials, .concurrent = first};
    for (int64_t i = 0; i < rungs; i++) {
        double part = (double)s->conf.max_length / pow(s->conf.divisor, (double)(rungs - 1 - i));
        vec_push(&a.rungs, (struct asha_rung){.length = to_int(part, 1, s->conf.max_length)});
    }
    vec_push(&s->brackets, a);
    return 0;
}

void asha_finish(struct asha *a)
{
    for (size_t i = 0; i < a->rungs.n; i++)
        vec_free(&a->rungs.v[i].entries);
    vec_free(&a->rungs);
}

static void make_trial(struct search *s, int bracket, struct search_ops *out)
{
    struct asha *a = &s->brackets.v[bracket];
    size_t k = search_make(s, hparam_sample(s->conf.space, &s->rng), out);
    s->trials.v[k].bracket = bracket;
    s->trials.v[k].pending = true;
    a->created++;
    a->rungs.v[0].outstanding++;
    search_validate_after(s, out, k, a->rungs.v[0].length);
}

void asha_initial(struct search *s, struct search_ops *out)
{
    for (size_t b = 0; b < s->brackets.n; b++)
        for (int64_t i = 0; i < s->brackets.v[b].concurrent; i++)
            make_trial(s, (int)b, out);
}

size_t asha_position(const struct asha_rung *r, double metric, bool before)
{
    return vec_bound(&r->entries, e, e->metric < metric || (!before && e->metric == metric));
}

static void insert_entry(struct asha_rung *r, size_t at, double metric, size_t trial)
{
    vec_push(&r->entries, (struct asha_entry){0});
    struct asha_entry *v = r->entries.v;
    memmove(v + at + 1, v + at, (r->entries.n - 1 - at) * sizeof *v);
    v[at] = (struct asha_entry){.metric = metric, .trial = (uint32_t)trial};
    r->swept = false;
}

/* Enters the metric; the trial that this promotes, or NOBODY. */
static size_t enter_metric(struct search *s, struct asha_rung *r, double metric, size_t trial)
{
    size_t was = (size_t)((double)r->entries.n / s->conf.divisor);
    size_t now = (size_t)((double)(r->entries.n + 1) / s->conf.divisor);
    size_t at = asha_position(r, metric, false);
    insert_entry(r, at, metric, trial);
    if (at >= now) {
        if (now == was)
            return NOBODY;
        at = was;
    }
    struct asha_entry *e = &r->entries.v[at];
    const struct search_trial *t = &s->trials.v[e->trial];
    if (e->promoted || (t->done && !t->exited))
        return NOBODY;
    e->promoted = true;
    return e->trial;
}

static void has_now(struct search_trial *t, double metric)
{
    t->pending = false;
    t->has_metric = true;
    t->metric = metric;
}

/* Trial k has this metric in its rung. A trial that has ended and is promoted all the same fails
 * in the next rung at once, and so on: as deep as there are rungs. True when work was given out. */
static bool complete_rung(struct search *s, struct asha *a, size_t k, double metric,
                          struct search_ops *out)
{
    for (;;) {
        struct search_trial *t = &s->trials.v[k];
        struct asha_rung *r = &a->rungs.v[t->rung];
        r->outstanding--;
        has_now(t, metric);
        if ((size_t)t->rung + 1 == a->rungs.n) {
            insert_entry(r, r->entries.n, metric, k);
            if (!t->exited)
                search_close(s, out, k);
            return false;
        }
        k = enter_metric(s, r, metric, k);
        if (k == NOBODY)
            return false;
        t = &s->trials.v[k];
        t->rung++;
        t->pending = true;
        a->rungs.v[t->rung].outstanding++;
        if (!t->exited) {
            search_validate_after(s, out, k, a->rungs.v[t->rung].length);
            return true;
        }
        metric = DBL_MAX;
    }
}

/* The stopping variant: go on or close at once, and nobody else moves. */
static bool complete_once(struct search *s, struct asha *a, size_t k, double metric,
                          struct search_ops *out)
{
    struct search_trial *t = &s->trials.v[k];
    struct asha_rung *r = &a->rungs.v[t->rung];
    size_t keep = (size_t)((double)(r->entries.n + 1) / s->conf.divisor);
    size_t at = asha_position(r, metric, true);
    bool top = (size_t)t->rung + 1 == a->rungs.n;
    r->outstanding--;
    has_now(t, metric);
    insert_entry(r, top ? r->entries.n : at, metric, k);
    if (t->exited)
        return false;
    if (top || at >= (keep ? keep : 1)) {
        search_close(s, out, k);
        return false;
    }
    t->rung++;
    t->pending = true;
    a->rungs.v[t->rung].outstanding++;
    search_validate_after(s, out, k, a->rungs.v[t->rung].length);
    return true;
}

/* From the lowest rung up to the first that still waits for someone, whoever was not promoted is
 * done. */
static void close_out(struct search *s, struct asha *a, struct search_ops *out)
{
    if ((int64_t)a->rungs.v[0].entries.n < a->max_trials || s->conf.stop_once)
        return;
    for (size_t i = 0; i < a->rungs.n && a->rungs.v[i].outstanding == 0; i++) {
        struct asha_rung *r = &a->rungs.v[i];
        for (size_t n = 0; n < r->entries.n && !r->swept; n++) {
            const struct asha_entry *e = &r->entries.v[n];
            const struct search_trial *t = &s->trials.v[e->trial];
            if (!e->promoted && !t->done && !t->exited)
                search_close(s, out, e->trial);
        }
        r->swept = true;
    }
}

static void take_metric(struct search *s, size_t k, double metric, struct search_ops *out)
{
    int bracket = s->trials.v[k].bracket;
    struct asha *a = &s->brackets.v[bracket];
    bool work = s->conf.stop_once ? complete_once(s, a, k, metric, out)
                                  : complete_rung(s, a, k, metric, out);
    if (!work && a->created - a->invalid < a->max_trials)
        make_trial(s, bracket, out);
    close_out(s, a, out);
}

void asha_validated(struct search *s, size_t k, const struct search_event *ev,
                    struct search_ops *out)
{
    const struct search_trial *t = &s->trials.v[k];
    if (!t->pending || t->exited || t->closed)
        return;
    double metric = s->conf.larger_is_better ? -ev->metric : ev->metric;
    take_metric(s, k, isnan(metric) ? DBL_MAX : metric, out);
}

static void drop_entries(struct asha *a, size_t k)
{
    for (size_t i = 0; i < a->rungs.n; i++)
        for (size_t n = a->rungs.v[i].entries.n; n-- > 0;)
            if (a->rungs.v[i].entries.v[n].trial == k)
                vec_remove(&a->rungs.v[i].entries, n);
}

void asha_exited(struct search *s, size_t k, enum search_exit why, struct search_ops *out)
{
    struct search_trial *t = &s->trials.v[k];
    struct asha *a = &s->brackets.v[t->bracket];
    bool was_pending = t->pending;
    if (search_is_invalid(why)) {
        a->rungs.v[t->rung].outstanding -= was_pending;
        t->pending = false;
        search_close(s, out, k);
        a->invalid++;
        drop_entries(a, k);
        make_trial(s, s->trials.v[k].bracket, out);
        close_out(s, a, out);
        return;
    }
    t->done = true;
    if (was_pending)
        take_metric(s, k, DBL_MAX, out);
    else
        close_out(s, a, out);
}

void asha_closed(struct search *s, size_t k, struct search_ops *out)
{
    (void)out;
    s->brackets.v[s->trials.v[k].bracket].closed++;
}

static double bracket_progress(const struct asha *a)
{
    double n = (double)a->max_trials, first = (double)a->rungs.v[0].entries.n;
    double p = first / (1.2 * n), ended = (double)(a->closed - a->invalid) / n;
    return first >= n && ended > p ? ended : p;
}

double asha_progress(const struct search *s)
{
    double sum = 0;
    for (size_t i = 0; i < s->brackets.n; i++)
        sum += bracket_progress(&s->brackets.v[i]);
    return sum / (double)s->brackets.n;
}

static int one_bracket(struct search *s, struct det_err *err)
{
    return asha_add(s, s->conf.num_rungs, s->conf.max_trials, s->conf.max_concurrent, err);
}

const struct search_method search_async_halving = {
    .name = "async_halving", .init = one_bracket, ASHA_METHOD};
