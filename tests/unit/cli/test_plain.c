/* Nothing that others wrote moves the cursor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "plain.h"
#include <string.h>

static void assert_plain(const char *text, const char *want)
{
    char *got det_cleanup(freep) = plain_text(text);
    if (want)
        assert_string_equal(got, want);
    else
        assert_null(got);
}

static void colours_stay_and_all_else_goes(void **state)
{
    assert_plain("a name, \xc3\xa4 \xe2\x82\xac\ttab\r\n", NULL);
    assert_plain("\033[1;31mred\033[0m \033[m", NULL);
    assert_plain("", NULL);
    assert_plain("\033[2J", "\xef\xbf\xbd[2J");
    assert_plain("\033]0;title\007", "\xef\xbf\xbd]0;title\xef\xbf\xbd");
    assert_plain("\033", "\xef\xbf\xbd");
    assert_plain("\033[", "\xef\xbf\xbd[");
    assert_plain("\033[31", "\xef\xbf\xbd[31");
    assert_plain("x\xc2\x9b"
                 "2J\x7f\b",
                 "x\xef\xbf\xbd"
                 "2J\xef\xbf\xbd\xef\xbf\xbd");
    assert_plain("\xc2\xa0", NULL); /* a blank, no control character */
}

static void of_answers_keys_too(void **state)
{
    static const char text[] = "{\"\\u001bk\": [\"a\\u009bb\", {\"x\": \"\\u0007\"}], \"n\": 1.5}";
    json_t *j = plain_json(json_parse(text, strlen(text), NULL));
    char *got det_cleanup(freep) = json_text(j);
    assert_null(strstr(got, "\\u00"));
    assert_string_equal(got, "{\"\xef\xbf\xbdk\":[\"a\xef\xbf\xbd"
                             "b\",{\"x\":\"\xef\xbf\xbd\"}],\"n\":1.5}");
    json_decref(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(colours_stay_and_all_else_goes),
                                       cmocka_unit_test(of_answers_keys_too)};
    return cmocka_run_group_tests_name("plain", tests, NULL, NULL);
}
