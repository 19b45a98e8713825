/*
 * Gradients between two updates. With aggregation_frequency above 1 a checkpoint may fall between
 * them, and what was summed up so far, different on every rank, belongs to the state: else a
 * resumed trial would make its next update of fewer batches than one that was never stopped.
 *
 * In state_dict.pth: "accumulated_gradients": {"trial_id": n, "ranks": [bytes of rank 0, ...]};
 * only where there are some. Another trial's (a warm start), or another number of ranks', are left
 * alone.
 */
#include "trial_context.h"
#include "trial_state_impl.h"

#include "log.h"
#include "module.h"

#define KEY "accumulated_gradients"

static bool between_updates(const struct det_trial_context *ctx)
{
    return loop_batches_trained(ctx->loop) % ctx->config->aggregation_frequency != 0;
}

int trial_gather_grads(struct det_trial_context *ctx, struct comm *comm, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf mine = BUF_INIT;
    int rc = 0;
    comm_blobs_finish(&ctx->open_grads);
    if (!between_updates(ctx))
        return 0;
    for (size_t i = 0; rc == 0 && i < ctx->models.n; i++)
        rc = module_grads_pack(ctx->models.v[i], &mine, err);
    if (rc == 0)
        rc = comm_allgather(comm, buf_str(&mine), mine.len, &ctx->open_grads, err);
    if (rc == 0 && ctx->config->ranks.rank != 0)
        comm_blobs_finish(&ctx->open_grads);
    return rc < 0 ? det_wrap(err, rc, "accumulated gradients") : 0;
}

void state_put_grads(struct det_trial_context *ctx, struct pth_doc *doc, struct pth_value *root)
{
    const struct comm_blobs *all = &ctx->open_grads;
    if (all->n == 0)
        return;
    struct pth_value *dict = pth_dict(doc), *ranks = pth_list(doc);
    for (int r = 0; r < all->n; r++) {
        int64_t bytes = (int64_t)all->bytes[r];
        pth_push(doc, ranks, pth_tensor(doc, PTH_U8, 1, &bytes, all->v[r]));
    }
    pth_put(doc, dict, "trial_id", pth_int(doc, ctx->config->trial_id));
    pth_put(doc, dict, "ranks", ranks);
    pth_put(doc, root, KEY, dict);
}

static int restore_grads(struct det_trial_context *ctx, const struct pth_value *bytes,
                         struct det_err *err)
{
    struct det_tensor *t = state_tensor(bytes, DET_U8, err);
    if (!t)
        return DET_ECORRUPT;
    const char *at = det_tensor_data(t);
    size_t left = det_tensor_bytes(t);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < ctx->models.n; i++)
        rc = module_grads_unpack(ctx->models.v[i], &at, &left, err);
    det_tensor_unref(t);
    return rc;
}

int state_take_grads(struct det_trial_context *ctx, const struct pth_value *root,
                     struct det_err *err)
{
    const struct pth_value *dict = pth_get(root, KEY), *ranks = pth_get(dict, "ranks");
    if (!dict || pth_as_int(pth_get(dict, "trial_id"), -1) != ctx->config->trial_id)
        return 0;
    if (pth_len(ranks) != (size_t)ctx->config->ranks.size) {
        log_warning("the checkpoint has gradients of %zu ranks, this run has %d: the first update "
                    "is of fewer batches",
                    pth_len(ranks), ctx->config->ranks.size);
        return 0;
    }
    int rc = restore_grads(ctx, pth_at(ranks, (size_t)ctx->config->ranks.rank), err);
    return rc < 0 ? det_wrap(err, rc, KEY) : 0;
}
