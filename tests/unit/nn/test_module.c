/* Modules: names and order, loading state, the vector of gradients, fused layers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "det/init.h"
#include "det/nn.h"

struct fixture {
    struct det_engine *e;
    struct det_module *net;
};

static int setup(void **state)
{
    static struct fixture f;
    if (det_engine_create(&(struct det_engine_options){.seed = 3, .threads = 2}, &f.e, NULL) < 0)
        return -1;
    f.net = det_nn_module(f.e);
    det_module_add(f.net, "body",
                   det_nn_sequential(f.e, det_nn_conv2d(f.e, 1, 3, 3, .no_bias = true),
                                     det_nn_batch_norm2d(f.e, 3), det_nn_relu(f.e)));
    det_module_add(f.net, "fc", det_nn_linear(f.e, 12, 4));
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    det_module_destroy(f->net);
    det_engine_destroy(f->e);
    return 0;
}

static double element(struct det_tensor *t, int64_t i)
{
    double v[64] = {0};
    assert_int_equal(det_tensor_dtype(t), DET_F64);
    assert_int_equal(det_tensor_read(t, v, det_tensor_bytes(t), NULL), 0);
    return v[i];
}

static void test_another_dtype(void **state)
{
    struct fixture *f = *state;
    struct det_tensor *w = det_module_tensor(f->net, "fc.weight");
    float before[48], after[48];
    det_tensor_read(w, before, sizeof before, NULL);
    assert_int_equal(det_module_to(f->net, DET_F64), 0);
    assert_ptr_equal(det_module_tensor(f->net, "fc.weight"), w);
    assert_true(element(w, 5) == (double)before[5]);
    assert_int_equal(det_tensor_dtype(det_module_tensor(f->net, "body.1.running_var")), DET_F64);
    struct det_tensor *count = det_module_tensor(f->net, "body.1.num_batches_tracked");
    assert_int_equal(det_tensor_dtype(count), DET_I64);
    /* Two backward passes: the second one adds to the vector of gradients. */
    struct det_module *fc = det_nn_linear(f->e, 2, 1);
    struct det_tensor *x = det_full(f->e, DET_F64, 2, (int64_t[]){1, 2}, 0.1);
    assert_int_equal(det_module_to(fc, DET_F64), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(det_backward(f->e, det_sum(f->e, det_forward(fc, x))), 0);
        assert_int_equal(det_tensor_dtype(det_module_grads(fc)), DET_F64);
    }
    assert_true(element(det_module_grads(fc), 0) == 0.2);
    assert_true(fabs(det_item(f->e, det_clip_grad_norm(fc, 1)) - sqrt(2 * 0.2 * 0.2 + 4)) < 1e-15);
    det_module_destroy(fc);
    assert_int_equal(det_module_to(f->net, DET_F32), 0);
    det_tensor_read(w, after, sizeof after, NULL);
    assert_memory_equal(before, after, sizeof before);
    assert_int_equal(det_module_to(f->net, DET_I64), DET_EINVAL);
}

/* The gradient of a narrow parameter is kept in f32, to which the next one is added. */
static void test_gradients_of_halves_add_up(void **state)
{
    struct fixture *f = *state;
    struct det_module *fc = det_nn_linear(f->e, 2, 1);
    struct det_tensor *x = det_full(f->e, DET_BF16, 2, (int64_t[]){1, 2}, 0.5);
    float g[32];
    assert_int_equal(det_module_to(fc, DET_BF16), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(det_backward(f->e, det_sum(f->e, det_forward(fc, x))), 0);
        assert_int_equal(det_tensor_read(det_module_grads(fc), g, sizeof g, NULL), 0);
        assert_true(g[0] == 0.5f * (float)(i + 1) && g[16] == (float)(i + 1));
    }
    det_module_zero_grad(fc);
    assert_int_equal(det_backward(f->e, det_sum(f->e, det_forward(fc, x))), 0);
    assert_int_equal(det_tensor_read(det_module_grads(fc), g, sizeof g, NULL), 0);
    assert_true(g[0] == 0.5f && g[16] == 1);
    det_module_destroy(fc);
}

