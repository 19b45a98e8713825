/* adaptive_asha (docs/contract/search.md 6): which brackets of asynchronous halving run side by
 * side, and how trials and concurrency are shared out among them. */
#include "search_impl.h"

#include <math.h>

struct brackets {
    int64_t rungs[SEARCH_RUNGS_MAX], trials[SEARCH_RUNGS_MAX], concurrent[SEARCH_RUNGS_MAX];
    size_t n;
};

static int64_t count_levels(double x, double divisor)
{
    return (int64_t)floor(log(x) / log(divisor)) + 1;
}

static int by_mode(const struct search_conf *c, struct brackets *b, struct det_err *err)
{
    int64_t r = c->max_rungs;
    int64_t by_length = count_levels((double)c->max_length, c->divisor);
    int64_t by_trials = count_levels((double)c->max_trials, c->divisor);
    r = by_length < r ? by_length : r;
    r = by_trials < r ? by_trials : r;
    if (r > SEARCH_RUNGS_MAX)
        return det_fail(err, DET_EINVAL,
                        "searcher.max_rungs: these lengths and trials make %lld rungs; write %d or "
                        "less",
                        (long long)r, SEARCH_RUNGS_MAX);
    int64_t low = c->mode == SEARCH_AGGRESSIVE ? r
                  : c->mode == SEARCH_STANDARD ? (r - 1) / 2 + 1
                                               : 1;
    for (int64_t i = r; i >= low; i--)
        b->rungs[b->n++] = i;
    return 0;
}

static int take_given_rungs(const json_t *rungs, struct brackets *b, struct det_err *err)
{
    size_t n = json_array_size(rungs);
    if (n > SEARCH_RUNGS_MAX)
        return det_fail(err, DET_EINVAL,
                        "searcher.bracket_rungs: %zu brackets; expected at most %d", n,
                        SEARCH_RUNGS_MAX);
    for (size_t i = 0; i < n; i++) { /* most early stopping first */
        int64_t r = json_integer_value(json_array_get(rungs, i));
        size_t at = b->n++;
        for (; at > 0 && b->rungs[at - 1] < r; at--)
            b->rungs[at] = b->rungs[at - 1];
        b->rungs[at] = r;
    }
    return 0;
}

/* By divisor^(rungs - 1) / rungs, so that each bracket trains about as much. */
static void share_trials(const struct search_conf *c, struct brackets *b)
{
    double weight[SEARCH_RUNGS_MAX], sum = 0;
    int64_t left = c->max_trials;
    for (size_t i = 0; i < b->n; i++) {
        weight[i] = pow(c->divisor, (double)(b->rungs[i] - 1)) / (double)b->rungs[i];
        sum += weight[i];
    }
    for (size_t i = 0; i < b->n; i++) {
        double part = weight[i] / sum * (double)c->max_trials;
        b->trials[i] = part >= 1 ? (int64_t)part : 1;
        left -= b->trials[i];
    }
    if (left > 0)
        b->trials[0] += left;
}

static void share_concurrency(const struct search_conf *c, struct brackets *b)
{
    int64_t n = (int64_t)b->n, all = c->max_concurrent > n ? c->max_concurrent : n;
    int64_t last = b->trials[b->n - 1];
    int64_t each = c->divisor < INT32_MAX ? (int64_t)c->divisor : INT32_MAX;
    for (int64_t i = 0; i < n; i++)
        if (c->max_concurrent == 0)
            b->concurrent[i] = last > each ? last : each;
        else
            b->concurrent[i] = all / n + (i < all % n);
}

static int adaptive_init(struct search *s, struct det_err *err)
{
    struct brackets b = {.n = 0};
    const json_t *rungs = s->conf.bracket_rungs;
    int rc = json_array_size(rungs) ? take_given_rungs(rungs, &b, err) : by_mode(&s->conf, &b, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < b.n; i++)
        if (b.rungs[i] < 1 || b.rungs[i] > SEARCH_RUNGS_MAX)
            return det_fail(err, DET_EINVAL, "searcher.bracket_rungs: %lld; expected 1 to %d",
                            (long long)b.rungs[i], SEARCH_RUNGS_MAX);
    share_trials(&s->conf, &b);
    share_concurrency(&s->conf, &b);
    for (size_t i = 0; rc == 0 && i < b.n; i++)
        rc = asha_add(s, b.rungs[i], b.trials[i], b.concurrent[i], err);
    return rc;
}

const struct search_method search_adaptive_asha = {
    .name = "adaptive_asha", .init = adaptive_init, ASHA_METHOD};
