/* Tensors in the device's memory: made from the pool, filled, copied, read. */
#include "engine.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "autocast.h"
#include "device_reads.h"
#include "dtype.h"
#include "mem.h"
#include "run_cast.h"
#include "run_empty.h"
#include "span.h"

static void release_pool(struct det_storage *s)
{
    mem_pool_free(s->owner, s->data, s->bytes);
}

static int read_device(const struct det_tensor *t, void *host, struct det_err *err)
{
    struct det_engine *e = t->engine;
    TENSOR_OWN plain = NULL;
    int rc = 0;
    if (t->layout != DET_LAYOUT_PLAIN) {
        rc = det__tensor_new(e, t->dtype, DET_LAYOUT_PLAIN, t->ndim, t->dims, &plain, err);
        if (rc == 0)
            rc = det__run(
                e, &(struct det_call){.kernel = DET_KERNEL_COPY, .in = {t}, .out = {plain}}, err);
    }
    if (rc == 0)
        rc = e->backend->copy(e->stream, host, plain ? plain->data : t->data, det_tensor_bytes(t),
                              DET_COPY_TO_HOST, err);
    return rc < 0 ? rc : e->backend->stream_sync(e->stream, err);
}

/* The backend has taken `host` over when it returns; what is written comes in the stream's turn. */
static int write_device(struct det_tensor *t, const void *host, struct det_err *err)
{
    struct det_engine *e = t->engine;
    TENSOR_OWN plain = NULL;
    int rc = 0;
    autocast_wrote(e, t->storage);
    if (t->layout != DET_LAYOUT_PLAIN)
        rc = det__tensor_new(e, t->dtype, DET_LAYOUT_PLAIN, t->ndim, t->dims, &plain, err);
    if (rc == 0)
        rc = e->backend->copy(e->stream, plain ? plain->data : t->data, host, det_tensor_bytes(t),
                              DET_COPY_TO_DEVICE, err);
    if (rc == 0 && plain)
        rc = det__run(e, &(struct det_call){.kernel = DET_KERNEL_COPY, .in = {plain}, .out = {t}},
                      err);
    return rc;
}

const void *det__host_bytes(const struct det_tensor *t)
{
    return t->storage->host && t->layout == DET_LAYOUT_PLAIN ? t->data : NULL;
}

static const struct det_storage_ops pool_ops = {
    .release = release_pool, .read = read_device, .write = write_device};

int det__tensor_new(struct det_engine *e, enum det_dtype dtype, enum det_layout layout, int ndim,
                    const int64_t *dims, struct det_tensor **ret, struct det_err *err)
{
    void *data;
    int64_t numel = det__shape_check(dtype, ndim, dims, err);
    if (numel < 0)
        return (int)numel;
    size_t bytes = (size_t)numel * det_dtype_size(dtype);
    int rc = mem_pool_alloc(e->pool, bytes, &data, err);
    if (rc == DET_ENOMEM && device_reads_yield(e))
        rc = mem_pool_alloc(e->pool, bytes, &data, err);
    if (rc < 0)
        return rc;
    struct det_storage *s = det_zalloc(sizeof *s);
    *s = (struct det_storage){.ops = &pool_ops,
                              .refs = 1,
                              .host = e->backend->host_memory,
                              .data = data,
                              .bytes = bytes,
                              .owner = e->pool};
    *ret = det__tensor_over(s, data, dtype, ndim, dims);
    (*ret)->engine = e;
    det__set_layout(*ret, layout);
    return 0;
}

int det__tensor_rows(struct det_engine *e, enum det_dtype dtype, int ndim, const int64_t *dims,
                     int64_t step, struct det_tensor **ret, struct det_err *err)
{
    TENSOR_OWN all = NULL;
    int64_t strides[DET_DIMS_MAX], rows = 1;
    for (int d = 0; d < ndim - 1; d++)
        rows *= dims[d];
    int rc = det__tensor_new(e, dtype, DET_LAYOUT_PLAIN, 2, (int64_t[]){rows, step}, &all, err);
    if (rc < 0)
        return rc;
    det__row_strides(ndim, dims, step, strides);
    *ret = det__tensor_window(all, ndim, dims, strides, 0);
    return 0;
}

#define ROWS_APART 8 /* elements */

bool det__has_rows(const struct det_engine *e, const struct det_tensor *t)
{
    int64_t step = t->layout == DET_LAYOUT_STRIDED ? det__row_step(t) : 0;
    return e->backend->row_step && step > 0 && step - t->dims[t->ndim - 1] < ROWS_APART;
}

