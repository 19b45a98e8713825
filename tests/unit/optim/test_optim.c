/* Optimizers and schedulers: state out and in (training goes on with equal bits), groups, bad
 * input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "det/lr.h"
#include "log.h"
#include "mem.h"

/* A small net with an optimizer and a scheduler; `kind` picks the optimizer. */
struct rig {
    struct det_engine *e;
    struct det_module *net;
    struct det_optim *optim;
    struct det_lr *lr;
};

static void rig_init(struct rig *r, int kind)
{
    assert_int_equal(
        det_engine_create(&(struct det_engine_options){.seed = 3, .threads = 2}, &r->e, NULL), 0);
    r->net = det_nn_sequential(r->e, det_nn_linear(r->e, 5, 7), det_nn_relu(r->e),
                               det_nn_dropout(r->e, 0.2), det_nn_linear(r->e, 7, 3));
    r->optim = kind == 0   ? det_sgd(r->net, .lr = 0.1)
               : kind == 1 ? det_sgd(r->net, .lr = 0.1, .momentum = 0.9, .nesterov = true)
                           : det_adam(r->net, .lr = 0.01, .weight_decay = 0.001);
    r->lr = det_cosine_annealing_lr(r->optim, 5, 0.001);
}

static void rig_finish(struct rig *r)
{
    det_lr_destroy(r->lr);
    det_optim_destroy(r->optim);
    det_module_destroy(r->net);
    det_engine_destroy(r->e);
}

static void train(struct rig *r, int from, int to)
{
    for (int i = from; i < to; i++) {
        float x[20];
        int64_t y[4] = {0, 1, 2, i % 3};
        for (int k = 0; k < 20; k++)
            x[k] = (float)sin(k + i * 20);
        struct det_tensor *out =
            det_forward(r->net, det_from_host(r->e, DET_F32, 2, (int64_t[]){4, 5}, x));
        struct det_tensor *loss =
            det_cross_entropy(r->e, out, det_from_host(r->e, DET_I64, 1, (int64_t[]){4}, y));
        det_optim_zero_grad(r->optim);
        assert_int_equal(det_backward(r->e, loss), 0);
        assert_int_equal(det_optim_step(r->optim), 0);
        det_lr_step(r->lr);
        det_engine_step_end(r->e);
    }
}

static int warnings;

static void count_warning(void *arg, const struct log_record *r)
{
    warnings += r->level == LOG_WARNING && strstr(r->text, "give one, as in det_sgd(net, .lr");
}

static int warnings_of(struct rig *r)
{
    warnings = 0;
    log_set_sink(count_warning, NULL);
    train(r, 0, 2);
    log_set_sink(NULL, NULL);
    return warnings;
}

static double from_nothing(int64_t epoch, void *arg)
{
    return (double)epoch / 5;
}

/* In C, a rate that was forgotten is one of 0. */
static void test_a_forgotten_rate(void **state)
{
    struct rig r;
    rig_init(&r, 0);
    det_optim_set(r.optim, 0, "lr", 0);
    det_optim_set(r.optim, 0, "initial_lr", 0);
    assert_int_equal(warnings_of(&r), 1);
    rig_finish(&r);
    rig_init(&r, 0);
    det_lr_destroy(r.lr);
    r.lr = det_lambda_lr(r.optim, from_nothing, NULL);
    assert_true(det_optim_lr(r.optim, 0) == 0);
    assert_int_equal(warnings_of(&r), 0);
    rig_finish(&r);
}

