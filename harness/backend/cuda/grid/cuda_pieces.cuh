/*
 * One launch over many tensors: a table of them, T::of[T::n], each from piece T::of[i].first on, so
 * that blocks take pieces of equal size, whichever tensor they are of.
 */
#ifndef CUDA_PIECES_CUH
#define CUDA_PIECES_CUH

#include "cuda_kernel.cuh"

/* Which of t's tensors piece i is of. */
template <typename T> __device__ static inline int cuda_piece_of(const T &t, int64_t i)
{
    int from = 0, to = t.n;
    while (to - from > 1) {
        int middle = (from + to) / 2;
        if (t.of[middle].first <= i)
            from = middle;
        else
            to = middle;
    }
    return from;
}

#endif
