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

static void blanks_about_the_colon(void **state)
{
    static const char *const are[] = {"m: T", "m :T", "pkg.m : T"};
    static const char *const none[] = {"m:T", "python3 m: T", "m: T x", "echo: hi there", ": T"};
    for (size_t i = 0; i < DET_ARRAY_LEN(are); i++)
        assert_true(entrypoint_has_blanks(are[i]));
    for (size_t i = 0; i < DET_ARRAY_LEN(none); i++)
        assert_false(entrypoint_has_blanks(none[i]));
}

static void files_for_commands(void **state)
{
    static const char *const none[] = {"./train.py", "python3 train.py", ".py", "train.pyc",
                                       "/opt/train.py"};
    assert_true(entrypoint_is_bare_file("model_def.py"));
    for (size_t i = 0; i < DET_ARRAY_LEN(none); i++)
        assert_false(entrypoint_is_bare_file(none[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(classes), cmocka_unit_test(dots_for_colons),
                                       cmocka_unit_test(blanks_about_the_colon),
                                       cmocka_unit_test(files_for_commands)};
    return cmocka_run_group_tests_name("entrypoint", tests, NULL, NULL);
}
