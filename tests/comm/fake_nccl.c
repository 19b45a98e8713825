/*
 * The part of NCCL and of the CUDA runtime that comm_nccl.c calls, without a GPU. Means are those
 * of what the ranks' processes put into memory that they share, added in the order of the ranks; a
 * rank has the result when it looks at the stream once all have come; a communicator is "in
 * progress" until all have joined. The environment says what
 * goes wrong:
 *   FAKE_GPU=N            the device's uuid
 *   FAKE_POLLS=N          "in progress" so often after each call
 *   FAKE_KILLED=1         the process is killed as it joins
 *   FAKE_NO_DEVICE=1      the device cannot be used
 *   FAKE_UNSETTLED=1      the second all-reduce is "in progress" for ever
 *   FAKE_ASYNC_ERROR=1    the second all-reduce ends in an error of a peer
 *   FAKE_STUCK=1          the stream never ends the second all-reduce
 *   FAKE_LATE=1           the second all-reduce is asked for when rank 0's stream is to call back
 */
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <nccl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RANKS   8
#define DEPTH   8 /* all-reduces that a rank may be ahead by */
#define FLOATS  1024
#define ID_MARK 7

/* Of all processes of a communicator. */
struct shared {
    atomic_int joined, put[RANKS], got[RANKS], called[RANKS];
    size_t n[RANKS][DEPTH];
    float v[RANKS][DEPTH][FLOATS];
};

/* Asked for, and not yet there. */
struct mean {
    float *to;
    size_t n;
};

struct ncclComm {
    int polls, collectives, done, rank, size;
    bool unlike; /* ranks did not ask for the same */
    struct shared *all;
    struct mean asked[DEPTH];
};
static struct ncclComm the_comm;

static int setting(const char *name)
{
    const char *v = getenv(name);
    return v ? (int)strtol(v, NULL, 10) : 0;
}

/* The name of what the ranks share: by the process that has started them all, which takes it away
 * where a rank ended before it had joined. */
ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "/det-fake-nccl-%d", (int)getppid());
    shm_unlink(id->internal); /* of a case before */
    id->internal[sizeof id->internal - 1] = ID_MARK;
    return ncclSuccess;
}

static struct shared *map_shared(const char *name, int size)
{
    int fd = shm_open(name, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(struct shared)) < 0)
        return NULL;
    void *p = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    struct shared *all = p == MAP_FAILED ? NULL : p;
    if (all && atomic_fetch_add(&all->joined, 1) == size - 1)
        shm_unlink(name);
    return all;
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
    if (setting("FAKE_KILLED"))
        raise(SIGKILL);
    if (config->blocking != 0 || rank >= n || n > RANKS ||
        id.internal[sizeof id.internal - 1] != ID_MARK)
        return ncclInvalidArgument;
    the_comm = (struct ncclComm){.rank = rank, .size = n, .all = map_shared(id.internal, n)};
    return the_comm.all ? begin() : ncclSystemError;
}

/* Whether all ranks have put what the k-th all-reduce is of. */
static bool is_complete(const struct ncclComm *c, int k)
{
    for (int r = 0; r < c->size; r++)
        if (atomic_load(&c->all->put[r]) <= k)
            return false;
    return true;
}

static void give_mean(struct ncclComm *c, int k)
{
    const struct mean *m = &c->asked[k % DEPTH];
    for (int r = 0; r < c->size; r++)
        c->unlike = c->unlike || c->all->n[r][k % DEPTH] != m->n;
    for (size_t i = 0; i < m->n && !c->unlike; i++) {
        float sum = 0;
        for (int r = 0; r < c->size; r++)
            sum += c->all->v[r][k % DEPTH][i];
        m->to[i] = sum / (float)c->size;
    }
    atomic_store(&c->all->got[c->rank], k + 1);
}

/* Whether nothing is left. */
static bool go_on(struct ncclComm *c)
{
    while (c->done < c->collectives && is_complete(c, c->done))
        give_mean(c, c->done++);
    return c->done == c->collectives;
}

/* Its places were read by all. */
static bool is_free(const struct ncclComm *c, int k)
{
    for (int r = 0; r < c->size; r++)
        if (atomic_load(&c->all->got[r]) <= k - DEPTH)
            return false;
    return true;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t n, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    int k = comm->collectives++, at = k % DEPTH;
    if (type != ncclFloat || op != ncclAvg || n > FLOATS)
        return ncclInvalidArgument;
    while (!is_free(comm, k) ||
           (k == 1 && setting("FAKE_LATE") && atomic_load(&comm->all->called[0]) == 0)) {
        go_on(comm);
        sched_yield();
    }
    memcpy(comm->all->v[comm->rank][at], from, n * sizeof(float));
    comm->all->n[comm->rank][at] = n;
    comm->asked[at] = (struct mean){to, n};
    atomic_store(&comm->all->put[comm->rank], k + 1);
    return begin();
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state)
{
    bool failed = comm->collectives > 1 && setting("FAKE_ASYNC_ERROR");
    failed = failed || comm->unlike;
    bool waits = comm->polls > 0 || atomic_load(&comm->all->joined) < comm->size ||
                 (comm->collectives > 1 && setting("FAKE_UNSETTLED"));
    *state = waits ? ncclInProgress : failed ? ncclRemoteError : ncclSuccess;
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
    return setting("FAKE_NO_DEVICE") ? cudaErrorDevicesUnavailable : cudaSuccess;
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
    if ((the_comm.collectives > 1 && waits) || !go_on(&the_comm) || the_comm.unlike)
        return cudaErrorNotReady;
    return cudaSuccess;
}

/* Called when all ranks have put what this one had asked for. */
struct callback {
    void (*fn)(void *);
    void *arg;
    int after;
};

static void *call_back(void *arg)
{
    struct callback c = *(struct callback *)arg;
    free(arg);
    while (!is_complete(&the_comm, c.after))
        sched_yield();
    c.fn(c.arg);
    return NULL;
}

static bool is_stuck(void)
{
    return the_comm.collectives > 1 &&
           (setting("FAKE_STUCK") || setting("FAKE_ASYNC_ERROR") || the_comm.unlike);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *arg)
{
    pthread_t t;
    struct callback *c = malloc(sizeof *c);
    *c = (struct callback){fn, arg, the_comm.collectives - 1};
    atomic_fetch_add(&the_comm.all->called[the_comm.rank], 1);
    if (is_stuck())
        free(c);
    else if (pthread_create(&t, NULL, call_back, c) == 0)
        pthread_detach(t);
    return cudaSuccess;
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
