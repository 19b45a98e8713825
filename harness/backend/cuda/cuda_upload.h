/*
 * Host memory to the device. cudaMemcpyAsync() from ordinary memory may read it after it has
 * returned, when its owner has filled it anew; here it is first copied into a ring of pinned
 * memory. From there it goes, on a stream of its own, to a ring of the same form on the device: so
 * the next batch arrives while the engine's stream is still at this one, whatever memory of the
 * pool that still uses. That stream then copies it to where it belongs, and a place is free again
 * once it has. A few bytes go the direct way.
 *
 * The ring is twice as large as the largest copy was, up to 256 MiB; larger ones go in parts, which
 * wait for each other. Where the device has no memory for that, the ring is smaller, and at last
 * everything goes the direct way. The ring's half on the device is given back where memory runs out
 * for anything else, and made again by the next copy, as large as there is memory then.
 */
#ifndef CUDA_UPLOAD_H
#define CUDA_UPLOAD_H

#include "cuda_impl.h"

#define CUDA_UPLOAD_SMALL ((size_t)64 << 10)

/* src may be reused when it returns; the copy itself is in the stream's order. */
DET_MUST int cuda_upload(struct det_stream *s, void *dst, const void *src, size_t bytes,
                         struct det_err *err);
/* The ring of a stream that is about to be destroyed, and has been waited for. NULL ok. */
void cuda_upload_destroy(struct cuda_upload *u);
/* Gives back the memory that rings have on the device; how many bytes that were. */
size_t cuda_upload_trim(struct det_device *d);
/* Memory of the device was freed: rings that found none may try again. */
void cuda_upload_freed(struct det_device *d);

#endif
