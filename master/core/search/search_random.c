/* single, random and grid search (docs/contract/search.md 3, 4): every trial trains to
 * max_length. */
#include "search_impl.h"

#include "hparam.h"

static int random_init(struct search *s, struct det_err *err)
{
    (void)err;
    s->wanted = s->conf.max_trials;
    return 0;
}

static int single_init(struct search *s, struct det_err *err)
{
    s->conf.max_trials = 1;
    s->conf.max_concurrent = 1;
    return random_init(s, err);
}

static int grid_init(struct search *s, struct det_err *err)
{
    size_t points = hparam_grid_points(s->conf.space);
    if (points > HPARAM_GRID_MAX)
        return det_fail(err, DET_EINVAL,
                        "hyperparameters: the grid has more than %d points; use smaller counts, or "
                        "searcher.name: random",
                        HPARAM_GRID_MAX);
    if (points == 0)
        return det_fail(err, DET_EINVAL,
                        "hyperparameters: the grid has no points; give every "
                        "categorical at least one value");
    s->wanted = (int64_t)points;
    return 0;
}

/* All points of a grid are taken from the end of the list. */
static void make_trial(struct search *s, struct search_ops *out)
{
    json_t *hparams = s->conf.kind == SEARCH_GRID
                          ? hparam_grid_point(s->conf.space, (size_t)(s->wanted - 1 - s->made))
                          : hparam_sample(s->conf.space, &s->rng);
    size_t k = search_make(s, hparams, out);
    s->made++;
    search_validate_after(s, out, k, s->conf.max_length);
    search_close(s, out, k);
}

static void on_initial(struct search *s, struct search_ops *out)
{
    int64_t n = s->conf.max_concurrent;
    if (n == 0 || n > s->wanted)
        n = s->wanted;
    while (s->made < n)
        make_trial(s, out);
}

/* A trial whose hyperparameters are refused does not count: the close that follows replaces it. */
static void random_exited(struct search *s, size_t k, enum search_exit why, struct search_ops *out)
{
    (void)k;
    (void)out;
    if (search_is_invalid(why))
        s->made--;
}

static void admit_trial(struct search *s, size_t k, int64_t length, struct search_ops *out)
{
    if (s->trials.v[k].waits)
        s->waiting--;
    s->trials.v[k].waits = false;
    search_validate_after(s, out, k, length);
    search_close(s, out, k);
}

/* What was reopened comes before what is new. */
static void on_closed(struct search *s, size_t k, struct search_ops *out)
{
    if (s->trials.v[k].waits) { /* it had no place that another could take */
        s->trials.v[k].waits = false;
        s->waiting--;
        return;
    }
    for (size_t i = 0; s->waiting > 0 && i < s->trials.n; i++)
        if (s->trials.v[i].waits) {
            admit_trial(s, i, s->conf.max_length, out);
            return;
        }
    if (s->made < s->wanted)
        make_trial(s, out);
}

static void on_reopened(struct search *s, size_t k, int64_t length, struct search_ops *out)
{
    int64_t limit = s->conf.max_concurrent, running = s->open - s->waiting;
    if (!s->trials.v[k].waits || limit == 0 || running < limit)
        admit_trial(s, k, length, out);
}

static double tell_progress(const struct search *s)
{
    double all = (double)s->conf.max_length * (double)s->wanted;
    return (s->units_open + s->units_closed) / all;
}

const struct search_method search_single = {.name = "single",
                                            .init = single_init,
                                            .initial = on_initial,
                                            .closed = on_closed,
                                            .reopened = on_reopened,
                                            .progress = tell_progress};
const struct search_method search_random = {.name = "random",
                                            .init = random_init,
                                            .initial = on_initial,
                                            .closed = on_closed,
                                            .exited = random_exited,
                                            .reopened = on_reopened,
                                            .progress = tell_progress};
const struct search_method search_grid = {.name = "grid",
                                          .init = grid_init,
                                          .initial = on_initial,
                                          .closed = on_closed,
                                          .reopened = on_reopened,
                                          .progress = tell_progress};
