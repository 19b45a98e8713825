// Element-wise kernels, random numbers and optimizers. Philox4x32-10 as base/rng.h has it, so that the
// draws equal those of the other backends bit for bit.
#include "cuda_kernels.h"

#define THREADS 256

static unsigned blocks_for(size_t n)
{
    size_t b = (n + THREADS - 1) / THREADS;
    return (unsigned)(b < 1 ? 1 : b > 65535 ? 65535 : b);
}
#define EACH(i, n) for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < (n); i += (size_t)gridDim.x * blockDim.x)
#define LAUNCH(kernel, n, s, ...)                                                                  \
    do {                                                                                           \
        if ((n) == 0)                                                                              \
            return cudaSuccess;                                                                    \
        kernel<<<blocks_for(n), THREADS, 0, s>>>(__VA_ARGS__);                                     \
        return cudaGetLastError();                                                                 \
    } while (0)

__device__ static size_t place(struct cuda_order o, size_t i)
{
    if (o.c == 0)
        return i;
    size_t w = i % o.w, h = i / o.w % o.h, c = i / (o.w * o.h) % o.c, n = i / (o.w * o.h * o.c);
    return ((n * o.h + h) * o.w + w) * o.c + c;
}

__global__ static void binary(enum cuda_elem op, size_t n, const float *x, const float *y, const float *scalar, float *z)
{
    EACH(i, n) {
        switch (op) {
        case CUDA_ADD: z[i] = x[i] + y[i]; break;
        case CUDA_SUB: z[i] = x[i] - y[i]; break;
        case CUDA_MUL: z[i] = x[i] * y[i]; break;
        case CUDA_RELU_BWD: z[i] = y[i] > 0 ? x[i] : 0; break;
        case CUDA_MSE_BWD: z[i] = 2 * (x[i] - y[i]) * *scalar / (float)n; break;
        }
    }
}
cudaError_t cuda_k_binary(cudaStream_t s, enum cuda_elem op, size_t n, const float *x, const float *y, const float *scalar, float *z)
{
    LAUNCH(binary, n, s, op, n, x, y, scalar, z);
}

__global__ static void affine(size_t n, float scale, float offset, const float *x, float *y)
{
    EACH(i, n)
        y[i] = scale * x[i] + offset;
}
cudaError_t cuda_k_affine(cudaStream_t s, size_t n, float scale, float offset, const float *x, float *y)
{
    LAUNCH(affine, n, s, n, scale, offset, x, y);
}

// NaN goes through, as it does in C's comparison order.
__global__ static void clamp(size_t n, float lo, float hi, const float *x, float *y)
{
    EACH(i, n)
        y[i] = x[i] < lo ? lo : x[i] > hi ? hi : x[i];
}
cudaError_t cuda_k_clamp(cudaStream_t s, size_t n, float lo, float hi, const float *x, float *y)
{
    LAUNCH(clamp, n, s, n, lo, hi, x, y);
}

template <typename X, typename Y>
__global__ static void copy(size_t n, struct cuda_order xo, struct cuda_order yo, const X *x, Y *y)
{
    EACH(i, n)
        y[place(yo, i)] = (Y)x[place(xo, i)];
}
template <typename X>
static cudaError_t copy_from(cudaStream_t s, size_t n, int to, struct cuda_order xo, struct cuda_order yo, const X *x, void *y)
{
    if (to == 0)
        LAUNCH(copy, n, s, n, xo, yo, x, (float *)y);
    if (to == 1)
        LAUNCH(copy, n, s, n, xo, yo, x, (int64_t *)y);
    LAUNCH(copy, n, s, n, xo, yo, x, (uint8_t *)y);
}
cudaError_t cuda_k_copy(cudaStream_t s, size_t n, int from, int to, struct cuda_order xo, struct cuda_order yo, const void *x, void *y)
{
    if (from == 0)
        return copy_from(s, n, to, xo, yo, (const float *)x, y);
    if (from == 1)
        return copy_from(s, n, to, xo, yo, (const int64_t *)x, y);
    return copy_from(s, n, to, xo, yo, (const uint8_t *)x, y);
}

template <typename Y>
__global__ static void fill(size_t n, Y v, Y *y)
{
    EACH(i, n)
        y[i] = v;
}
cudaError_t cuda_k_fill(cudaStream_t s, size_t n, int type, double v, void *y)
{
    if (type == 0)
        LAUNCH(fill, n, s, n, (float)v, (float *)y);
    if (type == 1)
        LAUNCH(fill, n, s, n, (int64_t)v, (int64_t *)y);
    LAUNCH(fill, n, s, n, (uint8_t)v, (uint8_t *)y);
}

// Word i % 4 of block i / 4 as a float in [0, 1) with 24 bits.
__device__ static float draw(uint64_t key, uint64_t call, uint64_t i)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint64_t block = i / 4;
    uint32_t c[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)call, (uint32_t)(call >> 32)};
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c[0], p1 = (uint64_t)0xCD9E8D57u * c[2];
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c[1] ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c[3] ^ k1;
        c[1] = (uint32_t)p1;
        c[3] = (uint32_t)p0;
        c[0] = n0;
        c[2] = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return (float)(c[i % 4] >> 8) * 5.9604644775390625e-8f;
}

