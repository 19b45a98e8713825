#include "buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "mem.h"
#include <string.h>

static void test_grows(void **state)
{
    struct buf b = BUF_INIT;
    assert_string_equal(buf_str(&b), "");
    for (int i = 0; i < 1000; i++)
        buf_addf(&b, "%03d", i);
    assert_int_equal(b.len, 3000);
    assert_memory_equal(b.p + 2997, "999", 4);
    buf_consume(&b, 2994);
    assert_string_equal(b.p, "998999");
    buf_clear(&b);
    assert_string_equal(b.p, "");
    buf_finish(&b);
    assert_null(b.p);
}

static void test_long_format(void **state)
{
    struct buf b = BUF_INIT;
    buf_add_str(&b, "ab");
    buf_addf(&b, "%500s", "x");
    buf_add_ch(&b, '!');
    assert_int_equal(b.len, 503);
    assert_int_equal(strlen(b.p), 503);
    buf_finish(&b);
}

static void test_steal(void **state)
{
    struct buf b = BUF_INIT;
    det_cleanup(freep) char *empty = buf_steal(&b);
    assert_string_equal(empty, "");
    buf_add(&b, "a\0b", 3);
    det_cleanup(freep) char *s = buf_steal(&b);
    assert_memory_equal(s, "a\0b", 4);
    assert_int_equal(b.len, 0);
    buf_consume(&b, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grows),
        cmocka_unit_test(test_long_format),
        cmocka_unit_test(test_steal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
