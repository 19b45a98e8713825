/* Joining, cutting, ordering and marking: what moves elements and computes nothing. */
#include "cuda_kernel.cuh"

/* The part of the rows of `whole` that t stands for, from row `at`. */
static int copy_part(struct det_stream *s, const struct det_tensor *whole,
                     const struct det_tensor *t, int64_t at, bool join, struct det_err *err)
{
    int64_t row = whole->dims[2];
    struct det_tensor part = *t, flat = *t;
    part.data = whole->data + (size_t)(at * row) * det_dtype_size(whole->dtype);
    part.ndim = flat.ndim = 2;
    part.dims[0] = flat.dims[0] = t->dims[0];
    part.dims[1] = flat.dims[1] = t->dims[1] * row;
    part.strides[0] = whole->dims[1] * row;
    flat.strides[0] = t->dims[1] * row;
    part.strides[1] = flat.strides[1] = 1;
    struct det_call copy = {
        .kernel = DET_KERNEL_COPY, .in = {join ? &flat : &part}, .out = {join ? &part : &flat}};
    return cuda_copy(s, &copy, err);
}

int cuda_cat(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int64_t at = 0;
    int rc = 0;
    for (int i = 0; rc == 0 && i < DET_CALL_IN_MAX && c->in[i]; i++) {
        rc = copy_part(s, c->out[0], c->in[i], at, true, err);
        at += c->in[i]->dims[1];
    }
    return rc;
}

int cuda_cut(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    return copy_part(s, c->in[0], c->out[0], c->a.skip, false, err);
}

/* NaN is the greatest; equals stay in their order whichever way is sorted. */
struct order {
    bool descending;
    template <typename T> __device__ bool after(T a, int64_t ia, T b, int64_t ib) const
    {
        bool nan_a = a != a, nan_b = b != b;
        if (nan_a != nan_b)
            return nan_a != descending;
        if (nan_a || a == b)
            return ia > ib;
        return (a > b) != descending;
    }
};

/* Puts two places of a row in order. */
template <typename T>
__device__ static void exchange(struct order o, T *y, int64_t *index, int64_t i, int64_t j)
{
    T a = y[i], b = y[j];
    int64_t ia = index[i], ib = index[j];
    if (!o.after(a, ia, b, ib))
        return;
    y[i] = b;
    y[j] = a;
    index[i] = ib;
    index[j] = ia;
}

/* A bitonic sorting network (Batcher 1968) whose comparisons all go one way, so that places after
 * the row's end, which stand for the greatest, need not exist. */
template <typename T>
__device__ static void sort_row(struct order o, T *y, int64_t *index, int64_t n)
{
    for (int64_t size = 2; size < 2 * n; size *= 2) {
        for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
            int64_t j = i ^ (size - 1); /* mirrored within its part */
            if (j > i && j < n)
                exchange(o, y, index, i, j);
        }
        __syncthreads();
        for (int64_t step = size / 4; step > 0; step /= 2) {
            for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
                if ((i & step) == 0 && i + step < n)
                    exchange(o, y, index, i, i + step);
            __syncthreads();
        }
    }
}

template <typename T>
static int sort(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int64_t m = c->in[0]->dims[0], n = c->in[0]->dims[1], *index = out_i64(c, 1);
    const T *x = (const T *)c->in[0]->data;
    T *y = (T *)c->out[0]->data;
    struct order o = {c->a.descending};
    return cuda_blocks(
        s, c, m,
        DEVICE(int64_t row) {
            for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
                y[row * n + i] = x[row * n + i];
                index[row * n + i] = i;
            }
            __syncthreads();
            sort_row(o, y + row * n, index + row * n, n);
        },
        err);
}

int cuda_sort(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    switch (c->in[0]->dtype) {
    case DET_F32: return sort<float>(s, c, err);
    case DET_F64: return sort<double>(s, c, err);
    default: return sort<int64_t>(s, c, err);
    }
}

/* By their bits: all bits 0 are the 0 of every dtype. */
template <typename T>
static int triangle(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int64_t m = c->in[0]->dims[1], n = c->in[0]->dims[2], skip = c->a.skip;
    const T *x = (const T *)c->in[0]->data;
    T *y = (T *)c->out[0]->data;
    bool upper = c->a.upper;
    return cuda_each(
        s, c, (int64_t)c->in[0]->numel,
        DEVICE(int64_t i) {
            int64_t row = cuda_div(i, n), above = i - row * n - row % m - skip;
            y[i] = (upper ? above >= 0 : above <= 0) ? x[i] : 0;
        },
        err);
}

int cuda_triangle(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    switch (det_dtype_size(c->in[0]->dtype)) {
    case 8: return triangle<uint64_t>(s, c, err);
    case 4: return triangle<uint32_t>(s, c, err);
    case 2: return triangle<uint16_t>(s, c, err);
    default: return triangle<uint8_t>(s, c, err);
    }
}
