/* Rank 0's parameters, buffers and optimizer tensors to all ranks, before training. */
#include "trial_context.h"

static int broadcast_tensor(struct comm *comm, struct det_tensor *t, struct det_err *err)
{
    size_t bytes = det_tensor_bytes(t);
    det_cleanup(freep) void *copy = det_try_alloc(bytes + 1);
    if (!copy)
        return det_fail(err, DET_ENOMEM, "a copy of %zu bytes", bytes);
    int rc = det_tensor_read(t, copy, bytes, err);
    if (rc == 0)
        rc = comm_broadcast(comm, copy, bytes, 0, err);
    return rc < 0 ? rc : det_tensor_write(t, copy, bytes, err);
}

static int share_list(struct comm *comm, const struct det_named_tensor *list, size_t n,
                      struct det_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        if ((rc = broadcast_tensor(comm, list[i].tensor, err)) < 0)
            det_wrap(err, rc, "broadcast %s", list[i].name);
    return rc;
}

static int share_model(struct comm *comm, struct det_module *m, struct det_err *err)
{
    size_t n;
    const struct det_named_tensor *state = det_module_state(m, &n);
    return share_list(comm, state, n, err);
}

static int share_optim(struct comm *comm, struct det_optim *o, struct det_err *err)
{
    int rc = 0;
    for (size_t p = 0; rc == 0 && p < det_optim_param_count(o); p++) {
        size_t n;
        const struct det_value *v = det_optim_param_state(o, p, &n);
        for (size_t i = 0; rc == 0 && i < n; i++)
            if (v[i].kind == DET_VALUE_TENSOR &&
                (rc = broadcast_tensor(comm, v[i].tensor, err)) < 0)
                det_wrap(err, rc, "broadcast state of parameter %zu", p);
    }
    return rc;
}

int trial_broadcast(struct det_trial_context *ctx, struct comm *comm, struct det_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < ctx->models.n; i++)
        rc = share_model(comm, ctx->models.v[i], err);
    for (size_t i = 0; rc == 0 && i < ctx->optims.n; i++)
        rc = share_optim(comm, ctx->optims.v[i], err);
    return rc;
}

int trial_broadcast_buffers(struct det_trial_context *ctx, struct comm *comm, struct det_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < ctx->models.n; i++) {
        size_t n;
        const struct det_named_tensor *buffers = det_module_buffers(ctx->models.v[i], &n);
        rc = share_list(comm, buffers, n, err);
    }
    return rc;
}
