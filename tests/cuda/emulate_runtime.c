/* The CUDA runtime's memory, copies, streams and events on the host. */
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

/* A copy to the host that nobody has waited for. */
struct copy {
    struct copy *next;
    char *to, *bytes;
    size_t pitch, width, height;
};
static struct copy *copies;
static cudaError_t last_error;

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
    if (region.open++ == 0 && region.used > 0)
        protect(PROT_READ | PROT_WRITE);
}

void emulated_close(void)
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

const char *cudaGetErrorString(cudaError_t e)
{
    return e == cudaSuccess ? "no error" : "out of memory";
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t e = last_error;
    last_error = cudaSuccess;
    return e;
}

cudaError_t cudaGetDeviceCount(int *ret)
{
    *ret = 1;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    (void)device;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **ret, size_t bytes)
{
    size_t page = 4096, rounded = (bytes + page - 1) & ~(page - 1);
    if (!region.base) {
        void *p =
            mmap(NULL, REGION_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED)
            return failed(cudaErrorMemoryAllocation);
        region.base = p;
    }
    if (bytes > REGION_BYTES || rounded > REGION_BYTES - region.used)
        return failed(cudaErrorMemoryAllocation);
    *ret = region.base + region.used;
    region.used += rounded;
    emulated_open();
    memset(*ret, 0xff, rounded); /* NaN: what is not written is seen */
    emulated_close();
    return cudaSuccess;
}

cudaError_t cudaFree(void *p)
{
    (void)p;
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

cudaError_t cudaMemsetAsync(void *p, int v, size_t bytes, cudaStream_t s)
{
    (void)s;
    assert(emulated_is_array(p, 1, (long long)bytes));
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
static void copy_later(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                       size_t height)
{
    struct copy *c = malloc(sizeof *c), **end = &copies;
    char *bytes = malloc(width * height);
    assert(c && bytes);
    emulated_open();
    for (size_t i = 0; i < height; i++)
        memcpy(bytes + i * width, (const char *)src + i * src_pitch, width);
    emulated_close();
    while (*end)
        end = &(*end)->next;
    *c = (struct copy){NULL, dst, bytes, dst_pitch, width, height};
    *end = c;
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t s)
{
    return cudaMemcpy2DAsync(dst, bytes, src, bytes, bytes, 1, kind, s);
}

cudaError_t cudaMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                              size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t s)
{
    (void)s;
    if (width * height == 0)
        return cudaSuccess;
    assert(on_device(dst) == (kind != cudaMemcpyDeviceToHost));
    assert(on_device(src) == (kind != cudaMemcpyHostToDevice));
    if (kind == cudaMemcpyDeviceToHost) {
        copy_later(dst, dst_pitch, src, src_pitch, width, height);
        return cudaSuccess;
    }
    emulated_open();
    for (size_t i = 0; i < height; i++)
        memcpy((char *)dst + i * dst_pitch, (const char *)src + i * src_pitch, width);
    emulated_close();
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *ret, unsigned flags)
{
    (void)flags;
    *ret = NULL;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    (void)s;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    (void)s;
    for (struct copy *c = copies, *next; c; c = next) {
        next = c->next;
        for (size_t i = 0; i < c->height; i++)
            memcpy(c->to + i * c->pitch, c->bytes + i * c->width, c->width);
        free(c->bytes);
        free(c);
    }
    copies = NULL;
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t ev, unsigned flags)
{
    (void)s, (void)ev, (void)flags;
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *ret, unsigned flags)
{
    (void)flags;
    *ret = NULL;
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
