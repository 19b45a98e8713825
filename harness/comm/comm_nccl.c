/* The NCCL module: comm_device_type over a non-blocking communicator, so that a peer that never
 * comes or goes away can be noticed and the communicator aborted. */
#include "comm_device.h"

#include "clk.h"
#include "mem.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <nccl.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SETTLE_SPINS 500
#define WHERE_MAX    96

/* Rung by a stream that has come so far; it outlives the communicator, since a stream whose work
 * was aborted may ring late. */
struct bell {
    atomic_int refs;
    int fd; /* an eventfd */
};

struct nccl {
    ncclComm_t comm;
    int device;
    struct bell *bell;
    bool will_ring;
    const struct comm_device_watch *watch;
    struct det_err dead; /* code != 0: aborted */
};

/* Where it failed, for whoever looks it up: text, which it fills. */
static const char *say_where(char text[WHERE_MAX])
{
    int device = -1, driver = 0, runtime = 0, nccl = 0;
    (void)cudaGetDevice(&device);
    (void)cudaDriverGetVersion(&driver);
    (void)cudaRuntimeGetVersion(&runtime);
    (void)ncclGetVersion(&nccl);
    (void)cudaGetLastError(); /* it is only words */
    snprintf(text, WHERE_MAX, " [cuda:%d, driver for CUDA %d.%d, runtime %d.%d, NCCL %d.%d.%d]",
             device, driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10,
             nccl / 10000, nccl % 10000 / 100, nccl % 100);
    return text;
}

static int nccl_fail(struct det_err *err, const char *what, ncclResult_t r)
{
    char text[WHERE_MAX];
    int code = r == ncclRemoteError || r == ncclSystemError ? DET_EPEER : DET_EDEVICE;
    return det_fail(err, code, "NCCL: %s: %s: %s%s", what, ncclGetErrorString(r),
                    ncclGetLastError(NULL), say_where(text));
}

static int cuda_fail(struct det_err *err, const char *what, cudaError_t e)
{
    char text[WHERE_MAX];
    return det_fail(err, DET_EDEVICE, "CUDA: %s: %s%s", what, cudaGetErrorString(e),
                    say_where(text));
}

static int device_uuid(int device, void *uuid, struct det_err *err)
{
    struct cudaDeviceProp p;
    _Static_assert(sizeof p.uuid == COMM_DEVICE_UUID, "a uuid fits");
    cudaError_t e = cudaGetDeviceProperties(&p, device);
    if (e != cudaSuccess)
        return cuda_fail(err, "device properties", e);
    memcpy(uuid, &p.uuid, sizeof p.uuid);
    return 0;
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

/* For whoever waits for peers: 0, or it is aborted since they will not come. */
static int look_around(struct nccl *n, int64_t *next_ms, int64_t deadline_ms, struct det_err *err)
{
    int64_t now_ms = clk_mono_ms();
    if (now_ms < *next_ms)
        return 0;
    int left_ms = deadline_ms > now_ms ? (int)(deadline_ms - now_ms) : 1;
    int rc = n->watch->look(n->watch->arg, left_ms, err);
    *next_ms = clk_mono_ms() + COMM_DEVICE_WATCH_MS;
    return rc < 0 ? kill_comm(n, rc, err) : 0;
}

/* A non-blocking communicator says "in progress" until what was asked is under way, which is a
 * thread of NCCL's own away at every collective: a sleep of 1 ms each would cost more than the sum.
 */
static int await_settled(struct nccl *n, const char *what, ncclResult_t r, int timeout_ms,
                         struct det_err *err)
{
    int64_t deadline_ms = clk_mono_ms() + timeout_ms;
    int64_t watch_ms = clk_mono_ms() + COMM_DEVICE_WATCH_MS;
    int turns = 0, rc = 0;
    while (r == ncclSuccess || r == ncclInProgress) {
        ncclResult_t state = ncclSuccess;
        r = ncclCommGetAsyncError(n->comm, &state);
        if (r == ncclSuccess && state == ncclSuccess)
            return 0;
        r = r == ncclSuccess ? state : r;
        if (r == ncclInProgress && clk_mono_ms() > deadline_ms)
            return kill_comm(
                n, det_fail(err, DET_ETIMEOUT, "NCCL: %s: not done within %d ms", what, timeout_ms),
                err);
        if (r == ncclInProgress && (rc = look_around(n, &watch_ms, deadline_ms, err)) < 0)
            return rc;
        if (turns++ < SETTLE_SPINS)
            sched_yield();
        else
            poll(NULL, 0, 1);
    }
    return kill_comm(n, nccl_fail(err, what, r), err);
}

static void bell_unref(struct bell *b)
{
    if (atomic_fetch_sub(&b->refs, 1) > 1)
        return;
    close(b->fd);
    free(b);
}

static int bell_create(struct bell **ret, struct det_err *err)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return det_fail_errno(err, DET_EIO, errno, "an eventfd for a device's stream");
    struct bell *b = det_zalloc(sizeof *b);
    b->refs = 1;
    b->fd = fd;
    *ret = b;
    return 0;
}

