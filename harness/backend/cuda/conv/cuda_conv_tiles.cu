/*
 * Convolution of f32 in f32, forward and x's gradient, for channels in multiples of 4: a product of
 * what the windows see and the weights (an implicit GEMM). A block computes a tile of pixels by
 * channels: tall * DOWN of one, wide * ACROSS of the other, tall by wide of them a thread. Both
 * factors come through shared memory, DEEP of the sums' terms at a time, while those before are
 * multiplied. x's gradient, for windows that move by 1, is the same over dy, taps in the other
 * direction. Sums are in the order of taps, then channels, whatever the tile.
 *
 * cuDNN has no kernel for f32 without TF32 over NHWC with more than one channel: it turns both
 * tensors into NCHW and back, which takes as long as the product.
 */
#include <limits.h>

#include "cuda_tile.cuh"
#include "cuda_warp.cuh"

#ifndef CUDA_CONV_TILES_MIN
#define CUDA_CONV_TILES_MIN (CUDA_SMS / 2) /* tiles: fewer leave most of the device idle */
#endif

#define THREADS 128
#define ACROSS  8 /* threads of a tile's row */
#define DOWN    (THREADS / ACROSS)
#define DEEP    16
#define PACK    4          /* floats of 16 bytes */
#define PITCH   (DEEP + 4) /* so that rows side by side lie in other banks */
#define PACKS   (DEEP / PACK)
#define ABREAST (THREADS / PACKS) /* rows that all threads load at once */

struct conv {
    const float *x, *w, *bias; /* x: what windows see, dy for x's gradient; no bias: NULL */
    float *y;
    int h, wide, channels;  /* of x */
    int out_h, out_w, outs; /* of y */
    int taps_h, taps_w;
    int stride_h, stride_w, pad_h, pad_w; /* the window of pixel i begins at i * stride - pad */
    int step_h, step_w;                   /* from tap to tap */
    int rows, depth;                      /* pixels of y; terms of a sum */
    int strips;                           /* tiles over y's channels */
    int64_t tiles;
    bool relu;
};

/* Term number k of the sums. */
struct conv_term {
    int tap_h, tap_w, channel;
};

__device__ inline conv_term conv_term_of(const conv &v, int k)
{
    int tap = k / v.channels, tap_h = tap / v.taps_w;
    return {tap_h, tap - tap_h * v.taps_w, k - tap * v.channels};
}

__device__ inline void conv_advance(const conv &v, conv_term &t)
{
    t.channel += DEEP;
    while (t.channel >= v.channels) {
        t.channel -= v.channels;
        bool last = ++t.tap_w == v.taps_w;
        t.tap_w = last ? 0 : t.tap_w;
        t.tap_h += last;
    }
}

/* Of a pixel of y: where its window begins in its image of x, and as an index of x. */
struct conv_pixel {
    int h, w, at;
};

__device__ inline conv_pixel conv_pixel_of(const conv &v, int row)
{
    int line = row / v.out_w, image = line / v.out_h;
    int h = (line - image * v.out_h) * v.stride_h - v.pad_h;
    int w = (row - line * v.out_w) * v.stride_w - v.pad_w;
    return {row < v.rows ? h : INT_MIN / 2, w, ((image * v.h + h) * v.wide + w) * v.channels};
}

/* What a thread loads for a tile: a pack of a term's channels for some pixels, and of weights. */
template <int TALL, int WIDE, bool BACK> struct conv_loader {
    static constexpr int pixels = (TALL * DOWN + ABREAST - 1) / ABREAST;
    static constexpr int weights = WIDE * ACROSS / ABREAST;
    static constexpr int strip = WIDE * ACROSS, strip_packs = strip / PACK;
    static constexpr int weight_rows = THREADS / strip_packs;
    conv_pixel pixel[pixels];
    conv_term term, back[BACK ? weights : 1]; /* of x; of the weights */
    int k, row, at, column;

    __device__ conv_loader(const conv &v, int first_row, int first_column)
    {
        int t = (int)threadIdx.x;
        row = t / PACKS;
        at = t % PACKS * PACK;
        k = at;
        term = conv_term_of(v, k);
        CUDA_UNROLL
        for (int i = 0; i < pixels; i++)
            pixel[i] = conv_pixel_of(v, first_row + row + i * ABREAST);
        column = first_column + (BACK ? t % strip_packs * PACK : row);
        CUDA_UNROLL
        for (int i = 0; BACK && i < weights; i++)
            back[i] = conv_term_of(v, t / strip_packs + i * weight_rows);
    }

    __device__ void load_x(const conv &v, float *to) const;
    __device__ void load_rows(const conv &v, float *to) const;
    __device__ void load_columns(const conv &v, float *to) const;

    /* The next DEEP terms. */
    __device__ void load(const conv &v, float *x, float *w)
    {
        load_x(v, x);
        if constexpr (BACK)
            load_columns(v, w);
        else
            load_rows(v, w);
        conv_advance(v, term);
        k += DEEP;
        CUDA_UNROLL
        for (int i = 0; BACK && i < weights; i++)
            conv_advance(v, back[i]);
    }
};

