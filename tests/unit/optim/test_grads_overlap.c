/* Gradients that are averaged during the backward pass: the same as after it, in an order that is
 * that of all ranks. "The mean" here halves what it gets, on the stream that it is asked for on. On
 * the emulated device (tests/cuda) streams that no event orders meet in either order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "det/optim.h"
#include "grads_overlap.h"

enum { LAYERS = 4, WIDTH = 16, SEEN = 32, FLOATS = LAYERS * (WIDTH * WIDTH + WIDTH) };
/* Each layer has a part of its own: its bias and its weight. */
enum { PART_BYTES = (WIDTH * WIDTH + WIDTH) * (int)sizeof(float) };

struct rig {
    struct det_engine *e;
    struct det_module *layer[LAYERS], *net;
    struct grads_overlap *g;
    bool amp;        /* the forward pass is in bf16 */
    bool with_empty; /* each layer has a third parameter, of no elements */
    /* What the mean was asked for, and how many layers' gradients there were then. */
    size_t n, at[SEEN], count[SEEN];
    int complete[SEEN];
};

static void must(int rc, const struct det_err *err)
{
    if (rc < 0)
        fail_msg("%s", err->text);
}

static int count_complete(const struct rig *r)
{
    int n = 0;
    for (int i = 0; i < LAYERS; i++) {
        struct det_tensor *w = det_module_tensor(r->layer[i], "weight");
        n += w->grad_set && w->grad_uses == 0;
    }
    return n;
}

static int halve(void *arg, float *v, size_t n, struct det_stream *s, struct det_err *err)
{
    struct rig *r = arg;
    struct det_tensor *all = r->net->grads_marked;
    size_t at = (size_t)(v - (float *)(void *)all->data);
    TENSOR_OWN part =
        det__tensor_window(all, 1, (int64_t[]){(int64_t)n}, (int64_t[]){1}, (int64_t)at);
    struct det_call c = {.kernel = DET_KERNEL_AFFINE, .in = {part}, .out = {part}, .a.scale = 0.5};
    assert_true(r->n < SEEN);
    r->at[r->n] = at;
    r->count[r->n] = n;
    r->complete[r->n++] = count_complete(r);
    return r->e->backend->kernels[DET_KERNEL_AFFINE](s, &c, err);
}

static void open_rig(struct rig *r)
{
    struct det_err err;
    const char *device = getenv("DET_OPS_DEVICE");
    const struct det_engine_options o = {.device = device, .seed = 5, .threads = 1};
    *r = (struct rig){.with_empty = r->with_empty};
    must(det_engine_create(&o, &r->e, &err), &err);
    r->net = det_nn_module(r->e);
    for (int i = 0; i < LAYERS; i++) {
        char name[] = {(char)('a' + i), '\0'};
        r->layer[i] = det_nn_linear(r->e, WIDTH, WIDTH);
        if (r->with_empty)
            det_module_add_param(r->layer[i], "empty",
                                 det_full(r->e, DET_F32, 2, (int64_t[]){0, WIDTH}, 0));
        det_module_add(r->net, name, r->layer[i]);
    }
    const struct grads_overlap_options parts = {PART_BYTES, halve, r};
    must(grads_overlap_create(r->net, &parts, &r->g, &err), &err);
}

static void close_rig(struct rig *r)
{
    struct det_err err;
    must(det_engine_error(r->e, &err), &err);
    grads_overlap_destroy(r->g);
    det_module_destroy(r->net);
    det_engine_destroy(r->e);
}

/* The loss of the layers from..LAYERS-1, of which the last comes in twice. */
static struct det_tensor *loss_of(struct rig *r, int from)
{
    struct det_tensor *x = det_full(r->e, DET_F32, 2, (int64_t[]){3, WIDTH}, 0.25);
    if (r->amp)
        det_autocast_begin(r->e, DET_BF16);
    for (int i = from; i < LAYERS; i++)
        x = det_relu(r->e, det_forward(r->layer[i], x));
    x = det_mean(r->e, det_forward(r->layer[LAYERS - 1], x));
    for (int i = 0; r->with_empty && i < LAYERS; i++) /* the pass comes to these first */
        det_scale(r->e, det_module_tensor(r->layer[i], "empty"), 2);
    if (r->amp)
        det_autocast_end(r->e);
    return x;
}

static void read_grads(struct rig *r, float v[FLOATS])
{
    struct det_tensor *g = det_module_grads(r->net);
    struct det_err err;
    assert_non_null(g);
    assert_int_equal(det_tensor_bytes(g), FLOATS * sizeof *v);
    must(det_tensor_read(g, v, FLOATS * sizeof *v, &err), &err);
}

