/* An optimizer's step over all parameters at once is that of plain C, in few launches, and so is
 * what clips gradients, without a wait. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>

#include "det/functional.h"
#include "det/grad_scaler.h"
#include "det/optim.h"
#include "engine.h"
#include "include/cuda_runtime_api.h"
#include "mem.h"
#include "module.h"

#define LAYERS 70 /* more parameters than a launch takes */
#define STEPS  3

struct net {
    struct det_engine *e;
    struct det_module *all, *layers[LAYERS];
};

/* Layers of odd sizes, some of them of several pieces. */
static struct net make(const char *device)
{
    struct net n = {0};
    struct det_err err;
    const struct det_engine_options o = {.device = device, .seed = 1, .threads = 1};
    if (det_engine_create(&o, &n.e, &err) < 0)
        fail_msg("%s", err.text);
    n.all = det_nn_module(n.e);
    for (int i = 0; i < LAYERS; i++)
        n.layers[i] = det_module_append(n.all, det_nn_linear(n.e, 5 + i % 7, 3 + i));
    return n;
}

/* One part of the network is left out of a step: its count of steps falls behind. */
static void backward(struct net *n, int step)
{
    struct det_tensor *sum = NULL;
    for (int i = 0; i < LAYERS; i++) {
        if (step == 1 && i % 10 == 3)
            continue;
        struct det_tensor *x = det_full(n->e, DET_F32, 2, (int64_t[]){1, 5 + i % 7}, i + step + 1);
        struct det_tensor *y = det_sum(n->e, det_forward(n->layers[i], x));
        sum = sum ? det_add(n->e, sum, y) : y;
    }
    det_backward(n->e, sum);
}

static struct det_optim *sgd(struct det_module *m)
{
    return det_sgd(m, .lr = 0.1, .momentum = 0.9, .weight_decay = 0.01);
}
static struct det_optim *plain_sgd(struct det_module *m)
{
    return det_sgd(m, .lr = 0.1, .maximize = true);
}
static struct det_optim *adam(struct det_module *m)
{
    return det_adam(m, .lr = 0.1, .weight_decay = 0.01, .amsgrad = true);
}
static struct det_optim *adamw(struct det_module *m)
{
    return det_adamw(m, .lr = 0.1);
}
static struct det_optim *rmsprop(struct det_module *m)
{
    return det_rmsprop(m, .lr = 0.01, .momentum = 0.9, .centered = true);
}
static struct det_optim *adagrad(struct det_module *m)
{
    return det_adagrad(m, .lr = 0.1, .lr_decay = 0.1);
}

static long calls_of(enum emulated_call call)
{
    det_cleanup(freep) char *path =
        det_asprintf("%s/det_backend_cuda.so", getenv("DET_BACKEND_DIR"));
    void *module = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    const long *all = module ? dlsym(module, "emulated_calls") : NULL;
    assert_non_null(all);
    return all[call];
}

/* The launches of the last step, 0 where they are not counted. */
static long train(struct net *n, struct det_optim *o, bool counts)
{
    long before = 0;
    for (int step = 0; step < STEPS; step++) {
        det_optim_zero_grad(o);
        backward(n, step);
        before = counts ? calls_of(EMULATED_KERNEL) : 0;
        assert_int_equal(det_optim_step(o), 0);
        before = counts ? calls_of(EMULATED_KERNEL) - before : 0;
        det_engine_step_end(n->e);
    }
    return before;
}

/* Plain C takes roots in double; without roots the bits are the same. */
static void assert_same(struct net *a, struct net *b, double most)
{
    size_t count;
    struct det_err err;
    const struct det_named_tensor *p = det_module_params(a->all, &count);
    const struct det_named_tensor *q = det_module_params(b->all, &count);
    assert_int_equal(count, 2 * LAYERS);
    for (size_t i = 0; i < count; i++) {
        size_t bytes = det_tensor_bytes(p[i].tensor);
        det_cleanup(freep) float *x = det_alloc(bytes), *y = det_alloc(bytes);
        assert_int_equal(det_tensor_read(p[i].tensor, x, bytes, &err), 0);
        assert_int_equal(det_tensor_read(q[i].tensor, y, bytes, &err), 0);
        for (size_t j = 0; j < bytes / sizeof *x; j++)
            if (!(fabs(x[j] - y[j]) <= most))
                fail_msg("%s: %g instead of %g", p[i].name, y[j], x[j]);
    }
}

