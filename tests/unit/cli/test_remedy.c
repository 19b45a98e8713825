/* What det says beside "not found". */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "remedy.h"

static void each_thing_has_its_list(void **state)
{
    assert_string_equal(remedy_of_absent("/experiments/9/trials?limit=1", "x"),
                        "det experiment list --all shows all");
    assert_string_equal(remedy_of_absent("/users/ann/by-username", "x"), "det user list shows all");
    assert_string_equal(remedy_of_absent("/agents/a/slots/9/enable", "x"),
                        "det slot list shows all, and their agents");
    assert_string_equal(remedy_of_absent("/agents/a/enable", "x"), "det agent list shows all");
    assert_string_equal(remedy_of_absent("/models/m", "x"), "det model list shows all");
    assert_string_equal(remedy_of_absent("/models/m/versions?limit=1", "x"),
                        "det model list shows all");
    assert_string_equal(remedy_of_absent("/models/m/versions/7", "x"),
                        "det model list-versions MODEL shows those of a model");
    assert_null(remedy_of_absent("/agents", "x"));
    assert_null(remedy_of_absent("/checkpoint-stores/adopt", "x")); /* the master says it itself */
    assert_null(remedy_of_absent("/experiments", "x"));             /* nothing was named */
    assert_null(remedy_of_absent("", "x"));
}

/* A request may name a second thing, which is not that of its path. */
static void the_sentence_counts(void **state)
{
    const char *versions = "/models/m/versions";
    assert_string_equal(
        remedy_of_absent(versions, "POST /api/v1/models/m/versions: checkpointUuid: checkpoint 7 "
                                   "not found"),
        "det experiment list-checkpoints EXPERIMENT shows those of an experiment");
    assert_string_equal(remedy_of_absent(versions, "POST x: model \"m\" not found"),
                        "det model list shows all");
    assert_string_equal(remedy_of_absent("/models/m/versions/7", "model \"m\" has no version 7"),
                        "det model list-versions MODEL shows those of a model");
    assert_string_equal(remedy_of_absent("/agents/a/slots/1/enable", "agent \"a\" not found"),
                        "det agent list shows all");
    assert_null(remedy_of_absent("/experiments/1/move",
                                 "POST x: destinationProjectId: project 9 not found"));
    assert_string_equal(remedy_of_absent("/agents/a/slots/9/enable", "slot 9 of agent a not found"),
                        "det slot list shows all, and their agents");
    assert_string_equal(remedy_of_absent("/trials/time-series", "trialIds: trials 5, 6 not found"),
                        "det experiment list-trials EXPERIMENT shows those of an experiment");
    assert_string_equal(remedy_of_absent("/experiments/1", "GET x: HTTP status 404 (not found)"),
                        "det experiment list --all shows all");
    assert_null(
        remedy_of_absent("/models/m", "PATCH x: no workspace; det workspace list has them"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_thing_has_its_list),
                                       cmocka_unit_test(the_sentence_counts)};
    return cmocka_run_group_tests_name("remedy", tests, NULL, NULL);
}