static void copy_optim(struct rig *from, struct rig *to)
{
    size_t n;
    struct det_err err;
    const struct det_value *v = det_optim_group_values(from->optim, 0, &n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(det_optim_load_group_value(to->optim, 0, &v[i], &err), 0);
    for (size_t p = 0; p < det_optim_param_count(from->optim); p++) {
        v = det_optim_param_state(from->optim, p, &n);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(det_optim_load_param_state(to->optim, p, &v[i], &err), 0);
    }
    v = det_lr_state(from->lr, &n);
    assert_int_equal(det_lr_load_state(to->lr, v, n, &err), 0);
}

static void assert_same_params(struct rig *a, struct rig *b)
{
    size_t n;
    const struct det_named_tensor *p = det_module_params(a->net, &n);
    const struct det_named_tensor *q = det_module_params(b->net, &n);
    for (size_t i = 0; i < n; i++)
        assert_memory_equal(det_tensor_data(p[i].tensor), det_tensor_data(q[i].tensor),
                            det_tensor_bytes(p[i].tensor));
}

static void test_resumed_run_has_the_same_bits(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        struct rig a, b;
        size_t n;
        rig_init(&a, kind);
        rig_init(&b, kind);
        train(&a, 0, 4);
        const struct det_named_tensor *s = det_module_state(a.net, &n);
        assert_int_equal(det_module_load_state(b.net, s, n, true, NULL), 0);
        copy_optim(&a, &b);
        det_engine_set_rng_state(b.e, det_engine_rng_state(a.e));
        train(&a, 4, 9);
        train(&b, 4, 9);
        assert_same_params(&a, &b);
        assert_true(det_optim_lr(a.optim, 0) == det_optim_lr(b.optim, 0));
        rig_finish(&a);
        rig_finish(&b);
    }
}

static void assert_names(const struct det_value *v, size_t n, const char *const *want)
{
    for (size_t i = 0; i < n; i++)
        assert_string_equal(v[i].name, want[i]);
    assert_null(want[n]);
}

static void test_names_are_those_of_pytorch(void **state)
{
    (void)state;
    static const char *const sgd[] = {"lr",         "momentum", "dampening", "weight_decay",
                                      "nesterov",   "maximize", "foreach",   "differentiable",
                                      "initial_lr", NULL};
    static const char *const adam[] = {
        "lr",         "betas",          "eps",   "weight_decay", "amsgrad", "maximize", "foreach",
        "capturable", "differentiable", "fused", "initial_lr",   NULL};
    static const char *const slots[] = {"step", "exp_avg", "exp_avg_sq", NULL};
    static const char *const cosine[] = {"T_max",
                                         "eta_min",
                                         "base_lrs",
                                         "last_epoch",
                                         "verbose",
                                         "_step_count",
                                         "_get_lr_called_within_step",
                                         "_last_lr",
                                         NULL};
    struct rig r;
    size_t n;
    rig_init(&r, 0);
    const struct det_value *v = det_optim_group_values(r.optim, 0, &n);
    assert_names(v, n, sgd);
    det_optim_param_state(r.optim, 0, &n);
    assert_int_equal(n, 0);
    train(&r, 0, 1);
    v = det_optim_param_state(r.optim, 0, &n);
    assert_int_equal(n, 1);
    assert_string_equal(v[0].name, "momentum_buffer");
    assert_int_equal(v[0].kind, DET_VALUE_NONE);
    v = det_lr_state(r.lr, &n);
    assert_names(v, n, cosine);
    rig_finish(&r);
    rig_init(&r, 2);
    train(&r, 0, 1);
    v = det_optim_group_values(r.optim, 0, &n);
    assert_names(v, n, adam);
    v = det_optim_param_state(r.optim, 3, &n);
    assert_names(v, n, slots);
    assert_true(det_item(r.e, v[0].tensor) == 1);
    rig_finish(&r);
}

