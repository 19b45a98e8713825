/* Grid search (rest-api.md 4.4): all points, taken from the end of the list. */
#include "search_impl.h"

#include "hparam.h"

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

static json_t *grid_hparams(struct search *s)
{
    return hparam_grid_point(s->conf.space, (size_t)(s->wanted - 1 - s->made));
}

const struct search_method search_grid = {"grid", grid_init, grid_hparams, NULL};
