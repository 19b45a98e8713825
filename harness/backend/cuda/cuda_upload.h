/*
 * Host memory to the device. cudaMemcpyAsync() from ordinary memory may read it after it has
 * returned, when its owner has filled it anew; here it is first copied into a ring of pinned
 * pieces, each free again once its event says so. The transfer of one piece goes on beside the
 * copying of the next.
 */
#ifndef CUDA_UPLOAD_H
#define CUDA_UPLOAD_H

#include "cuda_impl.h"

/* src may be reused when it returns; the copy itself is in the stream's order. */
DET_MUST int cuda_upload(struct det_stream *s, void *dst, const void *src, size_t bytes,
                         struct det_err *err);
/* The ring of a stream that is about to be destroyed, and has been waited for. NULL ok. */
void cuda_upload_destroy(struct cuda_upload *u);

#endif
