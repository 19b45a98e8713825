#include "trial_overlap.h"

#include "comm_device.h"
#include "grads_overlap.h"
#include "optim_impl.h"
#include "trial_device.h"

#define MIB 1048576.0

/* *ret 0: after the pass. */
static int read_part_bytes(size_t *ret, struct det_err *err)
{
    const char *v = getenv("DET_OVERLAP_MIB");
    char *end = NULL;
    double mib = v && *v ? strtod(v, &end) : 0;
    *ret = 0;
    if ((end && (end == v || *end)) || !(mib >= 0 && mib < MIB))
        return det_fail(
            err, DET_EINVAL,
            "DET_OVERLAP_MIB is \"%s\": it is the MiB of a part of the gradients, 25 say; "
            "0 averages them after the backward pass",
            v);
    *ret = (size_t)(mib * MIB);
    return 0;
}

static bool could_overlap(const struct det_trial_context *ctx)
{
    return ctx->optims.n == 1 && strcmp(ctx->engine->backend->name, "cuda") == 0;
}

/* Other sizes would cut other parts: one rank's gradients would meet another's of other layers, or
 * none. */
static int compare_bytes(struct comm *comm, int64_t mine, struct det_err *err)
{
    det_cleanup(comm_blobs_finish) struct comm_blobs all = {0};
    int rc = comm_allgather(comm, &mine, sizeof mine, &all, err);
    for (int i = 0; rc == 0 && i < all.n; i++) {
        int64_t theirs = -1;
        if (all.bytes[i] == sizeof theirs)
            memcpy(&theirs, all.v[i], sizeof theirs);
        if (theirs != mine)
            rc = det_fail(err, DET_EINVAL,
                          "DET_OVERLAP_MIB is %g on rank %d and %g on rank %d (0: unset): give all "
                          "ranks the same",
                          (double)mine / MIB, comm_rank(comm), (double)theirs / MIB, i);
    }
    return rc;
}

int trial_overlap_agree(struct det_trial_context *ctx, struct comm *comm, struct det_err *err)
{
    int rc = read_part_bytes(&ctx->overlap_bytes, err);
    return rc < 0 || !could_overlap(ctx) ? rc
                                         : compare_bytes(comm, (int64_t)ctx->overlap_bytes, err);
}

static int mean_of_part(void *arg, float *v, size_t n, struct det_stream *s, struct det_err *err)
{
    struct det_trial_context *ctx = arg;
    return comm_device_allreduce_mean_f32(ctx->device_comm, v, n,
                                          ctx->engine->backend->stream_native(s), err);
}

/* Makes ctx->overlap. All ranks come to the same answer: it is of the configuration, of the model
 * and of NCCL. */
static int find_overlap(struct det_trial_context *ctx, struct comm *control, struct det_err *err)
{
    const struct grads_overlap_options o = {ctx->overlap_bytes, mean_of_part, ctx};
    if (ctx->overlap)
        return 0;
    if (o.part_bytes == 0 || !could_overlap(ctx))
        return det_fail(err, DET_EUNAVAIL, "gradients are averaged after the backward pass");
    int rc = trial_device_open(ctx, control, err);
    return rc < 0 ? rc : grads_overlap_create(ctx->optims.v[0]->module, &o, &ctx->overlap, err);
}

void trial_overlap_begin(struct det_trial_context *ctx)
{
    struct det_err e;
    struct comm *control = ctx->loop ? loop_comm(ctx->loop) : NULL;
    if (!control || comm_size(control) < 2 || !loop_is_update_batch(ctx->loop) ||
        det_trial_failed(ctx))
        return;
    int rc = find_overlap(ctx, control, &e);
    if (rc == 0)
        rc = grads_overlap_begin(ctx->overlap, &e);
    if (rc < 0 && rc != DET_EUNAVAIL)
        trial_fail(ctx, rc, "det_trial_backward: %s", e.text);
}

int trial_overlap_finish(struct det_trial_context *ctx, struct comm *control, struct det_err *err)
{
    struct det_stream *side = NULL;
    int rc = find_overlap(ctx, control, err);
    if (rc == 0)
        rc = grads_overlap_finish(ctx->overlap, &side, err);
    return rc < 0
               ? rc
               : comm_device_wait(ctx->device_comm, ctx->engine->backend->stream_native(side), err);
}

void trial_overlap_check(struct det_trial_context *ctx)
{
    if (ctx->overlap && grads_overlap_is_open(ctx->overlap) && !det_trial_failed(ctx))
        trial_fail(ctx, DET_ESTATE,
                   "train_batch: no det_trial_step_optimizer() after det_trial_backward(), while "
                   "gradients are averaged during it: leave DET_OVERLAP_MIB away for this trial");
}
