#include "cuda_upload.h"

#include <string.h>

#include "mem.h"

#define PIECES      4
#define PIECE_BYTES ((size_t)4 << 20)

struct cuda_upload {
    char *pinned; /* PIECES of them */
    cudaEvent_t free_at[PIECES];
    unsigned next;
};

void cuda_upload_destroy(struct cuda_upload *u)
{
    if (!u)
        return;
    for (int i = 0; i < PIECES; i++)
        if (u->free_at[i])
            cudaEventDestroy(u->free_at[i]);
    cudaFreeHost(u->pinned);
    free(u);
}
DET_DEFINE_CLEANUP(struct cuda_upload *, cuda_upload_destroy)

static int ring_create(struct cuda_upload **ret, struct det_err *err)
{
    det_cleanup(cuda_upload_destroyp) struct cuda_upload *u = det_zalloc(sizeof *u);
    cudaError_t rc = cudaMallocHost((void **)&u->pinned, PIECES * PIECE_BYTES);
    for (int i = 0; i < PIECES && rc == cudaSuccess; i++)
        rc = cudaEventCreateWithFlags(&u->free_at[i], cudaEventDisableTiming);
    if (rc != cudaSuccess)
        return cuda_check(rc, "pinned memory for copies to the device", err);
    *ret = det_take(u);
    return 0;
}

static int send_piece(struct det_stream *s, char *dst, const char *src, size_t bytes,
                      struct det_err *err)
{
    struct cuda_upload *u = s->upload;
    unsigned i = u->next++ % PIECES;
    char *piece = u->pinned + i * PIECE_BYTES;
    cudaError_t rc = cudaEventSynchronize(u->free_at[i]); /* at once where it was never recorded */
    if (rc == cudaSuccess) {
        memcpy(piece, src, bytes);
        rc = cudaMemcpyAsync(dst, piece, bytes, cudaMemcpyHostToDevice, s->native);
    }
    if (rc == cudaSuccess)
        rc = cudaEventRecord(u->free_at[i], s->native);
    return cuda_check(rc, "a copy to the device", err);
}

int cuda_upload(struct det_stream *s, void *dst, const void *src, size_t bytes, struct det_err *err)
{
    int rc = s->upload ? 0 : ring_create(&s->upload, err);
    for (size_t at = 0; rc == 0 && at < bytes; at += PIECE_BYTES) {
        size_t n = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
        rc = send_piece(s, (char *)dst + at, (const char *)src + at, n, err);
    }
    return rc;
}
