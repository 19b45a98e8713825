/*
 * Many tensors of f32 rounded to f16 or bf16: the weights that autocast gives to operations. A
 * launch takes a table of them (cuda_pieces.cuh).
 */
#include "cuda_pieces.cuh"
#include "cuda_walk.cuh"

#define TABLE_MAX 96                         /* tensors; a kernel's arguments may have 4 KB */
#define PIECE     (32 * (int64_t)CUDA_BLOCK) /* elements */

namespace
{

struct cast {
    const float *x;
    void *y;
    int64_t n;
    uint32_t first; /* of the pieces of all */
    bool even;      /* both begin at 16 bytes */
};

struct table {
    int n, dtype;
    uint32_t pieces;
    struct cast of[TABLE_MAX];
};

} // namespace

static int launch(struct det_stream *s, const struct det_call *c, const struct table &t,
                  struct det_err *err)
{
    int64_t piece = PIECE;
    return cuda_blocks(
        s, c, t.pieces,
        DEVICE(int64_t i) {
            const cast &v = t.of[cuda_piece_of(t, i)];
            int64_t from = (i - v.first) * piece, to = v.n < from + piece ? v.n : from + piece;
            int64_t whole = v.even ? to - to % CUDA_PACK : from, stride = CUDA_PACK * blockDim.x;
            for (int64_t at = from + CUDA_PACK * threadIdx.x; at < whole; at += stride) {
                float pack[CUDA_PACK];
                cuda_load_wide(v.x + at, pack);
                cuda_store_pack(t.dtype, v.y, at, pack);
            }
            for (int64_t at = whole + threadIdx.x; at < to; at += blockDim.x)
                cuda_store(t.dtype, v.y, at, v.x[at]);
        },
        err);
}

static void add(struct table *t, const struct det_call *c)
{
    struct cast v = {(const float *)c->in[0]->data, c->out[0]->data, (int64_t)c->out[0]->numel,
                     t->pieces, ((uintptr_t)c->in[0]->data | (uintptr_t)c->out[0]->data) % 16 == 0};
    t->pieces += (uint32_t)((v.n + PIECE - 1) / PIECE);
    t->of[t->n++] = v;
}

int cuda_casts(struct det_stream *s, const struct det_call *c, size_t n, struct det_err *err)
{
    int rc = 0;
    for (size_t i = 0, j; rc == 0 && i < n; i = j) {
        struct table t = {};
        t.dtype = c[i].out[0]->dtype;
        for (j = i; j < n && t.n < TABLE_MAX && (int)c[j].out[0]->dtype == t.dtype; j++)
            add(&t, &c[j]);
        rc = launch(s, &c[i], t, err);
    }
    return rc;
}
