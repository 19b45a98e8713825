#include "expsearch.h"

#include "mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define GROUP(how, children)                                                                       \
    "{\"filterGroup\":{\"kind\":\"group\",\"conjunction\":\"" how "\",\"children\":[" children "]" \
    "}"                                                                                            \
    "}"
#define FIELD(column, op, value)                                                                   \
    "{\"kind\":\"field\",\"columnName\":\"" column "\",\"operator\":\"" op "\",\"value\":" value "}"

static void reads(const char *filter, const char *sort, const char *want)
{
    struct det_err err = {0};
    JSON_OWN got = NULL;
    if (expsearch_read(filter, sort, &got, &err) < 0)
        fail_msg("%s: %s", filter ? filter : sort, err.text);
    det_cleanup(freep) char *text = json_text(got);
    assert_string_equal(text, want);
}

static void refuses(const char *filter, const char *sort, const char *why)
{
    struct det_err err = {0};
    json_t *got = NULL;
    assert_int_equal(expsearch_read(filter, sort, &got, &err), DET_EINVAL);
    assert_null(got);
    if (!strstr(err.text, why))
        fail_msg("%s: \"%s\" has no \"%s\"", filter ? filter : sort, err.text, why);
}

#define BY_ID     "\"order\":[{\"kind\":\"number\",\"name\":\"id\",\"down\":true}]"
#define ONE(leaf) "{\"leaves\":[" leaf "],\"where\":{\"and\":[0]}," BY_ID ",\"archived\":false}"

static void test_nothing(void **state)
{
    reads(NULL, NULL, "{\"leaves\":[],\"where\":null," BY_ID ",\"archived\":true}");
    reads("{}", "", "{\"leaves\":[],\"where\":null," BY_ID ",\"archived\":false}");
    reads("{\"showArchived\":true,\"filterGroup\":null}", "",
          "{\"leaves\":[],\"where\":null," BY_ID ",\"archived\":true}");
}

static void test_groups(void **state)
{
    reads(GROUP("and", ""), "", "{\"leaves\":[],\"where\":null," BY_ID ",\"archived\":false}");
    reads(GROUP("or", "{\"kind\":\"group\",\"conjunction\":\"and\",\"children\":[]}"), "",
          "{\"leaves\":[],\"where\":null," BY_ID ",\"archived\":false}");
    reads(GROUP("and",
                FIELD("id", ">", "3") ",{\"id\":\"x\",\"kind\":\"group\",\"conjunction\":\"or\","
                                      "\"children\":[" FIELD("name", "contains", "\"a\"") "," FIELD(
                                          "hp.lr", "<", "0.5") "]}"),
          "",
          "{\"leaves\":[{\"kind\":\"number\",\"name\":\"id\",\"op\":\">\",\"value\":3},"
          "{\"kind\":\"text\",\"name\":\"name\",\"op\":\"contains\",\"value\":\"a\"},"
          "{\"kind\":\"hp\",\"name\":\"lr\",\"op\":\"<\",\"value\":0.5}],"
          "\"where\":{\"and\":[0,{\"or\":[1,2]}]}," BY_ID ",\"archived\":false}");
}

static void test_fields(void **state)
{
    reads(GROUP("and", FIELD("state", "=", "\"RUNNING\"")), "",
          ONE("{\"kind\":\"shown\",\"name\":\"state\",\"op\":\"=\",\"value\":\"RUNNING\"}"));
    reads(GROUP("and", FIELD("state", "!=", "\"STATE_ACTIVE\"")), "",
          ONE("{\"kind\":\"state\",\"name\":\"state\",\"op\":\"!=\",\"value\":\"ACTIVE\"}"));
    reads(GROUP("and", FIELD("user", "=", "2")), "",
          ONE("{\"kind\":\"text\",\"name\":\"user\",\"op\":\"=\",\"value\":\"2\"}"));
    reads(GROUP("and", FIELD("tags", "isEmpty", "null")), "",
          ONE("{\"kind\":\"tags\",\"name\":\"tags\",\"op\":\"isEmpty\",\"value\":null}"));
    reads(GROUP("and", FIELD("startTime", "<=", "\"2024-03-05\"")), "",
          ONE("{\"kind\":\"time\",\"name\":\"startTime\",\"op\":\"<=\",\"value\":1709596800.0}"));
    reads(GROUP("and", FIELD("validation.a.b.min", ">", "0.9")), "",
          ONE("{\"kind\":\"metric\",\"group\":\"validation\",\"name\":\"a.b\",\"stat\":\"min\","
              "\"op\":\">\",\"value\":0.9}"));
}