static void test_groups(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r, 0);
    struct det_module *head = det_nn_linear(r.e, 3, 2), *body = det_nn_linear(r.e, 4, 3);
    struct det_module *net = det_nn_sequential(r.e, head, body);
    struct det_optim *o = det_sgd(net, .lr = 0.5);
    size_t first;
    assert_int_equal(det_optim_add_group(o, head, {"lr", 0.125}, {"weight_decay", 0.5}), 1);
    assert_int_equal(det_optim_set(o, 1, "lr", 0.25), 0);
    assert_true(det_optim_get(o, 1, "weight_decay") == 0.5 && isnan(det_optim_get(o, 1, "eps")));
    assert_true(det_optim_get(o, 0, "weight_decay") == 0 && isnan(det_optim_get(o, 2, "lr")));
    assert_int_equal(det_optim_group_params(o, 0, &first), 2);
    assert_int_equal(first, 0);
    assert_int_equal(det_optim_group_params(o, 1, &first), 2);
    assert_int_equal(first, 2);
    struct det_lr *lr = det_exponential_lr(o, 0.5);
    det_lr_step(lr);
    assert_true(det_lr_last(lr, 0) == 0.25 && det_lr_last(lr, 1) == 0.125);
    struct det_err err;
    assert_int_equal(det_optim_set(o, 1, "weight_decy", 1), DET_EINVAL);
    det_engine_error(r.e, &err);
    assert_string_equal(err.text,
                        "SGD: group 1 has no number \"weight_decy\"; it has: lr, momentum, "
                        "dampening, weight_decay, nesterov, maximize");
    det_engine_clear_error(r.e);
    assert_int_equal(det_optim_set(o, 2, "lr", 1), DET_EINVAL);
    det_engine_error(r.e, &err);
    assert_string_equal(err.text, "SGD: there is no group 2, the last is 1");
    det_engine_clear_error(r.e);
    assert_int_equal(det_optim_set(o, 1, "lr", -1), DET_EINVAL);
    det_engine_clear_error(r.e);
    assert_int_equal(det_optim_add_group(o, body, {"betas", 1}), DET_EINVAL);
    assert_int_equal(det_optim_groups(o), 2);
    det_engine_clear_error(r.e);
    assert_int_equal(det_optim_add_group(o, r.net), DET_EINVAL);
    det_engine_clear_error(r.e);
    det_lr_destroy(lr);
    det_optim_destroy(o);
    det_module_destroy(net);
    rig_finish(&r);
}

