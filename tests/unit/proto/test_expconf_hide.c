/* What of a configuration only its owner sees. */
#include "expconf_hide.h"

#include "yamljson.h"

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
    check_hidden("{\"originalConfig\":\"environment: {registry_auth: {password: pw}}\"}",
                 "{\"originalConfig\":\"environment: {registry_auth: {password: (hidden)}}\"}");
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

static void texts_keep_their_layout(void **state)
{
    det_cleanup(freep) char *text = expconf_hide_text("name: x # mine\n"
                                                      "environment:\n"
                                                      "  registry_auth:\n"
                                                      "    username: ada\n"
                                                      "    auth: 'pw-and-more' # pw\n"
                                                      "    password: pw\n");
    assert_string_equal(text, "name: x # mine\n"
                              "environment:\n"
                              "  registry_auth:\n"
                              "    username: ada\n"
                              "    auth: '(hidden)' # (hidden)\n"
                              "    password: (hidden)\n");
}

/* Written in another way than it is meant, part of something else, or part of what hides it. */
static void texts_that_cannot_be_cut(void **state)
{
    static const char *const texts[] = {
        "environment: {registry_auth: {password: \"s\\u0065cret\"}}",
        "environment: {registry_auth: {password: 'it''s'}}",
        "environment: {registry_auth: {password: e}}",
        "environment: {registry_auth: {password: longer-one, auth: hidden}}",
        "environment: {registry_auth: &a {password: 'a\n\n  b'}}",
    };
    for (size_t i = 0; i < DET_ARRAY_LEN(texts); i++) {
        det_cleanup(freep) char *text = expconf_hide_text(texts[i]);
        JSON_OWN j = NULL;
        struct det_err err;
        assert_int_equal(yamljson_parse(text, strlen(text), &j, &err), 0);
        const json_t *auth = json_path(j, "environment.registry_auth");
        assert_string_equal(json_str(auth, "password", ""), EXPCONF_HIDDEN);
        assert_string_equal(json_str(auth, "auth", EXPCONF_HIDDEN), EXPCONF_HIDDEN);
    }
    det_cleanup(freep) char *text = expconf_hide_text("environment: {registry_auth: {password: x}");
    assert_string_equal(text, "# (hidden)\n");
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
        cmocka_unit_test(wherever_it_is),          cmocka_unit_test(other_types_stay),
        cmocka_unit_test(texts_keep_their_layout), cmocka_unit_test(texts_that_cannot_be_cut),
        cmocka_unit_test(looks_at_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