__global__ static void uniform(size_t n, uint64_t seed, uint64_t call, float lo, float hi, struct cuda_order yo, float *y)
{
    EACH(i, n)
        y[place(yo, i)] = lo + (hi - lo) * draw(seed, call, i);
}
cudaError_t cuda_k_uniform(cudaStream_t s, size_t n, uint64_t seed, uint64_t call, float lo, float hi, struct cuda_order yo, float *y)
{
    LAUNCH(uniform, n, s, n, seed, call, lo, hi, yo, y);
}

__global__ static void dropout(size_t n, uint64_t seed, uint64_t call, float p, float scale, const float *x, float *y, uint8_t *mask)
{
    EACH(i, n) {
        mask[i] = draw(seed, call, i) >= p;
        y[i] = mask[i] ? x[i] * scale : 0;
    }
}
cudaError_t cuda_k_dropout(cudaStream_t s, size_t n, uint64_t seed, uint64_t call, float p, float scale, const float *x, float *y, uint8_t *mask)
{
    LAUNCH(dropout, n, s, n, seed, call, p, scale, x, y, mask);
}

__global__ static void dropout_bwd(size_t n, float scale, const float *dy, const uint8_t *mask, float *dx)
{
    EACH(i, n)
        dx[i] = mask[i] ? dy[i] * scale : 0;
}
cudaError_t cuda_k_dropout_bwd(cudaStream_t s, size_t n, float scale, const float *dy, const uint8_t *mask, float *dx)
{
    LAUNCH(dropout_bwd, n, s, n, scale, dy, mask, dx);
}

__global__ static void sum_bwd(size_t n, float scale, const float *dy, float *dx)
{
    EACH(i, n)
        dx[i] = scale * *dy;
}
cudaError_t cuda_k_sum_bwd(cudaStream_t s, size_t n, float scale, const float *dy, float *dx)
{
    LAUNCH(sum_bwd, n, s, n, scale, dy, dx);
}

__global__ static void add_bias(size_t n, size_t cols, const float *b, float *y)
{
    EACH(i, n)
        y[i] += b[i % cols];
}
cudaError_t cuda_k_add_bias(cudaStream_t s, size_t rows, size_t n, const float *b, float *y)
{
    LAUNCH(add_bias, rows * n, s, rows * n, n, b, y);
}

__global__ static void sgd(size_t n, struct cuda_sgd o, const float *grad, float *p, float *buf)
{
    EACH(i, n) {
        float g = o.sign * grad[i] + o.decay * p[i];
        if (buf) {
            buf[i] = o.first ? g : o.momentum * buf[i] + (1 - o.dampening) * g;
            g = o.nesterov ? g + o.momentum * buf[i] : buf[i];
        }
        p[i] -= o.lr * g;
    }
}
cudaError_t cuda_k_sgd(cudaStream_t s, size_t n, struct cuda_sgd o, const float *grad, float *p, float *buf)
{
    LAUNCH(sgd, n, s, n, o, grad, p, buf);
}

__global__ static void adam(size_t n, struct cuda_adam o, const float *grad, float *p, float *m, float *v, float *top)
{
    EACH(i, n) {
        float g = o.sign * grad[i] + o.decay * p[i];
        m[i] = o.beta1 * m[i] + (1 - o.beta1) * g;
        v[i] = o.beta2 * v[i] + (1 - o.beta2) * g * g;
        if (top)
            top[i] = fmaxf(top[i], v[i]);
        p[i] = o.shrink * p[i] - o.step_size * m[i] / (sqrtf(top ? top[i] : v[i]) / o.root_correction2 + o.eps);
    }
}
cudaError_t cuda_k_adam(cudaStream_t s, size_t n, struct cuda_adam o, const float *grad, float *p, float *m, float *v, float *top)
{
    LAUNCH(adam, n, s, n, o, grad, p, m, v, top);
}

__global__ static void rmsprop(size_t n, struct cuda_rmsprop o, const float *grad, float *p, float *avg, float *buf, float *mean)
{
    EACH(i, n) {
        float g = o.sign * grad[i] + o.decay * p[i], square = 0;
        avg[i] = o.alpha * avg[i] + (1 - o.alpha) * g * g;
        if (mean) {
            mean[i] = o.alpha * mean[i] + (1 - o.alpha) * g;
            square = mean[i] * mean[i];
        }
        g /= sqrtf(avg[i] - square) + o.eps;
        if (buf)
            g = buf[i] = o.momentum * buf[i] + g;
        p[i] -= o.lr * g;
    }
}
cudaError_t cuda_k_rmsprop(cudaStream_t s, size_t n, struct cuda_rmsprop o, const float *grad, float *p, float *avg, float *buf, float *mean)
{
    LAUNCH(rmsprop, n, s, n, o, grad, p, avg, buf, mean);
}

__global__ static void adagrad(size_t n, struct cuda_rmsprop o, const float *grad, float *p, float *sum)
{
    EACH(i, n) {
        float g = o.sign * grad[i] + o.decay * p[i];
        sum[i] += g * g;
        p[i] -= o.lr * g / (sqrtf(sum[i]) + o.eps);
    }
}
cudaError_t cuda_k_adagrad(cudaStream_t s, size_t n, struct cuda_rmsprop o, const float *grad, float *p, float *sum)
{
    LAUNCH(adagrad, n, s, n, o, grad, p, sum);
}
