/*
 * What the .cu files share: launches, sums of fixed partition, elements of any dtype.
 *
 * A kernel is a function of an index, given as a device lambda: cuda_each() runs it for every
 * index, one thread each; cuda_blocks() once per index with a whole block, whose threads divide the
 * work by threadIdx.x and meet in cuda_combine(). Nothing adds atomically, and partitions depend on
 * shapes alone (of rows that begin anywhere, on their addresses modulo 16 too, which are the same
 * at every run): equal inputs give equal bits.
 *
 * tests/cuda compiles these files for the host: its <cuda_runtime.h> defines CUDA_LAUNCH.
 */
#ifndef CUDA_KERNEL_CUH
#define CUDA_KERNEL_CUH

#include <cuda_runtime.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "cuda_impl.h"

#define DEVICE [=] __device__

/* Kernels over one floating dtype are templates of it: defines cuda_<name>() for f32 and
 * cuda_<name>_f64(). */
#define CUDA_REAL(name)                                                                            \
    int cuda_##name(struct det_stream *s, const struct det_call *c, struct det_err *err)           \
    {                                                                                              \
        return name<float>(s, c, err);                                                             \
    }                                                                                              \
    int cuda_##name##_f64(struct det_stream *s, const struct det_call *c, struct det_err *err)     \
    {                                                                                              \
        return name<double>(s, c, err);                                                            \
    }

#ifndef CUDA_LAUNCH
#define CUDA_BLOCK                          256        /* threads; a power of two */
#define CUDA_BLOCK_MAX                      CUDA_BLOCK /* what shared arrays have places for */
#define CUDA_SHARED(type, name, n)          __shared__ type name[n]
#define CUDA_LAUNCH(kernel, blocks, s, ...) kernel<<<blocks, CUDA_BLOCK, 0, s>>>(__VA_ARGS__)
#define CUDA_LAUNCH_APART                   CUDA_LAUNCH /* threads that never meet */
#define CUDA_LANES                          32
#define CUDA_LANES_MIN                      CUDA_LANES
#define CUDA_UNROLL                         _Pragma("unroll")
/* The v of the thread whose number differs in the bits `with`, below CUDA_LANES. All threads of the
 * block must come: on the host they meet in shared memory. */
template <typename T> __device__ inline T cuda_exchange(T v, int with)
{
    uint32_t word[sizeof(T) / 4];
    static_assert(sizeof(T) % 4 == 0);
    memcpy(word, &v, sizeof v);
    CUDA_UNROLL
    for (size_t i = 0; i < sizeof(T) / 4; i++)
        word[i] = __shfl_xor_sync(0xffffffff, word[i], with);
    memcpy(&v, word, sizeof v);
    return v;
}
#endif
#ifdef CUDA_EMULATED
#define CUDA_GRID_MAX 7 /* so that blocks have more than one turn there too */
#else
#define CUDA_GRID_MAX 65535
#endif

template <typename F> __global__ void cuda_each_kernel(int64_t n, F f)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        f(i);
}

template <typename F> __global__ void cuda_blocks_kernel(int64_t n, F f)
{
    for (int64_t i = blockIdx.x; i < n; i += gridDim.x)
        f(i);
}

/* f(i) for i in 0..n-1. */
template <typename F>
int cuda_each(struct det_stream *s, const struct det_call *c, int64_t n, F f, struct det_err *err)
{
    int64_t blocks = (n + CUDA_BLOCK - 1) / CUDA_BLOCK;
    if (n <= 0)
        return 0;
    int rc = cuda_use(s->device, err);
    if (rc < 0)
        return rc;
    CUDA_LAUNCH_APART(cuda_each_kernel, (unsigned)(blocks < CUDA_GRID_MAX ? blocks : CUDA_GRID_MAX),
                      s->native, n, f);
    return cuda_launched(s, c, err);
}

/* f(i) for i in 0..n-1 by all threads of a block together. */
template <typename F>
int cuda_blocks(struct det_stream *s, const struct det_call *c, int64_t n, F f, struct det_err *err)
{
    if (n <= 0)
        return 0;
    int rc = cuda_use(s->device, err);
    if (rc < 0)
        return rc;
    CUDA_LAUNCH(cuda_blocks_kernel, (unsigned)(n < CUDA_GRID_MAX ? n : CUDA_GRID_MAX), s->native, n,
                f);
    return cuda_launched(s, c, err);
}

/* The values of the threads of a warp, combined in an order of fixed shape; every thread gets the
 * result. All threads of the block must come. */
template <typename T, typename F> __device__ T cuda_combine_warp(T v, F f)
{
    for (int with = 1; with < CUDA_LANES; with *= 2) {
        T other = cuda_exchange(v, with);
        v = threadIdx.x & with ? f(other, v) : f(v, other);
    }
    return v;
}