static void test_state_names_in_order(void **state)
{
    struct fixture *f = *state;
    static const char *const want[] = {"body.0.weight",      "body.1.weight",
                                       "body.1.bias",        "body.1.running_mean",
                                       "body.1.running_var", "body.1.num_batches_tracked",
                                       "fc.weight",          "fc.bias"};
    size_t n;
    const struct det_named_tensor *s = det_module_state(f->net, &n);
    assert_int_equal(n, 8);
    for (size_t i = 0; i < n; i++)
        assert_string_equal(s[i].name, want[i]);
    det_module_params(f->net, &n);
    assert_int_equal(n, 5);
    det_module_buffers(f->net, &n);
    assert_int_equal(n, 3);
    det_module_add(f->net, "late", det_nn_linear(f->e, 1, 1));
    det_module_state(f->net, &n);
    assert_int_equal(n, 10);
}

static void test_bad_names(void **state)
{
    struct fixture *f = *state;
    static const char *const bad[] = {"", "a.b", "fc"};
    for (int i = 0; i < 3; i++) {
        assert_null(det_module_add(f->net, bad[i], det_nn_relu(f->e)));
        assert_true(det_engine_error(f->e, NULL) < 0);
        det_engine_clear_error(f->e);
    }
    assert_null(det_module_add(f->net, "x", NULL));
    assert_null(det_nn_conv2d(f->e, 0, 3, 3));
    det_engine_clear_error(f->e);
    assert_null(det_forward(f->net, det_zeros(f->e, DET_F32, 0, NULL)));
    assert_int_equal(det_engine_error(f->e, NULL), DET_ESTATE);
}

/* What is appended has the next number, in a list and behind the layers of a sequential; that layer
 * is run too, by the kernel of the one before it where it can. */
static void test_append(void **state)
{
    struct fixture *f = *state;
    size_t n;
    struct det_module *list = det_module_add(f->net, "list", det_nn_module(f->e));
    for (int i = 0; i < 11; i++)
        assert_non_null(det_module_append(list, det_nn_linear(f->e, 1, 1, .no_bias = true)));
    assert_string_equal(det_module_state(list, &n)[10].name, "10.weight");
    assert_int_equal(n, 11);
    assert_null(det_module_append(list, NULL));
    assert_null(det_module_append(NULL, det_nn_relu(f->e)));

    struct det_module *s = det_nn_sequential(f->e);
    det_module_append(s, det_nn_linear(f->e, 1, 1, .no_bias = true));
    det_module_append(s, det_nn_relu(f->e));
    det_init_constant(f->e, det_module_tensor(s, "0.weight"), -2);
    struct det_tensor *one = det_full(f->e, DET_F32, 2, (const int64_t[]){1, 1}, 1);
    assert_true(det_item(f->e, det_forward(s, one)) == 0);
    assert_int_equal(det_engine_error(f->e, NULL), 0);
    det_module_destroy(s);
}

/* A copy of the state on the host, with one entry changed by `edit`. */
static size_t copy_state(struct det_module *m, struct det_named_tensor *to)
{
    size_t n;
    const struct det_named_tensor *s = det_module_state(m, &n);
    for (size_t i = 0; i < n; i++) {
        to[i].name = s[i].name;
        to[i].tensor = det_host_tensor(det_tensor_dtype(s[i].tensor), det_tensor_ndim(s[i].tensor),
                                       det_tensor_dims(s[i].tensor), NULL);
    }
    return n;
}

static void test_load_state(void **state)
{
    struct fixture *f = *state;
    struct det_named_tensor s[8], saved;
    struct det_err err;
    size_t n = copy_state(f->net, s);
    float bias[4] = {1, 2, 3, 4}, got[4];
    int64_t seen = 17;
    det_tensor_write(s[7].tensor, bias, sizeof bias, NULL);
    det_tensor_write(s[5].tensor, &seen, sizeof seen, NULL);
    assert_int_equal(det_module_load_state(f->net, s, n, true, &err), 0);
    det_tensor_read(det_module_state(f->net, &n)[7].tensor, got, sizeof got, NULL);
    assert_memory_equal(bias, got, sizeof bias);
    det_tensor_read(det_module_state(f->net, &n)[5].tensor, &seen, sizeof seen, NULL);
    assert_int_equal(seen, 17);
    saved = s[0];
    s[0].name = "nonsense";
    assert_int_equal(det_module_load_state(f->net, s, n, true, &err), DET_EINVAL);
    assert_non_null(strstr(err.text, "missing in the state: body.0.weight"));
    assert_non_null(strstr(err.text, "unknown to the model: nonsense"));
    assert_int_equal(det_module_load_state(f->net, s, n, false, &err), 0);
    s[0] = (struct det_named_tensor){"fc.bias", saved.tensor};
    assert_int_equal(det_module_load_state(f->net, s, 1, false, &err), DET_EINVAL);
    assert_non_null(
        strstr(err.text, "fc.bias: the model has float32[4], the state float32[3, 1, 3, 3]"));
    s[0] = saved;
    for (size_t i = 0; i < n; i++)
        det_tensor_unref(s[i].tensor);
}

