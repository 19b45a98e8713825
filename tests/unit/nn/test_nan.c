/* What is no number stays none: a loss must not look fine because a layer swallowed it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "det/conv.h"
#include "det/nn_seq.h"

static const int64_t image[] = {1, 16, 8, 8};

static int setup(void **state)
{
    struct det_engine_options o = {.seed = 3, .threads = 2};
    return det_engine_create(&o, (struct det_engine **)state, NULL);
}

static int teardown(void **state)
{
    det_engine_destroy(*state);
    return 0;
}

/* Ones, but for a NaN in the middle. */
static struct det_tensor *spoilt(struct det_engine *e, int ndim, const int64_t *dims)
{
    size_t n = 1;
    for (int i = 0; i < ndim; i++)
        n *= (size_t)dims[i];
    float *v = malloc(n * sizeof *v);
    for (size_t i = 0; i < n; i++)
        v[i] = i == n / 2 ? NAN : 1;
    struct det_tensor *t = det_from_host(e, DET_F32, ndim, dims, v);
    free(v);
    return t;
}

static void check(struct det_engine *e, struct det_tensor *y)
{
    assert_non_null(y);
    assert_true(isnan(det_item(e, det_sum(e, y))));
}

static void in_a_layer(struct det_engine *e, struct det_module *m, int ndim, const int64_t *dims)
{
    assert_non_null(m);
    check(e, det_forward(m, spoilt(e, ndim, dims)));
    det_engine_step_end(e);
    det_module_destroy(m);
}

static void test_layers(void **state)
{
    struct det_engine *e = *state;
    static const int64_t rows[] = {4, 16};
    in_a_layer(e, det_nn_relu(e), 4, image);
    in_a_layer(e, det_nn_max_pool2d(e, 2, 2, 0), 4, image);
    in_a_layer(e, det_nn_sequential(e, det_nn_linear(e, 16, 16), det_nn_relu(e)), 2, rows);
    in_a_layer(e, det_nn_sequential(e, det_nn_conv2d(e, 16, 16, 3), det_nn_relu(e)), 4, image);
    in_a_layer(e, det_nn_sequential(e, det_nn_conv2d(e, 16, 16, 1), det_nn_relu(e)), 4, image);
    struct det_module *conv = det_nn_conv2d(e, 16, 16, 3, .padding = 1);
    in_a_layer(e, det_nn_sequential(e, conv, det_nn_relu(e)), 4, image);
    in_a_layer(e, det_nn_sequential(e, det_nn_batch_norm2d(e, 16), det_nn_relu(e)), 4, image);
}

/* Its gradient passes too, as PyTorch has it. */
static void test_gradient_of_relu(void **state)
{
    struct det_engine *e = *state;
    float grad[16];
    struct det_tensor *x = det_requires_grad(e, spoilt(e, 1, (int64_t[]){16}));
    assert_int_equal(det_backward(e, det_sum(e, det_relu(e, x))), 0);
    assert_int_equal(det_tensor_read(det_tensor_grad(x), grad, sizeof grad, NULL), 0);
    for (int i = 0; i < 16; i++)
        assert_true(grad[i] == 1);
    det_engine_step_end(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_layers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_gradient_of_relu, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
