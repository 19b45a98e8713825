#include "cuda_upload.h"

#include <string.h>

#include "mem.h"

#ifndef CUDA_UPLOAD_MOST
#define CUDA_UPLOAD_MOST ((size_t)256 << 20) /* of the ring */
#endif
#define LEAST       ((size_t)1 << 20)
#define DIRECT      ((size_t)16 << 20) /* of a ring that is of pinned memory only */
#define PIECE_BYTES ((size_t)4 << 20)
#define PLACES      64
#define ALIGN       256

/* A part of the ring that is in use until `taken`. */
struct place {
    size_t begin, bytes;
    cudaEvent_t taken;
};

/* Places follow each other in the ring, which is `bytes` long; `begin` and `next` count on. */
struct cuda_upload {
    struct det_device *device;
    struct cuda_upload *other; /* of the same device */
    char *pinned, *staged;     /* staged: on the device; NULL where there was no memory for it */
    size_t bytes, next;
    size_t too_large; /* so much was asked for in vain; 0: nothing was */
    struct place place[PLACES];
    unsigned first, held;
    cudaStream_t copies;
    cudaEvent_t arrived;
};

static void free_ring(struct cuda_upload *u)
{
    cudaFreeHost(u->pinned);
    cudaFree(u->staged);
    u->pinned = u->staged = NULL;
    u->bytes = u->next = 0;
}

void cuda_upload_destroy(struct cuda_upload *u)
{
    if (!u)
        return;
    for (struct cuda_upload **at = &u->device->uploads; *at; at = &(*at)->other)
        if (*at == u) {
            *at = u->other;
            break;
        }
    for (int i = 0; i < PLACES; i++)
        if (u->place[i].taken)
            cudaEventDestroy(u->place[i].taken);
    if (u->arrived)
        cudaEventDestroy(u->arrived);
    if (u->copies)
        cudaStreamDestroy(u->copies);
    free_ring(u);
    free(u);
}
DET_DEFINE_CLEANUP(struct cuda_upload *, cuda_upload_destroy)

static int create(struct det_device *d, struct cuda_upload **ret, struct det_err *err)
{
    det_cleanup(cuda_upload_destroyp) struct cuda_upload *u = det_zalloc(sizeof *u);
    u->device = d;
    cudaError_t rc = cudaStreamCreateWithFlags(&u->copies, cudaStreamNonBlocking);
    if (rc == cudaSuccess)
        rc = cudaEventCreateWithFlags(&u->arrived, cudaEventDisableTiming);
    for (int i = 0; i < PLACES && rc == cudaSuccess; i++)
        rc = cudaEventCreateWithFlags(&u->place[i].taken, cudaEventDisableTiming);
    if (rc != cudaSuccess)
        return cuda_check(rc, "a stream for copies to the device", err);
    u->other = d->uploads;
    d->uploads = u;
    *ret = det_take(u);
    return 0;
}

static cudaError_t give_first_back(struct cuda_upload *u)
{
    cudaError_t rc = cudaEventSynchronize(u->place[u->first].taken);
    u->first = (u->first + 1) % PLACES;
    u->held--;
    return rc;
}

size_t cuda_upload_trim(struct det_device *d)
{
    size_t bytes = 0;
    for (struct cuda_upload *u = d->uploads; u; u = u->other) {
        while (u->staged && u->held > 0)
            (void)give_first_back(u); /* what failed is told to the next who waits */
        bytes += u->staged ? u->bytes : 0;
        cudaFree(u->staged);
        u->staged = NULL;
    }
    if (bytes > 0)
        cuda_upload_freed(d);
    return bytes;
}

void cuda_upload_freed(struct det_device *d)
{
    for (struct cuda_upload *u = d->uploads; u; u = u->other)
        u->too_large = 0;
}

static bool make_ring(struct cuda_upload *u, size_t bytes, bool is_staged)
{
    bool made = cudaMallocHost((void **)&u->pinned, bytes) == cudaSuccess &&
                (!is_staged || cudaMalloc((void **)&u->staged, bytes) == cudaSuccess);
    if (!made) {
        (void)cudaGetLastError(); /* a smaller one may do */
        free_ring(u);
    }
    u->bytes = made ? bytes : 0;
    return made;
}

/* A ring of that many bytes, or as many as there is memory for. */
static int resize_ring(struct cuda_upload *u, size_t bytes, struct det_err *err)
{
    cudaError_t rc = cudaSuccess;
    while (u->held > 0 && rc == cudaSuccess)
        rc = give_first_back(u);
    if (rc != cudaSuccess)
        return cuda_check(rc, "a copy to the device", err);
    free_ring(u);
    for (size_t n = bytes; n >= LEAST; n /= 2) {
        if (make_ring(u, n, true))
            return 0;
        u->too_large = n;
    }
    if (make_ring(u, bytes < DIRECT ? bytes : DIRECT, false))
        return 0;
    return cuda_check(cudaErrorMemoryAllocation, "pinned memory for copies to the device", err);
}