static struct det_tensor *run(struct fixture *f, bool whole)
{
    struct det_engine *e = f->e;
    size_t n;
    float pixels[2 * 16];
    for (int i = 0; i < 32; i++)
        pixels[i] = (float)sin(i);
    const struct det_named_tensor *p = det_module_params(f->net, &n);
    struct det_tensor *x = det_from_host(e, DET_F32, 4, (int64_t[]){2, 1, 4, 4}, pixels);
    struct det_conv2d_options relu = {.relu = true};
    x = det_conv2d(e, x, p[0].tensor, NULL, &relu);
    if (!whole)
        return det_sum(e, x);
    return det_sum(e, det_linear(e, det_flatten(e, x, 1), p[3].tensor, p[4].tensor));
}

static void test_grads_are_one_vector(void **state)
{
    struct fixture *f = *state;
    size_t n;
    const struct det_named_tensor *p = det_module_params(f->net, &n);
    assert_int_equal(det_backward(f->e, run(f, true)), 0);
    det_engine_step_end(f->e);
    float before[4];
    det_tensor_read(det_tensor_grad(p[4].tensor), before, sizeof before, NULL);
    struct det_tensor *flat = det_module_grads(f->net);
    assert_int_equal(det_tensor_numel(flat), 32 + 16 + 16 + 48 + 16);
    float *v = det_tensor_data(flat);
    assert_memory_equal(v + 112, before, sizeof before); /* what was there has moved along */
    for (int i = 32; i < 64; i++)
        assert_true(v[i] == 0); /* the batch norm took no part */
    det_module_zero_grad(f->net);
    assert_null(det_tensor_grad(p[4].tensor));
    assert_int_equal(det_backward(f->e, run(f, false)), 0);
    assert_ptr_equal(det_module_grads(f->net), flat);
    assert_true(v[112] == 0);
    assert_ptr_equal(det_tensor_data(det_tensor_grad(p[0].tensor)), v);
}

static void test_clipping(void **state)
{
    struct fixture *f = *state;
    det_backward(f->e, run(f, true));
    struct det_tensor *flat = det_module_grads(f->net);
    float *v = det_tensor_data(flat);
    double norm = 0, after = 0;
    for (size_t i = 0; i < det_tensor_numel(flat); i++)
        norm += (double)v[i] * v[i];
    assert_true(fabs(det_item(f->e, det_clip_grad_norm(f->net, 0.5)) - sqrt(norm)) < 1e-4);
    for (size_t i = 0; i < det_tensor_numel(flat); i++)
        after += (double)v[i] * v[i];
    assert_true(fabs(sqrt(after) - 0.5) < 1e-4);
    det_clip_grad_value(f->net, 0.01);
    for (size_t i = 0; i < det_tensor_numel(flat); i++)
        assert_true(fabsf(v[i]) <= 0.01F);
    v[3] = NAN; /* no step of PyTorch's takes the others then */
    assert_true(isnan(det_item(f->e, det_clip_grad_norm(f->net, 0.5))));
    for (size_t i = 0; i < det_tensor_numel(flat); i++)
        assert_true(isnan(v[i]));
}

static void test_sequential_fuses_without_a_difference(void **state)
{
    struct fixture *f = *state;
    struct det_engine *e = f->e;
    struct det_module *conv = det_nn_conv2d(e, 2, 3, 3), *norm = det_nn_batch_norm2d(e, 3);
    struct det_tensor *x = det_full(e, DET_F32, 4, (int64_t[]){2, 2, 5, 5}, 0.5);
    x = det_mul(e, x, det_dropout(e, x, 0.5, true));
    struct det_tensor *a = det_relu(e, det_forward(norm, det_relu(e, det_forward(conv, x))));
    struct det_module *s = det_nn_sequential(e, conv, det_nn_relu(e), norm, det_nn_relu(e));
    struct det_tensor *b = det_forward(s, x);
    float va[54], vb[54];
    assert_int_equal(det_tensor_read(a, va, sizeof va, NULL), 0);
    assert_int_equal(det_tensor_read(b, vb, sizeof vb, NULL), 0);
    assert_memory_equal(va, vb, sizeof va);
    det_module_train(s, false);
    assert_false(det_module_training(norm));
    det_module_destroy(s);
}

