/* What of a configuration only its owner sees. */
#include "expconf_hide.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void check_hidden(const char *json, const char *want)
{
    JSON_OWN j = json_parse(json, strlen(json), NULL);
    assert_non_null(j);
    expconf_hide_answer(j);
    det_cleanup(freep) char *got = json_text(j);
    assert_string_equal(got, want);
}

#define AUTH(auth) "{\"environment\":{\"registry_auth\":" auth "}}"
#define SECRETS                                                                                    \
    AUTH("{\"username\":\"ada\",\"password\":\"pw\",\"auth\":\"a\",\"identitytoken\":\"\","        \
         "\"registrytoken\":\"r\"}")
#define NONE                                                                                       \
    AUTH("{\"username\":\"ada\",\"password\":\"(hidden)\",\"auth\":\"(hidden)\","                  \
         "\"identitytoken\":\"\",\"registrytoken\":\"(hidden)\"}")

static void wherever_it_is(void **state)
{
    check_hidden("{\"config\":" SECRETS "}", "{\"config\":" NONE "}");
    check_hidden(
        "{\"versions\":[{\"checkpoint\":{\"training\":{\"experimentConfig\":" SECRETS "}}}]}",
        "{\"versions\":[{\"checkpoint\":{\"training\":{\"experimentConfig\":" NONE "}}}]}");
    check_hidden("{\"a\":[{\"config\":{\"data\":{\"x\":\"pw\",\"y\":[\"pw\",\"pwd\"]},"
                 "\"environment\":{\"registry_auth\":{\"password\":\"pw\"}}}}]}",
                 "{\"a\":[{\"config\":{\"data\":{\"x\":\"(hidden)\",\"y\":[\"(hidden)\",\"pwd\"]},"
                 "\"environment\":{\"registry_auth\":{\"password\":\"(hidden)\"}}}}]}");
    check_hidden("{\"hparams\":" SECRETS "}", "{\"hparams\":" SECRETS "}");
}

static void other_types_stay(void **state)
{
    static const char *const same[] = {
        "{\"config\":null}",
        "{\"config\":[1],\"originalConfig\":7}",
        "{\"config\":{\"environment\":\"registry_auth\"}}",
        "{\"config\":" AUTH("null") "}",
        "{\"config\":" AUTH("\"x\"") "}",
        "{\"config\":" AUTH("{\"password\":7}") "}",
    };
    for (size_t i = 0; i < DET_ARRAY_LEN(same); i++)
        check_hidden(same[i], same[i]);
}

/* Whatever its text wrote, its reader finds the hidden configuration. */
static void text_is_what_it_came_to(void **state)
{
    const char *json =
        "{\"originalConfig\":\"environment: {registry_auth: {password: 's\\u0065c'}}\","
        "\"config\":{\"environment\":{\"registry_auth\":{\"password\":\"sec\"}}}}";
    JSON_OWN j = json_parse(json, strlen(json), NULL);
    expconf_hide_answer(j);
    const char *text = json_str(j, "originalConfig", "");
    JSON_OWN got = json_parse(text, strlen(text), NULL);
    assert_true(json_equal(got, json_object_get(j, "config")));
    assert_string_equal(json_str(json_path(got, "environment.registry_auth"), "password", ""),
                        EXPCONF_HIDDEN);
    check_hidden("{\"originalConfig\":\"environment: {registry_auth: {password: x}\"}",
                 "{\"originalConfig\":\"# (hidden)\\n\"}");
}

static void looks_at_bytes(void **state)
{
    static const struct {
        const char *text;
        bool may;
    } cases[] = {
        {"{\"config\":" SECRETS "}", true},
        {"{\"registry_auth\" : {}}", true},
        {"{\"registry_auth\":null,\"registry_auth\":{", true},
        {"{\"registry_auth\":null}", false},
        {"{\"registry_auth\":", false},
        {"registry_auth", false},
        {"", false},
    };
    for (size_t i = 0; i < DET_ARRAY_LEN(cases); i++)
        assert_int_equal(expconf_may_hide(cases[i].text, strlen(cases[i].text)), cases[i].may);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wherever_it_is),
        cmocka_unit_test(other_types_stay),
        cmocka_unit_test(text_is_what_it_came_to),
        cmocka_unit_test(looks_at_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
