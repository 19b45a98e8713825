/* Host tensors: shapes, memory, reading and writing, hostile sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "tensor_impl.h"

static void test_shape(void **state)
{
    (void)state;
    struct det_tensor *t = det_host_tensor(DET_I64, 3, (int64_t[]){2, 3, 5}, NULL);
    char text[64];
    assert_int_equal(det_tensor_numel(t), 30);
    assert_int_equal(det_tensor_bytes(t), 240);
    assert_int_equal(det_tensor_dim(t, -1), 5);
    assert_int_equal(det_tensor_dim(t, 3), 0);
    assert_int_equal(det_tensor_dim(t, -4), 0);
    assert_string_equal(det__tensor_text(t, text, sizeof text), "int64[2, 3, 5]");
    for (int i = 0; i < 30; i++)
        assert_int_equal(((int64_t *)det_tensor_data(t))[i], 0);
    det_tensor_unref(t);
}

static void test_scalar_and_empty(void **state)
{
    (void)state;
    float v = 2.5F, got = 0;
    struct det_tensor *t = det_host_tensor(DET_F32, 0, NULL, NULL);
    assert_int_equal(det_tensor_numel(t), 1);
    assert_int_equal(det_tensor_write(t, &v, sizeof v, NULL), 0);
    assert_int_equal(det_tensor_read(t, &got, sizeof got, NULL), 0);
    assert_true(got == 2.5F);
    det_tensor_unref(t);
    t = det_host_tensor(DET_F32, 2, (int64_t[]){0, 7}, NULL);
    assert_int_equal(det_tensor_numel(t), 0);
    assert_int_equal(det_tensor_read(t, NULL, 0, NULL), 0);
    det_tensor_unref(t);
}

static void test_bad_shapes_are_refused(void **state)
{
    (void)state;
    const int64_t huge = INT64_MAX / 2;
    struct det_err err;
    assert_null(det_host_tensor(DET_F32, 1, (int64_t[]){-1}, &err));
    assert_int_equal(err.code, DET_EINVAL);
    assert_null(det_host_tensor(DET_F32, 2, (int64_t[]){huge, huge}, &err));
    assert_null(det_host_tensor(DET_F32, 3, (int64_t[]){1 << 30, 1 << 30, 0x40000000}, &err));
    assert_null(det_host_tensor(DET_F32, DET_DIMS_MAX + 1, (int64_t[9]){0}, &err));
    assert_null(det_host_tensor((enum det_dtype)99, 0, NULL, &err));
    assert_string_equal(det_dtype_name((enum det_dtype)99), "unknown");
}

static void test_wrong_size_is_refused(void **state)
{
    (void)state;
    float v[4];
    struct det_err err;
    struct det_tensor *t = det_host_tensor(DET_F32, 1, (int64_t[]){3}, NULL);
    assert_int_equal(det_tensor_read(t, v, sizeof v, &err), DET_EINVAL);
    assert_non_null(strstr(err.text, "float32[3]"));
    assert_int_equal(det_tensor_write(NULL, v, sizeof v, &err), DET_EINVAL);
    det_tensor_unref(t);
}

static void test_view_shares_memory(void **state)
{
    (void)state;
    unsigned char bytes[6] = {1, 2, 3, 4, 5, 6};
    struct det_tensor *t = det_host_tensor_view(DET_U8, 2, (int64_t[]){2, 3}, bytes, NULL);
    struct det_tensor *v = det__tensor_view(t, 1, (int64_t[]){6});
    det_tensor_unref(t);
    assert_ptr_equal(det_tensor_data(v), bytes);
    assert_int_equal(det_tensor_dim(v, 0), 6);
    det_tensor_unref(v);
}

static void test_null_is_harmless(void **state)
{
    (void)state;
    det_tensor_unref(NULL);
    assert_null(det_tensor_ref(NULL));
    assert_null(det_tensor_data(NULL));
    assert_int_equal(det_tensor_numel(NULL), 0);
    assert_int_equal(det_tensor_ndim(NULL), 0);
    assert_false(det_tensor_is_host(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shape),
        cmocka_unit_test(test_scalar_and_empty),
        cmocka_unit_test(test_bad_shapes_are_refused),
        cmocka_unit_test(test_wrong_size_is_refused),
        cmocka_unit_test(test_view_shares_memory),
        cmocka_unit_test(test_null_is_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