/* Those of all threads of a block, likewise. */
template <typename T, typename F> __device__ T cuda_combine(T v, F f)
{
    CUDA_SHARED(T, part, CUDA_BLOCK_MAX / CUDA_LANES_MIN);
    v = cuda_combine_warp(v, f);
    if (threadIdx.x % CUDA_LANES == 0)
        part[threadIdx.x / CUDA_LANES] = v;
    __syncthreads();
    v = part[0];
    for (unsigned i = 1; i < blockDim.x / CUDA_LANES; i++)
        v = f(v, part[i]);
    __syncthreads();
    return v;
}

struct cuda_plus {
    __device__ double operator()(double a, double b) const { return a + b; }
};
struct cuda_greater {
    template <typename T> __device__ T operator()(T a, T b) const { return a > b ? a : b; }
};

/* Work on columns by a team: a block each where there are few long ones, a warp, or a thread. In
 * the kernel, a member of the team takes elements first, first + step, ...; combine() gives all the
 * result. Warps beyond the last column do that one once more, without a leader. */
#define CUDA_TEAM_MIN 64    /* elements that a block is worth */
#define CUDA_TEAM_MAX 16384 /* columns that fill the device with a thread each */

enum cuda_team_size { CUDA_ALONE, CUDA_BY_WARP, CUDA_BY_BLOCK };

template <enum cuda_team_size SIZE> struct cuda_team {
    bool more = false; /* the column is another team's */
    __device__ unsigned size() const
    {
        return SIZE == CUDA_ALONE ? 1 : SIZE == CUDA_BY_WARP ? CUDA_LANES : blockDim.x;
    }
    __device__ int64_t first() const { return threadIdx.x % size(); }
    __device__ int64_t step() const { return size(); }
    __device__ bool leader() const { return first() == 0 && !more; }
    template <typename T, typename F> __device__ T combine(T v, F f) const
    {
        if constexpr (SIZE == CUDA_BY_BLOCK)
            return cuda_combine(v, f);
        else if constexpr (SIZE == CUDA_BY_WARP)
            return cuda_combine_warp(v, f);
        else
            return v;
    }
};

/* f(i, team) for the columns i in 0..columns-1, by a block or a thread. */
template <typename F>
int cuda_columns(struct det_stream *s, const struct det_call *c, int64_t columns, int64_t n, F f,
                 struct det_err *err)
{
    if (n >= CUDA_TEAM_MIN && columns < CUDA_TEAM_MAX)
        return cuda_blocks(
            s, c, columns, DEVICE(int64_t i) { f(i, cuda_team<CUDA_BY_BLOCK>()); }, err);
    return cuda_each(
        s, c, columns, DEVICE(int64_t i) { f(i, cuda_team<CUDA_ALONE>()); }, err);
}

/* f(i, team) for the columns i in 0..columns-1, of n elements each, by a block where they are more
 * than `most`, else by a warp. */
template <typename F>
int cuda_teams(struct det_stream *s, const struct det_call *c, int64_t columns, int64_t n,
               int64_t most, F f, struct det_err *err)
{
    int64_t warps = CUDA_BLOCK / CUDA_LANES;
    if (n > most)
        return cuda_blocks(
            s, c, columns, DEVICE(int64_t i) { f(i, cuda_team<CUDA_BY_BLOCK>()); }, err);
    return cuda_blocks(
        s, c, (columns + warps - 1) / warps,
        DEVICE(int64_t block) {
            int64_t i = block * (blockDim.x / CUDA_LANES) + threadIdx.x / CUDA_LANES;
            f(i < columns ? i : columns - 1, cuda_team<CUDA_BY_WARP>{i >= columns});
        },
        err);
}

/* 64-bit division is slow on a GPU, and most numbers are small. */
__device__ inline int64_t cuda_div(int64_t i, int64_t d)
{
    if (((uint64_t)i | (uint64_t)d) >> 32 == 0)
        return (uint32_t)i / (uint32_t)d;
    return i / d;
}

template <typename T> static inline const T *in_real(const struct det_call *c, int i)
{
    return c->in[i] ? (const T *)c->in[i]->data : NULL;
}
template <typename T> static inline T *out_real(const struct det_call *c, int i)
{
    return c->out[i] ? (T *)c->out[i]->data : NULL;
}
/* What tensors of T are. */
template <typename T>
constexpr enum det_dtype cuda_dtype = sizeof(T) == sizeof(double) ? DET_F64 : DET_F32;

static inline const int64_t *in_i64(const struct det_call *c, int i)
{
    return c->in[i] ? (const int64_t *)c->in[i]->data : NULL;
}
static inline int64_t *out_i64(const struct det_call *c, int i)
{
    return c->out[i] ? (int64_t *)c->out[i]->data : NULL;
}

#endif
