/* What det says beside "not found". */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "remedy.h"

static void each_thing_has_its_list(void **state)
{
    assert_string_equal(remedy_of_absent("/experiments/9/trials?limit=1"),
                        "det experiment list --all shows all");
    assert_string_equal(remedy_of_absent("/users/ann/by-username"), "det user list shows all");
    assert_string_equal(remedy_of_absent("/agents/a/slots/9/enable"),
                        "det slot list shows all, and their agents");
    assert_string_equal(remedy_of_absent("/agents/a/enable"), "det agent list shows all");
    assert_string_equal(remedy_of_absent("/models/m"), "det model list shows all");
    assert_string_equal(remedy_of_absent("/models/m/versions?limit=1"), "det model list shows all");
    assert_string_equal(remedy_of_absent("/models/m/versions/7"),
                        "det model list-versions MODEL shows those of a model");
    assert_null(remedy_of_absent("/agents"));
    assert_null(remedy_of_absent("/checkpoint-stores/adopt")); /* the master says it itself */
    assert_null(remedy_of_absent("/experiments"));             /* nothing was named */
    assert_null(remedy_of_absent(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_thing_has_its_list)};
    return cmocka_run_group_tests_name("remedy", tests, NULL, NULL);
}
