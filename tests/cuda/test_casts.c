/* Autocast on a device: weights cast together once it is known which, never stale ones, and
 * gradients that are not rounded on their way to f32. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <stdlib.h>

#include "det/functional.h"
#include "det/optim.h"
#include "include/cuda_runtime_api.h"
#include "mem.h"

#define LAYERS 70 /* two weights each: more than a launch takes */

struct net {
    struct det_engine *e;
    struct det_module *all, *layers[LAYERS];
};

static int setup(void **state)
{
    struct net *n = det_zalloc(sizeof *n);
    const struct det_engine_options o = {.device = "cuda", .seed = 1, .threads = 1};
    if (det_engine_create(&o, &n->e, NULL) < 0)
        return -1;
    n->all = det_nn_module(n->e);
    for (int i = 0; i < LAYERS; i++)
        n->layers[i] = det_module_append(n->all, det_nn_linear(n->e, 3 + i, 5 + i % 7));
    *state = n;
    return 0;
}

static int teardown(void **state)
{
    struct net *n = *state;
    det_module_destroy(n->all);
    det_engine_destroy(n->e);
    free(n);
    return 0;
}

static long launches(void)
{
    det_cleanup(freep) char *path =
        det_asprintf("%s/det_backend_cuda.so", getenv("DET_BACKEND_DIR"));
    void *module = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    const long *all = module ? dlsym(module, "emulated_calls") : NULL;
    assert_non_null(all);
    return all[EMULATED_KERNEL];
}

/* Layer i of a row of ones. */
static struct det_tensor *layer(struct net *n, int i)
{
    return det_forward(n->layers[i], det_full(n->e, DET_F32, 2, (int64_t[]){1, 3 + i}, 1));
}

/* One stretch of autocast: the sum of all, and the launches that it took. */
static long stretch(struct net *n, float *ret_sum)
{
    struct det_tensor *sum = NULL;
    long before = launches();
    det_autocast_begin(n->e, DET_BF16);
    for (int i = 0; i < LAYERS; i++) {
        struct det_tensor *y = det_sum(n->e, layer(n, i));
        sum = sum ? det_add(n->e, sum, y) : y;
    }
    det_autocast_end(n->e);
    long taken = launches() - before;
    assert_int_equal(det_backward(n->e, sum), 0);
    *ret_sum = (float)det_item(n->e, sum);
    det_engine_step_end(n->e);
    return taken;
}

static void test_together(void **state)
{
    struct net *n = *state;
    float one, two, three;
    long apart = stretch(n, &one), together = stretch(n, &two);
    assert_int_equal(apart - together, 2 * LAYERS - 2);
    assert_int_equal(stretch(n, &three), together);
    assert_true(one == two && two == three);
}

static struct det_tensor *weight(struct net *n, int i)
{
    size_t count;
    return det_module_params(n->layers[i], &count)[0].tensor;
}

/* What layer i's output is where all its weights are v, but for the bias. */
static void assert_sees(struct net *n, int i, float v)
{
    size_t count;
    struct det_tensor *bias = det_module_params(n->layers[i], &count)[1].tensor;
    struct det_tensor *y = det_select(n->e, det_cast(n->e, layer(n, i), DET_F32), 0, 0);
    struct det_tensor *b = det_cast(n->e, det_cast(n->e, bias, DET_BF16), DET_F32);
    assert_true(det_item(n->e, det_select(n->e, y, 0, 0)) -
                    det_item(n->e, det_select(n->e, b, 0, 0)) >
                (3 + i) * v - 0.5);
}

static void write_all(struct det_tensor *t, float v)
{
    size_t count = det_tensor_numel(t);
    det_cleanup(freep) float *p = det_alloc(count * sizeof *p);
    for (size_t i = 0; i < count; i++)
        p[i] = v;
    assert_int_equal(det_tensor_write(t, p, count * sizeof *p, NULL), 0);
}

/* All are cast when the first is needed; what is written then is seen all the same. */
static void test_never_stale(void **state)
{
    struct net *n = *state;
    float sum;
    (void)stretch(n, &sum);
    det_autocast_begin(n->e, DET_BF16);
    (void)layer(n, 0);
    write_all(weight(n, 7), 8);
    assert_sees(n, 7, 8);
    write_all(weight(n, 7), 16);
    assert_sees(n, 7, 16);
    det_autocast_end(n->e);
}

/* A step between two uses within one stretch, as of two networks that train in turn. */
static void test_a_step_is_seen(void **state)
{
    struct net *n = *state;
    struct det_optim *o = det_sgd(n->all, .lr = 1, .maximize = true);
    det_autocast_begin(n->e, DET_BF16);
    struct det_tensor *sum = det_sum(n->e, layer(n, 3));
    assert_int_equal(det_backward(n->e, sum), 0);
    assert_int_equal(det_optim_step(o), 0);
    assert_true(det_item(n->e, det_sum(n->e, layer(n, 3))) > det_item(n->e, sum) + 1);
    det_autocast_end(n->e);
    det_optim_destroy(o);
}

/* 257 is no bf16. */
static void test_gradients_are_not_rounded(void **state)
{
    struct net *n = *state;
    size_t count;
    const struct det_named_tensor *p = det_module_params(n->layers[0], &count);
    struct det_tensor *x = det_full(n->e, DET_F32, 2, (int64_t[]){257, 3}, 1);
    det_autocast_begin(n->e, DET_BF16);
    for (int i = 0; i < 2; i++) { /* the second is added */
        struct det_tensor *y = det_sum(n->e, det_forward(n->layers[0], x));
        assert_int_equal(det_backward(n->e, y), 0);
    }
    det_autocast_end(n->e);
    for (int i = 0; i < 2; i++) {
        struct det_tensor *g = det_tensor_grad(p[i].tensor);
        assert_int_equal(det_tensor_dtype(g), DET_F32);
        assert_true(det_item(n->e, det_mean(n->e, g)) == 514);
    }
}

/* That a weight was cast keeps nothing of it. */
static void test_memory_is_given_back(void **state)
{
    struct net *n = *state;
    float sum;
    det_engine_step_end(n->e);
    size_t before = det_engine_mem_bytes(n->e);
    struct net other = {.e = n->e, .all = det_nn_module(n->e)};
    for (int i = 0; i < LAYERS; i++)
        other.layers[i] = det_module_append(other.all, det_nn_linear(n->e, 3 + i, 5));
    (void)stretch(&other, &sum);
    (void)stretch(&other, &sum);
    det_module_destroy(other.all);
    assert_int_equal(det_engine_mem_bytes(n->e), before);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_together),
        CASE(test_never_stale),
        CASE(test_a_step_is_seen),
        CASE(test_gradients_are_not_rounded),
        CASE(test_memory_is_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