/* The ring has room for this copy and the next one like it. */
static int fit_ring(struct cuda_upload *u, size_t bytes, struct det_err *err)
{
    size_t wanted = LEAST;
    while (wanted < CUDA_UPLOAD_MOST && wanted / 2 < bytes)
        wanted *= 2;
    while (u->too_large && wanted > LEAST && wanted >= u->too_large)
        wanted /= 2;
    bool is_missed = !u->staged && !u->too_large; /* and there may be memory for it now */
    return wanted > u->bytes || is_missed ? resize_ring(u, wanted, err) : 0;
}

/* A place for n bytes, at most half of the ring; waits where all others are in use. */
static cudaError_t take_place(struct cuda_upload *u, size_t n, struct place **ret)
{
    size_t left = u->bytes - u->next % u->bytes, begin = n <= left ? u->next : u->next + left;
    cudaError_t rc = cudaSuccess;
    while (rc == cudaSuccess && u->held > 0 &&
           (u->held == PLACES || begin + n - u->place[u->first].begin > u->bytes))
        rc = give_first_back(u);
    struct place *p = &u->place[(u->first + u->held) % PLACES];
    p->begin = begin;
    p->bytes = n;
    *ret = p;
    return rc;
}

/* The place is in use from now until what the stream has been asked for is done. */
static cudaError_t hold_place(struct cuda_upload *u, struct place *p, struct det_stream *s)
{
    u->next = p->begin + (p->bytes + ALIGN - 1) / ALIGN * ALIGN;
    u->held++;
    return cudaEventRecord(p->taken, s->native);
}

/* By way of pinned memory, piece by piece, so that one is sent while the next is filled. */
static cudaError_t send_chunk(char *to, char *pinned, const char *src, size_t bytes,
                              cudaStream_t stream)
{
    cudaError_t rc = cudaSuccess;
    for (size_t at = 0; rc == cudaSuccess && at < bytes; at += PIECE_BYTES) {
        size_t n = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
        memcpy(pinned + at, src + at, n);
        rc = cudaMemcpyAsync(to + at, pinned + at, n, cudaMemcpyHostToDevice, stream);
    }
    return rc;
}

/* Beside the stream's work, to memory that none of it uses; the stream copies it from there. */
static cudaError_t send_beside(struct det_stream *s, const struct place *p, char *dst,
                               const char *src)
{
    struct cuda_upload *u = s->upload;
    size_t at = p->begin % u->bytes;
    cudaError_t rc = send_chunk(u->staged + at, u->pinned + at, src, p->bytes, u->copies);
    if (rc == cudaSuccess)
        rc = cudaEventRecord(u->arrived, u->copies);
    if (rc == cudaSuccess)
        rc = cudaStreamWaitEvent(s->native, u->arrived, 0);
    return rc != cudaSuccess ? rc
                             : cudaMemcpyAsync(dst, u->staged + at, p->bytes,
                                               cudaMemcpyDeviceToDevice, s->native);
}

static cudaError_t send_part(struct det_stream *s, char *dst, const char *src, size_t bytes,
                             bool is_small)
{
    struct cuda_upload *u = s->upload;
    struct place *p;
    cudaError_t rc = take_place(u, bytes, &p);
    if (rc != cudaSuccess)
        return rc;
    rc = is_small || !u->staged
             ? send_chunk(dst, u->pinned + p->begin % u->bytes, src, bytes, s->native)
             : send_beside(s, p, dst, src);
    if (rc != cudaSuccess) /* the stream may not wait for what was sent beside it */
        (void)cudaStreamSynchronize(u->copies);
    cudaError_t held = hold_place(u, p, s); /* also where only a part of it was sent */
    return rc != cudaSuccess ? rc : held;
}

int cuda_upload(struct det_stream *s, void *dst, const void *src, size_t bytes, struct det_err *err)
{
    cudaError_t sent = cudaSuccess;
    int rc = s->upload ? 0 : create(s->device, &s->upload, err);
    if (rc == 0)
        rc = fit_ring(s->upload, bytes, err);
    if (rc < 0)
        return rc;
    size_t most = s->upload->bytes / 2;
    for (size_t at = 0; sent == cudaSuccess && at < bytes; at += most) {
        size_t n = bytes - at < most ? bytes - at : most;
        sent =
            send_part(s, (char *)dst + at, (const char *)src + at, n, bytes <= CUDA_UPLOAD_SMALL);
    }
    return cuda_check(sent, "a copy to the device", err);
}
