/*
 * Products of doubles by packed panels (Goto & van de Geijn 2008): blocks of a and b are copied in
 * the order of their use, so that the innermost loop reads both from the caches in one line, and a
 * tile of TILE_ROWS x TILE_COLUMNS sums stays in registers. Each element is summed in blocks of
 * DEPTH and in their order, whoever computes it.
 */
#include "cpu_dgemm.h"

#include <omp.h>
#include <string.h>

#include "cpu.h"

#define TILE_ROWS    6
#define TILE_COLUMNS 8
/* Of a block of a, of b, and what both have in common: 0.5 MB on the stack, within a core's cache.
 */
#define ROWS    48
#define COLUMNS 192
#define DEPTH   256
/* Multiplications that are worth a thread. */
#define GRAIN 200000

typedef double lanes __attribute__((vector_size(TILE_COLUMNS * sizeof(double))));

/* Element (i, l) lies at p[i * row + l * column]. */
struct matrix {
    const double *p;
    int64_t row, column;
};

struct product {
    struct matrix a, b; /* b: transposed, [n, k] */
    int64_t m, n, k;
    double alpha, beta;
    double *y;
    int64_t ldy;
};

/* `rows` rows of v in panels of `width`, each with its columns one after the other; zeros beyond.
 */
static void pack_panels(struct matrix v, int64_t rows, int64_t depth, int width, double *to)
{
    for (int64_t i = 0; i < rows; i += width) {
        int64_t there = rows - i < width ? rows - i : width;
        for (int64_t l = 0; l < depth; l++, to += width) {
            const double *from = v.p + i * v.row + l * v.column;
            for (int64_t r = 0; r < there; r++)
                to[r] = from[r * v.row];
            for (int64_t r = there; r < width; r++)
                to[r] = 0;
        }
    }
}

static inline __attribute__((always_inline)) void multiply_tile(int64_t depth, const double *a,
                                                                const double *b, double *out)
{
    lanes sum[TILE_ROWS] = {0}, w;
    for (int64_t l = 0; l < depth; l++, a += TILE_ROWS, b += TILE_COLUMNS) {
        memcpy(&w, b, sizeof w);
#pragma GCC unroll 6
        for (int i = 0; i < TILE_ROWS; i++)
            sum[i] += a[i] * w;
    }
    memcpy(out, sum, sizeof sum);
}

/* A tile of sums into y: rows x columns of it are there. */
static inline __attribute__((always_inline)) void store_tile(const struct product *v,
                                                             const double *sums, int64_t rows,
                                                             int64_t columns, double beta,
                                                             double *y)
{
    for (int64_t i = 0; i < rows; i++, y += v->ldy, sums += TILE_COLUMNS)
        for (int64_t j = 0; j < columns; j++)
            y[j] = v->alpha * sums[j] + (beta == 0 ? 0 : beta * y[j]);
}

/* One packed block by another. */
CPU_CLONES static void multiply_block(const struct product *v, const double *a, const double *b,
                                      const int64_t size[3], double beta, double *y)
{
    double sums[TILE_ROWS * TILE_COLUMNS];
    int64_t rows = size[0], columns = size[1], depth = size[2];
    for (int64_t j = 0; j < columns; j += TILE_COLUMNS)
        for (int64_t i = 0; i < rows; i += TILE_ROWS) {
            multiply_tile(depth, a + i * depth, b + j * depth, sums);
            store_tile(v, sums, rows - i < TILE_ROWS ? rows - i : TILE_ROWS,
                       columns - j < TILE_COLUMNS ? columns - j : TILE_COLUMNS, beta,
                       y + i * v->ldy + j);
        }
}

static struct matrix matrix_from(struct matrix v, int64_t row, int64_t column)
{
    return (struct matrix){v.p + row * v.row + column * v.column, v.row, v.column};
}

static int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Rows at[0] to end[0] and columns at[1] to end[1] of y. */
static void multiply_part(const struct product *v, const int64_t at[2], const int64_t end[2])
{
    double a[ROWS * DEPTH], b[COLUMNS * DEPTH];
    for (int64_t j = at[1]; j < end[1]; j += COLUMNS)
        for (int64_t l = 0; l == 0 || l < v->k; l += DEPTH) {
            int64_t size[3] = {0, min_i64(end[1] - j, COLUMNS), min_i64(v->k - l, DEPTH)};
            pack_panels(matrix_from(v->b, j, l), size[1], size[2], TILE_COLUMNS, b);
            for (int64_t i = at[0]; i < end[0]; i += ROWS) {
                size[0] = min_i64(end[0] - i, ROWS);
                pack_panels(matrix_from(v->a, i, l), size[0], size[2], TILE_ROWS, a);
                multiply_block(v, a, b, size, l == 0 ? v->beta : 1, v->y + i * v->ldy + j);
            }
        }
}

static void row_panels(const void *arg, int64_t first, int64_t last)
{
    const struct product *v = arg;
    multiply_part(v, (int64_t[]){first * TILE_ROWS, 0},
                  (int64_t[]){min_i64(last * TILE_ROWS, v->m), v->n});
}

static void column_panels(const void *arg, int64_t first, int64_t last)
{
    const struct product *v = arg;
    multiply_part(v, (int64_t[]){0, first * TILE_COLUMNS},
                  (int64_t[]){v->m, min_i64(last * TILE_COLUMNS, v->n)});
}

static struct matrix matrix_of(const double *p, int64_t ld, bool transposed)
{
    return transposed ? (struct matrix){p, 1, ld} : (struct matrix){p, ld, 1};
}

void cpu_dgemm(char trans_a, char trans_b, int64_t m, int64_t n, int64_t k, double alpha,
               const double *a, int64_t lda, const double *b, int64_t ldb, double beta, double *y,
               int64_t ldy)
{
    const struct product v = {.a = matrix_of(a, lda, trans_a == 'T'),
                              .b = matrix_of(b, ldb, trans_b != 'T'),
                              .m = m,
                              .n = n,
                              .k = k,
                              .alpha = alpha,
                              .beta = beta,
                              .y = y,
                              .ldy = ldy};
    int threads = omp_in_parallel() ? 1 : omp_get_max_threads();
    int64_t rows = (m + TILE_ROWS - 1) / TILE_ROWS, columns = (n + TILE_COLUMNS - 1) / TILE_COLUMNS;
    if (rows == 0 || columns == 0)
        return;
    if (rows > columns)
        cpu_parallel(threads, rows, 1 + GRAIN / (TILE_ROWS * n * (k + 1)), row_panels, &v);
    else
        cpu_parallel(threads, columns, 1 + GRAIN / (TILE_COLUMNS * m * (k + 1)), column_panels, &v);
}
