/* Weights between the order (O, I, taps), which is ours, and (O, taps, I), which cuDNN wants beside
 * activations of NHWC. */
#include "cuda_dtype.cuh"

#define EACH 8 /* elements of a thread */
#define TILE (EACH * CUDA_BLOCK)

/* Both sides are read and written in runs: a block takes all taps of some channels of one o. */
template <typename T>
static int turn(struct det_stream *s, const struct det_call *c, const struct det_tensor *w,
                void *nhwc, bool back, struct det_err *err)
{
    int64_t in = w->dims[1], taps = w->dims[2] * w->dims[3];
    int64_t most = TILE / taps, few = most > 32 ? most - most % 32 : most;
    int64_t wide = in < few ? in : few, parts = (in + wide - 1) / wide;
    T *a = (T *)w->data, *b = (T *)nhwc;
    return cuda_blocks(
        s, c, w->dims[0] * parts,
        DEVICE(int64_t block) {
            CUDA_SHARED(T, tile, EACH * CUDA_BLOCK_MAX);
            int64_t o = cuda_div(block, parts), first = (block - o * parts) * wide;
            int channels = (int)(in - first < wide ? in - first : wide), t = (int)taps;
            T *plain = a + (o * in + first) * taps, *turned = b + o * taps * in + first;
            for (int i = (int)threadIdx.x; i < channels * t; i += (int)blockDim.x) {
                int tap = i / channels, channel = i - tap * channels;
                tile[i] = back ? turned[tap * in + channel] : plain[i];
            }
            __syncthreads();
            for (int i = (int)threadIdx.x; i < channels * t; i += (int)blockDim.x) {
                int slow = i / (back ? t : channels), fast = i - slow * (back ? t : channels);
                if (back)
                    plain[i] = tile[fast * channels + slow];
                else
                    turned[slow * in + fast] = tile[fast * t + slow];
            }
            __syncthreads(); /* the block may take another part */
        },
        err);
}

/* Windows too large for a tile. */
static int turn_each(struct det_stream *s, const struct det_call *c, const struct det_tensor *w,
                     void *nhwc, bool back, struct det_err *err)
{
    int64_t in = w->dims[1], taps = w->dims[2] * w->dims[3];
    size_t size = det_dtype_size(w->dtype);
    void *plain = w->data;
    return cuda_each(
        s, c, (int64_t)w->numel,
        DEVICE(int64_t i) {
            int64_t row = cuda_div(i, taps), tap = i - row * taps, o = cuda_div(row, in);
            int64_t j = (o * taps + tap) * in + (row - o * in);
            if (back)
                cuda_move(size, plain, i, nhwc, j);
            else
                cuda_move(size, nhwc, j, plain, i);
        },
        err);
}

int cuda_reorder(struct det_stream *s, const struct det_call *c, const struct det_tensor *w,
                 void *nhwc, bool back, struct det_err *err)
{
    if (w->numel == 0 || w->dims[2] * w->dims[3] > TILE)
        return turn_each(s, c, w, nhwc, back, err);
    return det_dtype_size(w->dtype) == 2 ? turn<uint16_t>(s, c, w, nhwc, back, err)
                                         : turn<uint32_t>(s, c, w, nhwc, back, err);
}
