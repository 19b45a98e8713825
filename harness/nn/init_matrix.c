/* Initial values of matrices and filters as a whole. */
#include "det/init.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "init_draw.h"
#include "mem.h"

static bool shape_ok(struct det_engine *e, const struct det_tensor *t, const char *what, int least,
                     int most)
{
    int n = t ? det_tensor_ndim(t) : 0;
    if (!e || !t || e->err.code < 0)
        return false;
    if (n >= least && n <= most)
        return true;
    det_engine_fail(e, DET_EINVAL, "%s: a tensor of %d dimensions, %d to %d are needed", what, n,
                    least, most);
    return false;
}

void det_init_eye(struct det_engine *e, struct det_tensor *t)
{
    double *v = NULL;
    struct det_tensor *host = shape_ok(e, t, "init_eye", 2, 2) ? init_begin(e, t, &v) : NULL;
    if (!host)
        return;
    int64_t rows = det_tensor_dim(t, 0), columns = det_tensor_dim(t, 1);
    for (int64_t i = 0; i < rows && i < columns; i++)
        v[i * columns + i] = 1;
    init_end(e, t, host);
}

void det_init_dirac(struct det_engine *e, struct det_tensor *t, int64_t groups)
{
    double *v = NULL;
    if (!shape_ok(e, t, "init_dirac", 3, 5))
        return;
    int64_t out = det_tensor_dim(t, 0), in = det_tensor_dim(t, 1), size = 1, centre = 0;
    if (groups < 1 || out % groups != 0) {
        det_engine_fail(e, DET_EINVAL, "init_dirac: %lld channels in %lld groups", (long long)out,
                        (long long)groups);
        return;
    }
    for (int i = 2; i < det_tensor_ndim(t); i++) {
        centre = centre * det_tensor_dim(t, i) + det_tensor_dim(t, i) / 2;
        size *= det_tensor_dim(t, i);
    }
    struct det_tensor *host = size > 0 ? init_begin(e, t, &v) : NULL;
    if (!host)
        return;
    for (int64_t o = 0; o < out; o++)
        if (o % (out / groups) < in)
            v[(o * in + o % (out / groups)) * size + centre] = 1;
    init_end(e, t, host);
}

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Makes the n vectors of length len orthonormal in order (Gram-Schmidt, each done twice for
 * precision): the transpose of Q in a QR decomposition whose R has a positive diagonal. */
static void orthonormalise_rows(double *q, size_t n, size_t len)
{
    for (size_t i = 0; i < n; i++) {
        double *v = q + i * len;
        for (size_t k = 0; k < 2 * i; k++) {
            const double *u = q + k % i * len;
            double part = dot(u, v, len);
            for (size_t j = 0; j < len; j++)
                v[j] -= part * u[j];
        }
        double norm = sqrt(dot(v, v, len));
        for (size_t j = 0; j < len; j++)
            v[j] /= norm;
    }
}

void det_init_orthogonal(struct det_engine *e, struct det_tensor *t, double gain)
{
    double *v = NULL;
    if (!shape_ok(e, t, "init_orthogonal", 2, DET_DIMS_MAX) || det_tensor_numel(t) == 0)
        return;
    size_t rows = (size_t)det_tensor_dim(t, 0), columns = det_tensor_numel(t) / rows;
    size_t n = rows < columns ? rows : columns, len = rows < columns ? columns : rows;
    det_cleanup(freep) double *q = det_try_alloc(n * len * sizeof *q);
    if (!q) {
        det_engine_fail(e, DET_ENOMEM, "init_orthogonal: no memory for %zu x %zu", rows, columns);
        return;
    }
    struct det_tensor *host = init_begin(e, t, &v);
    if (!host)
        return;
    struct init_draw d = init_draw_new(e);
    for (size_t i = 0; i < n * len; i++)
        q[i] = init_normal(&d);
    orthonormalise_rows(q, n, len);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            v[r * columns + c] = gain * (n == rows ? q[r * len + c] : q[c * len + r]);
    init_end(e, t, host);
}

/* Sets `zeros` elements of a column of `rows`, `step` apart, to zero: the first of a shuffle. */
static void clear_rows(struct init_draw *d, double *column, int64_t rows, int64_t step,
                       int64_t zeros, int64_t *order)
{
    for (int64_t i = 0; i < rows; i++)
        order[i] = i;
    for (int64_t i = 0; i < zeros; i++) {
        int64_t k = i + (int64_t)(init_uniform(d) * (double)(rows - i));
        column[order[k] * step] = 0;
        order[k] = order[i];
    }
}

void det_init_sparse(struct det_engine *e, struct det_tensor *t, double sparsity, double std)
{
    double *v = NULL;
    if (!shape_ok(e, t, "init_sparse", 2, 2))
        return;
    if (!(sparsity >= 0 && sparsity <= 1)) {
        det_engine_fail(e, DET_EINVAL, "init_sparse: a sparsity of %g, it is a share", sparsity);
        return;
    }
    int64_t rows = det_tensor_dim(t, 0), columns = det_tensor_dim(t, 1);
    struct det_tensor *host = init_begin(e, t, &v);
    if (!host)
        return;
    det_cleanup(freep) int64_t *order = det_alloc((size_t)(rows + 1) * sizeof *order);
    struct init_draw d = init_draw_new(e);
    for (int64_t i = 0; i < rows * columns; i++)
        v[i] = std * init_normal(&d);
    for (int64_t c = 0; c < columns; c++)
        clear_rows(&d, v + c, rows, columns, (int64_t)ceil(sparsity * (double)rows), order);
    init_end(e, t, host);
}
