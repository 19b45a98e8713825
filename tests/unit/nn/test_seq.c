/* Modules of sequences: a parameter with two names, states that outlive a step, wrong use. Their
 * values are compared with PyTorch's in tests/ops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "det/nn_seq.h"
#include "det/vision.h"

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

static struct det_module *tied(struct det_engine *e)
{
    struct det_module *net = det_nn_module(e);
    struct det_module *wte = det_module_add(net, "wte", det_nn_embedding(e, 7, 4));
    struct det_module *head = det_module_add(net, "head", det_nn_linear(e, 4, 7, .no_bias = true));
    assert_non_null(det_module_share_param(head, "weight", wte, "weight"));
    return net;
}

static void test_shared_parameter_has_two_names_and_counts_once(void **state)
{
    struct det_module *net = tied(*state);
    size_t n;
    const struct det_named_tensor *s = det_module_state(net, &n);
    assert_int_equal(n, 2);
    assert_string_equal(s[0].name, "wte.weight");
    assert_string_equal(s[1].name, "head.weight");
    assert_ptr_equal(s[0].tensor, s[1].tensor);
    const struct det_named_tensor *p = det_module_params(net, &n);
    assert_int_equal(n, 1);
    assert_string_equal(p[0].name, "wte.weight");
    det_module_destroy(net);
}

static void test_gradients_of_both_uses_add_up(void **state)
{
    struct det_engine *e = *state;
    struct det_module *net = tied(e);
    size_t n;
    struct det_tensor *w = det_module_params(net, &n)[0].tensor;
    float got[28], both[28], one[28];
    int64_t index = 2;
    struct det_tensor *i = det_from_host(e, DET_I64, 1, (int64_t[]){1}, &index);
    struct det_tensor *row = det_embedding(e, w, i);
    det_backward(e, det_sum(e, det_linear(e, row, w, NULL)));
    assert_int_equal(det_tensor_read(det_tensor_grad(w), got, sizeof got, NULL), 0);
    det_module_zero_grad(net);
    det_backward(e, det_sum(e, det_linear(e, det_detach(e, det_embedding(e, w, i)), w, NULL)));
    det_tensor_read(det_tensor_grad(w), one, sizeof one, NULL);
    det_module_zero_grad(net);
    det_backward(e, det_sum(e, det_linear(e, det_embedding(e, w, i), det_detach(e, w), NULL)));
    det_tensor_read(det_tensor_grad(w), both, sizeof both, NULL);
    for (int k = 0; k < 28; k++)
        assert_float_equal(got[k], one[k] + both[k], 1e-5);
    det_engine_step_end(e);
    det_module_destroy(net);
}

static void test_state_outlives_its_step(void **state)
{
    struct det_engine *e = *state;
    struct det_module *m = det_nn_lstm(e, 3, 5, .layers = 2, .bidirectional = true);
    struct det_rnn_state kept = {0};
    size_t before = 0;
    for (int step = 0; step < 4; step++) {
        struct det_tensor *x = det_full(e, DET_F32, 3, (int64_t[]){4, 2, 3}, 0.5);
        struct det_rnn_state s = kept;
        struct det_tensor *y = det_rnn_forward(m, x, &s);
        assert_int_equal(det_tensor_dim(y, 2), 10);
        det_rnn_state_keep(e, &kept, &s);
        assert_int_equal(det_backward(e, det_sum(e, y)), 0);
        det_engine_step_end(e);
        assert_int_equal(det_tensor_dim(kept.h, 0), 4);
        assert_int_equal(det_tensor_dim(kept.c, 2), 5);
        if (step == 1)
            before = det_engine_mem_bytes(e);
    }
    assert_int_equal(det_engine_mem_bytes(e), before);
    det_rnn_state_finish(&kept);
    assert_null(kept.h);
    det_module_destroy(m);
}

/* The engine has an error that contains `text`; it is cleared. */
static void refused(struct det_engine *e, const void *result, const char *text)
{
    struct det_err err = {0};
    assert_null(result);
    assert_true(det_engine_error(e, &err) < 0);
    if (!strstr(err.text, text))
        fail_msg("\"%s\" is not in \"%s\"", text, err.text);
    det_engine_clear_error(e);
    det_engine_step_end(e);
}

/* Every gradient of the module is there, and 0. */
static void check_no_gradients(struct det_engine *e, struct det_module *m, struct det_tensor *y)
{
    size_t n;
    assert_non_null(y);
    assert_int_equal(det_tensor_numel(y), 0);
    assert_int_equal(det_backward(e, det_sum(e, y)), 0);
    const struct det_named_tensor *params = det_module_params(m, &n);
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++) {
        struct det_tensor *g = det_tensor_grad(params[i].tensor);
        assert_non_null(g);
        assert_float_equal(det_item(e, det_sum(e, det_abs(e, g))), 0, 0);
    }
    det_engine_step_end(e);
    det_module_destroy(m);
}

static void test_batches_of_nothing(void **state)
{
    struct det_engine *e = *state;
    struct det_tensor *x = det_zeros(e, DET_F32, 3, (int64_t[]){4, 0, 6});
    struct det_module *m = det_nn_lstm(e, 6, 5, .layers = 2, .bidirectional = true);
    check_no_gradients(e, m, det_forward(m, x));
    m = det_nn_gru(e, 6, 5, .batch_first = true);
    check_no_gradients(e, m, det_forward(m, det_zeros(e, DET_F32, 3, (int64_t[]){0, 4, 6})));
    m = det_nn_multihead_attention(e, 6, 2);
    check_no_gradients(e, m, det_forward(m, det_zeros(e, DET_F32, 3, (int64_t[]){0, 4, 6})));
    m = det_nn_resnet(e, 18, .classes = 10);
    x = det_zeros(e, DET_F32, 4, (int64_t[]){0, 3, 64, 64});
    check_no_gradients(e, m, det_forward(m, x));
}