int det__tensor_like(struct det_engine *e, const struct det_tensor *t, struct det_tensor **ret,
                     struct det_err *err)
{
    enum det_layout layout = t->layout == DET_LAYOUT_STRIDED ? DET_LAYOUT_PLAIN : t->layout;
    return det__tensor_new(e, t->dtype, layout, t->ndim, t->dims, ret, err);
}

static int run_kernel(struct det_engine *e, det_kernel_fn *fn, const struct det_call *c,
                      struct det_err *err)
{
    return span_on() ? det__run_told(e, fn, c, err) : fn(e->stream, c, err);
}

int det__run(struct det_engine *e, const struct det_call *c, struct det_err *err)
{
    bool f64 = c->kernel < DET_KERNEL_REAL_COUNT && run_is_f64(c);
    det_kernel_fn *fn = f64 ? e->backend->kernels_f64[c->kernel] : e->backend->kernels[c->kernel];
    enum det_dtype dtype;
    if (run_is_of_nothing(c))
        return run_of_nothing(e, c, err);
    if (!fn)
        return det_fail(err, DET_EUNIMPL,
                        "the device %s has no kernel %s%s: use the device \"cpu\"", e->name,
                        det_kernel_name(c->kernel), f64 ? " for float64" : "");
    if (run_needs_cast(e, c, &dtype))
        return run_cast(e, c, dtype, err);
    int rc = run_kernel(e, fn, c, err);
    if (rc == DET_ENOMEM && (device_reads_yield(e) | (mem_pool_trim(e->pool) > 0)))
        rc = run_kernel(e, fn, c, err); /* it wanted scratch memory, before it did anything */
    return rc;
}

/* Whether the device may take the two as parts of one. */
static bool goes_with(struct det_engine *e, const struct det_call *first, const struct det_call *c)
{
    enum det_dtype dtype;
    return e->backend->steps && !span_on() && c->out[0]->numel > 0 &&
           !run_needs_cast(e, c, &dtype) && run_is_f64(c) == run_is_f64(first);
}

/* The pool has, once there was room for each, what calls will want that the device takes in another
 * dtype only. */
static int make_sure(struct det_engine *e, const struct det_call *c, size_t n, struct det_err *err)
{
    enum det_dtype dtype;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        if (c[i].out[0]->numel > 0 && run_needs_cast(e, &c[i], &dtype))
            rc = run_cast_fits(e, &c[i], dtype, err);
    return rc;
}

static int run_together(struct det_engine *e, const struct det_call *c, size_t n,
                        struct det_err *err)
{
    int rc = e->backend->steps(e->stream, c, n, err);
    if (rc == DET_ENOMEM && (device_reads_yield(e) | (mem_pool_trim(e->pool) > 0)))
        rc = e->backend->steps(e->stream, c, n, err); /* nothing of it was done */
    return rc;
}

int det__run_steps(struct det_engine *e, const struct det_call *c, size_t n, struct det_err *err)
{
    int rc = make_sure(e, c, n, err);
    for (size_t i = 0, together; rc == 0 && i < n; i += together) {
        for (together = 0; i + together < n && goes_with(e, &c[i], &c[i + together]);)
            together++;
        if (together > 0) {
            rc = run_together(e, &c[i], together, err);
        } else {
            rc = det__run(e, &c[i], err);
            together = 1;
        }
    }
    return rc;
}

int det__run_wide(struct det_engine *e, const struct det_call *c, struct det_err *err)
{
    struct det_tensor wide[DET_CALL_IN_MAX];
    struct det_call call = *c;
    const struct det_tensor *y = c->out[0];
    for (int i = 0; i < DET_CALL_IN_MAX; i++) {
        if (!c->in[i] || det__same_shape(c->in[i], y))
            continue;
        if (!det__broadcast(c->in[i], y->ndim, y->dims, &wide[i]))
            return det_fail(err, DET_EINVAL, "input %d does not fit the output", i + 1);
        call.in[i] = &wide[i];
    }
    return det__run(e, &call, err);
}

