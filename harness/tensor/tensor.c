/* Tensors over a storage: references, getters, reading and writing. */
#include "tensor_impl.h"

#include <assert.h>
#include <string.h>

#include "dtype.h"
#include "mem.h"
#include "walk.h"

static void storage_unref(struct det_storage *s)
{
    if (!s || --s->refs > 0)
        return;
    s->ops->release(s);
    free(s);
}

struct det_tensor *det__tensor_over(struct det_storage *storage, char *data, enum det_dtype dtype,
                                    int ndim, const int64_t *dims)
{
    struct det_tensor *t = det_zalloc(sizeof *t);
    t->refs = 1;
    t->dtype = dtype;
    t->ndim = ndim;
    if (ndim > 0)
        memcpy(t->dims, dims, (size_t)ndim * sizeof *dims);
    int64_t numel = det__shape_numel(dtype, ndim, dims);
    assert(numel >= 0);
    t->numel = (size_t)numel;
    t->storage = storage;
    t->data = data;
    det__set_layout(t, DET_LAYOUT_PLAIN);
    return t;
}

struct det_tensor *det__tensor_view(struct det_tensor *t, int ndim, const int64_t *dims)
{
    assert(t->layout == DET_LAYOUT_PLAIN);
    t->storage->refs++;
    struct det_tensor *v = det__tensor_over(t->storage, t->data, t->dtype, ndim, dims);
    assert(v->numel == t->numel);
    v->engine = t->engine;
    return v;
}

struct det_tensor *det__tensor_window(struct det_tensor *t, int ndim, const int64_t *dims,
                                      const int64_t *strides, int64_t offset)
{
    t->storage->refs++;
    struct det_tensor *v = det__tensor_over(
        t->storage, t->data + offset * (int64_t)det_dtype_size(t->dtype), t->dtype, ndim, dims);
    det__set_strides(v, strides);
    v->engine = t->engine;
    return v;
}

struct det_tensor *det_tensor_ref(struct det_tensor *t)
{
    if (t && !det__is_dead(t))
        t->refs++;
    return t;
}

bool det__tensor_end(struct det_tensor *t)
{
    if (!t || det__is_dead(t) || --t->refs > 0)
        return false;
    det_tensor_unref(t->grad);
    storage_unref(t->storage);
    t->grad = NULL;
    t->storage = NULL;
    t->data = NULL;
    t->node = NULL;
    return true;
}

void det_tensor_unref(struct det_tensor *t)
{
    if (det__tensor_end(t))
        free(t);
}

enum det_dtype det_tensor_dtype(const struct det_tensor *t)
{
    return t ? t->dtype : DET_F32;
}

int det_tensor_ndim(const struct det_tensor *t)
{
    return t ? t->ndim : 0;
}

const int64_t *det_tensor_dims(const struct det_tensor *t)
{
    return t ? t->dims : NULL;
}

int64_t det_tensor_dim(const struct det_tensor *t, int i)
{
    if (t && i < 0)
        i += t->ndim;
    return t && i >= 0 && i < t->ndim ? t->dims[i] : 0;
}

size_t det_tensor_numel(const struct det_tensor *t)
{
    return t ? t->numel : 0;
}

size_t det_tensor_bytes(const struct det_tensor *t)
{
    return t ? t->numel * det_dtype_size(t->dtype) : 0;
}

bool det_tensor_is_host(const struct det_tensor *t)
{
    return t && t->storage && t->storage->host;
}

void *det_tensor_data(struct det_tensor *t)
{
    return t && t->layout == DET_LAYOUT_PLAIN ? t->data : NULL;
}

static int check_bytes(const struct det_tensor *t, size_t bytes, struct det_err *err)
{
    char text[160];
    if (!t)
        return det_fail(err, DET_EINVAL, "the tensor is NULL");
    if (det__is_dead(t))
        return det_fail(err, DET_EINVAL, "%s " DET__IS_DEAD,
                        det__tensor_text(t, text, sizeof text));
    if (bytes != det_tensor_bytes(t))
        return det_fail(err, DET_EINVAL, "%s has %zu bytes, the caller's buffer %zu",
                        det__tensor_text(t, text, sizeof text), det_tensor_bytes(t), bytes);
    return 0;
}

/* One pass over t and the caller's bytes in C order. */
struct move {
    char *t, *host;
    int64_t t_step, host_step;
    enum det_dtype dtype;
    bool out;
};

static void move_row(void *arg, int64_t n, const int64_t *at)
{
    const struct move *m = arg;
    int64_t size = (int64_t)det_dtype_size(m->dtype);
    char *t = m->t + at[0] * size, *host = m->host + at[1] * size;
    if (m->out)
        det__convert(m->dtype, t, m->t_step, m->dtype, host, m->host_step, n);
    else
        det__convert(m->dtype, host, m->host_step, m->dtype, t, m->t_step, n);
}

static void move_elements(const struct det_tensor *t, char *host, bool out)
{
    struct det__walk w;
    struct det_tensor plain = *t;
    det__set_layout(&plain, DET_LAYOUT_PLAIN);
    det__walk_init(&w, 2, (const struct det_tensor *[]){t, &plain});
    struct move m = {t->data, host, det__walk_step(&w, 0), det__walk_step(&w, 1), t->dtype, out};
    det__walk_range(&w, 0, w.numel, move_row, &m);
}

int det_tensor_read(const struct det_tensor *t, void *host, size_t bytes, struct det_err *err)
{
    int rc = check_bytes(t, bytes, err);
    if (rc < 0)
        return rc;
    if (!t->storage->host)
        return t->storage->ops->read(t, host, err);
    if (t->layout != DET_LAYOUT_PLAIN)
        move_elements(t, host, true);
    else if (bytes > 0)
        memcpy(host, t->data, bytes);
    return 0;
}

int det_tensor_write(struct det_tensor *t, const void *host, size_t bytes, struct det_err *err)
{
    int rc = check_bytes(t, bytes, err);
    if (rc < 0)
        return rc;
    if (t->storage->ops->write)
        return t->storage->ops->write(t, host, err);
    if (t->layout != DET_LAYOUT_PLAIN)
        move_elements(t, (char *)(uintptr_t)host, false); /* which is only read then */
    else if (bytes > 0)
        memcpy(t->data, host, bytes);
    return 0;
}

int det__tensor_assign(struct det_tensor *to, const struct det_tensor *from, struct det_err *err)
{
    size_t bytes = det_tensor_bytes(to);
    if (to->dtype != from->dtype || !det__same_shape(to, from))
        return det_fail(err, DET_EINVAL, "the shapes or dtypes differ");
    det_cleanup(freep) void *host = det_try_alloc(bytes ? bytes : 1);
    if (!host)
        return det_fail(err, DET_ENOMEM, "no memory for %zu bytes", bytes);
    int rc = det_tensor_read(from, host, bytes, err);
    return rc < 0 ? rc : det_tensor_write(to, host, bytes, err);
}
