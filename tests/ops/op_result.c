#include "op_result.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "err.h"
#include "mem.h"
#include "op.h"

void result_finish(struct result *r)
{
    for (int i = 0; i <= CASE_INPUTS_MAX; i++)
        free(r->v[i]);
}

size_t result_bytes(const struct result *r, int i)
{
    return r->n[i] * det_dtype_size(r->dtype[i]);
}

double result_at(const struct result *r, int i, size_t k)
{
    return det__load_f64(r->dtype[i], (const char *)r->v[i] + k * det_dtype_size(r->dtype[i]));
}

int result_take(struct result *r, int i, struct det_tensor *t, struct det_err *err)
{
    r->n[i] = det_tensor_numel(t);
    r->dtype[i] = det_tensor_dtype(t);
    r->v[i] = det_alloc(det_tensor_bytes(t) + 1);
    return det_tensor_read(t, r->v[i], det_tensor_bytes(t), err);
}

int result_of(struct det_engine *e, const struct op_case *c, struct result *r, struct det_err *err)
{
    struct case_run run;
    case_run(e, c, &run);
    int rc = det_engine_error(e, err);
    if (rc == 0)
        rc = result_take(r, 0, run.y, err);
    for (int i = 0; i < run.inputs && rc == 0; i++)
        if (det_tensor_grad(run.in[i]))
            rc = result_take(r, i + 1, det_tensor_grad(run.in[i]), err);
    det_engine_step_end(e);
    return rc < 0 ? det_wrap(err, rc, "%s (%s)", c->op, c->what) : 0;
}

static double tolerance_of(const struct op_case *c, enum det_dtype dtype)
{
    if (dtype == DET_F64)
        return 1e-11;
    for (int i = 0; i < OP_COUNT; i++)
        if (strcmp(op_table[i].name, c->op) == 0)
            return op_table[i].tolerance;
    return 0; /* no operation's name: test_ops.c says so by itself */
}

/* How far apart two roundings of one result may be. */
static double unit_of(enum det_dtype dtype)
{
    return dtype == DET_BF16 ? 0.01 : dtype == DET_F16 ? 0.002 : dtype == DET_F64 ? 1e-11 : 1e-6;
}

/* What was computed in bf16 on the way is as rough as bf16, though it comes back in f32. */
static double roughness_of(const struct op_case *c, const struct result *r, int k)
{
    double way = strstr(c->what, "bf16") ? unit_of(DET_BF16) : 0;
    return fmax(way, unit_of(r->dtype[k]));
}

/* The largest difference, as a share of the largest value. */
static double difference(const struct result *a, const struct result *b, int i)
{
    double most = 0, scale = 1e-3;
    for (size_t k = 0; k < a->n[i]; k++)
        if (isfinite(result_at(a, i, k)))
            scale = fmax(scale, fabs(result_at(a, i, k)));
    for (size_t k = 0; k < a->n[i]; k++) {
        double x = result_at(a, i, k), y = result_at(b, i, k);
        if (x == y || (isnan(x) && isnan(y)))
            continue; /* infinities too */
        if (!isfinite(x - y))
            return INFINITY;
        most = fmax(most, fabs(x - y));
    }
    return most / scale;
}

static int off(struct det_err *err, const struct op_case *c, int k, const char *how)
{
    char part[32] = "value";
    if (k > 0)
        snprintf(part, sizeof part, "gradient of input %d", k);
    return det_fail(err, DET_EINVAL, "%s (%s), %s: %s", c->op, c->what, part, how);
}

int result_compare(const struct op_case *c, const struct result *a, const struct result *b,
                   struct det_err *err)
{
    for (int k = 0; k <= CASE_INPUTS_MAX; k++) {
        char how[80];
        if (a->n[k] != b->n[k] || !a->v[k] != !b->v[k])
            return off(err, c, k, "another number of elements");
        double d = difference(a, b, k);
        double most = 10 * tolerance_of(c, a->dtype[k]) + roughness_of(c, a, k);
        if (d <= most)
            continue;
        snprintf(how, sizeof how, "off by %g, allowed %g", d, most);
        return off(err, c, k, how);
    }
    return 0;
}

int result_same(const struct op_case *c, const struct result *a, const struct result *b,
                struct det_err *err)
{
    for (int k = 0; k <= CASE_INPUTS_MAX; k++)
        if (a->n[k] != b->n[k] || (a->v[k] && memcmp(a->v[k], b->v[k], result_bytes(a, k)) != 0))
            return off(err, c, k, "other bits the second time");
    return 0;
}
