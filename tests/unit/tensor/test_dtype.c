/* Conversions between dtypes, bit by bit, and walks over strides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "dtype.h"
#include "tensor_impl.h"

static void test_every_f16_comes_back(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x10000; h++) {
        float f = det__f16_to_f32((uint16_t)h);
        if (f == f)
            assert_int_equal(det__f32_to_f16(f), h);
        else
            assert_int_equal(det__f32_to_f16(f) & 0x7fff, 0x7e00);
    }
}

static void test_f16_rounds_to_even(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x7bff; h++) { /* halfway between two neighbours */
        double a = det__f16_to_f32((uint16_t)h), b = det__f16_to_f32((uint16_t)(h + 1));
        float middle = (float)((a + b) / 2);
        assert_int_equal(det__f32_to_f16(middle), h + (h & 1));
        assert_int_equal(det__f32_to_f16(nextafterf(middle, 0)), h);
        assert_int_equal(det__f32_to_f16(nextafterf(middle, INFINITY)), h + 1);
    }
    assert_int_equal(det__f32_to_f16(65519.99F), 0x7bff);
    assert_int_equal(det__f32_to_f16(65520), 0x7c00);
    assert_int_equal(det__f32_to_f16(-1e30F), 0xfc00);
}

static void test_bf16_rounds_to_even(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x7f80; h++) {
        float middle = det__bits_f32(h << 16 | 0x8000);
        assert_int_equal(det__f32_to_bf16(det__bf16_to_f32((uint16_t)h)), h);
        assert_int_equal(det__f32_to_bf16(middle), h + (h & 1));
        assert_int_equal(det__f32_to_bf16(det__bits_f32(h << 16 | 0x8001)), h + 1);
    }
    assert_int_equal(det__f32_to_bf16(NAN) & 0x7fc0, 0x7fc0);
}

static int64_t as_whole(enum det_dtype dtype, double v)
{
    int64_t bytes = 0;
    det__store_f64(dtype, &bytes, v);
    return det__load_i64(dtype, &bytes);
}

static void test_floating_to_whole(void **state)
{
    (void)state;
    assert_int_equal(as_whole(DET_I8, -1.9), -1);
    assert_int_equal(as_whole(DET_I8, 300), 127);
    assert_int_equal(as_whole(DET_I16, -1e9), INT16_MIN);
    assert_int_equal(as_whole(DET_I32, 1e18), INT32_MAX);
    assert_int_equal(as_whole(DET_I64, 1e30), INT64_MAX);
    assert_int_equal(as_whole(DET_I64, -1e30), INT64_MIN);
    assert_int_equal(as_whole(DET_U8, -3), 0);
    assert_int_equal(as_whole(DET_U8, 255.9), 255);
    assert_int_equal(as_whole(DET_I64, NAN), 0);
    assert_int_equal(as_whole(DET_BOOL, 0.25), 1);
    assert_int_equal(as_whole(DET_BOOL, 0), 0);
}

static void test_whole_numbers_stay_exact(void **state)
{
    (void)state;
    int64_t big = (INT64_C(1) << 62) + 1, out = 0;
    float f;
    det__convert(DET_I64, &big, 1, DET_I64, &out, 1, 1);
    assert_true(out == big);
    det__store_i64(DET_I8, &out, 300);
    assert_int_equal(det__load_i64(DET_I8, &out), 44);
    det__store_i64(DET_F32, &f, 16777217); /* between two floats: to even */
    assert_true(f == 16777216);
}

static void test_read_and_write_through_views(void **state)
{
    (void)state;
    float v[12], got[6];
    for (int i = 0; i < 12; i++)
        v[i] = (float)i;
    struct det_tensor *t = det_host_tensor_view(DET_F32, 2, (int64_t[]){3, 4}, v, NULL);
    struct det_tensor *part =
        det__tensor_window(t, 2, (int64_t[]){2, 3}, (int64_t[]){2, 4}, 1); /* t[:, 1::2] turned */
    assert_int_equal(part->layout, DET_LAYOUT_STRIDED);
    assert_null(det_tensor_data(part));
    assert_int_equal(det_tensor_read(part, got, sizeof got, NULL), 0);
    assert_memory_equal(got, ((float[]){1, 5, 9, 3, 7, 11}), sizeof got);
    for (int i = 0; i < 6; i++)
        got[i] = -got[i];
    assert_int_equal(det_tensor_write(part, got, sizeof got, NULL), 0);
    assert_true(v[1] == -1 && v[5] == -5 && v[11] == -11 && v[2] == 2);
    det_tensor_unref(t);
    det_tensor_unref(part);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_f16_comes_back),
        cmocka_unit_test(test_f16_rounds_to_even),
        cmocka_unit_test(test_bf16_rounds_to_even),
        cmocka_unit_test(test_floating_to_whole),
        cmocka_unit_test(test_whole_numbers_stay_exact),
        cmocka_unit_test(test_read_and_write_through_views),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
