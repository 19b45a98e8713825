/* The CUDA runtime's memory, copies, streams and events on the host. */
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cuda_runtime_api.h"

/* Address space; only what is touched takes memory. Freed memory is not used again. */
#define REGION_BYTES ((size_t)8 << 30)
/* Closing is slow: so many calls are guarded, and after them the region stays open. */
#define GUARDED_MAX 4000

/* Of all that is here: the device does one thing at a time, whoever asks. */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static struct {
    char *base;
    size_t used;
    int open;
    long guarded;
} region;

/* A copy to the host that nobody has waited for. */
struct copy {
    struct copy *next;
    char *to, *bytes;
    size_t n;
};
static struct copy *copies;

/* A copy to the device that has not begun: `from` is read when it does. */
struct upload {
    struct upload *next;
    char *to;
    const char *from;
    size_t bytes;
};
static struct upload *uploads;

/* What is allocated, for EMULATED_MEMORY. */
struct block {
    struct block *next;
    const void *at;
    size_t bytes;
};
static struct block *blocks;
static size_t allocated;

struct emulated_stream {
    int device;
};
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
static cudaError_t work_on_device(void)
{
    if (emulated_setting("EMULATED_FAULT", 0) == 0)
        launches = 0, health = SOUND;
    health = health == FAULTED ? BROKEN : health;
    return health == BROKEN ? cudaErrorIllegalAddress : cudaSuccess;
}

static cudaError_t failed(cudaError_t e)
{
    last_error = e;
    return e;
}

static void protect(int how)
{
    if (region.guarded >= GUARDED_MAX)
        return;
    int rc = mprotect(region.base, region.used, how);
    assert(rc == 0);
    (void)rc;
}

void emulated_open(void)
{
    pthread_mutex_lock(&lock);
    if (region.open++ == 0 && region.used > 0)
        protect(PROT_READ | PROT_WRITE);
}

static void close_region(void)
{
    if (--region.open > 0 || region.used == 0)
        return;
    protect(PROT_NONE);
    if (++region.guarded == GUARDED_MAX) { /* the last time: it is opened for good */
        int rc = mprotect(region.base, REGION_BYTES, PROT_READ | PROT_WRITE);
        assert(rc == 0);
        (void)rc;
    }
}

void emulated_close(void)
{
    close_region();
    pthread_mutex_unlock(&lock);
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
        return failed(cudaErrorInsufficientDriver);
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
    allocated += bytes;
}

static cudaError_t take(void **ret, size_t bytes)
{
    size_t page = 4096, rounded = (bytes + page - 1) & ~(page - 1);
    if (!region.base) {
        void *p =
            mmap(NULL, REGION_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED)
            return failed(cudaErrorMemoryAllocation);
        region.base = p;
    }
    size_t most = emulated_setting("EMULATED_MEMORY", REGION_BYTES);
    if (bytes > REGION_BYTES || rounded > REGION_BYTES - region.used || allocated + rounded > most)
        return failed(cudaErrorMemoryAllocation);
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
    pthread_mutex_lock(&lock);
    cudaError_t rc = take(ret, bytes);
    pthread_mutex_unlock(&lock);
    return rc;
}

