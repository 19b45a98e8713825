/* Devices by name: the built-in ones, missing modules, hostile names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "backend.h"

static void test_built_in(void **state)
{
    (void)state;
    const struct det_backend *b = NULL;
    int index = -1;
    assert_int_equal(det_backend_find("cpu", &b, &index, NULL), 0);
    assert_string_equal(b->name, "cpu");
    assert_int_equal(index, 0);
    assert_int_equal(det_backend_find("ref:0", &b, &index, NULL), 0);
    assert_string_equal(b->name, "ref");
}

static void test_tables_are_whole(void **state)
{
    (void)state;
    static const char *const names[] = {"cpu", "ref"};
    for (int i = 0; i < 2; i++) {
        const struct det_backend *b;
        int index;
        assert_int_equal(det_backend_find(names[i], &b, &index, NULL), 0);
        assert_int_equal(b->version, DET_BACKEND_VERSION);
        for (int k = 0; k < DET_KERNEL_COUNT; k++)
            if (!b->kernels[k])
                fail_msg("%s lacks %s", b->name, det_kernel_name((enum det_kernel)k));
    }
}

static void test_missing_module_says_where_it_looked(void **state)
{
    (void)state;
    const struct det_backend *b;
    int index;
    struct det_err err;
    assert_int_equal(det_backend_find("nosuch:1", &b, &index, &err), DET_ENOENT);
    assert_non_null(strstr(err.text, "det_backend_nosuch.so"));
    assert_non_null(strstr(err.text, "DET_BACKEND_DIR"));
}

static void test_bad_names(void **state)
{
    (void)state;
    static const char *const names[] = {"",
                                        ":",
                                        "cpu:",
                                        "cpu:x",
                                        "cpu:-1",
                                        "cpu:99999",
                                        "../cpu",
                                        "cpu/../x",
                                        "cpu:1x",
                                        "CPU",
                                        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct det_backend *b;
        int index;
        assert_int_equal(det_backend_find(names[i], &b, &index, NULL), DET_EINVAL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_built_in),
        cmocka_unit_test(test_tables_are_whole),
        cmocka_unit_test(test_missing_module_says_where_it_looked),
        cmocka_unit_test(test_bad_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
