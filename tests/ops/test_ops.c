/*
 * Every operation: the cpu backend against the reference (values and gradients), and the
 * reference's gradients by central differences. The function that is differentiated is sum(weights
 * * op(inputs)).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "op.h"
#include "op_case.h"

#define PROBES 12 /* elements of an input that are differentiated numerically */
#define STEP   2e-3

static const int64_t stride_primes[] = {7919, 104729, 1299709};

/* Distinct values in +-range, none near 0 and none near each other, in a scrambled order. */
static void fill(struct det_tensor *t, const struct case_input *in, int salt)
{
    int64_t n = (int64_t)det_tensor_numel(t);
    double range = in->range != 0 ? in->range : 1;
    for (int64_t i = 0; i < n; i++) {
        int64_t k = (i * stride_primes[salt % 3] + salt * 31) % n;
        if (in->classes)
            ((int64_t *)det_tensor_data(t))[i] = k % ((int64_t)range + 1);
        else
            ((float *)det_tensor_data(t))[i] =
                (float)(range * ((2.0 * (double)k + 1) / (double)n - 1));
    }
}

/* "cpu", or what DET_OPS_DEVICE says: tests/gpu/run says "cuda". */
static const char *device_under_test(void)
{
    const char *wish = getenv("DET_OPS_DEVICE");
    return wish ? wish : "cpu";
}

static struct det_engine *engine(const char *device)
{
    struct det_engine *e;
    struct det_err err;
    if (det_engine_create(&(struct det_engine_options){.device = device, .seed = 5, .threads = 2},
                          &e, &err) < 0)
        fail_msg("%s", err.text);
    return e;
}

/* What a case gave: its output and the gradients of its inputs, as floats of the heap. */
struct result {
    size_t n[CASE_INPUTS_MAX + 1];
    float *v[CASE_INPUTS_MAX + 1];
};

static void result_finish(struct result *r)
{
    for (int i = 0; i <= CASE_INPUTS_MAX; i++)
        free(r->v[i]);
}

static void take(struct result *r, int i, struct det_tensor *t)
{
    struct det_err err;
    r->n[i] = det_tensor_numel(t);
    r->v[i] = det_alloc(r->n[i] * sizeof(float) + 1);
    if (det_tensor_read(t, r->v[i], r->n[i] * sizeof(float), &err) < 0)
        fail_msg("%s", err.text);
}

static void check_engine(struct det_engine *e)
{
    struct det_err err;
    if (det_engine_error(e, &err) < 0)
        fail_msg("%s", err.text);
}

/* The inputs on the host; `nudge` is added to element `at` of input `which`. */
static int make_inputs(struct det_engine *e, const struct op_case *c, struct det_tensor **in,
                       int which, int64_t at, double nudge)
{
    int n = 0;
    for (; n < CASE_INPUTS_MAX && c->in[n].ndim > 0; n++) {
        const struct case_input *s = &c->in[n];
        struct det_tensor *t =
            det_host_tensor(s->classes ? DET_I64 : DET_F32, s->ndim, s->dims, NULL);
        fill(t, s, n);
        if (n == which)
            ((float *)det_tensor_data(t))[at] += (float)nudge;
        in[n] = det_from_host(e, det_tensor_dtype(t), s->ndim, s->dims, det_tensor_data(t));
        if (!s->classes && !s->constant)
            det_requires_grad(e, in[n]);
        det_tensor_unref(t);
    }
    return n;
}

/* Some weights for the elements of y, so that each counts differently. */
static struct det_tensor *weights_like(struct det_engine *e, struct det_tensor *y)
{
    struct case_input s = {.range = 0.9};
    struct det_tensor *w = det_host_tensor(DET_F32, det_tensor_ndim(y), det_tensor_dims(y), NULL);
    fill(w, &s, 2);
    struct det_tensor *ret =
        det_from_host(e, DET_F32, det_tensor_ndim(y), det_tensor_dims(y), det_tensor_data(w));
    det_tensor_unref(w);
    return ret;
}

static void run(struct det_engine *e, const struct op_case *c, struct result *r)
{
    struct det_tensor *in[CASE_INPUTS_MAX] = {0};
    int n = make_inputs(e, c, in, -1, 0, 0);
    struct det_tensor *y = c->build(e, in);
    check_engine(e);
    take(r, 0, y);
    if (op_wants_grad(y))
        det_backward(e, det_sum(e, det_mul(e, y, weights_like(e, y))));
    check_engine(e);
    for (int i = 0; i < n; i++)
        if (det_tensor_grad(in[i]))
            take(r, i + 1, det_tensor_grad(in[i]));
    det_engine_step_end(e);
}

static double tolerance(const struct op_case *c)
{
    for (int i = 0; i < OP_COUNT; i++)
        if (strcmp(op_table[i].name, c->op) == 0)
            return op_table[i].tolerance;
    fail_msg("%s is no operation", c->op);
    return 0;
}