cudaError_t cudaFree(void *p)
{
    pthread_mutex_lock(&lock);
    for (struct block **b = &blocks; p && *b; b = &(*b)->next)
        if ((*b)->at == p) {
            struct block *gone = *b;
            allocated -= gone->bytes;
            *b = gone->next;
            free(gone);
            break;
        }
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void **ret, size_t bytes)
{
    *ret = malloc(bytes);
    return *ret ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFreeHost(void *p)
{
    free(p);
    return cudaSuccess;
}

static void do_uploads(void)
{
    pthread_mutex_lock(&lock);
    for (struct upload *u = uploads, *next; u; u = next) {
        next = u->next;
        emulated_open();
        memcpy(u->to, u->from, u->bytes);
        emulated_close();
        free(u);
    }
    uploads = NULL;
    pthread_mutex_unlock(&lock);
}

static void upload_later(void *to, const void *from, size_t bytes)
{
    struct upload *u = malloc(sizeof *u), **end = &uploads;
    assert(u);
    pthread_mutex_lock(&lock);
    while (*end)
        end = &(*end)->next;
    *u = (struct upload){NULL, to, from, bytes};
    *end = u;
    pthread_mutex_unlock(&lock);
}

void emulated_catch_up(void)
{
    do_uploads();
}

int emulated_takes(cudaStream_t s)
{
    do_uploads();
    if (s->device != current_device) {
        failed(cudaErrorInvalidResourceHandle);
        return 0;
    }
    if (work_on_device() != cudaSuccess)
        return 0;
    if (++launches == emulated_setting("EMULATED_FAULT", 0))
        health = FAULTED;
    return health == SOUND;
}

cudaError_t cudaMemsetAsync(void *p, int v, size_t bytes, cudaStream_t s)
{
    (void)s;
    do_uploads();
    assert(emulated_is_array(p, 1, (long long)bytes));
    emulated_count(EMULATED_COPY, (long long)bytes);
    emulated_open();
    memset(p, v, bytes);
    emulated_close();
    return cudaSuccess;
}

int emulated_is_array(const void *p, size_t size, long long n)
{
    uintptr_t at = (uintptr_t)p, base = (uintptr_t)region.base;
    return n <= 0 || (at >= base && at % size == 0 && at + size * (size_t)n <= base + region.used);
}

static int on_device(const void *p)
{
    return (const char *)p >= region.base && (const char *)p < region.base + region.used;
}

/* Takes the bytes now, as the stream's order has it, and gives them when the stream is waited for.
 */
static void copy_later(void *dst, const void *src, size_t n)
{
    char *bytes = malloc(n);
    emulated_open();
    struct copy *c = malloc(sizeof *c), **end = &copies;
    assert(c && bytes);
    memcpy(bytes, src, n);
    while (*end)
        end = &(*end)->next;
    *c = (struct copy){NULL, dst, bytes, n};
    *end = c;
    emulated_close();
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t s)
{
    (void)s;
    if (bytes == 0)
        return cudaSuccess;
    assert(on_device(dst) == (kind != cudaMemcpyDeviceToHost));
    assert(on_device(src) == (kind != cudaMemcpyHostToDevice));
    emulated_count(kind == cudaMemcpyHostToDevice   ? EMULATED_UPLOAD
                   : kind == cudaMemcpyDeviceToHost ? EMULATED_DOWNLOAD
                                                    : EMULATED_COPY,
                   (long long)bytes);
    if (kind == cudaMemcpyHostToDevice) {
        upload_later(dst, src, bytes);
        return cudaSuccess;
    }
    do_uploads();
    if (kind == cudaMemcpyDeviceToHost) {
        copy_later(dst, src, bytes);
        return cudaSuccess;
    }
    emulated_open();
    memcpy(dst, src, bytes);
    emulated_close();
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *ret, unsigned flags)
{
    (void)flags;
    *ret = malloc(sizeof **ret);
    assert(*ret);
    (*ret)->device = current_device;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    do_uploads();
    free(s);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    (void)s;
    emulated_count(EMULATED_WAIT, 0);
    do_uploads();
    pthread_mutex_lock(&lock);
    for (struct copy *c = copies, *next; c; c = next) {
        next = c->next;
        memcpy(c->to, c->bytes, c->n);
        free(c->bytes);
        free(c);
    }
    copies = NULL;
    pthread_mutex_unlock(&lock);
    return work_on_device();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t ev, unsigned flags)
{
    (void)s, (void)ev, (void)flags;
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *ret, unsigned flags)
{
    static char event; /* one stands for all */
    (void)flags;
    *ret = (cudaEvent_t)&event;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t ev)
{
    (void)ev;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t ev, cudaStream_t s)
{
    (void)ev, (void)s;
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t ev)
{
    (void)ev;
    emulated_count(EMULATED_WAIT, 0);
    do_uploads();
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ret, cudaEvent_t from, cudaEvent_t to)
{
    *ret = 1;
    return from && to ? cudaSuccess : failed(cudaErrorInvalidValue);
}
