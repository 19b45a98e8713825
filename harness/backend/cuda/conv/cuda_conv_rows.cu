/*
 * Convolution without cuDNN, in any floating dtype: all of f64, and what cuDNN has no deterministic
 * algorithm for. What each window sees is laid out as a row (Chellapilla et al. 2006), the rest is
 * products by cuBLAS, one for each group of channels. Images are taken some at a time, so that the
 * rows need little memory; sums over images are in their order.
 */
#include "cuda_dtype.cuh"
#include "cuda_spot.cuh"

#ifndef CUDA_ROWS_BYTES
#define CUDA_ROWS_BYTES ((int64_t)256 << 20) /* unless one image needs more */
#endif

/* The rows of some images: [groups][pixels of the outputs][a group's inputs * taps]. */
struct rows {
    int64_t h, w, out_h, out_w;        /* of an image and of its output */
    int64_t images, groups, ins, outs; /* all images; ins, outs: channels of a group */
    int64_t taps, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_h, pad_w;
    int64_t some; /* images taken at a time */
    enum det_dtype dtype;
    char *p;

    __host__ __device__ int64_t width() const { return ins * taps; }
    size_t size() const { return det_dtype_size(dtype); }
    __host__ __device__ int64_t pixels(int64_t n) const { return n * out_h * out_w; }
};

static int rows_init(struct rows *r, struct det_stream *s, const struct det_call *c,
                     const struct det_tensor *x, const struct det_tensor *w,
                     const struct det_tensor *y, struct det_err *err)
{
    const struct det_attrs *a = &c->a;
    void *work = NULL;
    *r = {};
    r->h = x->dims[2], r->w = x->dims[3], r->out_h = y->dims[2], r->out_w = y->dims[3];
    r->images = x->dims[0], r->groups = a->groups;
    r->ins = w->dims[1], r->outs = w->dims[0] / a->groups;
    r->taps = w->dims[2] * w->dims[3], r->kernel_w = w->dims[3];
    r->stride_h = a->stride_h, r->stride_w = a->stride_w;
    r->dilation_h = a->dilation_h, r->dilation_w = a->dilation_w;
    r->pad_h = a->pad_h, r->pad_w = a->pad_w;
    r->dtype = x->dtype;
    int64_t one = r->groups * r->pixels(1) * r->width() * (int64_t)r->size();
    r->some = one > 0 ? CUDA_ROWS_BYTES / one : r->images;
    r->some = r->some < 1 ? 1 : r->some > r->images ? r->images : r->some;
    int rc = cuda_workspace(s->device, (size_t)(r->some * one) + 8, &work, err);
    r->p = (char *)work;
    return rc;
}

/* The rows of n images, x their first. */
static int rows_fill(struct det_stream *s, const struct det_call *c, const struct rows &r,
                     const char *x, int64_t n, struct det_err *err)
{
    int64_t channels = r.groups * r.ins, pixels = r.pixels(n);
    size_t size = r.size();
    return cuda_each(
        s, c, r.groups * pixels * r.width(),
        DEVICE(int64_t i) {
            int64_t row = cuda_div(i, r.width()), group = cuda_div(row, pixels);
            int64_t in = cuda_div(i - row * r.width(), r.taps);
            int64_t tap = i - row * r.width() - in * r.taps, kh = cuda_div(tap, r.kernel_w);
            struct cuda_spot at = cuda_spot_of(row - group * pixels, r.out_h, r.out_w, 1);
            int64_t h = at.h * r.stride_h - r.pad_h + kh * r.dilation_h;
            int64_t w = at.w * r.stride_w - r.pad_w + (tap - kh * r.kernel_w) * r.dilation_w;
            bool inside = h >= 0 && h < r.h && w >= 0 && w < r.w;
            int64_t from = ((at.n * r.h + h) * r.w + w) * channels + group * r.ins + in;
            if (inside)
                cuda_move(size, r.p, i, x, from);
            else
                cuda_store(r.dtype, r.p, i, (int64_t)0);
        },
        err);
}

/* Where the window begins whose tap lies at `at` of a line, in strides; -1: no window. */
__device__ static int64_t window_of(int64_t at, int64_t stride, int64_t windows)
{
    int64_t i = at < 0 ? -1 : cuda_div(at, stride);
    return i >= 0 && i < windows && i * stride == at ? i : -1;
}

/* dx of n images: each element adds the rows that saw it, in the order of the taps. */
static int rows_gather(struct det_stream *s, const struct det_call *c, const struct rows &r,
                       char *dx, int64_t n, struct det_err *err)
{
    int64_t channels = r.groups * r.ins, pixels = r.pixels(n);
    return cuda_each(
        s, c, n * r.h * r.w * channels,
        DEVICE(int64_t i) {
            struct cuda_spot at = cuda_spot_of(i, r.h, r.w, channels);
            int64_t group = cuda_div(at.channel, r.ins), in = at.channel - group * r.ins;
            double total = 0;
            for (int64_t tap = 0; tap < r.taps; tap++) {
                int64_t kh = cuda_div(tap, r.kernel_w), kw = tap - kh * r.kernel_w;
                int64_t h = window_of(at.h + r.pad_h - kh * r.dilation_h, r.stride_h, r.out_h);
                int64_t w = window_of(at.w + r.pad_w - kw * r.dilation_w, r.stride_w, r.out_w);
                int64_t row = group * pixels + (at.n * r.out_h + h) * r.out_w + w;
                if (h >= 0 && w >= 0)
                    total += cuda_load<double>(r.dtype, r.p, row * r.width() + in * r.taps + tap);
            }
            cuda_store(r.dtype, dx, i, total);
        },
        err);
}

