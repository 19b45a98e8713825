/* The scaler of gradients: the scale's way, steps left out, wrong order, state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "det/grad_scaler.h"

struct rig {
    struct det_engine *e;
    struct det_module *net;
    struct det_optim *optim;
};

static void rig_init(struct rig *r)
{
    assert_int_equal(det_engine_create(&(struct det_engine_options){.threads = 1}, &r->e, NULL), 0);
    r->net = det_nn_linear(r->e, 3, 1, .no_bias = true);
    r->optim = det_sgd(r->net, .lr = 0.5);
}

static void rig_finish(struct rig *r)
{
    det_optim_destroy(r->optim);
    det_module_destroy(r->net);
    det_engine_destroy(r->e);
}

/* Gradients x of the weight, through the scaler. */
static void backward(struct rig *r, struct det_grad_scaler *s, float a, float b, float c)
{
    const float x[] = {a, b, c};
    struct det_tensor *y =
        det_forward(r->net, det_from_host(r->e, DET_F32, 2, (int64_t[]){1, 3}, x));
    det_optim_zero_grad(r->optim);
    assert_int_equal(det_backward(r->e, det_grad_scaler_scale(s, det_sum(r->e, y))), 0);
}

static void weights(struct rig *r, float out[3])
{
    struct det_tensor *w = det_module_tensor(r->net, "weight");
    assert_int_equal(det_tensor_read(w, out, 3 * sizeof *out, NULL), 0);
}

static void test_scale_goes_up_and_down(void **state)
{
    (void)state;
    struct rig r;
    float before[3], after[3];
    rig_init(&r);
    struct det_grad_scaler *s = det_grad_scaler(r.e, .init_scale = 8, .growth_interval = 3);
    const float bad[] = {0, INFINITY, 0, 0, 0, 0, NAN};
    const double scales[] = {8, 4, 4, 4, 8, 8, 4};
    for (int i = 0; i < 7; i++) {
        weights(&r, before);
        backward(&r, s, 1, 2, bad[i]);
        assert_int_equal(det_grad_scaler_step(s, r.optim), bad[i] == 0);
        assert_int_equal(det_grad_scaler_update(s), 0);
        weights(&r, after);
        assert_true(det_grad_scaler_get_scale(s) == scales[i]);
        assert_true(after[0] == (bad[i] == 0 ? before[0] - 0.5F : before[0]));
        assert_true(after[1] == (bad[i] == 0 ? before[1] - 1.0F : before[1]));
        det_engine_step_end(r.e);
    }
    det_grad_scaler_destroy(s);
    rig_finish(&r);
}

static void test_clipping_sees_true_gradients(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    struct det_grad_scaler *s = det_grad_scaler(r.e, .init_scale = 1024);
    backward(&r, s, 3, 0, -4);
    assert_false(det_grad_scaler_unscaled(s, r.optim));
    assert_int_equal(det_grad_scaler_unscale(s, r.optim), 0);
    assert_true(det_grad_scaler_unscaled(s, r.optim));
    assert_true(det_item(r.e, det_clip_grad_norm_inf(r.net, 8)) == 4);
    assert_true(fabs(det_item(r.e, det_clip_grad_norm(r.net, 1)) - 5) < 1e-6);
    assert_true(fabs(det_module_grads_max(r.net) - 0.8) < 1e-6);
    assert_true(fabs(det_item(r.e, det_clip_grad_norm_inf(r.net, 0.4)) - 0.8) < 1e-6);
    assert_true(fabs(det_item(r.e, det_clip_grad_norm(r.net, 8)) - 0.5) < 1e-6);
    assert_int_equal(det_grad_scaler_step(s, r.optim), 1);
    assert_int_equal(det_grad_scaler_update(s), 0);
    det_grad_scaler_destroy(s);
    rig_finish(&r);
}

