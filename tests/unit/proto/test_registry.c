/* registry.h: names, texts, labels and metadata of models. */
#include "registry.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

static void test_names(void **state)
{
    static const char *const good[] = {"a",  "7b",  "digits v2", "\xc3\xa9t\xc3\xa9", "1.0", "-1",
                                       ".a", "...", ". ."};
    static const struct {
        const char *name, *words;
    } bad[] = {{"", "not blank"},       {" \t", "not blank"},    {"a/b", "'/'"},
               {"a\nb", "control"},     {"\x1b[31m", "control"}, {"a\x7f", "control"},
               {" a", "space"},         {"a ", "space"},         {"a  b", "space"},
               {"0123", "only digits"}, {".", "\".\""},          {"..", "\"..\""}};
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

static void test_texts(void **state)
{
    struct det_err err;
    assert_int_equal(registry_check_text("notes", NULL, 0, &err), 0);
    assert_int_equal(registry_check_text("notes", "1234567", 7, &err), 0);
    assert_int_equal(registry_check_text("notes", "12345678", 7, &err), DET_EINVAL);
    assert_string_equal(err.text, "notes: 8 bytes; at most 7");
}

/* {"k":"xx..."} of so many bytes; new reference. */
static json_t *metadata_of(size_t bytes)
{
    size_t n = bytes - strlen("{\"k\":\"\"}");
    det_cleanup(freep) char *text = det_zalloc(n + 1);
    memset(text, 'x', n);
    return json_make("{s:s}", "k", text);
}

static void test_metadata(void **state)
{
    struct det_err err;
    det_cleanup(freep) char *text = NULL, *none = NULL;
    JSON_OWN good = metadata_of(REGISTRY_TEXT_MAX);
    JSON_OWN bad = metadata_of(REGISTRY_TEXT_MAX + 1);
    assert_int_equal(registry_metadata(good, &text, &err), 0);
    assert_int_equal(strlen(text), REGISTRY_TEXT_MAX);
    assert_int_equal(registry_metadata(bad, &none, &err), DET_EINVAL);
    assert_string_equal(err.text, "metadata: 65537 bytes as JSON; at most 65536");
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
        JSON_OWN bad =
            i == 0 ? json_make("[s,i]", "a", 7) : json_make("[s,s]", "a", i == 1 ? "" : " ");
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_texts),
                                       cmocka_unit_test(test_metadata),
                                       cmocka_unit_test(test_labels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
