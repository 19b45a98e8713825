/*
 * The part of NCCL and of the CUDA runtime that comm_nccl.c calls, without a GPU: sums stay what
 * they are, and the environment says what goes wrong. FAKE_GPU=N            the device's uuid
 *   FAKE_POLLS=N          "in progress" so often after each call
 *   FAKE_ASYNC_ERROR=1    the second all-reduce ends in an error of a peer
 *   FAKE_STUCK=1          the stream never ends the second all-reduce
 */
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct ncclComm {
    int polls, collectives;
};
static struct ncclComm the_comm;

static int setting(const char *name)
{
    const char *v = getenv(name);
    return v ? (int)strtol(v, NULL, 10) : 0;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    memset(id, 7, sizeof *id);
    return ncclSuccess;
}

static ncclResult_t begin(void)
{
    the_comm.polls = setting("FAKE_POLLS");
    return the_comm.polls ? ncclInProgress : ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int n, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    *comm = &the_comm;
    return config->blocking == 0 && rank < n && id.internal[0] == 7 ? begin() : ncclInvalidArgument;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t n, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    comm->collectives++;
    return begin();
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state)
{
    bool failed = comm->collectives > 1 && setting("FAKE_ASYNC_ERROR");
    *state = comm->polls > 0 ? ncclInProgress : failed ? ncclRemoteError : ncclSuccess;
    comm->polls -= comm->polls > 0;
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t r)
{
    return r == ncclRemoteError ? "remote error" : "error";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    return "of the fake";
}

ncclResult_t ncclGetVersion(int *ret)
{
    *ret = 22703;
    return ncclSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *ret)
{
    *ret = 1;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *ret)
{
    *ret = 12040;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *ret)
{
    *ret = 13000;
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device)
{
    memset(p, 0, sizeof *p);
    p->uuid.bytes[0] = (char)setting("FAKE_GPU");
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    bool waits = setting("FAKE_STUCK") || setting("FAKE_ASYNC_ERROR");
    return the_comm.collectives > 1 && waits ? cudaErrorNotReady : cudaSuccess;
}

cudaError_t cudaMalloc(void **ret, size_t n)
{
    *ret = malloc(n);
    return *ret ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFree(void *p)
{
    free(p);
    return cudaSuccess;
}

cudaError_t cudaMemset(void *p, int v, size_t n)
{
    memset(p, v, n);
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t e)
{
    return "fake CUDA error";
}
