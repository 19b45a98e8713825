/*
 * Elements that a thread loads and stores together: 16 bytes of f32, bf16 or f16 as floats
 * (cuda_packs), or one of any dtype as a float or a double (cuda_any). A kernel is a template of
 * the two: the first where cuda_packed() finds that all tensors of a call are of one dtype and that
 * their rows begin at multiples of 16 bytes, the second for everything else.
 */
#ifndef CUDA_PACK_CUH
#define CUDA_PACK_CUH

#include <initializer_list>

#include "cuda_dtype.cuh"

struct alignas(16) cuda_quad {
    uint32_t w[4];
};
struct cuda_bf16 {
    uint16_t bits;
};
struct cuda_f16 {
    uint16_t bits;
};

/* The two of a word: the lower half is the first element. */
__device__ inline void cuda_open_pair(cuda_bf16, uint32_t w, float v[2])
{
    v[0] = det__bits_f32(w << 16);
    v[1] = det__bits_f32(w & 0xffff0000u);
}

__device__ inline uint32_t cuda_close_pair(cuda_bf16, const float v[2])
{
#ifdef __CUDA_ARCH__
    uint32_t w;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(v[1]), "f"(v[0]));
    return w;
#else
    return det__f32_to_bf16(v[0]) | (uint32_t)det__f32_to_bf16(v[1]) << 16;
#endif
}

__device__ inline void cuda_open_pair(cuda_f16, uint32_t w, float v[2])
{
#ifdef __CUDA_ARCH__
    asm("{.reg .f16 a, b; mov.b32 {a, b}, %2; cvt.f32.f16 %0, a; cvt.f32.f16 %1, b;}"
        : "=f"(v[0]), "=f"(v[1])
        : "r"(w));
#else
    v[0] = det__f16_to_f32((uint16_t)w);
    v[1] = det__f16_to_f32((uint16_t)(w >> 16));
#endif
}

__device__ inline uint32_t cuda_close_pair(cuda_f16, const float v[2])
{
#ifdef __CUDA_ARCH__
    uint32_t w;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(v[1]), "f"(v[0]));
    return w;
#else
    return det__f32_to_f16(v[0]) | (uint32_t)det__f32_to_f16(v[1]) << 16;
#endif
}

template <typename E> struct cuda_packs {
    typedef float real;
    typedef cuda_quad raw;
    static constexpr int width = 16 / (int)sizeof(E);
    E *p; /* NULL: no such tensor */

    static cuda_packs of(const struct det_tensor *t) { return {t ? (E *)t->data : NULL}; }
    __device__ raw load(int64_t i) const { return *(const cuda_quad *)(p + i); }
    __device__ static void open(const raw &r, float *v)
    {
        CUDA_UNROLL
        for (int i = 0; i < 4; i++)
            if constexpr (sizeof(E) == 4)
                v[i] = det__bits_f32(r.w[i]);
            else
                cuda_open_pair(E(), r.w[i], v + 2 * i);
    }
    __device__ void store(int64_t i, const float *v) const
    {
        cuda_quad q;
        CUDA_UNROLL
        for (int k = 0; k < 4; k++)
            if constexpr (sizeof(E) == 4)
                q.w[k] = det__f32_bits(v[k]);
            else
                q.w[k] = cuda_close_pair(E(), v + 2 * k);
        *(cuda_quad *)(p + i) = q;
    }
};

template <typename T> struct cuda_any {
    typedef T real;
    typedef T raw;
    static constexpr int width = 1;
    void *p; /* NULL: no such tensor */
    int dtype;

    static cuda_any of(const struct det_tensor *t)
    {
        return {t ? t->data : NULL, t ? (int)t->dtype : DET_F32};
    }
    __device__ raw load(int64_t i) const { return cuda_load<T>(dtype, p, i); }
    __device__ static void open(const raw &r, T *v) { *v = r; }
    __device__ void store(int64_t i, const T *v) const { cuda_store(dtype, p, i, *v); }
    __device__ T at(int64_t i, T otherwise) const { return p ? load(i) : otherwise; }
};

/* The dtype that all tensors have, if their rows of so many elements are whole packs; else -1. */
static inline int cuda_packed(std::initializer_list<const struct det_tensor *> tensors,
                              int64_t columns)
{
    int dtype = -1;
    for (const struct det_tensor *t : tensors) {
        if (!t)
            continue;
        if ((dtype >= 0 && t->dtype != dtype) || (uintptr_t)t->data % sizeof(cuda_quad) != 0)
            return -1;
        dtype = t->dtype;
    }
    bool known = dtype == DET_F32 || dtype == DET_BF16 || dtype == DET_F16;
    return known && columns * det_dtype_size((enum det_dtype)dtype) % sizeof(cuda_quad) == 0 ? dtype
                                                                                             : -1;
}

/* KERNEL::run<X>(s, c, err) for the X that goes with what cuda_packed() said. */
template <typename KERNEL>
int cuda_run_packed(int packed, struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    switch (packed) {
    case DET_F32: return KERNEL::template run<cuda_packs<float>>(s, c, err);
    case DET_BF16: return KERNEL::template run<cuda_packs<cuda_bf16>>(s, c, err);
    case DET_F16: return KERNEL::template run<cuda_packs<cuda_f16>>(s, c, err);
    default: return KERNEL::template run<cuda_any<float>>(s, c, err);
    }
}

#endif
