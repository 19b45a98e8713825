/* Views: other shapes over the same elements. Each is recorded for gradients without a kernel. */
#include <inttypes.h>
#include <string.h>

#include "mem.h"
#include "op.h"
#include "tape.h"

/* Copies dims to `full`, and puts the number that makes the product right at the one -1. */
static int complete_dims(const struct det_tensor *x, int ndim, const int64_t *dims,
                         int64_t full[DET_DIMS_MAX], struct det_err *err)
{
    char text[160];
    int hole = -1;
    int64_t known = 1;
    if (ndim < 0 || ndim > DET_DIMS_MAX)
        return det_fail(err, DET_EINVAL, "%d dimensions, at most %d", ndim, DET_DIMS_MAX);
    for (int i = 0; i < ndim; i++) {
        full[i] = dims[i];
        if (dims[i] == -1 && hole < 0)
            hole = i;
        else if (dims[i] < 0 || (dims[i] > 0 && known > DET__BYTES_MAX / dims[i]))
            return det_fail(err, DET_EINVAL, "dimension %d is %" PRId64, i, dims[i]);
        else
            known *= dims[i];
    }
    if (hole >= 0 && known > 0 && (int64_t)x->numel % known == 0)
        full[hole] = (int64_t)x->numel / known;
    else if (hole >= 0 || known != (int64_t)x->numel)
        return det_fail(err, DET_EINVAL, "its %zu elements cannot be %s", x->numel,
                        det__shape_text(x->dtype, ndim, dims, text, sizeof text));
    return 0;
}

/* True (and the engine's error) where x cannot be looked at; else x lies on the device then. */
static bool is_missing(struct det_engine *e, struct det_tensor **x, const char *what)
{
    if (e->err.code < 0)
        return true;
    if (!*x) {
        det_engine_fail(e, DET_EINVAL, "%s: the input is NULL", what);
        return true;
    }
    *x = det_to_device(e, *x);
    return !*x;
}

/* Gives a window on x (taken) to the step and the tape. */
static struct det_tensor *record_view(struct det_engine *e, enum op_id op, struct det_tensor *x,
                                      struct det_tensor *y, const struct det_attrs *a)
{
    det__keep(e, y);
    if (e->no_grad == 0 && op_wants_grad(x))
        tape_record(e->tape, &(struct op_call){.op = op, .in = {x}, .out = {y}, .a = *a});
    return y;
}

/* The dimension that d means, negative ones from the end; -1 with the error where there is none. */
static int resolve_dim(struct det_engine *e, const struct det_tensor *x, int ndim, int d,
                       const char *what)
{
    char text[160];
    if (d >= -ndim && d < ndim)
        return d < 0 ? d + ndim : d;
    det_engine_fail(e, DET_EINVAL, "%s(%s): there is no dimension %d", what,
                    det__tensor_text(x, text, sizeof text), d);
    return -1;
}

struct det_tensor *det_contiguous(struct det_engine *e, struct det_tensor *x)
{
    if (is_missing(e, &x, "contiguous"))
        return NULL;
    if (x->layout == DET_LAYOUT_PLAIN)
        return x;
    return op_apply(e, &(struct op_call){.op = OP_LAYOUT, .in = {x}, .layout = DET_LAYOUT_PLAIN});
}

struct det_tensor *det_clone(struct det_engine *e, struct det_tensor *x)
{
    if (is_missing(e, &x, "clone"))
        return NULL;
    bool dense = x->layout != DET_LAYOUT_STRIDED;
    return op_apply(e, &(struct op_call){.op = OP_LAYOUT,
                                         .in = {x},
                                         .layout = dense ? x->layout : DET_LAYOUT_PLAIN});
}

/* Other dimensions of the same rows, which may stay apart. */
static struct det_tensor *view_rows(struct det_tensor *x, int ndim, const int64_t *dims)
{
    int64_t strides[DET_DIMS_MAX];
    det__row_strides(ndim, dims, det__row_step(x), strides);
    return det__tensor_window(x, ndim, dims, strides, 0);
}

static struct det_tensor *make_view(struct det_engine *e, struct det_tensor *x, int ndim,
                                    const int64_t *dims)
{
    bool rows = ndim > 1 && det__has_rows(e, x) && dims[ndim - 1] == x->dims[x->ndim - 1];
    struct det_tensor *from = rows ? x : det_contiguous(e, x);
    if (!from)
        return NULL;
    if (rows)
        return record_view(e, OP_RESHAPE, x, view_rows(x, ndim, dims), &(struct det_attrs){0});
    return record_view(e, OP_RESHAPE, from, det__tensor_view(from, ndim, dims),
                       &(struct det_attrs){0});
}

