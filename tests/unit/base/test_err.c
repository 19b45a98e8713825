#include "det/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

static void test_fail_and_wrap(void **state)
{
    struct det_err err;
    assert_int_equal(det_fail(&err, DET_ENOENT, "open %s", "a"), DET_ENOENT);
    assert_int_equal(err.code, DET_ENOENT);
    assert_int_equal(det_wrap(&err, DET_EIO, "checkpoint %d", 7), DET_EIO);
    assert_string_equal(err.text, "checkpoint 7: open a");
    assert_int_equal(err.code, DET_EIO);
    assert_int_equal(det_fail(NULL, DET_EPERM, "x"), DET_EPERM);
    assert_int_equal(det_wrap(NULL, DET_EPERM, "x"), DET_EPERM);
}

/* The system's number goes with its words, through every context, and ends with the next error. */
static void test_system_number(void **state)
{
    struct det_err err, other;
    assert_int_equal(det_fail_errno(&err, DET_EIO, ENOSPC, "write %s", "a"), DET_EIO);
    assert_string_equal(err.text, "write a: No space left on device");
    det_wrap(&err, DET_EUNAVAIL, "checkpoint");
    assert_int_equal(err.sys, ENOSPC);
    assert_int_equal(det_fail_as(&other, DET_ECORRUPT, &err), DET_ECORRUPT);
    assert_string_equal(other.text, "checkpoint: write a: No space left on device");
    assert_int_equal(other.code, DET_ECORRUPT);
    assert_int_equal(other.sys, ENOSPC);
    det_fail(&err, DET_EINVAL, "another one");
    assert_int_equal(err.sys, 0);
    assert_int_equal(det_fail_errno(NULL, DET_EIO, EIO, "x"), DET_EIO);
    assert_int_equal(det_fail_as(NULL, DET_EIO, &other), DET_EIO);
}

static void test_own_text_as_argument(void **state)
{
    struct det_err err;
    det_fail(&err, DET_EINVAL, "inner");
    det_fail(&err, DET_EINVAL, "outer(%s)", err.text);
    assert_string_equal(err.text, "outer(inner)");
}

static void test_long_text_is_cut(void **state)
{
    struct det_err err;
    det_fail(&err, DET_EINVAL, "%5000s", "x");
    assert_int_equal(strlen(err.text), DET_ERR_TEXT_MAX - 1);
    det_wrap(&err, DET_EINVAL, "head");
    assert_int_equal(strlen(err.text), DET_ERR_TEXT_MAX - 1);
    assert_memory_equal(err.text, "head: ", 6);
}

/* Whatever the alignment, the cut leaves whole characters. */
static void test_cut_between_characters(void **state)
{
    char text[DET_ERR_TEXT_MAX + 100];
    for (size_t lead = 0; lead < 4; lead++) {
        memset(text, 'a', lead);
        for (size_t i = lead; i + 4 < sizeof text; i += 4)
            memcpy(text + i, "\xf0\x9f\x98\x80", 5);
        struct det_err err;
        det_fail(&err, DET_EINVAL, "%s", text);
        size_t n = strlen(err.text);
        assert_int_equal((n - lead) % 4, 0);
        assert_true(n > DET_ERR_TEXT_MAX - 5);
    }
}

static void test_words(void **state)
{
    assert_string_equal(det_strerror(DET_ENOENT), "not found");
    assert_string_equal(det_strerror(0), "success");
    assert_string_equal(det_strerror(-999), "unknown error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fail_and_wrap),          cmocka_unit_test(test_system_number),
        cmocka_unit_test(test_own_text_as_argument),   cmocka_unit_test(test_long_text_is_cut),
        cmocka_unit_test(test_cut_between_characters), cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