static void test_bad_state_is_refused(void **state)
{
    (void)state;
    struct rig r;
    struct det_err err;
    rig_init(&r, 2);
    struct det_tensor *small = det_host_tensor(DET_F32, 1, (int64_t[]){1}, NULL);
    const struct det_value bad[] = {
        {.name = "exp_avg", .kind = DET_VALUE_TENSOR, .tensor = small},
        {.name = "exp_avg", .kind = DET_VALUE_FLOAT, .f = 1},
        {.name = "step", .kind = DET_VALUE_FLOAT, .f = -1},
        {.name = "step", .kind = DET_VALUE_FLOAT, .f = NAN},
        {.name = "step", .kind = DET_VALUE_NONE},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(det_optim_load_param_state(r.optim, 0, &bad[i], &err), DET_EINVAL);
    const struct det_value unknown = {.name = "max_exp_avg_sq", .kind = DET_VALUE_NONE};
    assert_int_equal(det_optim_load_param_state(r.optim, 0, &unknown, &err), 0);
    assert_int_equal(det_optim_load_param_state(r.optim, 99, &unknown, &err), DET_EINVAL);
    const struct det_value betas = {.name = "betas", .kind = DET_VALUE_FLOAT};
    assert_int_equal(det_optim_load_group_value(r.optim, 0, &betas, &err), DET_EINVAL);
    assert_int_equal(det_optim_load_group_value(r.optim, 5, &betas, &err), DET_EINVAL);
    const struct det_value rates = {.name = "base_lrs", .kind = DET_VALUE_FLOATS, .n = 7};
    assert_int_equal(det_lr_load_state(r.lr, &rates, 1, &err), DET_EINVAL);
    const struct det_value period = {.name = "T_max", .kind = DET_VALUE_INT, .i = 0};
    assert_int_equal(det_lr_load_state(r.lr, &period, 1, &err), DET_EINVAL);
    det_tensor_unref(small);
    rig_finish(&r);
}

/* ---- a step that there is no memory for ---- */

struct pair {
    struct det_engine *e;
    struct det_module *net;
    struct det_optim *optim;
};

static void pair_init(struct pair *p, enum det_dtype dtype, int kind)
{
    const struct det_engine_options o = {.seed = 3, .threads = 1, .mem_limit_bytes = 8 << 20};
    assert_int_equal(det_engine_create(&o, &p->e, NULL), 0);
    p->net = det_nn_sequential(p->e, det_nn_linear(p->e, 128, 128), det_nn_linear(p->e, 128, 512));
    assert_int_equal(det_module_to(p->net, dtype), 0);
    p->optim = kind == 0   ? det_sgd(p->net, .lr = 0.1)
               : kind == 1 ? det_sgd(p->net, .lr = 0.1, .momentum = 0.9, .dampening = 0.5)
                           : det_adam(p->net, .lr = 0.01);
    struct det_tensor *x = det_full(p->e, dtype, 2, (int64_t[]){2, 128}, 0.5);
    assert_int_equal(det_backward(p->e, det_sum(p->e, det_forward(p->net, x))), 0);
    det_engine_step_end(p->e);
}

static void pair_finish(struct pair *p)
{
    det_optim_destroy(p->optim);
    det_module_destroy(p->net);
    det_engine_destroy(p->e);
}

/* What is left then is enough for the first parameters' sake, not for those of the second layer. */
static void step_without_memory(struct pair *p)
{
    struct det_tensor *ballast[128];
    struct det_err err;
    size_t n = 0;
    for (; det_engine_mem_bytes(p->e) < (8 << 20) - (200 << 10); n++)
        ballast[n] = det_tensor_ref(det_zeros(p->e, DET_F32, 1, (int64_t[]){16 << 10}));
    det_engine_step_end(p->e);
    assert_int_equal(det_optim_step(p->optim), DET_ENOMEM);
    assert_int_equal(det_engine_error(p->e, &err), DET_ENOMEM);
    det_engine_clear_error(p->e);
    for (size_t i = 0; i < n; i++)
        det_tensor_unref(ballast[i]);
}

static void assert_equal_params(struct pair *a, struct pair *b)
{
    size_t n;
    static char x[1 << 18], y[1 << 18];
    const struct det_named_tensor *p = det_module_params(a->net, &n);
    const struct det_named_tensor *q = det_module_params(b->net, &n);
    for (size_t i = 0; i < n; i++) {
        size_t bytes = det_tensor_bytes(p[i].tensor);
        assert_int_equal(det_tensor_read(p[i].tensor, x, bytes, NULL), 0);
        assert_int_equal(det_tensor_read(q[i].tensor, y, bytes, NULL), 0);
        assert_memory_equal(x, y, bytes);
    }
}

/* It changes nothing, and can be made again. */
static void test_a_step_without_memory(void **state)
{
    (void)state;
    const struct {
        enum det_dtype dtype;
        int kind;
    } cases[] = {{DET_F32, 1}, {DET_F32, 2}, {DET_BF16, 0}, {DET_BF16, 1}};
    for (size_t i = 0; i < DET_ARRAY_LEN(cases); i++) {
        struct pair a, b;
        pair_init(&a, cases[i].dtype, cases[i].kind);
        pair_init(&b, cases[i].dtype, cases[i].kind);
        step_without_memory(&a);
        assert_equal_params(&a, &b);
        for (int step = 0; step < 2; step++) {
            assert_int_equal(det_optim_step(a.optim), 0);
            assert_int_equal(det_optim_step(b.optim), 0);
            assert_equal_params(&a, &b);
        }
        pair_finish(&a);
        pair_finish(&b);
    }
}

static void test_bad_options(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r, 0);
    struct det_optim *(*make)(struct det_module *, const struct det_sgd_options *) = det_sgd_create;
    const struct det_sgd_options bad[] = {
        {.lr = -1}, {.lr = NAN}, {.lr = 1, .nesterov = true}, {.lr = 1, .momentum = -1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_null(make(r.net, &bad[i]));
        assert_int_equal(det_engine_error(r.e, NULL), DET_EINVAL);
        det_engine_clear_error(r.e);
    }
    assert_null(det_sgd(NULL, .lr = 1));
    assert_null(det_step_lr(r.optim, 0, 0.1));
    assert_int_equal(det_optim_step(NULL), DET_EINVAL);
    det_optim_destroy(NULL);
    det_lr_destroy(NULL);
    rig_finish(&r);
}

static double thrice(int64_t epoch, void *arg)
{
    (void)arg;
    return 3.0 * (double)epoch;
}

static void test_lambda(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r, 0);
    struct det_optim *o = det_sgd(r.net, .lr = 0.5);
    struct det_lr *lr = det_lambda_lr(o, thrice, NULL);
    assert_true(det_optim_lr(o, 0) == 0);
    det_lr_step(lr);
    det_lr_step(lr);
    assert_true(det_optim_lr(o, 0) == 3.0);
    det_lr_destroy(lr);
    det_optim_destroy(o);
    rig_finish(&r);
}