static void test_wrong_use_is_named(void **state)
{
    struct det_engine *e = *state;
    struct det_module *lstm = det_nn_lstm(e, 3, 5), *norm = det_nn_layer_norm(e, 4);
    struct det_module *mha = det_nn_multihead_attention(e, 6, 2);
    struct det_tensor *x = det_zeros(e, DET_F32, 3, (int64_t[]){2, 2, 4});
    refused(e, det_forward(lstm, x), "lstm(float32[2, 2, 4]): the input must be [time, batch, 3]");
    x = det_zeros(e, DET_F32, 2, (int64_t[]){2, 3});
    refused(e, det_forward(norm, x), "rows of 3 elements");
    refused(e, det_forward(mha, det_zeros(e, DET_F32, 2, (int64_t[]){2, 3})),
            "multihead_attention(");
    refused(e, det_nn_multihead_attention(e, 6, 4), "6 cannot be 4 equal heads");
    refused(e, det_nn_group_norm(e, 4, 6), "6 channels cannot be 4 equal groups");
    refused(e, det_nn_embedding(e, 4, 2, .padding = true, .padding_idx = 4), "padding row 4");
    refused(e, det_nn_gru(e, 0, 5), "gru: 0 in");
    refused(e, det_nn_gru(e, 3, 5, .layers = 1 << 30, .bidirectional = true), "at most 32 layers");
    refused(e, det_module_share_param(norm, "weight", lstm, "weight_hh_l0"),
            "share_param: \"weight\"");
    det_module_destroy(lstm);
    det_module_destroy(norm);
    det_module_destroy(mha);
}

static void test_wrong_calls_are_named(void **state)
{
    struct det_engine *e = *state;
    int64_t bad[] = {1, 9};
    struct det_tensor *i = det_from_host(e, DET_I64, 1, (int64_t[]){2}, bad);
    refused(e, det_embedding(e, det_zeros(e, DET_F32, 2, (int64_t[]){4, 2}), i),
            "index 1 is 9, but there are the rows 0 to 3");
    refused(e,
            det_matmul(e, det_zeros(e, DET_F32, 2, (int64_t[]){4, 2}),
                       det_zeros(e, DET_F32, 2, (int64_t[]){3, 4})),
            "has 2 columns, the second 3 rows");
    refused(e, det_cumsum(e, det_zeros(e, DET_F32, 2, (int64_t[]){4, 2}), 2), "dimension 2");
    struct det_tensor *uneven[] = {det_zeros(e, DET_F32, 2, (int64_t[]){4, 2}),
                                   det_zeros(e, DET_F32, 2, (int64_t[]){4, 3})};
    refused(e, det_cat(e, uneven, 2, 0),
            "cat: input 1 is float32[4, 2], input 2 is float32[4, 3]: but for dimension 0");
    refused(e, det_packed_attention(e, det_zeros(e, DET_F32, 3, (int64_t[]){1, 2, 9}), 2),
            "divisible by 2 heads");
    refused(e,
            det_l1_loss(e, det_zeros(e, DET_F32, 1, (int64_t[]){3}),
                        det_zeros(e, DET_F32, 1, (int64_t[]){4})),
            "equal shapes");
}

static struct det_tensor *three_by_four(struct det_engine *e)
{
    return det_zeros(e, DET_F32, 2, (int64_t[]){3, 4});
}

static void test_wrong_views_say_call_and_shapes(void **state)
{
    struct det_engine *e = *state;
    struct det_tensor *i = det_zeros(e, DET_I64, 1, (int64_t[]){3});
    refused(e, det_gather(e, three_by_four(e), 1, i),
            "gather(float32[3, 4]): what has the shape of the index is int64[3], and must");
    refused(e, det_reshape(e, three_by_four(e), 2, (int64_t[]){5, -1}),
            "reshape(float32[3, 4]): its 12 elements cannot be float32[5, -1]");
    refused(e, det_permute(e, three_by_four(e), (int[]){1, 1}),
            "permute(float32[3, 4]): the order names a dimension twice");
    refused(e, det_slice(e, three_by_four(e), 0, &(struct det_slice){.end = 9}),
            "slice(float32[3, 4]): elements 0 to 9 in steps of 1 of dimension 0");
    refused(e, det_narrow(e, three_by_four(e), 1, 2, 3),
            "narrow(float32[3, 4]): 3 elements from 2 on are not in dimension 1");
    refused(e, det_narrow(e, three_by_four(e), 1, 1, INT64_MAX), "from 1 on are not");
    refused(e, det_narrow(e, three_by_four(e), 1, 1, -1), "-1 elements from 1 on are not");
    refused(e, det_select(e, three_by_four(e), -1, -5),
            "select(float32[3, 4]): there is no element -5 in dimension 1");
    refused(e, det_select(e, three_by_four(e), 0, 3), "there is no element 3 in dimension 0");
    refused(e, det_expand(e, three_by_four(e), 2, (int64_t[]){6, 4}),
            "expand(float32[3, 4]): it cannot be float32[6, 4]: only dimensions of 1");
    refused(e, det_expand(e, three_by_four(e), 9, (int64_t[9]){0}), "of so many dimensions");
    refused(e, det_topk(e, three_by_four(e), 5, 1, false, NULL),
            "topk(float32[3, 4]): there are no 5 in dimension 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_shared_parameter_has_two_names_and_counts_once, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_gradients_of_both_uses_add_up, setup, teardown),
        cmocka_unit_test_setup_teardown(test_state_outlives_its_step, setup, teardown),
        cmocka_unit_test_setup_teardown(test_batches_of_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_use_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_calls_are_named, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_views_say_call_and_shapes, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