/* What the three have alike: a product for each group. */
static struct cuda_gemm products(const struct rows &r)
{
    struct cuda_gemm g = {.dtype = r.dtype};
    g.count = r.groups;
    return g;
}

/* y [pixels, outs] = rows w^T */
static int forward(struct det_stream *s, const struct rows &r, const char *w, char *y, int64_t n,
                   struct det_err *err)
{
    int64_t pixels = r.pixels(n);
    struct cuda_gemm g = products(r);
    g.tb = true;
    g.m = pixels, g.n = r.outs, g.k = r.width();
    g.a = r.p, g.lda = r.width(), g.a_step = pixels * r.width();
    g.b = w, g.ldb = r.width(), g.b_step = r.outs * r.width();
    g.c = y, g.ldc = r.groups * r.outs, g.c_step = r.outs;
    return cuda_gemm(s, &g, err);
}

/* rows = dy [pixels, outs] w */
static int backward_rows(struct det_stream *s, const struct rows &r, const char *w, const char *dy,
                         int64_t n, struct det_err *err)
{
    int64_t pixels = r.pixels(n);
    struct cuda_gemm g = products(r);
    g.m = pixels, g.n = r.width(), g.k = r.outs;
    g.a = dy, g.lda = r.groups * r.outs, g.a_step = r.outs;
    g.b = w, g.ldb = r.width(), g.b_step = r.outs * r.width();
    g.c = r.p, g.ldc = r.width(), g.c_step = pixels * r.width();
    return cuda_gemm(s, &g, err);
}

/* dw = dy^T rows, added to what there is of the images before where `more` */
static int backward_weight(struct det_stream *s, const struct rows &r, char *dw, const char *dy,
                           bool more, int64_t n, struct det_err *err)
{
    int64_t pixels = r.pixels(n);
    struct cuda_gemm g = products(r);
    g.ta = true;
    g.m = r.outs, g.n = r.width(), g.k = pixels, g.beta = more ? 1 : 0;
    g.a = dy, g.lda = r.groups * r.outs, g.a_step = r.outs;
    g.b = r.p, g.ldb = r.width(), g.b_step = pixels * r.width();
    g.c = dw, g.ldc = r.width(), g.c_step = r.outs * r.width();
    return cuda_gemm(s, &g, err);
}

/* Where image i of x, or of y, begins. */
static char *of_x(const struct rows &r, const struct det_tensor *x, int64_t i)
{
    return x->data + (size_t)(i * r.h * r.w * r.groups * r.ins) * r.size();
}
static char *of_y(const struct rows &r, const struct det_tensor *y, int64_t i)
{
    return y->data + (size_t)(r.pixels(i) * r.groups * r.outs) * r.size();
}

static int64_t next(const struct rows &r, int64_t first)
{
    return r.images - first < r.some ? r.images - first : r.some;
}

int cuda_rows_conv2d(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct rows r;
    int rc = rows_init(&r, s, c, c->in[0], c->in[1], c->out[0], err);
    for (int64_t i = 0; rc == 0 && i < r.images; i += r.some) {
        rc = rows_fill(s, c, r, of_x(r, c->in[0], i), next(r, i), err);
        if (rc == 0)
            rc = forward(s, r, c->in[1]->data, of_y(r, c->out[0], i), next(r, i), err);
    }
    return rc;
}

int cuda_rows_conv2d_bwd_data(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct rows r;
    int rc = rows_init(&r, s, c, c->out[0], c->in[1], c->in[0], err);
    for (int64_t i = 0; rc == 0 && i < r.images; i += r.some) {
        rc = backward_rows(s, r, c->in[1]->data, of_y(r, c->in[0], i), next(r, i), err);
        if (rc == 0)
            rc = rows_gather(s, c, r, of_x(r, c->out[0], i), next(r, i), err);
    }
    return rc;
}

int cuda_rows_conv2d_bwd_weight(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct rows r;
    int rc = rows_init(&r, s, c, c->in[0], c->out[0], c->in[1], err);
    for (int64_t i = 0; rc == 0 && i < r.images; i += r.some) {
        rc = rows_fill(s, c, r, of_x(r, c->in[0], i), next(r, i), err);
        if (rc == 0)
            rc = backward_weight(s, r, c->out[0]->data, of_y(r, c->in[1], i), i > 0, next(r, i),
                                 err);
    }
    return rc;
}
