#include "length.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

static int parse(const char *text, struct length *l)
{
    JSON_OWN j = json_parse(text, strlen(text), NULL);
    assert_non_null(j);
    return length_from_json(j, l, NULL);
}

static void test_forms(void **state)
{
    static const char *const texts[] = {"{\"batches\":5}", "{\"records\":0}", "{\"epochs\":7}",
                                        "9"};
    static const int64_t numbers[] = {5, 0, 7, 9};
    for (int i = 0; i < LENGTH_UNIT_COUNT; i++) {
        struct length l;
        assert_int_equal(parse(texts[i], &l), 0);
        assert_int_equal(l.unit, i);
        assert_int_equal(l.n, numbers[i]);
    }
}

static void test_bad(void **state)
{
    static const char *const texts[] = {"{}",
                                        "{\"steps\":5}",
                                        "{\"batches\":-1}",
                                        "{\"batches\":1.5}",
                                        "{\"batches\":1,\"epochs\":1}",
                                        "\"5\"",
                                        "-1",
                                        "[]",
                                        "null",
                                        "{\"batches\":9007199254740993}"};
    struct length l;
    for (size_t i = 0; i < DET_ARRAY_LEN(texts); i++)
        assert_int_equal(parse(texts[i], &l), DET_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_bad),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
