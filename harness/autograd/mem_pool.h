/*
 * Device memory, kept for the next step: a training step asks for the same sizes again and again,
 * and an allocation from the system costs page faults (or, on a GPU, a wait).
 *
 * The pool owns its device. It outlives its owner while memory of it is still in use.
 */
#ifndef MEM_POOL_H
#define MEM_POOL_H

#include "backend.h"

struct mem_pool;

/* limit_bytes: of all pieces in use; 0: none. */
struct mem_pool *mem_pool_create(const struct det_backend *backend, struct det_device *device,
                                 size_t limit_bytes);
/* Gives the device back, now or when the last piece in use comes home. NULL is allowed. */
void mem_pool_destroy(struct mem_pool *p);
/* Not cleared. DET_ENOMEM, after all unused memory was given back to the system. */
DET_MUST int mem_pool_alloc(struct mem_pool *p, size_t bytes, void **ret, struct det_err *err);
/* Gives all unused memory back to the system, and what the backend can do without; how many bytes
 * that were. */
size_t mem_pool_trim(struct mem_pool *p);
void mem_pool_free(struct mem_pool *p, void *data, size_t bytes);
size_t mem_pool_bytes(const struct mem_pool *p);
size_t mem_pool_peak_bytes(const struct mem_pool *p);

#endif