static void same_as_plain_c(struct det_optim *(*create)(struct det_module *m), long most,
                            double error)
{
    struct net on_host = make("ref"), on_device = make("cuda");
    struct det_optim *a = create(on_host.all), *b = create(on_device.all);
    train(&on_host, a, false);
    long n = train(&on_device, b, true);
    assert_same(&on_host, &on_device, error);
    if (n > most)
        fail_msg("%ld launches for %d parameters", n, 2 * LAYERS);
    det_optim_destroy(a);
    det_optim_destroy(b);
    det_module_destroy(on_host.all);
    det_module_destroy(on_device.all);
    det_engine_destroy(on_host.e);
    det_engine_destroy(on_device.e);
}

/* Those of other counts of steps come between the others: 7 layers, hence 15 runs of equal numbers
 * where numbers depend on them. */
static void test_steps(void **state)
{
    same_as_plain_c(sgd, 3, 0);
    same_as_plain_c(plain_sgd, 3, 0);
    same_as_plain_c(adam, 15, 1e-6);
    same_as_plain_c(adamw, 15, 1e-6);
    same_as_plain_c(rmsprop, 3, 1e-6);
    same_as_plain_c(adagrad, 15, 1e-6);
}

/* By how much 0, 1, 2 .. 6, 0, 1 .., n of them, are limited from one on, if `norm` is theirs. */
static double limited_by(struct det_engine *e, int64_t n, int64_t from, double norm)
{
    struct det_err err;
    struct det_tensor *host = det_host_tensor(DET_F32, 1, &n, NULL);
    float *v = det_tensor_data(host);
    for (int64_t i = 0; i < n; i++)
        v[i] = (float)(i % 7);
    struct det_tensor *x = det_narrow(e, det_to_device(e, host), 0, from, n - from);
    struct det_call c = {.kernel = DET_KERNEL_LIMIT,
                         .in = {det_full(e, DET_F32, 0, NULL, norm)},
                         .out = {x},
                         .a = {.hi = 2, .eps = 1e-6}};
    assert_int_equal(det__run(e, &c, &err), 0);
    double sum = det_item(e, det_sum(e, x)), all = 0;
    for (int64_t i = from; i < n; i++)
        all += v[i];
    det_tensor_unref(host);
    det_engine_step_end(e);
    return sum / all;
}

static void test_gradients_are_limited(void **state)
{
    static const int64_t sizes[] = {3, 100003};
    struct net n = make("cuda");
    for (int64_t from = 0; from < 2; from++) /* not at 16 bytes, too */
        for (size_t i = 0; i < DET_ARRAY_LEN(sizes); i++) {
            assert_true(fabs(limited_by(n.e, sizes[i], from, 8) - 0.25) < 1e-6);
            assert_true(limited_by(n.e, sizes[i], from, 1.5) == 1);
            assert_true(isnan(limited_by(n.e, sizes[i], from, NAN)));
        }
    assert_int_equal(det_engine_error(n.e, NULL), 0);
    det_module_destroy(n.all);
    det_engine_destroy(n.e);
}

/* The norm before, and one after; the second clipping has nothing to do. */
static void clip_twice(struct net *n, bool by_norm, double max, double ret[2])
{
    backward(n, 0);
    for (int i = 0; i < 2; i++)
        ret[i] = det_item(n->e, by_norm ? det_clip_grad_norm(n->all, max)
                                        : det_clip_grad_norm_inf(n->all, max));
}

