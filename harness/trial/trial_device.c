#include "trial_device.h"

#include "comm_device.h"
#include "engine.h"
#include "grads_overlap.h"
#include "log.h"

#include <string.h>

/* Once a run; the answer is kept, also a no, since asking is a collective. */
int trial_device_open(struct det_trial_context *ctx, struct comm *control, struct det_err *err)
{
    const char *colon = strchr(ctx->engine->name, ':');
    if (ctx->device_comm)
        return 0;
    if (ctx->no_device_comm)
        return det_fail(err, DET_EUNAVAIL, "no NCCL module");
    int rc = comm_device_open(control, colon ? (int)strtol(colon + 1, NULL, 10) : 0,
                              &ctx->device_comm, err);
    ctx->no_device_comm = rc == DET_EUNAVAIL;
    if (ctx->no_device_comm && comm_rank(control) == 0)
        log_warning("gradients go through the host's memory, by gloo: %s", err->text);
    return rc;
}

int trial_device_mean(struct det_trial_context *ctx, struct comm *control, struct det_tensor *g,
                      struct det_err *err)
{
    const struct det_engine *e = ctx->engine;
    if (strcmp(e->backend->name, "cuda") != 0)
        return det_fail(err, DET_EUNAVAIL, "device %s has no collectives of its own", e->name);
    if (g->dtype != DET_F32)
        return det_fail(err, DET_EUNAVAIL, "collectives on a device are of float32");
    int rc = trial_device_open(ctx, control, err);
    if (rc < 0)
        return rc;
    void *stream = e->backend->stream_native(e->stream);
    rc = comm_device_allreduce_mean_f32(ctx->device_comm, (float *)(void *)g->data, g->numel,
                                        stream, err);
    return rc < 0 ? rc : comm_device_wait(ctx->device_comm, stream, err);
}

void trial_device_finish(struct det_trial_context *ctx)
{
    comm_device_close(ctx->device_comm); /* first: a stream would wait for what never ends */
    grads_overlap_destroy(ctx->overlap);
    ctx->device_comm = NULL;
    ctx->overlap = NULL;
}