/* In a thread of CUDA's, which may call nothing of CUDA. */
static void CUDART_CB ring_bell(void *arg)
{
    struct bell *b = arg;
    eventfd_write(b->fd, 1);
    bell_unref(b);
}

/* One ring is under way at most; one that an earlier wait has not stayed for only wakes this one
 * early. */
static void await_ring(void *self, void *stream, int timeout_ms)
{
    struct nccl *n = self;
    eventfd_t count;
    if (!n->will_ring) {
        atomic_fetch_add(&n->bell->refs, 1);
        n->will_ring = cudaLaunchHostFunc(stream, ring_bell, n->bell) == cudaSuccess;
    }
    if (!n->will_ring) { /* the next poll() says why */
        bell_unref(n->bell);
        timeout_ms = 1;
    }
    poll(&(struct pollfd){.fd = n->bell->fd, .events = POLLIN}, 1, timeout_ms);
    if (eventfd_read(n->bell->fd, &count) == 0)
        n->will_ring = false;
}

static void nccl_close(void *self)
{
    struct nccl *n = self;
    if (n->comm)
        ncclCommAbort(n->comm); /* all that mattered was waited for; a finalize could hang */
    if (n->bell)
        bell_unref(n->bell);
    free(n);
}

static int check_alive(struct nccl *n, struct det_err *err)
{
    if (!n->dead.code)
        return 0;
    if (err)
        *err = n->dead;
    return n->dead.code;
}

static int allreduce_mean_f32(void *self, float *v, size_t count, void *stream, int timeout_ms,
                              struct det_err *err)
{
    struct nccl *n = self;
    struct det_err local;
    err = err ? err : &local;
    int rc = check_alive(n, err);
    if (rc < 0)
        return rc;
    ncclResult_t r = ncclAllReduce(v, v, count, ncclFloat, ncclAvg, n->comm, stream);
    return await_settled(n, "all-reduce", r, timeout_ms, err);
}

static int poll_stream(void *self, void *stream, struct det_err *err)
{
    struct nccl *n = self;
    struct det_err local;
    ncclResult_t state = ncclSuccess;
    err = err ? err : &local;
    int rc = check_alive(n, err);
    if (rc < 0)
        return rc;
    cudaError_t e = cudaStreamQuery(stream);
    if (e == cudaSuccess)
        return 1;
    if (e != cudaErrorNotReady)
        return kill_comm(n, cuda_fail(err, "stream", e), err);
    ncclResult_t r = ncclCommGetAsyncError(n->comm, &state);
    r = r == ncclSuccess ? state : r;
    return r == ncclSuccess || r == ncclInProgress ? 0
                                                   : kill_comm(n, nccl_fail(err, "a peer", r), err);
}

/* NCCL connects at the first collective, and its launch waits for the slowest peer: now, while all
 * are known to be here. */
static int connect_peers(struct nccl *n, int timeout_ms, struct det_err *err)
{
    float *one = NULL;
    cudaError_t e = cudaMalloc((void **)&one, sizeof *one);
    if (e == cudaSuccess)
        e = cudaMemset(one, 0, sizeof *one);
    if (e != cudaSuccess)
        return cuda_fail(err, "memory", e);
    int64_t deadline_ms = clk_mono_ms() + timeout_ms;
    int64_t watch_ms = clk_mono_ms() + COMM_DEVICE_WATCH_MS;
    int rc = allreduce_mean_f32(n, one, 1, NULL, timeout_ms, err);
    while (rc == 0 && (rc = poll_stream(n, NULL, err)) == 0) {
        if (clk_mono_ms() > deadline_ms)
            rc = kill_comm(
                n,
                det_fail(err, DET_ETIMEOUT, "NCCL: peers do not connect within %d ms", timeout_ms),
                err);
        else if ((rc = look_around(n, &watch_ms, deadline_ms, err)) == 0)
            poll(NULL, 0, 1);
        if (rc < 0)
            break;
    }
    cudaFree(one);
    return rc < 0 ? rc : 0;
}

static int nccl_open(const void *id, int rank, int size, int device, int timeout_ms,
                     const struct comm_device_watch *watch, void **ret, struct det_err *err)
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
    n->watch = watch;
    int rc = bell_create(&n->bell, err);
    if (rc == 0)
        rc = await_settled(n, "init", ncclCommInitRankConfig(&n->comm, size, u, rank, &config),
                           timeout_ms, err);
    if (rc == 0)
        rc = connect_peers(n, timeout_ms, err);
    if (rc < 0) {
        nccl_close(n);
        return rc;
    }
    *ret = n;
    return 0;
}

static void abort_all(void *self, const struct det_err *why)
{
    det_ignore(kill_comm(self, why->code, why), "it gives back the code that it is given");
}

extern const struct comm_device_type det_comm_device;
__attribute__((visibility("default")))
const struct comm_device_type det_comm_device = {.version = COMM_DEVICE_VERSION,
                                                 .name = "nccl",
                                                 .make_id = make_id,
                                                 .open = nccl_open,
                                                 .device_uuid = device_uuid,
                                                 .allreduce_mean_f32 = allreduce_mean_f32,
                                                 .poll = poll_stream,
                                                 .await = await_ring,
                                                 .abort = abort_all,
                                                 .close = nccl_close};
