/* context.distributed: what ranks tell each other, over the loop's own communicator. */
#include "trial_context.h"

static struct comm *comm_of(struct det_trial_context *ctx)
{
    if (!ctx->loop)
        trial_fail(ctx, DET_ESTATE, "there are no ranks outside a run");
    return det_trial_failed(ctx) ? NULL : loop_comm(ctx->loop);
}

const void *const *det_trial_allgather(struct det_trial_context *ctx, const void *p, size_t bytes,
                                       const size_t **ret_bytes)
{
    struct comm *comm = comm_of(ctx);
    *ret_bytes = NULL;
    comm_blobs_finish(&ctx->gathered);
    if (!comm || comm_allgather(comm, p, bytes, &ctx->gathered, det_trial_err(ctx)) < 0)
        return NULL;
    *ret_bytes = ctx->gathered.bytes;
    return (const void *const *)ctx->gathered.v;
}

const void *det_trial_broadcast(struct det_trial_context *ctx, const void *p, size_t bytes,
                                size_t *ret_bytes)
{
    struct comm *comm = comm_of(ctx);
    void *got = NULL;
    *ret_bytes = 0;
    if (!comm || comm_broadcast_bytes(comm, p, bytes, &got, ret_bytes, det_trial_err(ctx)) < 0)
        return NULL;
    free(ctx->broadcast);
    return ctx->broadcast = got;
}

void det_trial_barrier(struct det_trial_context *ctx)
{
    struct comm *comm = comm_of(ctx);
    if (comm)
        det_ignore(comm_barrier(comm, det_trial_err(ctx)), "the trial's error keeps it");
}
