/* The CUDA runtime's devices, memory and copies on the host. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cuda_runtime_api.h"

/* Address space; only what is touched takes memory. Freed memory is not used again. */
#define REGION_BYTES ((size_t)8 << 30)
/* Closing is slow: so many calls are guarded, and after them the region stays open. */
#define GUARDED_MAX 4000

static struct {
    char *base;
    size_t used;
    int open;
    long guarded;
} region;

/* What is allocated, for EMULATED_MEMORY. */
struct block {
    struct block *next;
    const void *at;
    size_t bytes;
};
static struct block *blocks;
static size_t allocated;

static _Thread_local int current_device;
static cudaError_t last_error;

size_t emulated_setting(const char *name, size_t otherwise)
{
    const char *v = getenv(name);
    return v ? strtoull(v, NULL, 10) : otherwise;
}

int emulated_is_full_size(void)
{
    static int full = -1; /* partitions must stay what they are */
    const char *v = getenv("EMULATED_SIZES");
    if (full < 0)
        full = v && strcmp(v, "device") == 0;
    return full;
}

/* EMULATED_FAULT: the launches so far, and the fault once one was met. */
static size_t launches;
static enum { SOUND, FAULTED, BROKEN } health;

/* A launch's fault is told to whoever works on the device next, and from then on to everybody. */
cudaError_t emulated_health(void)
{
    if (emulated_setting("EMULATED_FAULT", 0) == 0)
        launches = 0, health = SOUND;
    health = health == FAULTED ? BROKEN : health;
    return health == BROKEN ? cudaErrorIllegalAddress : cudaSuccess;
}

cudaError_t emulated_failed(cudaError_t e)
{
    last_error = e;
    return e;
}

static void protect(int how)
{
    if (region.guarded >= GUARDED_MAX || emulated_is_empty())
        return;
    int rc = mprotect(region.base, region.used, how);
    assert(rc == 0);
    (void)rc;
}

void emulated_open(void)
{
    emulated_lock();
    if (region.open++ == 0 && region.used > 0)
        protect(PROT_READ | PROT_WRITE);
}

static void close_region(void)
{
    if (--region.open > 0 || region.used == 0)
        return;
    protect(PROT_NONE);
    if (!emulated_is_empty() &&
        ++region.guarded == GUARDED_MAX) { /* the last time: it is opened for good */
        int rc = mprotect(region.base, REGION_BYTES, PROT_READ | PROT_WRITE);
        assert(rc == 0);
        (void)rc;
    }
}

void emulated_close(void)
{
    close_region();
    emulated_unlock();
}

const char *cudaGetErrorString(cudaError_t e)
{
    return e == cudaSuccess                      ? "no error"
           : e == cudaErrorInsufficientDriver    ? "CUDA driver version is insufficient"
           : e == cudaErrorInvalidResourceHandle ? "invalid resource handle"
           : e == cudaErrorInvalidValue          ? "invalid argument"
           : e == cudaErrorIllegalAddress        ? "an illegal memory access was encountered"
                                                 : "out of memory";
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t e = health == BROKEN ? cudaErrorIllegalAddress : last_error;
    last_error = cudaSuccess;
    return e;
}

cudaError_t cudaGetDeviceCount(int *ret)
{
    if (getenv("EMULATED_DRIVER"))
        return emulated_failed(cudaErrorInsufficientDriver);
    *ret = (int)emulated_setting("EMULATED_DEVICES", 1);
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

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *ret, int device)
{
    (void)device;
    *ret = (struct cudaDeviceProp){"emulated"};
    return cudaSuccess;
}

int emulated_current_device(void)
{
    return current_device;
}

cudaError_t cudaSetDevice(int device)
{
    current_device = device;
    return cudaSuccess;
}

/* Under the lock. */
static void account(const void *p, size_t bytes)
{
    struct block *b = malloc(sizeof *b);
    assert(b);
    *b = (struct block){blocks, p, bytes};
    blocks = b;
    emulated_hold(EMULATED_BLOCKS, 1);
    allocated += bytes;
}

