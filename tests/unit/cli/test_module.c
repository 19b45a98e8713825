/* An entrypoint whose module is not among the files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "mem.h"
#include "module.h"
#include <string.h>

static const char files[] =
    "[{\"path\": \"model_def.py\"}, {\"path\": \"pkg\"}, {\"path\": "
    "\"pkg/__init__.py\"}, {\"path\": \"pkg/net.c\"}, {\"path\": \"a.txt\"}]";

static int check(const char *entrypoint, const char *text, struct det_err *err)
{
    JSON_OWN j = json_parse(text, strlen(text), NULL);
    return module_check(entrypoint, j, err);
}

static void what_is_there(void **state)
{
    static const char *const good[] = {"model_def:T", "pkg:T", "pkg.net:T", "python3 nothing.py",
                                       "nothing.sh"};
    struct det_err err;
    for (size_t i = 0; i < DET_ARRAY_LEN(good); i++)
        assert_int_equal(check(good[i], files, &err), 0);
    assert_int_equal(check("later:T", "[{\"path\": \"startup-hook.sh\"}]", &err), 0);
}

static void what_is_not(void **state)
{
    struct det_err err;
    assert_int_equal(check("model_deff:T", files, &err), DET_EINVAL);
    assert_string_equal(err.text, "entrypoint model_deff:T: the directory has no model_deff.py, "
                                  "model_deff.so or model_deff.c; did you mean model_def:T?");
    assert_int_equal(check("pkg.net:T", "[{\"path\": \"a.txt\"}]", &err), DET_EINVAL);
    assert_string_equal(err.text, "entrypoint pkg.net:T: the directory has no pkg/net.py, "
                                  "pkg/net.so or pkg/net.c");
    assert_int_equal(check("a:T", "[]", &err), DET_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_there),
                                       cmocka_unit_test(what_is_not)};
    return cmocka_run_group_tests_name("module", tests, NULL, NULL);
}