/* The largest difference, as a share of the largest value. */
static double difference(const float *a, const float *b, size_t n)
{
    double most = 0, scale = 1e-3;
    for (size_t i = 0; i < n; i++) {
        most = fmax(most, fabs((double)a[i] - b[i]));
        scale = fmax(scale, fabs((double)a[i]));
    }
    return most / scale;
}

static void test_device_equals_ref(void **state)
{
    (void)state;
    struct det_engine *ref = engine("ref"), *tested = engine(device_under_test());
    for (int i = 0; i < op_cases_n; i++) {
        const struct op_case *c = &op_cases[i];
        det_cleanup(result_finish) struct result a = {0}, b = {0};
        run(ref, c, &a);
        run(tested, c, &b);
        for (int k = 0; k <= CASE_INPUTS_MAX; k++) {
            assert_int_equal(a.n[k], b.n[k]);
            double d = difference(a.v[k], b.v[k], a.n[k]), most = 10 * tolerance(c) + 1e-6;
            if (!(d <= most))
                fail_msg("%s (%s), %s %d: off by %g, allowed %g", c->op, c->what,
                         k ? "gradient of input" : "value", k, d, most);
        }
    }
    det_engine_destroy(ref);
    det_engine_destroy(tested);
}

/* sum(weights * op(inputs)) with one element of one input moved, in double. */
static double value_at(struct det_engine *e, const struct op_case *c, int which, int64_t at,
                       double nudge)
{
    struct det_tensor *in[CASE_INPUTS_MAX] = {0};
    double total = 0;
    det_no_grad_begin(e);
    make_inputs(e, c, in, which, at, nudge);
    struct det_tensor *y = c->build(e, in), *w = weights_like(e, y);
    det_cleanup(result_finish) struct result r = {0};
    check_engine(e);
    take(&r, 0, y);
    for (size_t i = 0; i < r.n[0]; i++)
        total += (double)r.v[0][i] * ((float *)det_tensor_data(w))[i];
    det_no_grad_end(e);
    det_engine_step_end(e);
    return total;
}

static void check_input(struct det_engine *e, const struct op_case *c, int which, const float *grad,
                        int64_t n)
{
    double scale = 0.05;
    for (int64_t i = 0; i < n; i++)
        scale = fmax(scale, fabs((double)grad[i]));
    int64_t compared = 0, tried = 0;
    for (int64_t p = 0; p < PROBES && p < n; p++, tried++) {
        int64_t at = (p * 7919 + 3) % n;
        double here = value_at(e, c, which, at, 0);
        double up = (value_at(e, c, which, at, STEP) - here) / STEP;
        double down = (here - value_at(e, c, which, at, -STEP)) / STEP;
        if (fabs(up - down) > 0.02 * scale)
            continue; /* a kink of a ReLU or a maximum lies between: no gradient to compare with */
        compared++;
        if (fabs((up + down) / 2 - grad[at]) > 0.02 * scale)
            fail_msg("%s (%s), input %d, element %d: gradient %g, by differences %g", c->op,
                     c->what, which + 1, (int)at, grad[at], (up + down) / 2);
    }
    if (tried >= 4 && 2 * compared < tried)
        fail_msg("%s (%s), input %d: only %d of %d elements are smooth", c->op, c->what, which + 1,
                 (int)compared, (int)tried);
}

static void test_gradients_by_differences(void **state)
{
    (void)state;
    struct det_engine *ref = engine("ref");
    for (int i = 0; i < op_cases_n; i++) {
        const struct op_case *c = &op_cases[i];
        det_cleanup(result_finish) struct result r = {0};
        if (strncmp(c->what, "large", 5) == 0) /* the small ones say the same */
            continue;
        run(ref, c, &r);
        for (int k = 0; k < CASE_INPUTS_MAX; k++)
            if (r.v[k + 1])
                check_input(ref, c, k, r.v[k + 1], (int64_t)r.n[k + 1]);
    }
    det_engine_destroy(ref);
}

static void test_every_operation_has_a_case(void **state)
{
    (void)state;
    for (int i = 0; i < OP_COUNT; i++) {
        bool found = false;
        for (int k = 0; k < op_cases_n; k++)
            found = found || strcmp(op_cases[k].op, op_table[i].name) == 0;
        if (!found)
            fail_msg("operation %s has no case in op_case.c", op_table[i].name);
    }
}

static void test_same_bits_twice(void **state)
{
    (void)state;
    struct det_engine *tested = engine(device_under_test());
    for (int i = 0; i < op_cases_n; i++) {
        det_cleanup(result_finish) struct result a = {0}, b = {0};
        run(tested, &op_cases[i], &a);
        run(tested, &op_cases[i], &b);
        for (int k = 0; k <= CASE_INPUTS_MAX; k++)
            assert_memory_equal(a.v[k] ? (void *)a.v[k] : "", b.v[k] ? (void *)b.v[k] : "",
                                a.n[k] * sizeof(float));
    }
    det_engine_destroy(tested);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_operation_has_a_case),
        cmocka_unit_test(test_device_equals_ref),
        cmocka_unit_test(test_gradients_by_differences),
        cmocka_unit_test(test_same_bits_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
