/* The reference device: ordinary memory, one stream that is always done, and the kernel table. */
#include "ref.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "mem.h"

static int device_count(int *ret, struct det_err *err)
{
    (void)err;
    *ret = 1;
    return 0;
}

static int device_open(int index, const struct det_device_options *o, struct det_device **ret,
                       struct det_err *err)
{
    (void)o;
    (void)err;
    if (index != 0)
        return det_fail(err, DET_ENOENT, "ref:%d: there is only ref:0", index);
    *ret = NULL; /* it has no state */
    return 0;
}

static void device_close(struct det_device *d)
{
    (void)d;
}

/* Larger pieces are mapped, so that what is given back leaves the process: malloc() keeps it. Huge
 * pages make them cheap to touch for the first time. */
#define MAPPED_BYTES ((size_t)1 << 20)

static void *map_pages(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    madvise(p, bytes, MADV_HUGEPAGE);
    return p;
}

int ref_mem_alloc(struct det_device *d, size_t bytes, void **ret, struct det_err *err)
{
    (void)d;
    size_t rounded = (bytes + 63) & ~(size_t)63;
    *ret = bytes >= MAPPED_BYTES ? map_pages(bytes) : aligned_alloc(64, rounded ? rounded : 64);
    if (!*ret)
        return det_fail_errno(err, DET_ENOMEM, errno, "the system has no %zu bytes", bytes);
    return 0;
}

void ref_mem_free(struct det_device *d, void *p, size_t bytes)
{
    (void)d;
    if (bytes >= MAPPED_BYTES)
        munmap(p, bytes);
    else
        free(p);
}

int ref_stream_create(struct det_device *d, struct det_stream **ret, struct det_err *err)
{
    (void)err;
    *ret = (struct det_stream *)d; /* kernels of a host device find their device by the stream */
    return 0;
}

void ref_stream_destroy(struct det_stream *s)
{
    (void)s;
}

int ref_stream_sync(struct det_stream *s, struct det_err *err)
{
    (void)s;
    (void)err;
    return 0;
}

static int copy_bytes(struct det_stream *s, void *dst, const void *src, size_t bytes,
                      enum det_copy_kind kind, struct det_err *err)
{
    (void)s;
    (void)kind;
    (void)err;
    if (bytes > 0)
        memmove(dst, src, bytes);
    return 0;
}

int ref_event_create(struct det_device *d, struct det_event **ret, struct det_err *err)
{
    (void)d;
    (void)err;
    *ret = NULL;
    return 0;
}

void ref_event_destroy(struct det_event *ev)
{
    (void)ev;
}

int ref_event_record(struct det_event *ev, struct det_stream *s, struct det_err *err)
{
    (void)ev;
    return ref_stream_sync(s, err);
}

int ref_event_wait(struct det_stream *s, struct det_event *ev, struct det_err *err)
{
    (void)ev;
    return ref_stream_sync(s, err);
}

void *ref_stream_native(struct det_stream *s)
{
    (void)s;
    return NULL;
}

const struct det_backend det_backend_ref = {
    .version = DET_BACKEND_VERSION,
    .name = "ref",
    .host_memory = true,
    .device_count = device_count,
    .device_open = device_open,
    .device_close = device_close,
    .mem_alloc = ref_mem_alloc,
    .mem_free = ref_mem_free,
    .stream_create = ref_stream_create,
    .stream_destroy = ref_stream_destroy,
    .stream_sync = ref_stream_sync,
    .copy = copy_bytes,
    .event_create = ref_event_create,
    .event_destroy = ref_event_destroy,
    .event_record = ref_event_record,
    .event_wait = ref_event_wait,
    .stream_native = ref_stream_native,
    .kernels =
        {
#define X(NAME, name) [DET_KERNEL_##NAME] = ref_##name,
            DET_KERNELS(X)
#undef X
        },
    .kernels_f64 =
        {
#define X(NAME, name) [DET_KERNEL_##NAME] = ref_##name##_f64,
            DET_KERNELS_REAL(X)
#undef X
        },
};
