/* Tensors in ordinary memory that belong to no engine: batches, labels, what a checkpoint holds. */
#include "tensor_impl.h"

#include <string.h>

#include "mem.h"

static void release_nothing(struct det_storage *s)
{
    (void)s;
}

static void release_heap(struct det_storage *s)
{
    free(s->data);
}

static const struct det_storage_ops view_ops = {.release = release_nothing};
static const struct det_storage_ops heap_ops = {.release = release_heap};

static struct det_tensor *make_over(const struct det_storage_ops *ops, void *data, size_t bytes,
                                    enum det_dtype dtype, int ndim, const int64_t *dims)
{
    struct det_storage *s = det_zalloc(sizeof *s);
    s->ops = ops;
    s->refs = 1;
    s->host = true;
    s->data = data;
    s->bytes = bytes;
    return det__tensor_over(s, data, dtype, ndim, dims);
}

/* "tensor float32[3, 5]: ..." */
static int wrap_error(enum det_dtype dtype, int ndim, const int64_t *dims, int rc,
                      struct det_err *err)
{
    char text[160];
    return det_wrap(err, rc, "tensor %s", det__shape_text(dtype, ndim, dims, text, sizeof text));
}

static int64_t checked_bytes(enum det_dtype dtype, int ndim, const int64_t *dims,
                             struct det_err *err)
{
    int64_t numel = det__shape_check(dtype, ndim, dims, err);
    return numel < 0 ? wrap_error(dtype, ndim, dims, (int)numel, err)
                     : numel * (int64_t)det_dtype_size(dtype);
}

struct det_tensor *det_host_tensor(enum det_dtype dtype, int ndim, const int64_t *dims,
                                   struct det_err *err)
{
    int64_t bytes = checked_bytes(dtype, ndim, dims, err);
    if (bytes < 0)
        return NULL;
    size_t rounded = ((size_t)bytes + 63) & ~(size_t)63;
    void *data = aligned_alloc(64, rounded ? rounded : 64);
    if (!data) {
        int rc = det_fail(err, DET_ENOMEM, "no memory for %lld bytes", (long long)bytes);
        det_ignore(wrap_error(dtype, ndim, dims, rc, err), "told by NULL");
        return NULL;
    }
    memset(data, 0, (size_t)bytes);
    return make_over(&heap_ops, data, (size_t)bytes, dtype, ndim, dims);
}

struct det_tensor *det_host_tensor_view(enum det_dtype dtype, int ndim, const int64_t *dims,
                                        void *data, struct det_err *err)
{
    int64_t bytes = checked_bytes(dtype, ndim, dims, err);
    if (bytes < 0)
        return NULL;
    return make_over(&view_ops, data, (size_t)bytes, dtype, ndim, dims);
}
