/* The step that LSTM and GRU share: a product of panels, then the cells. See cpu_rnn.h. */
#include "cpu_rnn.h"

#include <string.h>

#include "mem.h"

typedef real lanes __attribute__((vector_size(RNN_LANES * sizeof(real))));

int CPU(rnn_pack)(const struct rnn_step *r, const real *w, bool transposed, real **ret,
                  struct det_err *err)
{
    int64_t panels = (r->hidden + RNN_LANES - 1) / RNN_LANES;
    size_t n = (size_t)(panels * r->depth * r->gates * RNN_LANES);
    real *p = det_try_alloc((n ? n : 1) * sizeof *p), *to = p;
    if (!p)
        return det_fail(err, DET_ENOMEM, "no memory for %zu packed weights", n);
    for (int64_t panel = 0; panel < panels; panel++)
        for (int64_t k = 0; k < r->depth; k++)
            for (int g = 0; g < r->gates; g++)
                for (int64_t l = 0; l < RNN_LANES; l++, to++) {
                    int64_t j = panel * RNN_LANES + l, row = g * r->hidden + j;
                    if (j >= r->hidden)
                        *to = 0;
                    else
                        *to = transposed ? w[k * r->hidden + j] : w[row * r->depth + k];
                }
    *ret = p;
    return 0;
}

/* out[row][gate] = left[row] times a panel, for `rows` rows and `gates` gates, both constants where
 * this is inlined: the sums are registers. */
static inline __attribute__((always_inline)) void multiply_panel(const struct rnn_step *r,
                                                                 const real *left,
                                                                 const real *panel, real *out,
                                                                 int rows, int gates)
{
    lanes sum[RNN_ROWS][RNN_GATES] = {0};
    for (int64_t k = 0; k < r->depth; k++, panel += gates * RNN_LANES)
#pragma GCC unroll 4
        for (int g = 0; g < gates; g++) {
            lanes w;
            memcpy(&w, panel + g * RNN_LANES, sizeof w);
#pragma GCC unroll 4
            for (int i = 0; i < rows; i++)
                sum[i][g] += left[i * r->depth + k] * w;
        }
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int g = 0; g < gates; g++)
            memcpy(out + (i * RNN_GATES + g) * RNN_LANES, &sum[i][g], sizeof sum[i][g]);
}

/* The cases that there are: 4 gates (LSTM), 3 (GRU), 1 (backward). */
CPU_CLONES static void multiply_rows(const struct rnn_step *r, const real *left, const real *panel,
                                     real *out, int64_t rows)
{
    if (rows == RNN_ROWS && r->gates == 4)
        multiply_panel(r, left, panel, out, RNN_ROWS, 4);
    else if (rows == RNN_ROWS && r->gates == 3)
        multiply_panel(r, left, panel, out, RNN_ROWS, 3);
    else if (rows == RNN_ROWS)
        multiply_panel(r, left, panel, out, RNN_ROWS, 1);
    else
        for (int64_t i = 0; i < rows; i++) {
            real *to = out + i * RNN_GATES * RNN_LANES;
            if (r->gates == 4)
                multiply_panel(r, left + i * r->depth, panel, to, 1, 4);
            else if (r->gates == 3)
                multiply_panel(r, left + i * r->depth, panel, to, 1, 3);
            else
                multiply_panel(r, left + i * r->depth, panel, to, 1, 1);
        }
}

static void run_panels(const void *arg, int64_t from, int64_t to)
{
    const struct rnn_step *r = arg;
    real sums[RNN_ROWS][RNN_GATES][RNN_LANES] = {0};
    for (int64_t p = from; p < to; p++) {
        int64_t j = p * RNN_LANES, left = r->hidden - j;
        int64_t width = left < RNN_LANES ? left : RNN_LANES;
        const real *panel = r->packed + p * r->depth * r->gates * RNN_LANES;
        for (int64_t row = 0; row < r->batch; row += RNN_ROWS) {
            int64_t rows = r->batch - row < RNN_ROWS ? r->batch - row : RNN_ROWS;
            if (r->left)
                multiply_rows(r, r->left + row * r->depth, panel, &sums[0][0][0], rows);
            for (int64_t i = 0; i < rows; i++)
                r->cell(r, row + i, j, width, sums[i]);
        }
    }
}

void CPU(rnn_run_step)(int threads, const struct rnn_step *r)
{
    int64_t n = (r->hidden + RNN_LANES - 1) / RNN_LANES;
    int64_t work = r->batch * r->depth * r->gates * RNN_LANES; /* multiplications of a panel */
    cpu_parallel(threads, n, 1 + 100000 / (work > 0 ? work : 1), run_panels, r);
}
