/* single and random search (rest-api.md 4.3): every trial trains to max_length. */
#include "search_impl.h"

#include "hparam.h"

static int random_init(struct search *s, struct det_err *err)
{
    s->wanted = s->conf.max_trials;
    if (s->wanted < 1)
        return det_fail(err, DET_EINVAL, "searcher.max_trials: %lld; expected at least 1",
                        (long long)s->wanted);
    return 0;
}

static int single_init(struct search *s, struct det_err *err)
{
    s->conf.max_trials = 1;
    s->conf.max_concurrent = 1;
    return random_init(s, err);
}

static json_t *random_hparams(struct search *s)
{
    return hparam_sample(s->conf.space, &s->rng);
}

/* A trial whose hyperparameters are refused does not count: the close that follows replaces it. */
static void random_exited(struct search *s, enum search_exit why)
{
    if (why == SEARCH_INVALID_HP || why == SEARCH_INIT_INVALID_HP)
        s->made--;
}

const struct search_method search_single = {"single", single_init, random_hparams, NULL};
const struct search_method search_random = {"random", random_init, random_hparams, random_exited};