struct det_tensor *det_reshape(struct det_engine *e, struct det_tensor *x, int ndim,
                               const int64_t *dims)
{
    int64_t full[DET_DIMS_MAX];
    char text[160];
    struct det_err err;
    if (is_missing(e, &x, "reshape"))
        return NULL;
    int rc = complete_dims(x, ndim, dims, full, &err);
    if (rc < 0) {
        det_wrap(&err, rc, "reshape(%s)", det__tensor_text(x, text, sizeof text));
        det__keep_error(e, &err);
        return NULL;
    }
    return make_view(e, x, ndim, full);
}

struct det_tensor *det_flatten(struct det_engine *e, struct det_tensor *x, int start_dim)
{
    int64_t dims[DET_DIMS_MAX];
    if (is_missing(e, &x, "flatten"))
        return NULL;
    int first = start_dim < 0 ? start_dim + x->ndim : start_dim;
    if (first < 0 || first >= x->ndim) {
        det_engine_fail(e, DET_EINVAL, "flatten: start_dim %d, the input has %d dimensions",
                        start_dim, x->ndim);
        return NULL;
    }
    memcpy(dims, x->dims, sizeof dims);
    for (int i = first + 1; i < x->ndim; i++)
        dims[first] *= x->dims[i];
    return make_view(e, x, first + 1, dims);
}

struct det_tensor *det_detach(struct det_engine *e, struct det_tensor *x)
{
    if (is_missing(e, &x, "detach"))
        return NULL;
    return det__keep(e, det__tensor_window(x, x->ndim, x->dims, x->strides, 0));
}

struct det_tensor *det_permute(struct det_engine *e, struct det_tensor *x, const int *order)
{
    int64_t dims[DET_DIMS_MAX], strides[DET_DIMS_MAX];
    struct det_attrs a = {0};
    char text[160];
    unsigned seen = 0;
    if (is_missing(e, &x, "permute"))
        return NULL;
    for (int i = 0; i < x->ndim; i++) {
        int d = resolve_dim(e, x, x->ndim, order[i], "permute");
        if (d < 0)
            return NULL;
        seen |= 1u << d;
        a.order[i] = (int8_t)d;
        dims[i] = x->dims[d];
        strides[i] = x->strides[d];
    }
    if (seen + 1 != 1u << x->ndim) {
        det_engine_fail(e, DET_EINVAL,
                        "permute(%s): the order names a dimension twice; it must name each of %d "
                        "once",
                        det__tensor_text(x, text, sizeof text), x->ndim);
        return NULL;
    }
    return record_view(e, OP_PERMUTE, x, det__tensor_window(x, x->ndim, dims, strides, 0), &a);
}

struct det_tensor *det_transpose(struct det_engine *e, struct det_tensor *x, int dim0, int dim1)
{
    int order[DET_DIMS_MAX];
    if (is_missing(e, &x, "transpose"))
        return NULL;
    int a = resolve_dim(e, x, x->ndim, dim0, "transpose");
    int b = a < 0 ? -1 : resolve_dim(e, x, x->ndim, dim1, "transpose");
    if (b < 0)
        return NULL;
    for (int i = 0; i < x->ndim; i++)
        order[i] = i == a ? b : i == b ? a : i;
    return det_permute(e, x, order);
}

/* Elements from, from + step, ... below `to` of dimension d. */
static struct det_tensor *slice_dim(struct det_engine *e, struct det_tensor *x, int d,
                                    const struct det_slice *s)
{
    int64_t dims[DET_DIMS_MAX], strides[DET_DIMS_MAX];
    struct det_attrs a = {.dim = d, .start = s->start, .every = s->step};
    char text[160];
    if (s->step < 1 || s->start < 0 || s->end < s->start || s->end > x->dims[d]) {
        det_engine_fail(e, DET_EINVAL,
                        "slice(%s): elements %" PRId64 " to %" PRId64 " in steps of %" PRId64
                        " of dimension %d",
                        det__tensor_text(x, text, sizeof text), s->start, s->end, s->step, d);
        return NULL;
    }
    memcpy(dims, x->dims, sizeof dims);
    memcpy(strides, x->strides, sizeof strides);
    dims[d] = (s->end - s->start + s->step - 1) / s->step;
    strides[d] *= s->step;
    int64_t offset = dims[d] > 0 ? s->start * x->strides[d] : 0;
    return record_view(e, OP_SLICE, x, det__tensor_window(x, x->ndim, dims, strides, offset), &a);
}

struct det_tensor *det_slice(struct det_engine *e, struct det_tensor *x, int dim,
                             const struct det_slice *slice)
{
    struct det_slice s = *slice;
    if (is_missing(e, &x, "slice"))
        return NULL;
    int d = resolve_dim(e, x, x->ndim, dim, "slice");
    if (d < 0)
        return NULL;
    s.step = s.step ? s.step : 1;
    s.start += s.start < 0 ? x->dims[d] : 0;
    s.end += s.end <= 0 ? x->dims[d] : 0;
    return slice_dim(e, x, d, &s);
}