static void clips_as_plain_c(bool by_norm)
{
    struct net on_host = make("ref"), on_device = make("cuda");
    double right[2], got[2];
    clip_twice(&on_host, by_norm, 0.5, right);
    clip_twice(&on_device, by_norm, 0.5, got);
    assert_true(fabs(got[0] / right[0] - 1) < 1e-6 && fabs(got[1] - 0.5) < 1e-5);
    assert_true(fabs(right[1] - 0.5) < 1e-5);
    long waits = calls_of(EMULATED_WAIT);
    det_clip_grad_norm(on_device.all, 0.25);
    det_clip_grad_norm_inf(on_device.all, 0.125);
    assert_int_equal(calls_of(EMULATED_WAIT), waits);
    det_module_destroy(on_host.all);
    det_module_destroy(on_device.all);
    det_engine_destroy(on_host.e);
    det_engine_destroy(on_device.e);
}

static void test_clipping_waits_for_nothing(void **state)
{
    clips_as_plain_c(true);
    clips_as_plain_c(false);
}

/* What ranks tell each other of, behind their gradients. */
static void expect_marks(struct net *n, int step)
{
    size_t count;
    struct det_err err;
    const struct det_named_tensor *p = det_module_params(n->all, &count);
    float marks[2 * LAYERS];
    det_module_zero_grad(n->all);
    backward(n, step);
    long waits = calls_of(EMULATED_WAIT);
    struct det_tensor *all = module_grads_marked(n->all);
    assert_non_null(all);
    assert_int_equal(calls_of(EMULATED_WAIT), waits);
    struct det_tensor *last =
        det_narrow(n->e, all, 0, (int64_t)det_tensor_numel(all) - 2 * LAYERS, 2 * LAYERS);
    assert_int_equal(count, 2 * LAYERS);
    assert_int_equal(det_tensor_read(last, marks, sizeof marks, &err), 0);
    for (size_t i = 0; i < count; i++)
        assert_true(marks[i] == (det_tensor_grad(p[i].tensor) ? 1 : 0));
    det_engine_step_end(n->e);
}

static void test_marks_wait_for_nothing(void **state)
{
    struct net n = make("cuda");
    expect_marks(&n, 0);
    expect_marks(&n, 1); /* some are left out */
    det_module_destroy(n.all);
    det_engine_destroy(n.e);
}

/* The scaler's step with its gradients clipped, and what the step after an infinity does. */
static void test_a_scaled_step_waits_once(void **state)
{
    struct net n = make("cuda");
    struct det_optim *o = adam(n.all);
    struct det_grad_scaler *s = det_grad_scaler(n.e);
    for (int step = 0; step < 4; step++) {
        bool bad = step == 2;
        backward(&n, 0);
        det_module_scale_grads(n.all, bad ? 3e38 : 65536);
        long waits = calls_of(EMULATED_WAIT);
        assert_int_equal(det_grad_scaler_unscale(s, o), 0);
        det_clip_grad_value(n.all, 1); /* hides the infinity */
        assert_int_equal(calls_of(EMULATED_WAIT), waits);
        assert_int_equal(det_grad_scaler_step(s, o), !bad);
        assert_int_equal(det_grad_scaler_update(s), 0);
        assert_int_equal(calls_of(EMULATED_WAIT), waits + 1);
        assert_true(det_grad_scaler_get_scale(s) == (step < 2 ? 65536 : 32768));
        det_optim_zero_grad(o);
        det_engine_step_end(n.e);
    }
    det_grad_scaler_destroy(s);
    det_optim_destroy(o);
    det_module_destroy(n.all);
    det_engine_destroy(n.e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_steps),
                                       cmocka_unit_test(test_gradients_are_limited),
                                       cmocka_unit_test(test_clipping_waits_for_nothing),
                                       cmocka_unit_test(test_marks_wait_for_nothing),
                                       cmocka_unit_test(test_a_scaled_step_waits_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