static cudaError_t take(void **ret, size_t bytes)
{
    size_t page = 4096, rounded = (bytes + page - 1) & ~(page - 1);
    if (!region.base) {
        int how = emulated_is_empty() ? PROT_READ | PROT_WRITE : PROT_NONE; /* closing costs */
        void *p = mmap(NULL, REGION_BYTES, how, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED)
            return emulated_failed(cudaErrorMemoryAllocation);
        region.base = p;
    }
    size_t most = emulated_setting("EMULATED_MEMORY", REGION_BYTES);
    if (bytes > REGION_BYTES || rounded > REGION_BYTES - region.used || allocated + rounded > most)
        return emulated_failed(cudaErrorMemoryAllocation);
    *ret = region.base + region.used;
    account(*ret, rounded);
    region.used += rounded;
    emulated_count(EMULATED_ALLOC, (long long)rounded);
    if (emulated_is_empty())
        return cudaSuccess; /* pages that nobody touches take no memory */
    emulated_open();
    memset(*ret, 0xff, rounded); /* NaN: what is not written is seen */
    emulated_close();
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **ret, size_t bytes)
{
    if (emulated_breaks())
        return emulated_failed(cudaErrorMemoryAllocation);
    emulated_lock();
    cudaError_t rc = take(ret, bytes);
    emulated_unlock();
    return rc;
}

cudaError_t cudaFree(void *p)
{
    emulated_await_all(); /* as the real one does */
    emulated_lock();
    for (struct block **b = &blocks; p && *b; b = &(*b)->next)
        if ((*b)->at == p) {
            struct block *gone = *b;
            allocated -= gone->bytes;
            *b = gone->next;
            free(gone);
            emulated_hold(EMULATED_BLOCKS, -1);
            break;
        }
    emulated_unlock();
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void **ret, size_t bytes)
{
    void *p = emulated_breaks() ? NULL : malloc(bytes);
    if (!p)
        return emulated_failed(cudaErrorMemoryAllocation);
    emulated_hold(EMULATED_PINNED, 1);
    *ret = p;
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *p)
{
    emulated_await_all();
    emulated_hold(EMULATED_PINNED, p ? -1 : 0);
    free(p);
    return cudaSuccess;
}

int emulated_takes(cudaStream_t s)
{
    if (emulated_device_of(s) != current_device) {
        emulated_failed(cudaErrorInvalidResourceHandle);
        return 0;
    }
    if (emulated_breaks()) {
        emulated_failed(cudaErrorInvalidResourceHandle);
        return 0;
    }
    if (emulated_health() != cudaSuccess)
        return 0;
    if (++launches == emulated_setting("EMULATED_FAULT", 0))
        health = FAULTED;
    return health == SOUND;
}

static int on_device(const void *p)
{
    return (const char *)p >= region.base && (const char *)p < region.base + region.used;
}

/* Filling, and copies to the device and within it. */
struct copy {
    void *to;
    const void *from; /* NULL: filled with v */
    int v;
    size_t bytes;
};

long long emulated_arrived;

static void do_copy(const void *arg)
{
    const struct copy *c = arg;
    if (c->from && !on_device(c->from))
        emulated_arrived += (long long)c->bytes;
    emulated_open();
    if (c->from)
        memcpy(c->to, c->from, c->bytes);
    else
        memset(c->to, c->v, c->bytes);
    emulated_close();
}

cudaError_t cudaMemsetAsync(void *p, int v, size_t bytes, cudaStream_t s)
{
    const struct copy c = {p, NULL, v, bytes};
    if (emulated_breaks())
        return emulated_failed(cudaErrorInvalidResourceHandle);
    assert(emulated_is_array(p, 1, (long long)bytes));
    emulated_count(EMULATED_COPY, (long long)bytes);
    emulated_later(s, do_copy, &c, sizeof c);
    return cudaSuccess;
}

int emulated_is_array(const void *p, size_t size, long long n)
{
    uintptr_t at = (uintptr_t)p, base = (uintptr_t)region.base;
    return n <= 0 || (at >= base && at % size == 0 && at + size * (size_t)n <= base + region.used);
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t s)
{
    const struct copy c = {dst, src, 0, bytes};
    if (emulated_breaks())
        return emulated_failed(cudaErrorInvalidResourceHandle);
    if (bytes == 0)
        return cudaSuccess;
    assert(on_device(dst) == (kind != cudaMemcpyDeviceToHost));
    assert(on_device(src) == (kind != cudaMemcpyHostToDevice));
    emulated_count(kind == cudaMemcpyHostToDevice   ? EMULATED_UPLOAD
                   : kind == cudaMemcpyDeviceToHost ? EMULATED_DOWNLOAD
                                                    : EMULATED_COPY,
                   (long long)bytes);
    if (kind == cudaMemcpyDeviceToHost)
        emulated_download(s, dst, src, bytes);
    else
        emulated_later(s, do_copy, &c, sizeof c);
    return cudaSuccess;
}
