// Kernels over rows, windows and whole tensors: softmax, losses, pooling (NHWC), sums.
#include "cuda_kernels.h"
#include <float.h>

#define THREADS 256
#define SUM_THREADS 1024
#define EACH(i, n) for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < (n); i += (size_t)gridDim.x * blockDim.x)

static unsigned blocks_for(size_t n)
{
    size_t b = (n + THREADS - 1) / THREADS;
    return (unsigned)(b < 1 ? 1 : b > 65535 ? 65535 : b);
}

// The value of all threads of a block combined by a tree of fixed shape; every thread gets the result.
template <typename F>
__device__ static float combine(float v, F f)
{
    __shared__ float part[SUM_THREADS];
    part[threadIdx.x] = v;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            part[threadIdx.x] = f(part[threadIdx.x], part[threadIdx.x + half]);
        __syncthreads();
    }
    float r = part[0];
    __syncthreads();
    return r;
}
struct plus {
    __device__ float operator()(float a, float b) const { return a + b; }
};
struct greater_of {
    __device__ float operator()(float a, float b) const { return a > b ? a : b; }
};

__global__ static void softmax(size_t rows, size_t n, int log, const float *x, float *y)
{
    for (size_t r = blockIdx.x; r < rows; r += gridDim.x) {
        const float *xr = x + r * n;
        float *yr = y + r * n, top = -FLT_MAX, total = 0;
        for (size_t i = threadIdx.x; i < n; i += blockDim.x)
            top = xr[i] > top ? xr[i] : top;
        top = combine(top, greater_of());
        for (size_t i = threadIdx.x; i < n; i += blockDim.x)
            total += expf(xr[i] - top);
        total = combine(total, plus());
        for (size_t i = threadIdx.x; i < n; i += blockDim.x)
            yr[i] = log ? xr[i] - top - logf(total) : expf(xr[i] - top) / total;
    }
}
cudaError_t cuda_k_softmax(cudaStream_t s, size_t rows, size_t n, int log, const float *x, float *y)
{
    if (rows == 0 || n == 0)
        return cudaSuccess;
    softmax<<<(unsigned)(rows > 65535 ? 65535 : rows), THREADS, 0, s>>>(rows, n, log, x, y);
    return cudaGetLastError();
}

__global__ static void softmax_bwd(size_t rows, size_t n, int log, const float *dy, const float *y, float *dx)
{
    for (size_t r = blockIdx.x; r < rows; r += gridDim.x) {
        const float *d = dy + r * n, *yr = y + r * n;
        float total = 0;
        for (size_t i = threadIdx.x; i < n; i += blockDim.x)
            total += log ? d[i] : d[i] * yr[i];
        total = combine(total, plus());
        for (size_t i = threadIdx.x; i < n; i += blockDim.x)
            dx[r * n + i] = log ? d[i] - expf(yr[i]) * total : yr[i] * (d[i] - total);
    }
}
cudaError_t cuda_k_softmax_bwd(cudaStream_t s, size_t rows, size_t n, int log, const float *dy, const float *y, float *dx)
{
    if (rows == 0 || n == 0)
        return cudaSuccess;
    softmax_bwd<<<(unsigned)(rows > 65535 ? 65535 : rows), THREADS, 0, s>>>(rows, n, log, dy, y, dx);
    return cudaGetLastError();
}

__global__ static void nll(size_t rows, size_t n, const float *x, const int64_t *target, float *y, int *bad)
{
    float total = 0;
    for (size_t r = threadIdx.x; r < rows; r += blockDim.x) {
        if (target[r] < 0 || (size_t)target[r] >= n)
            *bad = 1;
        else
            total -= x[r * n + target[r]];
    }
    total = combine(total, plus());
    if (threadIdx.x == 0)
        *y = total / (float)rows;
}
cudaError_t cuda_k_nll(cudaStream_t s, size_t rows, size_t n, const float *x, const int64_t *target, float *y, int *bad)
{
    nll<<<1, SUM_THREADS, 0, s>>>(rows, n, x, target, y, bad);
    return cudaGetLastError();
}

__global__ static void nll_bwd(size_t rows, size_t n, const float *dy, const int64_t *target, float *dx, int *bad)
{
    EACH(i, rows * n) {
        int64_t t = target[i / n];
        if (t < 0 || (size_t)t >= n)
            *bad = 1;
        dx[i] = (int64_t)(i % n) == t ? -*dy / (float)rows : 0;
    }
}
cudaError_t cuda_k_nll_bwd(cudaStream_t s, size_t rows, size_t n, const float *dy, const int64_t *target, float *dx, int *bad)
{
    if (rows * n == 0)
        return cudaSuccess;
    nll_bwd<<<blocks_for(rows * n), THREADS, 0, s>>>(rows, n, dy, target, dx, bad);
    return cudaGetLastError();
}

