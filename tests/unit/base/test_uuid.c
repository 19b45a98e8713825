#include "uuid.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

static void test_uuid(void **state)
{
    char a[UUID_STR_MAX], b[UUID_STR_MAX];
    uuid_random(a);
    uuid_random(b);
    assert_true(uuid_is_valid(a));
    assert_string_not_equal(a, b);
    assert_int_equal(a[14], '4');
    assert_non_null(strchr("89ab", a[19]));
    uuid_from_bytes((const uint8_t[16]){0}, a);
    assert_string_equal(a, "00000000-0000-4000-8000-000000000000");
}

static void test_invalid(void **state)
{
    assert_false(uuid_is_valid(""));
    assert_false(uuid_is_valid("00000000-0000-4000-8000-00000000000"));
    assert_false(uuid_is_valid("00000000-0000-4000-8000-00000000000g"));
    assert_false(uuid_is_valid("000000000000-4000-8000-0000-00000000"));
    assert_false(uuid_is_valid("../../../../../../../../../etc/passw"));
}

static void test_random_hex(void **state)
{
    char hex[101];
    random_hex(hex, 50);
    assert_int_equal(strlen(hex), 100);
    assert_int_equal(strspn(hex, "0123456789abcdef"), 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_uuid),
        cmocka_unit_test(test_invalid),
        cmocka_unit_test(test_random_hex),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
