/* Activations as modules: each is the function of its name, by the formula that PyTorch gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "det/nn.h"

#define N 7
static const float at[N] = {-30, -2, -0.5, 0, 0.75, 4, 25};

static int setup(void **state)
{
    struct det_engine_options o = {.seed = 3, .threads = 1};
    return det_engine_create(&o, (struct det_engine **)state, NULL);
}

static int teardown(void **state)
{
    det_engine_destroy(*state);
    return 0;
}

/* Takes m. */
static void check(struct det_engine *e, struct det_module *m, double (*f)(double x))
{
    float y[N];
    assert_non_null(m);
    struct det_tensor *x = det_from_host(e, DET_F32, 1, (int64_t[]){N}, at);
    assert_int_equal(det_tensor_read(det_forward(m, x), y, sizeof y, NULL), 0);
    for (int i = 0; i < N; i++)
        assert_float_equal(y[i], f(at[i]), 1e-5 * (1 + fabs(f(at[i]))));
    det_engine_step_end(e);
    det_module_destroy(m);
}

static double clamp(double x, double lo, double hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}
static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}
static double log_sigmoid(double x)
{
    return x < 0 ? x - log1p(exp(x)) : -log1p(exp(-x));
}
static double gelu(double x)
{
    return x / 2 * (1 + erf(x / sqrt(2)));
}
static double gelu_tanh(double x)
{
    return x / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
}
static double silu(double x)
{
    return x * sigmoid(x);
}
static double mish(double x)
{
    return x * tanh(log1p(exp(x)));
}
static double relu6(double x)
{
    return clamp(x, 0, 6);
}
static double hardsigmoid(double x)
{
    return clamp(x + 3, 0, 6) / 6;
}
static double hardswish(double x)
{
    return x * hardsigmoid(x);
}
static double elu_half(double x)
{
    return x > 0 ? x : 0.5 * expm1(x);
}
static double leaky_tenth(double x)
{
    return x > 0 ? x : 0.1 * x;
}
static double hardtanh_2_to_5(double x)
{
    return clamp(x, -2, 5);
}
/* beta 2; as it is from 2 x > 3 on */
static double softplus_2(double x)
{
    return 2 * x > 3 ? x : log1p(exp(2 * x)) / 2;
}
static double prelu_quarter(double x)
{
    return x > 0 ? x : 0.25 * x;
}

static void test_each_is_its_formula(void **state)
{
    struct det_engine *e = *state;
    check(e, det_nn_tanh(e), tanh);
    check(e, det_nn_sigmoid(e), sigmoid);
    check(e, det_nn_log_sigmoid(e), log_sigmoid);
    check(e, det_nn_gelu(e), gelu);
    check(e, det_nn_gelu_tanh(e), gelu_tanh);
    check(e, det_nn_silu(e), silu);
    check(e, det_nn_mish(e), mish);
    check(e, det_nn_relu6(e), relu6);
    check(e, det_nn_hardswish(e), hardswish);
    check(e, det_nn_hardsigmoid(e), hardsigmoid);
    check(e, det_nn_elu(e, 0.5), elu_half);
    check(e, det_nn_leaky_relu(e, 0.1), leaky_tenth);
    check(e, det_nn_hardtanh(e, -2, 5), hardtanh_2_to_5);
    check(e, det_nn_softplus(e, 2, 3), softplus_2);
    check(e, det_nn_prelu(e, 1, 0.25), prelu_quarter);
}

/* A slope for each channel, which is dimension 1 however many come behind it, and learns. */
static void test_prelu_has_a_slope_for_each_channel(void **state)
{
    struct det_engine *e = *state;
    static const int64_t dims[3][4] = {{2, 3}, {2, 3, 2}, {2, 3, 1, 2}};
    for (int k = 0; k < 3; k++) {
        int after = k > 0 ? 2 : 1, n = 6 * after;
        float x[12], y[12], grad[3], slopes[3] = {0.5f, 0.25f, 2};
        struct det_module *m = det_nn_prelu(e, 3, 0.25);
        struct det_tensor *w = det_module_tensor(m, "weight");
        assert_non_null(w);
        assert_int_equal(det_tensor_write(w, slopes, sizeof slopes, NULL), 0);
        for (int i = 0; i < n; i++)
            x[i] = (float)(i % 2 ? i + 1 : -i - 1);
        struct det_tensor *out = det_forward(m, det_from_host(e, DET_F32, k + 2, dims[k], x));
        assert_int_equal(det_tensor_read(out, y, (size_t)n * sizeof *y, NULL), 0);
        float want[3] = {0};
        for (int i = 0; i < n; i++) {
            int channel = i / after % 3;
            assert_float_equal(y[i], x[i] > 0 ? x[i] : slopes[channel] * x[i], 1e-6);
            want[channel] += x[i] > 0 ? 0 : x[i];
        }
        det_backward(e, det_sum(e, out));
        assert_int_equal(det_tensor_read(det_tensor_grad(w), grad, sizeof grad, NULL), 0);
        for (int i = 0; i < 3; i++)
            assert_float_equal(grad[i], want[i], 1e-5);
        det_engine_step_end(e);
        det_module_destroy(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_is_its_formula, setup, teardown),
        cmocka_unit_test_setup_teardown(test_prelu_has_a_slope_for_each_channel, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
