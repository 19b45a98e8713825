/*
 * Convolution in f64, which cuDNN documents for NCHW gradients only: what each window sees is laid
 * out as a row (Chellapilla et al. 2006), the rest is products by cuBLAS, one for each group of
 * channels. Images are taken some at a time, so that the rows need little memory; sums over images
 * are in their order.
 */
#include "cuda_spot.cuh"

#ifndef CUDA_ROWS_BYTES
#define CUDA_ROWS_BYTES ((int64_t)256 << 20) /* unless one image needs more */
#endif

/* The rows of some images: [groups][pixels of the outputs][a group's inputs * taps]. */
struct rows {
    int64_t h, w, out_h, out_w; /* of an image and of its output */
    int64_t images, groups, ins, outs; /* all images; ins, outs: channels of a group */
    int64_t taps, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_h, pad_w;
    int64_t some; /* images taken at a time */
    double *p;

    __host__ __device__ int64_t width() const { return ins * taps; }
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
    int64_t one = r->groups * r->pixels(1) * r->width() * (int64_t)sizeof(double);
    r->some = one > 0 ? CUDA_ROWS_BYTES / one : r->images;
    r->some = r->some < 1 ? 1 : r->some > r->images ? r->images : r->some;
    int rc = cuda_workspace(s->device, (size_t)(r->some * one) + 8, &work, err);
    r->p = (double *)work;
    return rc;
}

/* The rows of n images, x their first. */
static int rows_fill(struct det_stream *s, const struct det_call *c, const struct rows &r,
                     const double *x, int64_t n, struct det_err *err)
{
    int64_t channels = r.groups * r.ins, pixels = r.pixels(n);
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
            r.p[i] = inside ? x[from] : 0;
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
                       double *dx, int64_t n, struct det_err *err)
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
                    total += r.p[row * r.width() + in * r.taps + tap];
            }
            dx[i] = total;
        },
        err);
}

/* What the three have alike: a product for each group. */
static struct cuda_gemm products(const struct rows &r)
{
    struct cuda_gemm g = {.dtype = DET_F64};
    g.count = r.groups;
    return g;
}

/* y [pixels, outs] = rows w^T */
static int forward(struct det_stream *s, const struct rows &r, const double *w, double *y,
                   int64_t n, struct det_err *err)
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
static int backward_rows(struct det_stream *s, const struct rows &r, const double *w,
                         const double *dy, int64_t n, struct det_err *err)
{
    int64_t pixels = r.pixels(n);
    struct cuda_gemm g = products(r);
    g.m = pixels, g.n = r.width(), g.k = r.outs;
    g.a = dy, g.lda = r.groups * r.outs, g.a_step = r.outs;
    g.b = w, g.ldb = r.width(), g.b_step = r.outs * r.width();
    g.c = r.p, g.ldc = r.width(), g.c_step = pixels * r.width();
    return cuda_gemm(s, &g, err);
}

/* dw = dy^T rows, added to what there is of the images before */
static int backward_weight(struct det_stream *s, const struct rows &r, double *dw,
                           const double *dy, int64_t first, int64_t n, struct det_err *err)
{
    int64_t pixels = r.pixels(n);
    struct cuda_gemm g = products(r);
    g.ta = true;
    g.m = r.outs, g.n = r.width(), g.k = pixels, g.beta = first > 0 ? 1 : 0;
    g.a = dy + r.pixels(first) * r.groups * r.outs, g.lda = r.groups * r.outs, g.a_step = r.outs;
    g.b = r.p, g.ldb = r.width(), g.b_step = pixels * r.width();
    g.c = dw, g.ldc = r.width(), g.c_step = r.outs * r.width();
    return cuda_gemm(s, &g, err);
}

/* Elements of `images` images of x and of y. */
static int64_t of_x(const struct rows &r, int64_t images)
{
    return images * r.h * r.w * r.groups * r.ins;
}
static int64_t of_y(const struct rows &r, int64_t images)
{
    return r.pixels(images) * r.groups * r.outs;
}

static int64_t next(const struct rows &r, int64_t first)
{
    return r.images - first < r.some ? r.images - first : r.some;
}

int cuda_conv2d_f64(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const double *x = in_real<double>(c, 0), *w = in_real<double>(c, 1);
    double *y = out_real<double>(c, 0);
    struct rows r;
    if (c->out[0]->numel == 0)
        return 0;
    int rc = rows_init(&r, s, c, c->in[0], c->in[1], c->out[0], err);
    for (int64_t i = 0; rc == 0 && i < r.images; i += r.some) {
        rc = rows_fill(s, c, r, x + of_x(r, i), next(r, i), err);
        if (rc == 0)
            rc = forward(s, r, w, y + of_y(r, i), next(r, i), err);
    }
    return rc < 0 ? rc : cuda_finish_rows(s, c, c->in[2], c->out[0], c->out[0]->dims[1], err);
}

int cuda_conv2d_bwd_data_f64(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const double *dy = in_real<double>(c, 0), *w = in_real<double>(c, 1);
    double *dx = out_real<double>(c, 0);
    struct rows r;
    if (c->out[0]->numel == 0)
        return 0;
    int rc = rows_init(&r, s, c, c->out[0], c->in[1], c->in[0], err);
    for (int64_t i = 0; rc == 0 && i < r.images; i += r.some) {
        rc = backward_rows(s, r, w, dy + of_y(r, i), next(r, i), err);
        if (rc == 0)
            rc = rows_gather(s, c, r, dx + of_x(r, i), next(r, i), err);
    }
    return rc;
}

int cuda_conv2d_bwd_weight_f64(struct det_stream *s, const struct det_call *c,
                               struct det_err *err)
{
    const double *x = in_real<double>(c, 0), *dy = in_real<double>(c, 1);
    double *dw = out_real<double>(c, 0);
    const struct det_tensor *y = c->in[1];
    struct rows r;
    int rc = rows_init(&r, s, c, c->in[0], c->out[0], y, err);
    if (rc == 0 && y->numel == 0)
        rc = cuda_check(cudaMemsetAsync(dw, 0, det_tensor_bytes(c->out[0]), s->native),
                        "conv2d_bwd_weight", err);
    for (int64_t i = 0; rc == 0 && y->numel > 0 && i < r.images; i += r.some) {
        rc = rows_fill(s, c, r, x + of_x(r, i), next(r, i), err);
        if (rc == 0)
            rc = backward_weight(s, r, dw, dy, i, next(r, i), err);
    }
    return rc < 0 || !c->out[1] ? rc : cuda_sum_rows(s, c, y, c->out[1], y->dims[1], err);
}