template <int TALL, int WIDE, bool BACK>
__device__ inline void conv_loader<TALL, WIDE, BACK>::load_x(const conv &v, float *to) const
{
    int h = term.tap_h * v.step_h, w = term.tap_w * v.step_w;
    int off = (h * v.wide + w) * v.channels + term.channel;
    CUDA_UNROLL
    for (int i = 0; i < pixels; i++) {
        const conv_pixel &p = pixel[i];
        bool inside = term.tap_h < v.taps_h && (unsigned)(p.h + h) < (unsigned)v.h &&
                      (unsigned)(p.w + w) < (unsigned)v.wide;
        if (TALL * DOWN % ABREAST == 0 || i < pixels - 1 || row < TALL * DOWN % ABREAST)
            cuda_copy16_near(to + (row + i * ABREAST) * PITCH + at, v.x + (inside ? p.at + off : 0),
                             inside);
    }
}

/* Weights (y's channels, terms) as they are. */
template <int TALL, int WIDE, bool BACK>
__device__ inline void conv_loader<TALL, WIDE, BACK>::load_rows(const conv &v, float *to) const
{
    CUDA_UNROLL
    for (int i = 0; i < weights; i++) {
        int n = column + i * ABREAST;
        bool inside = n < v.outs && k < v.depth;
        cuda_copy16_near(to + (row + i * ABREAST) * PITCH + at,
                         v.w + (inside ? n * v.depth + k : 0), inside);
    }
}

/* Weights (dy's channels, taps, x's channels) as (terms, x's channels). */
template <int TALL, int WIDE, bool BACK>
__device__ inline void conv_loader<TALL, WIDE, BACK>::load_columns(const conv &v, float *to) const
{
    CUDA_UNROLL
    for (int i = 0; i < weights; i++) {
        const conv_term &t = back[BACK ? i : 0];
        bool inside = column < v.outs && t.tap_h < v.taps_h;
        int n = (t.channel * v.taps_h + t.tap_h) * v.taps_w + t.tap_w;
        cuda_copy16_near(to + (int)threadIdx.x * PACK + i * weight_rows * strip,
                         v.w + (inside ? n * v.outs + column : 0), inside);
    }
}

__device__ inline void conv_open(const float *from, float v[PACK])
{
    float4 four = *(const float4 *)from;
    v[0] = four.x, v[1] = four.y, v[2] = four.z, v[3] = four.w;
}

/* Where a thread is in its tile. Threads are dealt out such that a quarter of a warp meets few rows
 * of both factors. */
struct conv_place {
    int row, column;

    __device__ conv_place()
    {
        int t = (int)threadIdx.x, lane = t % CUDA_WARP;
        row = t / CUDA_WARP * (CUDA_WARP / ACROSS) + (lane >> 4) * 2 + (lane & 1);
        column = lane >> 1 & (ACROSS - 1);
    }
};

/* The weights of PACK terms from k on for a thread's columns: every ACROSS-th, or packs of them. */
template <int WIDE, bool BACK>
__device__ inline void conv_weights(const float *w, int column, int k, float v[WIDE][PACK])
{
    CUDA_UNROLL
    for (int j = 0; !BACK && j < WIDE; j++)
        conv_open(w + (column + j * ACROSS) * PITCH + k, v[j]);
    CUDA_UNROLL
    for (int n = 0; BACK && n < PACK; n++) {
        CUDA_UNROLL
        for (int j = 0; j < WIDE; j += PACK) {
            float four[PACK];
            conv_open(w + (k + n) * WIDE * ACROSS + column * PACK + j * ACROSS, four);
            CUDA_UNROLL
            for (int e = 0; e < PACK; e++)
                v[j + e][n] = four[e];
        }
    }
}

template <int TALL, int WIDE, bool BACK>
__device__ inline void conv_multiply(const float *x, const float *w, const conv_place &at,
                                     float (&sum)[TALL][WIDE])
{
    CUDA_UNROLL
    for (int k = 0; k < DEEP; k += PACK) {
        float a[TALL][PACK], b[WIDE][PACK];
        CUDA_UNROLL
        for (int i = 0; i < TALL; i++)
            conv_open(x + (at.row + i * DOWN) * PITCH + k, a[i]);
        conv_weights<WIDE, BACK>(w, at.column, k, b);
        CUDA_UNROLL
        for (int n = 0; n < PACK; n++) {
            CUDA_UNROLL
            for (int i = 0; i < TALL; i++) {
                CUDA_UNROLL
                for (int j = 0; j < WIDE; j++)
                    sum[i][j] += a[i][n] * b[j][n];
            }
        }
    }
}