static void assert_no_scheduler(struct rig *r, struct det_lr *lr)
{
    assert_null(lr);
    assert_true(det_engine_error(r->e, NULL) < 0);
    det_engine_clear_error(r->e);
}

static void test_bad_schedulers(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r, 0);
    struct det_optim *o = r.optim;
    assert_no_scheduler(&r, det_linear_lr(o, 0, 1, 5));
    assert_no_scheduler(&r, det_constant_lr(o, 2, 5));
    assert_no_scheduler(&r, det_polynomial_lr(o, 0, 1));
    assert_no_scheduler(&r, det_cosine_annealing_warm_restarts(o, 0, 1, 0));
    assert_no_scheduler(&r, det_one_cycle_lr(o, 1, 0));
    assert_no_scheduler(&r, det_reduce_lr_on_plateau(o, -1));
    assert_no_scheduler(
        &r, det_chained_lr(o, det_exponential_lr(o, 0.5), det_reduce_lr_on_plateau(o, 1)));
    assert_no_scheduler(&r, det_sequential_lr(o, {det_exponential_lr(o, 0.5), 3},
                                              {det_exponential_lr(o, 0.5), 2},
                                              {det_exponential_lr(o, 0.5), 0}));
    struct det_optim *adagrad = det_adagrad(r.net, .lr = 1);
    assert_no_scheduler(&r, det_one_cycle_lr(adagrad, 1, 10));
    assert_no_scheduler(&r, det_cyclic_lr(adagrad, 0.1, 1));
    assert_null(det_step_lr(NULL, 1, 1));
    struct det_lr *once = det_one_cycle_lr(o, 1, 1);
    det_lr_step(once);
    det_lr_step(once);
    assert_int_equal(det_engine_error(r.e, NULL), DET_ESTATE);
    det_engine_clear_error(r.e);
    struct det_lr *plateau = det_reduce_lr_on_plateau(o, 1);
    det_lr_step(plateau);
    assert_int_equal(det_engine_error(r.e, NULL), DET_ESTATE);
    det_engine_clear_error(r.e);
    det_lr_destroy(plateau);
    det_lr_destroy(once);
    det_optim_destroy(adagrad);
    rig_finish(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resumed_run_has_the_same_bits),
        cmocka_unit_test(test_names_are_those_of_pytorch),
        cmocka_unit_test(test_a_forgotten_rate),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_bad_state_is_refused),
        cmocka_unit_test(test_a_step_without_memory),
        cmocka_unit_test(test_bad_options),
        cmocka_unit_test(test_lambda),
        cmocka_unit_test(test_bad_schedulers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