/* The location says that "name" is a hyperparameter. */
static void test_location(void **state)
{
    reads(GROUP("and", "{\"kind\":\"field\",\"columnName\":\"name\",\"location\":\"LOCATION_TYPE_"
                       "HYPERPARAMETERS\",\"operator\":\"=\",\"value\":1}"),
          "", ONE("{\"kind\":\"hp\",\"name\":\"name\",\"op\":\"=\",\"value\":1}"));
}

static void test_sort(void **state)
{
    reads(NULL, "training.a,b=c.max=asc,hp.x=desc",
          "{\"leaves\":[],\"where\":null,\"order\":[{\"kind\":\"metric\",\"group\":\"training\","
          "\"name\":\"a,b=c\",\"stat\":\"max\",\"down\":false},"
          "{\"kind\":\"hp\",\"name\":\"x\",\"down\":true}],\"archived\":true}");
    refuses(NULL, "name", "\"name\" is not COLUMN=asc");
    refuses(NULL, "nothing=asc", "sort: \"nothing\" is no column");
    refuses(NULL, "validation.loss.median=asc", "is no column");
}

static void test_refused(void **state)
{
    refuses("[", "", "filter");
    refuses("[]", "", "filter: expected an object");
    refuses("{\"showArchived\":1}", "", "filter.showArchived");
    refuses("{\"filterGroup\":[]}", "", "filter.filterGroup: expected a group or a field");
    refuses(GROUP("xor", ""), "", "filter.filterGroup.conjunction: \"xor\"");
    refuses("{\"filterGroup\":{\"kind\":\"group\",\"conjunction\":\"and\"}}", "",
            "children: expected a list");
    refuses(GROUP("and", "{\"kind\":\"tree\"}"), "", "children[0].kind: \"tree\"");
    refuses(GROUP("and", "{\"kind\":\"field\",\"columnName\":\"id\"}"), "",
            "children[0].operator is required");
    refuses(GROUP("and", "{\"kind\":\"field\",\"operator\":\"=\"}"), "",
            "children[0].columnName is required");
    refuses(GROUP("and", FIELD("id", "~", "1")), "", "children[0].operator: \"~\"");
    refuses(GROUP("and", FIELD("id", "contains", "1")), "", "is not for the column");
    refuses(GROUP("and", FIELD("name", "<", "\"a\"")), "", "is not for the column");
    refuses(GROUP("and", FIELD("id", "=", "\"1\"")), "", "children[0].value: expected a number");
    refuses(GROUP("and", FIELD("name", "=", "null")), "", "children[0].value: expected a text");
    refuses(GROUP("and", FIELD("state", "=", "\"BUSY\"")), "", "BUSY");
    refuses(GROUP("and", FIELD("endTime", ">", "\"soon\"")), "", "children[0].value");
    refuses(GROUP("and", FIELD("hp.", "=", "1")), "", "is no column");
}

static void test_bounds(void **state)
{
    struct buf b = BUF_INIT;
    buf_add_str(&b, "{\"filterGroup\":");
    for (int i = 0; i < 20; i++)
        buf_add_str(&b, "{\"kind\":\"group\",\"conjunction\":\"and\",\"children\":[");
    for (int i = 0; i < 20; i++)
        buf_add_str(&b, "]}");
    buf_add_str(&b, "}");
    refuses(buf_str(&b), "", "deep");
    buf_clear(&b);
    buf_add_str(&b, "{\"filterGroup\":{\"kind\":\"group\",\"conjunction\":\"and\",\"children\":[");
    for (int i = 0; i <= EXPSEARCH_FIELDS_MAX; i++)
        buf_addf(&b, "%s" FIELD("id", ">", "1"), i ? "," : "");
    buf_add_str(&b, "]}}");
    refuses(buf_str(&b), "", "more than 200 fields");
    buf_finish(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing), cmocka_unit_test(test_groups),
        cmocka_unit_test(test_fields),  cmocka_unit_test(test_location),
        cmocka_unit_test(test_sort),    cmocka_unit_test(test_refused),
        cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