int det__on_device(struct det_engine *e, struct det_tensor *t, struct det_tensor **ret,
                   struct det_err *err)
{
    if (det__is_dead(t))
        return det_fail(err, DET_EINVAL, "the tensor " DET__IS_DEAD);
    if (t->engine && t->engine != e)
        return det_fail(err, DET_EINVAL, "a tensor belongs to another engine (%s)",
                        t->engine->name);
    if (t->engine || e->backend->host_memory) {
        *ret = det_tensor_ref(t);
        return 0;
    }
    TENSOR_OWN copy = NULL;
    int rc = det__tensor_new(e, t->dtype, DET_LAYOUT_PLAIN, t->ndim, t->dims, &copy, err);
    if (rc == 0 && t->layout != DET_LAYOUT_PLAIN)
        rc = det__tensor_assign(copy, t, err);
    else if (rc == 0)
        rc = e->backend->copy(e->stream, copy->data, t->data, det_tensor_bytes(t),
                              DET_COPY_TO_DEVICE, err);
    if (rc < 0)
        return rc;
    *ret = det_take(copy);
    return 0;
}

int det__copy(struct det_engine *e, struct det_tensor *src, struct det_tensor *dst,
              struct det_err *err)
{
    TENSOR_OWN from = NULL;
    if (!det__same_shape(src, dst))
        return det_fail(err, DET_EINVAL, "copy between tensors of different shapes");
    autocast_wrote(e, dst->storage);
    int rc = det__on_device(e, src, &from, err);
    if (rc < 0)
        return rc;
    return det__run(e, &(struct det_call){.kernel = DET_KERNEL_COPY, .in = {from}, .out = {dst}},
                    err);
}

/* What a constructor was asked for. */
struct wanted {
    const char *call;
    enum det_dtype dtype;
    int ndim;
    const int64_t *dims;
};

/* What all constructors end with: the tensor to the step, or the error to the engine. */
static struct det_tensor *finish_tensor(struct det_engine *e, struct det_tensor *t, int rc,
                                        const struct wanted *w, struct det_err *err)
{
    char shape[160];
    if (rc == 0)
        return det__keep(e, t);
    det_tensor_unref(t);
    det_wrap(err, rc, "%s(%s)", w->call,
             det__shape_text(w->dtype, w->ndim, w->dims, shape, sizeof shape));
    det__keep_error(e, err);
    return NULL;
}

static struct det_tensor *make_filled(struct det_engine *e, const struct wanted *w, double value)
{
    struct det_tensor *t = NULL;
    struct det_err err;
    if (e->err.code < 0)
        return NULL;
    int rc = det__tensor_new(e, w->dtype, DET_LAYOUT_PLAIN, w->ndim, w->dims, &t, &err);
    if (rc == 0)
        rc = det__run(
            e, &(struct det_call){.kernel = DET_KERNEL_FILL, .out = {t}, .a.scale = value}, &err);
    return finish_tensor(e, t, rc, w, &err);
}

struct det_tensor *det_full(struct det_engine *e, enum det_dtype dtype, int ndim,
                            const int64_t *dims, double value)
{
    return make_filled(e, &(const struct wanted){"full", dtype, ndim, dims}, value);
}

struct det_tensor *det_zeros(struct det_engine *e, enum det_dtype dtype, int ndim,
                             const int64_t *dims)
{
    return make_filled(e, &(const struct wanted){"zeros", dtype, ndim, dims}, 0);
}

struct det_tensor *det_from_host(struct det_engine *e, enum det_dtype dtype, int ndim,
                                 const int64_t *dims, const void *host)
{
    struct det_tensor *t = NULL;
    struct det_err err;
    if (e->err.code < 0 || !host)
        return NULL;
    int rc = det__tensor_new(e, dtype, DET_LAYOUT_PLAIN, ndim, dims, &t, &err);
    if (rc == 0)
        rc = det_tensor_write(t, host, det_tensor_bytes(t), &err);
    return finish_tensor(e, t, rc, &(const struct wanted){"from_host", dtype, ndim, dims}, &err);
}

struct det_tensor *det_to_device(struct det_engine *e, struct det_tensor *x)
{
    struct det_tensor *t = NULL;
    struct det_err err;
    if (e->err.code < 0 || !x)
        return NULL;
    int rc = det__on_device(e, x, &t, &err);
    return finish_tensor(e, t, rc, &(const struct wanted){"to_device", x->dtype, x->ndim, x->dims},
                         &err);
}

double det_item(struct det_engine *e, const struct det_tensor *t)
{
    uint64_t v = 0; /* room for any dtype */
    struct det_err err;
    if (!t || e->err.code < 0)
        return NAN;
    if (t->numel != 1) {
        det_engine_fail(e, DET_EINVAL, "item: the tensor has %zu elements, not one", t->numel);
        return NAN;
    }
    if (det_tensor_read(t, &v, det_dtype_size(t->dtype), &err) < 0) {
        det_wrap(&err, err.code, "item");
        det__keep_error(e, &err);
        return NAN;
    }
    return det__load_f64(t->dtype, &v);
}
