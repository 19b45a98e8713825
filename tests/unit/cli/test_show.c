/* How hyperparameters and metrics read in tables. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "mem.h"
#include "show.h"
#include <stdlib.h>
#include <string.h>

static json_t *parsed(const char *text)
{
    json_t *j = json_parse(text, strlen(text), NULL);
    assert_non_null(j);
    return j;
}

static void assert_shows(const char *hparams, const json_t *common, const char *words)
{
    JSON_OWN j = parsed(hparams);
    char *text det_cleanup(freep) = show_hparams(j, common);
    assert_string_equal(text, words);
}

static void numbers_have_few_digits(void **state)
{
    assert_shows(
        "{\"b\": {\"lr\": 0.00012345678}, \"a\": 123456789, \"s\": \"x\", \"z\": [1, null]}", NULL,
        "a=123456789 b.lr=0.00012346 s=x z=[1,null]");
    JSON_OWN metrics =
        parsed("{\"loss\": 0.123456789, \"n\": 12345.678, \"per_class\": [1, 2, 3]}");
    char *text det_cleanup(freep) = show_metrics(metrics);
    assert_string_equal(text, "loss=0.1235 n=12346 per_class=[3 values]");
    assert_string_equal(show_metric(json_object_get(metrics, "n")), "12346");
}

/* A trial that lacks a name, or has it as an object, differs in it. */
static void a_search_shows_what_varies(void **state)
{
    JSON_OWN trials = parsed(
        "[{\"hparams\": {\"same\": 1, \"lr\": 0.5, \"net\": {\"n\": 2, \"k\": 3}, \"x\": 7}},"
        " {\"hparams\": {\"same\": 1, \"lr\": 0.5, \"net\": {\"n\": 4, \"k\": 3}}},"
        " {\"hparams\": {\"same\": 1, \"lr\": 0.1, \"net\": {\"n\": 2, \"k\": 3}, \"x\": 7}}]");
    JSON_OWN common = show_common_hparams(trials);
    assert_shows("{\"same\": 1, \"lr\": 0.5, \"net\": {\"n\": 2, \"k\": 3}, \"x\": 7}", common,
                 "lr=0.5 net.n=2 x=7");
    assert_shows("{\"same\": 1, \"lr\": 0.5, \"net\": {\"n\": 4, \"k\": 3}}", common,
                 "lr=0.5 net.n=4");
}

static void where_nothing_varies_all_is_shown(void **state)
{
    static const char *const lists[] = {"[]", "[{\"hparams\": {\"lr\": 1}}]",
                                        "[{\"hparams\": {\"lr\": 1}}, {\"hparams\": {\"lr\": 1}}]",
                                        "[{}, {}]"};
    for (size_t i = 0; i < DET_ARRAY_LEN(lists); i++) {
        JSON_OWN trials = parsed(lists[i]);
        assert_null(show_common_hparams(trials));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_have_few_digits),
        cmocka_unit_test(a_search_shows_what_varies),
        cmocka_unit_test(where_nothing_varies_all_is_shown),
    };
    return cmocka_run_group_tests_name("show", tests, NULL, NULL);
}