/* As after a mean over ranks of which another one had the infinity. */
static void test_an_infinity_after_unscaling_counts(void **state)
{
    (void)state;
    struct rig r;
    float before[3], after[3];
    rig_init(&r);
    struct det_grad_scaler *s = det_grad_scaler(r.e, .init_scale = 8);
    weights(&r, before);
    backward(&r, s, 1, 2, 3);
    assert_int_equal(det_grad_scaler_unscale(s, r.optim), 0);
    det_module_scale_grads(r.net, INFINITY);
    assert_int_equal(det_grad_scaler_step(s, r.optim), 0);
    assert_int_equal(det_grad_scaler_update(s), 0);
    weights(&r, after);
    assert_memory_equal(before, after, sizeof before);
    assert_true(det_grad_scaler_get_scale(s) == 4);
    det_grad_scaler_destroy(s);
    rig_finish(&r);
}

static void assert_wrong_order(struct rig *r, int rc)
{
    assert_int_equal(rc, DET_ESTATE);
    assert_int_equal(det_engine_error(r->e, NULL), DET_ESTATE);
    det_engine_clear_error(r->e);
}

static void test_wrong_order(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    struct det_grad_scaler *s = det_grad_scaler(r.e);
    assert_true(det_grad_scaler_get_scale(s) == 65536);
    assert_wrong_order(&r, det_grad_scaler_update(s));
    backward(&r, s, 1, 1, 1);
    assert_int_equal(det_grad_scaler_unscale(s, r.optim), 0);
    assert_wrong_order(&r, det_grad_scaler_unscale(s, r.optim));
    assert_int_equal(det_grad_scaler_step(s, r.optim), 1);
    assert_wrong_order(&r, det_grad_scaler_step(s, r.optim));
    assert_wrong_order(&r, det_grad_scaler_unscale(s, r.optim));
    assert_int_equal(det_grad_scaler_update(s), 0);
    assert_null(det_grad_scaler(r.e, .growth_factor = 0.5));
    det_engine_clear_error(r.e);
    det_grad_scaler_destroy(s);
    rig_finish(&r);
}

static void test_disabled_does_plain_steps(void **state)
{
    (void)state;
    struct rig r;
    size_t n;
    rig_init(&r);
    struct det_grad_scaler *s = det_grad_scaler(r.e, .disabled = true);
    backward(&r, s, 1, 1, 1);
    assert_true(det_module_grads_max(r.net) == 1);
    assert_int_equal(det_grad_scaler_step(s, r.optim), 1);
    assert_int_equal(det_grad_scaler_update(s), 0);
    assert_null(det_grad_scaler_state(s, &n));
    assert_int_equal(n, 0);
    det_grad_scaler_destroy(s);
    rig_finish(&r);
}

static void test_state(void **state)
{
    (void)state;
    static const char *const names[] = {"scale", "growth_factor", "backoff_factor",
                                        "growth_interval", "_growth_tracker"};
    struct rig r;
    struct det_err err;
    size_t n;
    rig_init(&r);
    struct det_grad_scaler *s = det_grad_scaler(r.e, .init_scale = 2, .growth_interval = 5);
    struct det_grad_scaler *to = det_grad_scaler(r.e);
    backward(&r, s, 1, 1, 1);
    det_grad_scaler_step(s, r.optim);
    det_grad_scaler_update(s);
    const struct det_value *v = det_grad_scaler_state(s, &n);
    assert_int_equal(n, 5);
    for (size_t i = 0; i < n; i++)
        assert_string_equal(v[i].name, names[i]);
    assert_int_equal(v[4].i, 1);
    assert_int_equal(det_grad_scaler_load_state(to, v, n, &err), 0);
    assert_true(det_grad_scaler_get_scale(to) == 2);
    const struct det_value bad[] = {{.name = "scale", .kind = DET_VALUE_FLOAT, .f = NAN},
                                    {.name = "scale", .kind = DET_VALUE_NONE},
                                    {.name = "growth_interval", .kind = DET_VALUE_INT, .i = 0}};
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(det_grad_scaler_load_state(to, &bad[i], 1, &err), DET_EINVAL);
    det_grad_scaler_destroy(s);
    det_grad_scaler_destroy(to);
    rig_finish(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scale_goes_up_and_down),
        cmocka_unit_test(test_clipping_sees_true_gradients),
        cmocka_unit_test(test_an_infinity_after_unscaling_counts),
        cmocka_unit_test(test_wrong_order),
        cmocka_unit_test(test_disabled_does_plain_steps),
        cmocka_unit_test(test_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