static struct det_tensor *twice(struct det_module *m, struct det_tensor *x, void *arg)
{
    (*(int *)arg)++;
    return det_scale(det_module_engine(m), x, 2);
}

static void test_own_forward(void **state)
{
    struct fixture *f = *state;
    int calls = 0;
    struct det_module *own = det_nn_module(f->e);
    det_module_add_param(own, "gain", det_full(f->e, DET_F32, 0, NULL, 3));
    det_module_set_forward(own, twice, &calls);
    struct det_module *s = det_nn_sequential(f->e, own, det_nn_relu(f->e));
    assert_true(det_item(f->e, det_forward(s, det_full(f->e, DET_F32, 0, NULL, 4))) == 8);
    assert_int_equal(calls, 1);
    size_t n;
    assert_string_equal(det_module_state(s, &n)[0].name, "0.gain");
    det_module_destroy(s);
}

static void test_same_seed_same_weights(void **state)
{
    struct fixture *f = *state;
    float a[48], b[48], c[48];
    struct det_module *m[3];
    struct det_rng_state start = det_engine_rng_state(f->e);
    m[0] = det_nn_linear(f->e, 12, 4);
    m[1] = det_nn_linear(f->e, 12, 4);
    det_engine_set_rng_state(f->e, start);
    m[2] = det_nn_linear(f->e, 12, 4);
    size_t n;
    float *to[3] = {a, b, c};
    for (int i = 0; i < 3; i++) {
        det_tensor_read(det_module_state(m[i], &n)[0].tensor, to[i], sizeof a, NULL);
        det_module_destroy(m[i]);
    }
    assert_memory_equal(a, c, sizeof a);
    assert_memory_not_equal(a, b, sizeof a);
}

static double layer_of(struct det_engine *e, struct det_module *m)
{
    return det_item(e, det_sum(e, det_forward(m, det_full(e, DET_F32, 2, (int64_t[]){1, 2}, 1))));
}

/* As where a target network is made equal to the online one between two forward passes. */
static void test_weights_that_are_loaded_are_cast_anew(void **state)
{
    struct det_engine *e = ((struct fixture *)*state)->e;
    struct det_module *m = det_nn_linear(e, 2, 1, .no_bias = true);
    struct det_err err;
    struct det_tensor *w = det_module_tensor(m, "weight");
    const struct det_named_tensor seven = {.name = "weight",
                                           .tensor = det_full(e, DET_F32, 2, (int64_t[]){1, 2}, 7)};
    det_autocast_begin(e, DET_BF16);
    det_init_constant(e, w, 2);
    assert_true(layer_of(e, m) == 4);
    det_init_constant(e, w, 3);
    assert_true(layer_of(e, m) == 6);
    assert_int_equal(det_module_load_state(m, &seven, 1, true, &err), 0);
    assert_true(layer_of(e, m) == 14);
    det_autocast_end(e);
    det_module_destroy(m);
}

static void test_no_memory_names_the_parameter(void **state)
{
    struct det_engine *e;
    struct det_err err;
    struct det_engine_options o = {.threads = 1, .mem_limit_bytes = 1 << 20};
    assert_int_equal(det_engine_create(&o, &e, NULL), 0);
    assert_null(det_nn_linear(e, 1000, 2000));
    assert_int_equal(det_engine_error(e, &err), DET_ENOMEM);
    assert_non_null(
        strstr(err.text, "parameter \"weight\" of a layer linear, float32[2000, 1000]"));
    assert_non_null(strstr(err.text, "8000000 bytes"));
    det_engine_destroy(e);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_another_dtype),
        CASE(test_gradients_of_halves_add_up),
        CASE(test_state_names_in_order),
        CASE(test_bad_names),
        CASE(test_append),
        CASE(test_load_state),
        CASE(test_grads_are_one_vector),
        CASE(test_clipping),
        CASE(test_sequential_fuses_without_a_difference),
        CASE(test_own_forward),
        CASE(test_same_seed_same_weights),
        CASE(test_weights_that_are_loaded_are_cast_anew),
        cmocka_unit_test(test_no_memory_names_the_parameter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