struct det_tensor *det_narrow(struct det_engine *e, struct det_tensor *x, int dim, int64_t start,
                              int64_t length)
{
    char text[160];
    if (is_missing(e, &x, "narrow"))
        return NULL;
    int d = resolve_dim(e, x, x->ndim, dim, "narrow");
    if (d < 0)
        return NULL;
    if (start < 0 || start > x->dims[d] || length < 0 || length > x->dims[d] - start) {
        det_engine_fail(e, DET_EINVAL,
                        "narrow(%s): %" PRId64 " elements from %" PRId64
                        " on are not in dimension %d",
                        det__tensor_text(x, text, sizeof text), length, start, d);
        return NULL;
    }
    return slice_dim(e, x, d, &(struct det_slice){start, start + length, 1});
}

/* x with dimension d taken away or a dimension of 1 put before d. */
static struct det_tensor *resize_dim(struct det_engine *e, struct det_tensor *x, int d, int by)
{
    int64_t dims[DET_DIMS_MAX], strides[DET_DIMS_MAX];
    for (int i = 0; i < x->ndim + by; i++) {
        int from = i < d || by == 0 ? i : i - by;
        dims[i] = by > 0 && i == d ? 1 : x->dims[from];
        strides[i] = by > 0 && i == d ? 1 : x->strides[from];
    }
    return record_view(e, OP_RESHAPE, x, det__tensor_window(x, x->ndim + by, dims, strides, 0),
                       &(struct det_attrs){0});
}

struct det_tensor *det_select(struct det_engine *e, struct det_tensor *x, int dim, int64_t index)
{
    char text[160];
    if (is_missing(e, &x, "select"))
        return NULL;
    int d = resolve_dim(e, x, x->ndim, dim, "select");
    if (d < 0)
        return NULL;
    int64_t first = index < 0 ? index + x->dims[d] : index;
    if (first < 0 || first >= x->dims[d]) {
        det_engine_fail(e, DET_EINVAL,
                        "select(%s): there is no element %" PRId64 " in dimension %d",
                        det__tensor_text(x, text, sizeof text), index, d);
        return NULL;
    }
    struct det_tensor *one = slice_dim(e, x, d, &(struct det_slice){first, first + 1, 1});
    return one ? resize_dim(e, one, d, -1) : NULL;
}

struct det_tensor *det_unsqueeze(struct det_engine *e, struct det_tensor *x, int dim)
{
    if (is_missing(e, &x, "unsqueeze"))
        return NULL;
    if (x->ndim == DET_DIMS_MAX) {
        det_engine_fail(e, DET_EINVAL, "unsqueeze: at most %d dimensions", DET_DIMS_MAX);
        return NULL;
    }
    int d = resolve_dim(e, x, x->ndim + 1, dim, "unsqueeze");
    return d < 0 ? NULL : resize_dim(e, x, d, 1);
}

struct det_tensor *det_squeeze(struct det_engine *e, struct det_tensor *x, int dim)
{
    if (is_missing(e, &x, "squeeze"))
        return NULL;
    int d = resolve_dim(e, x, x->ndim, dim, "squeeze");
    if (d < 0)
        return NULL;
    return x->dims[d] == 1 ? resize_dim(e, x, d, -1) : x;
}

struct det_tensor *det_expand(struct det_engine *e, struct det_tensor *x, int ndim,
                              const int64_t *dims)
{
    int64_t full[DET_DIMS_MAX];
    struct det_tensor wide;
    char text[160], wanted[160];
    if (is_missing(e, &x, "expand"))
        return NULL;
    int more = ndim - x->ndim;
    bool fits = more >= 0 && ndim <= DET_DIMS_MAX;
    for (int d = 0; fits && d < ndim; d++)
        full[d] = dims[d] == -1 && d >= more ? x->dims[d - more] : dims[d];
    if (!fits || det__shape_numel(x->dtype, ndim, full) < 0 ||
        !det__broadcast(x, ndim, full, &wide)) {
        det_engine_fail(e, DET_EINVAL,
                        "expand(%s): it cannot be %s: only dimensions of 1 can be repeated",
                        det__tensor_text(x, text, sizeof text),
                        ndim < 0 || ndim > DET_DIMS_MAX
                            ? "of so many dimensions"
                            : det__shape_text(x->dtype, ndim, dims, wanted, sizeof wanted));
        return NULL;
    }
    return record_view(e, OP_EXPAND, x, det__tensor_window(x, ndim, full, wide.strides, 0),
                       &(struct det_attrs){0});
}
