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
    return cudaSuccess;
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
            return cudaErrorMemoryAllocation;
        region.base = p;
    }
    if (rounded > REGION_BYTES - region.used)
        return cudaErrorMemoryAllocation;
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

cudaError_t cudaMemset(void *p, int v, size_t bytes)
{
    emulated_open();
    memset(p, v, bytes);
    emulated_close();
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *p, int v, size_t bytes, cudaStream_t s)
{
    (void)s;
    return cudaMemset(p, v, bytes);
}

static int on_device(const void *p)
{
    return (const char *)p >= region.base && (const char *)p < region.base + region.used;
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
