/* The NCCL module: comm_device_type over a non-blocking communicator, so that a peer that never
 * comes or goes away can be noticed and the communicator aborted. */
#include "comm_device.h"

#include "clk.h"
#include "mem.h"

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <poll.h>
#include <string.h>

struct nccl {
    ncclComm_t comm;
    int device;
    struct det_err dead; /* code != 0: aborted */
};

static int nccl_fail(struct det_err *err, const char *what, ncclResult_t r)
{
    int code = r == ncclRemoteError || r == ncclSystemError ? DET_EPEER : DET_EDEVICE;
    return det_fail(err, code, "NCCL: %s: %s: %s", what, ncclGetErrorString(r),
                    ncclGetLastError(NULL));
}

static int cuda_fail(struct det_err *err, const char *what, cudaError_t e)
{
    return det_fail(err, DET_EDEVICE, "CUDA: %s: %s", what, cudaGetErrorString(e));
}

static int make_id(void *id, size_t *ret_bytes, struct det_err *err)
{
    ncclUniqueId u;
    _Static_assert(sizeof u <= COMM_DEVICE_ID_MAX, "an id fits");
    ncclResult_t r = ncclGetUniqueId(&u);
    if (r != ncclSuccess)
        return nccl_fail(err, "unique id", r);
    memcpy(id, &u, sizeof u);
    *ret_bytes = sizeof u;
    return 0;
}

/* Ends the communicator and keeps the reason for every later call. */
static int kill_comm(struct nccl *n, int rc, const struct det_err *err)
{
    if (n->comm)
        ncclCommAbort(n->comm);
    n->comm = NULL;
    n->dead = *err;
    n->dead.code = rc;
    return rc;
}

/* A non-blocking communicator says "in progress" until what was asked is under way. */
static int settle(struct nccl *n, const char *what, ncclResult_t r, int timeout_ms,
                  struct det_err *err)
{
    int64_t deadline_ms = clk_mono_ms() + timeout_ms;
    while (r == ncclSuccess || r == ncclInProgress) {
        ncclResult_t state = ncclSuccess;
        r = ncclCommGetAsyncError(n->comm, &state);
        if (r == ncclSuccess && state == ncclSuccess)
            return 0;
        r = r == ncclSuccess ? state : r;
        if (r == ncclInProgress && clk_mono_ms() > deadline_ms)
            return kill_comm(n, det_fail(err, DET_ETIMEOUT, "NCCL: %s: not done within %d ms", what,
                                         timeout_ms), err);
        poll(NULL, 0, 1);
    }
    return kill_comm(n, nccl_fail(err, what, r), err);
}

static void nccl_close(void *self)
{
    struct nccl *n = self;
    if (n->comm)
        ncclCommAbort(n->comm); /* all that mattered was waited for; a finalize could hang */
    free(n);
}

static int nccl_open(const void *id, int rank, int size, int device, int timeout_ms, void **ret,
                     struct det_err *err)
{
    ncclUniqueId u;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    memcpy(&u, id, sizeof u);
    cudaError_t e = cudaSetDevice(device);
    if (e != cudaSuccess)
        return cuda_fail(err, "set device", e);
    struct nccl *n = det_zalloc(sizeof *n);
    n->device = device;
    ncclResult_t r = ncclCommInitRankConfig(&n->comm, size, u, rank, &config);
    int rc = settle(n, "init", r, timeout_ms, err);
    if (rc < 0) {
        nccl_close(n);
        return rc;
    }
    *ret = n;
    return 0;
}

static int begin(struct nccl *n, struct det_err *err)
{
    if (!n->dead.code)
        return 0;
    if (err)
        *err = n->dead;
    return n->dead.code;
}

static int allreduce_mean_f32(void *self, float *v, size_t count, void *stream, struct det_err *err)
{
    struct nccl *n = self;
    struct det_err local;
    err = err ? err : &local;
    int rc = begin(n, err);
    if (rc < 0)
        return rc;
    ncclResult_t r = ncclAllReduce(v, v, count, ncclFloat, ncclAvg, n->comm, stream);
    return settle(n, "all-reduce", r, 60000, err);
}

/* Spins for a moment, since most waits are short, then looks once in 50 us. */
static int nccl_wait(void *self, void *stream, int timeout_ms, struct det_err *err)
{
    struct nccl *n = self;
    struct det_err local;
    err = err ? err : &local;
    int64_t deadline_ms = clk_mono_ms() + timeout_ms;
    int rc = begin(n, err);
    for (int64_t turn = 0; rc == 0; turn++) {
        ncclResult_t state = ncclSuccess;
        cudaError_t e = cudaStreamQuery(stream);
        if (e == cudaSuccess)
            return 0;
        if (e != cudaErrorNotReady)
            return kill_comm(n, cuda_fail(err, "stream", e), err);
        if (turn < 1000)
            continue;
        if (ncclCommGetAsyncError(n->comm, &state) != ncclSuccess ||
            (state != ncclSuccess && state != ncclInProgress))
            return kill_comm(n, nccl_fail(err, "a peer", state), err);
        if (clk_mono_ms() > deadline_ms)
            return kill_comm(n, det_fail(err, DET_ETIMEOUT, "NCCL: nothing of a peer for %d ms",
                                         timeout_ms), err);
        ppoll(NULL, 0, &(const struct timespec){.tv_nsec = 50000}, NULL);
    }
    return rc;
}

extern const struct comm_device_type det_comm_device;
__attribute__((visibility("default"))) const struct comm_device_type det_comm_device = {
    .version = COMM_DEVICE_VERSION, .name = "nccl", .make_id = make_id, .open = nccl_open,
    .allreduce_mean_f32 = allreduce_mean_f32, .wait = nccl_wait, .close = nccl_close};