__global__ static void argmax(size_t rows, size_t n, const float *x, int64_t *y)
{
    EACH(r, rows) {
        size_t best = 0;
        for (size_t i = 1; i < n; i++)
            if (x[r * n + i] > x[r * n + best])
                best = i;
        y[r] = (int64_t)best;
    }
}
cudaError_t cuda_k_argmax(cudaStream_t s, size_t rows, size_t n, const float *x, int64_t *y)
{
    if (rows == 0)
        return cudaSuccess;
    argmax<<<blocks_for(rows), THREADS, 0, s>>>(rows, n, x, y);
    return cudaGetLastError();
}

__global__ static void sum(enum cuda_sum kind, size_t n, float scale, const void *x, const void *y, float *z)
{
    const float *xf = (const float *)x, *yf = (const float *)y;
    float total = 0;
    for (size_t i = threadIdx.x; i < n; i += blockDim.x) {
        switch (kind) {
        case CUDA_SUM: total += xf[i]; break;
        case CUDA_SQNORM: total += xf[i] * xf[i]; break;
        case CUDA_MSE: total += (xf[i] - yf[i]) * (xf[i] - yf[i]); break;
        case CUDA_EQ_F32: total += xf[i] == yf[i]; break;
        case CUDA_EQ_I64: total += ((const int64_t *)x)[i] == ((const int64_t *)y)[i]; break;
        case CUDA_EQ_U8: total += ((const uint8_t *)x)[i] == ((const uint8_t *)y)[i]; break;
        }
    }
    total = combine(total, plus());
    if (threadIdx.x == 0)
        *z = scale * total;
}
cudaError_t cuda_k_sum(cudaStream_t s, enum cuda_sum kind, size_t n, float scale, const void *x, const void *y, float *z)
{
    sum<<<1, SUM_THREADS, 0, s>>>(kind, n, scale, x, y, z);
    return cudaGetLastError();
}

struct greater_or_nan {
    __device__ float operator()(float a, float b) const { return b <= a || a != a ? a : b; }
};
__global__ static void absmax(size_t n, const float *x, float *y)
{
    float most = 0;
    for (size_t i = threadIdx.x; i < n; i += blockDim.x)
        most = greater_or_nan()(most, fabsf(x[i]));
    most = combine(most, greater_or_nan());
    if (threadIdx.x == 0)
        *y = most;
}
cudaError_t cuda_k_absmax(cudaStream_t s, size_t n, const float *x, float *y)
{
    absmax<<<1, SUM_THREADS, 0, s>>>(n, x, y);
    return cudaGetLastError();
}

__global__ static void column_sums(size_t rows, size_t n, const float *dy, float *db)
{
    EACH(c, n) {
        float total = 0;
        for (size_t r = 0; r < rows; r++)
            total += dy[r * n + c];
        db[c] = total;
    }
}
cudaError_t cuda_k_column_sums(cudaStream_t s, size_t rows, size_t n, const float *dy, float *db)
{
    if (n == 0)
        return cudaSuccess;
    column_sums<<<blocks_for(n), THREADS, 0, s>>>(rows, n, dy, db);
    return cudaGetLastError();
}

// Output element i of an NHWC tensor: its image, window origin and channel.
struct window {
    size_t n, c;
    long h0, w0;
};
__device__ static struct window window_of(struct cuda_pool p, size_t i)
{
    size_t c = i % p.c, ow = i / p.c % p.ow, oh = i / (p.c * p.ow) % p.oh, n = i / (p.c * p.ow * p.oh);
    return {n, c, (long)oh * p.stride_h - p.pad_h, (long)ow * p.stride_w - p.pad_w};
}
__device__ static bool inside(struct cuda_pool p, long h, long w)
{
    return h >= 0 && w >= 0 && h < (long)p.h && w < (long)p.w;
}
__device__ static size_t at(struct cuda_pool p, size_t n, long h, long w, size_t c)
{
    return ((n * p.h + (size_t)h) * p.w + (size_t)w) * p.c + c;
}

__global__ static void max_pool(struct cuda_pool p, const float *x, float *y, uint8_t *index)
{
    EACH(i, p.n * p.oh * p.ow * p.c) {
        struct window k = window_of(p, i);
        float best = -FLT_MAX;
        int where = -1;
        for (int kh = 0; kh < p.kh; kh++)
            for (int kw = 0; kw < p.kw; kw++) {
                if (!inside(p, k.h0 + kh, k.w0 + kw))
                    continue;
                float v = x[at(p, k.n, k.h0 + kh, k.w0 + kw, k.c)];
                if (where < 0 || v > best) {
                    best = v;
                    where = kh * p.kw + kw;
                }
            }
        y[i] = best;
        index[i] = (uint8_t)where;
    }
}
cudaError_t cuda_k_max_pool(cudaStream_t s, struct cuda_pool p, const float *x, float *y, uint8_t *index)
{
    size_t n = p.n * p.oh * p.ow * p.c;
    if (n == 0)
        return cudaSuccess;
    max_pool<<<blocks_for(n), THREADS, 0, s>>>(p, x, y, index);
    return cudaGetLastError();
}