/* x's gradient: 16 bytes at a time. */
template <int TALL, int WIDE>
__device__ inline void conv_write_packs(const conv &v, int row, int column,
                                        const float (&sum)[TALL][WIDE])
{
    CUDA_UNROLL
    for (int i = 0; i < TALL; i++) {
        CUDA_UNROLL
        for (int j = 0; j < WIDE; j += PACK) {
            int n = column + j * ACROSS;
            const float *f = sum[i] + j;
            if (row + i * DOWN < v.rows && n < v.outs)
                *(float4 *)(v.y + (row + i * DOWN) * v.outs + n) = {f[0], f[1], f[2], f[3]};
        }
    }
}

template <int TALL, int WIDE>
__device__ inline void conv_write(const conv &v, int row, int column,
                                  const float (&sum)[TALL][WIDE])
{
    CUDA_UNROLL
    for (int j = 0; j < WIDE; j++) {
        int n = column + j * ACROSS;
        float bias = v.bias && n < v.outs ? v.bias[n] : 0;
        CUDA_UNROLL
        for (int i = 0; i < TALL; i++) {
            float f = sum[i][j] + bias;
            if (row + i * DOWN < v.rows && n < v.outs)
                v.y[(row + i * DOWN) * v.outs + n] = v.relu && f < 0 ? 0 : f;
        }
    }
}

template <int TALL, int WIDE, bool BACK>
__global__ void __launch_bounds__(THREADS, TALL *WIDE < 56 ? 3 : 2) conv_kernel(conv v)
{
    constexpr int of_x = TALL * DOWN * PITCH, both = of_x + WIDE * ACROSS * PITCH;
    CUDA_SHARED_BYTES(shared);
    float *stage = (float *)shared;
    conv_place at;
    for (int64_t tile = blockIdx.x; tile < v.tiles; tile += gridDim.x) {
        int down = (int)(tile / v.strips), across = (int)(tile - (int64_t)down * v.strips);
        int row = down * TALL * DOWN, column = across * WIDE * ACROSS;
        conv_loader<TALL, WIDE, BACK> loader(v, row, column);
        float sum[TALL][WIDE] = {};
        loader.load(v, stage, stage + of_x);
        CUDA_ROLLED
        for (int k = 0, now = 0; k < v.depth; k += DEEP, now = both - now) {
            cuda_copies_wait();
            __syncthreads(); /* all have loaded, and are done with the other stage */
            if (k + DEEP < v.depth)
                loader.load(v, stage + (both - now), stage + (both - now) + of_x);
            conv_multiply<TALL, WIDE, BACK>(stage + now, stage + now + of_x, at, sum);
        }
        if constexpr (BACK)
            conv_write_packs(v, row + at.row, column + at.column * PACK, sum);
        else
            conv_write(v, row + at.row, column + at.column, sum);
        __syncthreads(); /* the block may take another tile */
    }
}

/* ---- which tile, and whether at all ---- */

typedef int conv_run(struct det_stream *s, const struct det_call *c, const conv &v,
                     struct det_err *err);

template <int TALL, int WIDE, bool BACK>
static int run(struct det_stream *s, const struct det_call *c, const conv &v, struct det_err *err)
{
    size_t bytes = 2 * (TALL * DOWN + WIDE * ACROSS) * PITCH * sizeof(float);
    return cuda_tiles(s, c, conv_kernel<TALL, WIDE, BACK>, v.tiles, THREADS, bytes, err, v);
}

/* The last one is the smallest. */
#define SHAPE(tall, wide)                                                                          \
    {                                                                                              \
        tall, wide,                                                                                \
        {                                                                                          \
            run<tall, wide, false>, run<tall, wide, true>                                          \
        }                                                                                          \
    }
static const struct shape {
    int tall, wide;
    conv_run *run[2];
} shapes[] = {SHAPE(8, 8), SHAPE(7, 8), SHAPE(6, 8), SHAPE(4, 8),
              SHAPE(8, 4), SHAPE(7, 4), SHAPE(6, 4), SHAPE(4, 4)};

static int64_t over(int64_t n, int64_t d)
{
    return (n + d - 1) / d;
}

static int64_t tiles_of(const conv &v, const struct shape &t)
{
    return over(v.rows, t.tall * DOWN) * over(v.outs, t.wide * ACROSS);
}

