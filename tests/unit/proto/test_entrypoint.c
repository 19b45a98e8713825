#include "entrypoint.h"

#include "mem.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void classes(void **state)
{
    static const char *const are[] = {"m:T", "pkg.sub.model_def:My_Trial2", "a:b"};
    static const char *const none[] = {
        "", ":", "m:", ":T", "m:T ", "m:T.x", "m:a:b", "python3 m:T", "./m:T", "model_def.MyTrial"};
    for (size_t i = 0; i < DET_ARRAY_LEN(are); i++)
        assert_true(entrypoint_is_class(are[i]));
    for (size_t i = 0; i < DET_ARRAY_LEN(none); i++)
        assert_false(entrypoint_is_class(none[i]));
}

static void dots_for_colons(void **state)
{
    static const char one[] = "model_def.MyTrial", deep[] = "pkg.model_def.T";
    static const char *const none[] = {"",        ".",        ".T",     "model_def.",
                                       "run.sh",  "./Run.Sh", "a/b.T",  "python3 -m pkg.T",
                                       "pkg:m.T", "MyTrial",  "pkg.T.m"};
    assert_ptr_equal(entrypoint_meant_colon(one), one + 9);
    assert_ptr_equal(entrypoint_meant_colon(deep), deep + 13);
    for (size_t i = 0; i < DET_ARRAY_LEN(none); i++)
        assert_null(entrypoint_meant_colon(none[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(classes),
                                       cmocka_unit_test(dots_for_colons)};
    return cmocka_run_group_tests_name("entrypoint", tests, NULL, NULL);
}
