/* single, random and grid search (rest-api.md 4.3, 4.4): every trial trains to max_length. */
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
        return det_fail(err, DET_EINVAL, "hyperparameters: the grid has no points; give every "
                                         "categorical at least one value");
    s->wanted = (int64_t)points;
    return 0;
}

/* All points of a grid are taken from the end of the list. */
static void make(struct search *s, struct search_ops *out)
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
        make(s, out);
}

/* A trial whose hyperparameters are refused does not count: the close that follows replaces it. */
static void random_exited(struct search *s, size_t k, enum search_exit why, struct search_ops *out)
{
    (void)k;
    (void)out;
    if (search_is_invalid(why))
        s->made--;
}

static void on_closed(struct search *s, size_t k, struct search_ops *out)
{
    (void)k;
    if (s->made < s->wanted)
        make(s, out);
}

static double progress(const struct search *s)
{
    double all = (double)s->conf.max_length * (double)s->wanted;
    return (s->units_open + s->units_closed) / all;
}

const struct search_method search_single = {
    .name = "single", .init = single_init, .initial = on_initial, .closed = on_closed,
    .progress = progress};
const struct search_method search_random = {
    .name = "random", .init = random_init, .initial = on_initial, .closed = on_closed,
    .exited = random_exited, .progress = progress};
const struct search_method search_grid = {
    .name = "grid", .init = grid_init, .initial = on_initial, .closed = on_closed,
    .progress = progress};
