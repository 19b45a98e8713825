#include "entrypoint.h"

#include "mem.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

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

static const char files[] =
    "[{\"path\": \"model_def.py\"}, {\"path\": \"pkg\"}, {\"path\": "
    "\"pkg/__init__.py\"}, {\"path\": \"pkg/net.c\"}, {\"path\": \"a.txt\"}]";

static int check_module(const char *entrypoint, const char *text, struct det_err *err)
{
    JSON_OWN j = json_parse(text, strlen(text), NULL);
    return entrypoint_check_module(entrypoint, j, err);
}

static void modules_among_the_files(void **state)
{
    static const char *const good[] = {"model_def:T", "pkg:T", "pkg.net:T", "python3 nothing.py",
                                       "nothing.sh"};
    struct det_err err;
    for (size_t i = 0; i < DET_ARRAY_LEN(good); i++)
        assert_int_equal(check_module(good[i], files, &err), 0);
    assert_int_equal(check_module("later:T", "[{\"path\": \"startup-hook.sh\"}]", &err), 0);
}

static void modules_that_were_not_sent(void **state)
{
    struct det_err err;
    assert_int_equal(check_module("model_deff:T", files, &err), DET_EINVAL);
    assert_string_equal(err.text, "entrypoint model_deff:T: the directory has no model_deff.py, "
                                  "model_deff.so or model_deff.c; did you mean model_def:T?");
    assert_int_equal(check_module("pkg.net:T", "[{\"path\": \"a.txt\"}]", &err), DET_EINVAL);
    assert_string_equal(err.text, "entrypoint pkg.net:T: the directory has no pkg/net.py, "
                                  "pkg/net.so or pkg/net.c");
    assert_int_equal(check_module("a:T", "[]", &err), DET_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(classes),
                                       cmocka_unit_test(dots_for_colons),
                                       cmocka_unit_test(blanks_about_the_colon),
                                       cmocka_unit_test(files_for_commands),
                                       cmocka_unit_test(modules_among_the_files),
                                       cmocka_unit_test(modules_that_were_not_sent)};
    return cmocka_run_group_tests_name("entrypoint", tests, NULL, NULL);
}
