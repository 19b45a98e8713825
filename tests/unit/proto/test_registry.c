/* registry.h: names and labels of models. */
#include "registry.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

static void test_names(void **state)
{
    static const char *const good[] = {"a", "7b", "digits v2", "\xc3\xa9t\xc3\xa9", "1.0", "-1", ".a", "...", ". ."};
    static const struct {
        const char *name, *words;
    } bad[] = {{"", "not blank"},      {" \t", "not blank"},   {"a/b", "'/'"},
               {"a\nb", "control"},    {"\x1b[31m", "control"}, {"a\x7f", "control"},
               {" a", "space"},        {"a ", "space"},        {"a  b", "space"},
               {"0123", "only digits"}, {".", "\".\""},        {"..", "\"..\""}};
    struct det_err err;
    char name[REGISTRY_NAME_MAX + 2];
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_int_equal(registry_check_name(good[i], &err), 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(registry_check_name(bad[i].name, &err), DET_EINVAL);
        assert_non_null(strstr(err.text, bad[i].words));
    }
    memset(name, 'x', sizeof name);
    name[REGISTRY_NAME_MAX + 1] = '\0';
    assert_int_equal(registry_check_name(name, &err), DET_EINVAL);
    name[REGISTRY_NAME_MAX] = '\0';
    assert_int_equal(registry_check_name(name, &err), 0);
}

static void test_labels(void **state)
{
    struct det_err err;
    JSON_OWN list = json_make("[s,s,s]", "a", "b", "a");
    JSON_OWN out = json_array();
    assert_int_equal(registry_labels(list, out, &err), 0);
    det_cleanup(freep) char *text = json_text(out);
    assert_string_equal(text, "[\"a\",\"b\"]");
    for (int i = 0; i < 3; i++) {
        JSON_OWN bad = i == 0 ? json_make("[s,i]", "a", 7) : json_make("[s,s]", "a", i == 1 ? "" : " ");
        assert_int_equal(registry_labels(bad, out, &err), DET_EINVAL);
        assert_non_null(strstr(err.text, "labels[1]"));
    }
    JSON_OWN many = json_array();
    for (int i = 0; i <= REGISTRY_LABELS_MAX; i++)
        json_array_append_new(many, json_string("x"));
    assert_int_equal(registry_labels(many, out, &err), DET_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_labels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
