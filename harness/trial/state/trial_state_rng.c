/*
 * The state of the random numbers. Ranks have one seed, and may have drawn different numbers of
 * times (one had a batch more to validate); a resumed trial goes on with what each of them had.
 *
 * In state_dict.pth: "rng_state": {"generator", "seed", "calls"}, of rank 0; where there are more,
 * also "of_ranks": [calls of rank 0, ...]. Another number of ranks takes rank 0's.
 */
#include "trial_context.h"
#include "trial_state_impl.h"

#include <string.h>

#define KEY "rng_state"

int trial_gather_rng(struct det_trial_context *ctx, struct comm *comm, struct det_err *err)
{
    uint64_t calls = det_engine_rng_state(ctx->engine).calls;
    comm_blobs_finish(&ctx->rank_calls);
    if (comm_size(comm) == 1)
        return 0;
    int rc = comm_allgather(comm, &calls, sizeof calls, &ctx->rank_calls, err);
    return rc < 0 ? det_wrap(err, rc, "random state") : 0;
}

static struct pth_value *all_calls(const struct comm_blobs *ranks, struct pth_doc *doc)
{
    struct pth_value *list = pth_list(doc);
    for (int r = 0; r < ranks->n; r++) {
        int64_t calls = 0;
        memcpy(&calls, ranks->v[r], sizeof calls);
        pth_push(doc, list, pth_int(doc, calls));
    }
    return list;
}

void state_put_rng(struct det_trial_context *ctx, struct pth_doc *doc, struct pth_value *root)
{
    struct det_rng_state r = det_engine_rng_state(ctx->engine);
    struct pth_value *dict = pth_dict(doc);
    pth_put(doc, dict, "generator", pth_str(doc, "philox4x32-10"));
    pth_put(doc, dict, "seed", pth_int(doc, (int64_t)r.seed));
    pth_put(doc, dict, "calls", pth_int(doc, (int64_t)r.calls));
    if (ctx->rank_calls.n > 1)
        pth_put(doc, dict, "of_ranks", all_calls(&ctx->rank_calls, doc));
    comm_blobs_finish(&ctx->rank_calls);
    pth_put(doc, root, KEY, dict);
}

void state_take_rng(struct det_trial_context *ctx, const struct pth_value *root)
{
    const struct pth_value *r = pth_get(root, KEY), *ranks = pth_get(r, "of_ranks");
    const struct pth_value *calls = pth_get(r, "calls");
    struct det_rng_state now = det_engine_rng_state(ctx->engine);
    if (pth_len(ranks) == (size_t)ctx->config->ranks.size)
        calls = pth_at(ranks, (size_t)ctx->config->ranks.rank);
    now.seed = (uint64_t)pth_as_int(pth_get(r, "seed"), (int64_t)now.seed);
    now.calls = (uint64_t)pth_as_int(calls, (int64_t)now.calls);
    det_engine_set_rng_state(ctx->engine, now);
}