static void step(struct rig *r, int from)
{
    struct det_stream *side;
    struct det_err err;
    r->n = 0;
    must(grads_overlap_begin(r->g, &err), &err);
    assert_int_equal(det_backward(r->e, loss_of(r, from)), 0);
    must(grads_overlap_finish(r->g, &side, &err), &err);
    assert_false(grads_overlap_is_open(r->g));
    must(module_grads_heard(r->net, &err), &err);
}

/* What it has to be: half of what a backward pass gives. */
static void expect_halves(struct rig *r, int from)
{
    float got[FLOATS], plain[FLOATS];
    read_grads(r, got);
    det_module_zero_grad(r->net);
    assert_int_equal(det_backward(r->e, loss_of(r, from)), 0);
    read_grads(r, plain);
    for (int i = 0; i < FLOATS; i++)
        assert_true(got[i] == plain[i] / 2);
    det_module_zero_grad(r->net);
    det_engine_step_end(r->e);
}

static void test_gradients_are_those_of_a_mean_after_the_pass(void **state)
{
    struct rig r = {0};
    open_rig(&r);
    for (int turn = 0; turn < 6; turn++) {
        step(&r, 0);
        expect_halves(&r, 0);
    }
    close_rig(&r);
}

/* Two passes for one step: what the first gave is there when the second ends. */
static void test_earlier_passes_count(void **state)
{
    struct rig r = {0};
    float got[FLOATS], plain[FLOATS];
    open_rig(&r);
    assert_int_equal(det_backward(r.e, loss_of(&r, 0)), 0);
    step(&r, 0);
    read_grads(&r, got);
    det_module_zero_grad(r.net);
    for (int pass = 0; pass < 2; pass++)
        assert_int_equal(det_backward(r.e, loss_of(&r, 0)), 0);
    read_grads(&r, plain);
    for (int i = 0; i < FLOATS; i++)
        assert_true(got[i] == plain[i] / 2);
    close_rig(&r);
}

static void expect_early_parts(const struct rig *r)
{
    assert_int_equal(r->n, LAYERS + 1);
    for (int i = 0; i < LAYERS; i++) {
        assert_int_equal(r->at[i], (size_t)(LAYERS - 1 - i) * FLOATS / LAYERS);
        assert_int_equal(r->count[i], FLOATS / LAYERS);
        assert_int_equal(r->complete[i], i + 1); /* the last layer's, which comes in twice, first */
    }
    assert_int_equal(r->at[LAYERS], FLOATS); /* the marks */
    assert_int_equal(r->count[LAYERS], (r->with_empty ? 3 : 2) * LAYERS);
}

static void test_parts_go_while_others_are_computed(void **state)
{
    struct rig r = {0};
    open_rig(&r);
    step(&r, 0);
    expect_early_parts(&r);
    close_rig(&r);
}

/* From the second step on, the device casts all weights before the first layer. */
static void test_casts_do_not_hold_parts_up(void **state)
{
    struct rig r = {0};
    open_rig(&r);
    r.amp = true;
    for (int turn = 0; turn < 3; turn++) {
        step(&r, 0);
        expect_early_parts(&r);
        expect_halves(&r, 0);
    }
    close_rig(&r);
}

/* A rank whose batch goes through some layers only asks for the same as one that goes through all,
 * and one without a backward pass too. */
static void test_all_ranks_ask_for_the_same(void **state)
{
    struct rig whole = {0}, some = {0};
    struct det_stream *side;
    struct det_err err;
    open_rig(&whole);
    open_rig(&some);
    step(&whole, 0);
    step(&some, 2);
    assert_int_equal(some.n, whole.n);
    assert_memory_equal(some.at, whole.at, sizeof some.at);
    assert_memory_equal(some.count, whole.count, sizeof some.count);
    expect_halves(&some, 2);
    some.n = 0;
    must(grads_overlap_finish(some.g, &side, &err), &err);
    assert_int_equal(some.n, whole.n);
    assert_memory_equal(some.at, whole.at, sizeof some.at);
    close_rig(&whole);
    close_rig(&some);
}

/* The call before it has left this error, and nothing else. */
static void expect_refused(struct rig *r, const char *what)
{
    struct det_err err = {0};
    assert_int_equal(det_engine_error(r->e, &err), DET_ESTATE);
    assert_non_null(strstr(err.text, what));
    assert_non_null(strstr(err.text, "gradients are being averaged over the ranks"));
    det_engine_clear_error(r->e);
}