// Gathers: every input element adds the windows that chose it, in a fixed order, so no atomics.
__global__ static void pool_bwd(struct cuda_pool p, const float *dy, const uint8_t *index, float *dx)
{
    EACH(i, p.n * p.h * p.w * p.c) {
        size_t c = i % p.c, w = i / p.c % p.w, h = i / (p.c * p.w) % p.h, n = i / (p.c * p.w * p.h);
        float total = 0;
        for (int kh = 0; kh < p.kh; kh++)
            for (int kw = 0; kw < p.kw; kw++) {
                long oh = (long)h + p.pad_h - kh, ow = (long)w + p.pad_w - kw;
                if (oh < 0 || ow < 0 || oh % p.stride_h || ow % p.stride_w)
                    continue;
                oh /= p.stride_h;
                ow /= p.stride_w;
                if (oh >= (long)p.oh || ow >= (long)p.ow)
                    continue;
                size_t o = ((n * p.oh + (size_t)oh) * p.ow + (size_t)ow) * p.c + c;
                if (!index)
                    total += dy[o] / (float)(p.kh * p.kw);
                else if (index[o] == kh * p.kw + kw)
                    total += dy[o];
            }
        dx[i] = total;
    }
}
cudaError_t cuda_k_max_pool_bwd(cudaStream_t s, struct cuda_pool p, const float *dy, const uint8_t *index, float *dx)
{
    size_t n = p.n * p.h * p.w * p.c;
    if (n == 0)
        return cudaSuccess;
    pool_bwd<<<blocks_for(n), THREADS, 0, s>>>(p, dy, index, dx);
    return cudaGetLastError();
}
cudaError_t cuda_k_avg_pool_bwd(cudaStream_t s, struct cuda_pool p, const float *dy, float *dx)
{
    return cuda_k_max_pool_bwd(s, p, dy, NULL, dx);
}

__global__ static void avg_pool(struct cuda_pool p, const float *x, float *y)
{
    EACH(i, p.n * p.oh * p.ow * p.c) {
        struct window k = window_of(p, i);
        float total = 0;
        for (int kh = 0; kh < p.kh; kh++)
            for (int kw = 0; kw < p.kw; kw++)
                if (inside(p, k.h0 + kh, k.w0 + kw))
                    total += x[at(p, k.n, k.h0 + kh, k.w0 + kw, k.c)];
        y[i] = total / (float)(p.kh * p.kw);
    }
}
cudaError_t cuda_k_avg_pool(cudaStream_t s, struct cuda_pool p, const float *x, float *y)
{
    size_t n = p.n * p.oh * p.ow * p.c;
    if (n == 0)
        return cudaSuccess;
    avg_pool<<<blocks_for(n), THREADS, 0, s>>>(p, x, y);
    return cudaGetLastError();
}

__global__ static void invstd_of(size_t n, float eps, const float *var, float *out)
{
    EACH(i, n)
        out[i] = rsqrtf(var[i] + eps);
}
cudaError_t cuda_k_invstd(cudaStream_t s, size_t n, float eps, const float *var, float *invstd)
{
    if (n == 0)
        return cudaSuccess;
    invstd_of<<<blocks_for(n), THREADS, 0, s>>>(n, eps, var, invstd);
    return cudaGetLastError();
}

__device__ static float live(const struct cuda_norm &k, size_t i)
{
    return !k.y || k.y[i] > 0 ? k.dy[i] : 0;
}

// One block a channel: dw = sum dy xhat, db = sum dy.
__global__ static void norm_sums(struct cuda_norm k, float *dw, float *db)
{
    for (size_t c = blockIdx.x; c < k.channels; c += gridDim.x) {
        float w = 0, b = 0;
        for (size_t r = threadIdx.x; r < k.rows; r += blockDim.x) {
            size_t i = r * k.channels + c;
            w += live(k, i) * (k.x[i] - k.mean[c]) * k.invstd[c];
            b += live(k, i);
        }
        w = combine(w, plus());
        b = combine(b, plus());
        if (threadIdx.x == 0) {
            dw[c] = w;
            db[c] = b;
        }
    }
}
__global__ static void norm_dx(struct cuda_norm k, const float *dw, const float *db, float *dx)
{
    EACH(i, k.rows * k.channels) {
        size_t c = i % k.channels;
        float xhat = (k.x[i] - k.mean[c]) * k.invstd[c], through = k.train ? (db[c] + xhat * dw[c]) / (float)k.rows : 0;
        dx[i] = k.w[c] * k.invstd[c] * (live(k, i) - through);
    }
}
cudaError_t cuda_k_norm_bwd(cudaStream_t s, struct cuda_norm k, float *dx, float *dw, float *db)
{
    if (k.rows * k.channels == 0)
        return cudaSuccess;
    norm_sums<<<(unsigned)(k.channels > 65535 ? 65535 : k.channels), THREADS, 0, s>>>(k, dw, db);
    if (dx)
        norm_dx<<<blocks_for(k.rows * k.channels), THREADS, 0, s>>>(k, dw, db, dx);
    return cudaGetLastError();
}