/* Instructions of a warp for PACK terms in the SM that has most tiles: products, what they are
 * loaded by, and the rest of the loop. */
static int64_t cost(const conv &v, const struct shape &t)
{
    return over(tiles_of(v, t), CUDA_SMS) * (PACK * t.tall * t.wide + t.tall + t.wide + 16);
}

static const struct shape *best(const conv &v)
{
    const struct shape *ret = shapes;
    for (const struct shape &t : shapes)
        if (cost(v, t) < cost(v, *ret))
            ret = &t;
    return ret;
}

static bool is_plain(const struct det_tensor *t)
{
    return t->dtype == DET_F32 && t->numel <= INT_MAX && (uintptr_t)t->data % 16 == 0;
}

/* x is what the windows see and y what comes of it, of these channels. */
static bool takes(const struct det_call *c, const struct det_tensor *x, const struct det_tensor *w,
                  const struct det_tensor *y)
{
    const struct det_attrs *a = &c->a;
    int64_t reach = w->dims[2] * a->dilation_h + w->dims[3] * a->dilation_w;
    return a->groups == 1 && is_plain(x) && is_plain(w) && is_plain(y) && y->numel > 0 &&
           w->numel > 0 && x->dims[1] % PACK == 0 && y->dims[1] % PACK == 0 &&
           y->dims[1] >= PACK * ACROSS / 2 && reach < INT_MAX / 4;
}

static conv conv_of(const struct det_attrs *a, const struct det_tensor *x,
                    const struct det_tensor *w, struct det_tensor *y)
{
    conv v = {};
    v.x = (const float *)x->data, v.y = (float *)y->data;
    v.h = (int)x->dims[2], v.wide = (int)x->dims[3], v.channels = (int)x->dims[1];
    v.out_h = (int)y->dims[2], v.out_w = (int)y->dims[3], v.outs = (int)y->dims[1];
    v.taps_h = (int)w->dims[2], v.taps_w = (int)w->dims[3];
    v.stride_h = a->stride_h, v.stride_w = a->stride_w, v.pad_h = a->pad_h, v.pad_w = a->pad_w;
    v.step_h = a->dilation_h, v.step_w = a->dilation_w;
    v.rows = (int)(y->numel / (size_t)v.outs);
    v.depth = v.taps_h * v.taps_w * v.channels;
    return v;
}

/* Weights in the order (O, taps, I); then the product. */
static int convolve(struct det_stream *s, const struct det_call *c, conv &v, bool back,
                    bool *ret_done, struct det_err *err)
{
    const struct det_tensor *w = c->in[1];
    const struct shape *t = best(v);
    void *turned = w->data;
    int rc = 0;
    if (tiles_of(v, shapes[sizeof shapes / sizeof *shapes - 1]) < CUDA_CONV_TILES_MIN)
        return 0;
    if (w->dims[1] > 1 && w->dims[2] * w->dims[3] > 1) {
        rc = cuda_workspace(s->device, w->numel * sizeof(float), &turned, err);
        if (rc == 0)
            rc = cuda_reorder(s, c, w, turned, false, err);
    }
    v.w = (const float *)turned;
    v.strips = (int)over(v.outs, t->wide * ACROSS);
    v.tiles = tiles_of(v, *t);
    *ret_done = rc == 0;
    return rc < 0 ? rc : t->run[back](s, c, v, err);
}

int cuda_tiles_conv2d(struct det_stream *s, const struct det_call *c, bool *ret_done,
                      struct det_err *err)
{
    const struct det_tensor *b = c->in[2];
    if (!takes(c, c->in[0], c->in[1], c->out[0]) || (b && b->dtype != DET_F32))
        return 0;
    conv v = conv_of(&c->a, c->in[0], c->in[1], c->out[0]);
    v.bias = b ? (const float *)b->data : NULL;
    v.relu = c->a.relu;
    return convolve(s, c, v, false, ret_done, err);
}

int cuda_tiles_conv2d_bwd_data(struct det_stream *s, const struct det_call *c, bool *ret_done,
                               struct det_err *err)
{
    const struct det_tensor *dy = c->in[0];
    if (c->a.stride_h != 1 || c->a.stride_w != 1 || dy->numel == 0 ||
        !takes(c, dy, c->in[1], c->out[0]))
        return 0;
    conv v = conv_of(&c->a, dy, c->in[1], c->out[0]);
    v.pad_h = -v.pad_h, v.pad_w = -v.pad_w;
    v.step_h = -v.step_h, v.step_w = -v.step_w;
    return convolve(s, c, v, true, ret_done, err);
}