static void test_nobody_looks_meanwhile(void **state)
{
    struct rig r = {0};
    struct det_stream *side;
    struct det_err err;
    open_rig(&r);
    struct det_tensor *w = det_module_tensor(r.layer[0], "weight");
    must(grads_overlap_begin(r.g, &err), &err);
    assert_int_equal(det_backward(r.e, loss_of(&r, 0)), 0);
    assert_int_equal(grads_overlap_begin(r.g, &err), DET_ESTATE);
    assert_non_null(strstr(err.text, "a second backward pass before the step"));
    assert_null(det_module_grads(r.net));
    expect_refused(&r, "det_module_grads: ");
    assert_null(det_tensor_grad(w));
    expect_refused(&r, "det_tensor_grad: ");
    must(grads_overlap_finish(r.g, &side, &err), &err);
    assert_non_null(det_module_grads(r.net));
    assert_non_null(det_tensor_grad(w));
    close_rig(&r);
}

/* What the refused calls would have changed is as it was. */
static void test_nobody_changes_them_meanwhile(void **state)
{
    struct rig r = {0};
    struct det_stream *side;
    struct det_err err;
    open_rig(&r);
    struct det_optim *sgd = det_sgd(r.net, .lr = 0.1);
    must(grads_overlap_begin(r.g, &err), &err);
    assert_int_equal(det_backward(r.e, loss_of(&r, 0)), 0);
    det_module_zero_grad(r.layer[0]);
    expect_refused(&r, "det_module_zero_grad: ");
    det_optim_zero_grad(sgd);
    expect_refused(&r, "det_optim_zero_grad: ");
    assert_int_equal(det_optim_step(sgd), DET_ESTATE);
    expect_refused(&r, "det_optim_step: ");
    assert_int_equal(det_module_to(r.net, DET_F64), DET_ESTATE);
    expect_refused(&r, "det_module_to: ");
    must(grads_overlap_finish(r.g, &side, &err), &err);
    expect_halves(&r, 0);
    det_optim_destroy(sgd);
    close_rig(&r);
}

/* It would add to means, and to what is on its way. */
static void test_a_second_pass_is_refused(void **state)
{
    struct rig r = {0};
    struct det_stream *side;
    struct det_err err;
    open_rig(&r);
    must(grads_overlap_begin(r.g, &err), &err);
    assert_int_equal(det_backward(r.e, loss_of(&r, 0)), 0);
    for (int turn = 0; turn < 2; turn++) {
        assert_int_equal(det_backward(r.e, loss_of(&r, 0)), DET_ESTATE);
        expect_refused(&r, "a second backward pass: ");
    }
    must(grads_overlap_finish(r.g, &side, &err), &err);
    expect_halves(&r, 0);
    step(&r, 0);
    expect_halves(&r, 0);
    close_rig(&r);
}

/* A parameter without elements has the place of the next one, which is in another part: that part
 * waits for its own gradients all the same, and the empty one's part for no others. */
static void test_a_parameter_without_elements_has_no_part(void **state)
{
    struct rig r = {.with_empty = true};
    open_rig(&r);
    step(&r, 0);
    expect_early_parts(&r);
    expect_halves(&r, 0);
    close_rig(&r);
}

/* Of another's tensors there is nothing to wait for. */
static void test_other_gradients_may_be_looked_at(void **state)
{
    struct rig r = {0};
    struct det_stream *side;
    struct det_err err;
    open_rig(&r);
    struct det_module *other = det_nn_linear(r.e, WIDTH, WIDTH);
    struct det_tensor *x = det_full(r.e, DET_F32, 2, (int64_t[]){3, WIDTH}, 0.25);
    det_requires_grad(r.e, x);
    must(grads_overlap_begin(r.g, &err), &err);
    assert_int_equal(
        det_backward(r.e, det_mean(r.e, det_forward(r.layer[0], det_forward(other, x)))), 0);
    assert_non_null(det_tensor_grad(x));
    assert_non_null(det_tensor_grad(det_module_tensor(other, "weight")));
    det_module_zero_grad(other);
    assert_null(det_tensor_grad(det_module_tensor(other, "weight")));
    must(grads_overlap_finish(r.g, &side, &err), &err);
    det_module_destroy(other);
    close_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients_are_those_of_a_mean_after_the_pass),
        cmocka_unit_test(test_earlier_passes_count),
        cmocka_unit_test(test_parts_go_while_others_are_computed),
        cmocka_unit_test(test_casts_do_not_hold_parts_up),
        cmocka_unit_test(test_all_ranks_ask_for_the_same),
        cmocka_unit_test(test_nobody_looks_meanwhile),
        cmocka_unit_test(test_nobody_changes_them_meanwhile),
        cmocka_unit_test(test_a_second_pass_is_refused),
        cmocka_unit_test(test_a_parameter_without_elements_has_no_part),
        cmocka_unit_test(test_other_gradients_may_be_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
