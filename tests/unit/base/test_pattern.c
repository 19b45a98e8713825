#include "pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "mem.h"

#include <regex.h>
#include <stdio.h>
#include <string.h>

static bool finds(const char *pattern, const char *text)
{
    struct pattern *p = NULL;
    struct det_err err = {0};
    int64_t steps = 1000000;
    if (pattern_compile(pattern, &p, &err) < 0)
        fail_msg("%s", err.text);
    bool found = pattern_find(p, text, strlen(text), &steps);
    assert_true(steps > 0);
    pattern_destroy(p);
    return found;
}

static void test_syntax(void **state)
{
    static const struct {
        const char *pattern, *yes, *no;
    } t[] = {
        {"CUDA out of memory", "x CUDA out of memory.", "CUDA out of time"},
        {".*CUDA.*", "a CUDA b", "cuda"},
        {"(?i)cuda error: (ecc|nvlink)", "CUDA Error: ECC uncorrectable", "cuda error: oom"},
        {"a(?i:b)c", "aBc", "aBC"},
        {"^ERROR \\d+$", "ERROR 12", " ERROR 12"},
        {"\\berr\\b", "an err.", "error"},
        {"e\\Br", "err", "e r"},
        {"[^a-c\\s]x", "dx", "a x"},
        {"[]x-]y", "]y", "ay"},
        {"[[:upper:]_]{3}", "aB_C", "AB"},
        {"x{2,3}?y", "xxy", "xy"},
        {"^x{2,}$", "xxxxx", "x"},
        {"^x{0,2}$", "", "xxx"},
        {"a{,2}", "a{,2}", "aa"},
        {"\\$\\.\\x41\\t", "$.A\t", "$.A "},
        {"^(?P<n>a|bc|)+d", "abcd", "acd"},
        {"^gr\xc3\xbc+n$", "gr\xc3\xbc\xc3\xbcn", "grn"},
        {"a.c", "abc", "a\nc"},
        {"\\w+@\\S+\\D", "me@here!", "me@"},
        {"()*x|(){5}y", "y", "z"},
        {"", "anything", NULL},
    };
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        if (!finds(t[i].pattern, t[i].yes))
            fail_msg("%s does not match %s", t[i].pattern, t[i].yes);
        if (t[i].no && finds(t[i].pattern, t[i].no))
            fail_msg("%s matches %s", t[i].pattern, t[i].no);
    }
}

static void test_refusals(void **state)
{
    static const char *const bad[][2] = {
        {"(a", "not closed"},
        {"a)", "without its ("},
        {"[a", "not closed"},
        {"*a", "nothing"},
        {"a|+", "nothing"},
        {"(a)\\1", "back references"},
        {"a(?=b)", "look"},
        {"(?<!a)b", "look"},
        {"(?<n", "does not end"},
        {"(?x)a", "flags"},
        {"a\\", "nothing after"},
        {"\\q", "not known"},
        {"[b-a]", "backwards"},
        {"[[:what:]]", "not known"},
        {"a{3,2}", "repetitions"},
        {"a{1001}", "1000"},
        {"(a{100}){100}", "too large"},
        {"[\xc3\xbc]", "ASCII"},
        {"\\xg1", "hexadecimal"},
    };
    struct pattern *p = NULL;
    char big[1200];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct det_err err = {0};
        assert_int_equal(pattern_compile(bad[i][0], &p, &err), DET_EINVAL);
        if (!strstr(err.text, bad[i][1]))
            fail_msg("%s: %s", bad[i][0], err.text);
    }
    memset(big, 'a', sizeof big);
    big[PATTERN_TEXT_MAX + 1] = '\0';
    assert_int_equal(pattern_compile(big, &p, NULL), DET_EINVAL);
    memset(big, '(', PATTERN_TEXT_MAX);
    big[PATTERN_TEXT_MAX] = '\0';
    assert_int_equal(pattern_compile(big, &p, NULL), DET_EINVAL);
    assert_null(p);
}

/* What takes a backtracking matcher for ever, and a lazy automaton all memory. */
static void test_cost(void **state)
{
    char text[4096];
    struct pattern *p = NULL;
    int64_t steps = 100000000, few = 1000;
    memset(text, 'a', sizeof text);
    assert_int_equal(pattern_compile("(a|aa)*(a*)*b|(a|b)*a(a|b){50}c", &p, NULL), 0);
    assert_false(pattern_find(p, text, sizeof text, &steps));
    assert_true(steps > 0);
    assert_false(pattern_find(p, text, sizeof text, &few));
    assert_true(few <= 0);
    pattern_destroy(p);
}

static uint64_t seed = 1;
static unsigned draw(unsigned n)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (unsigned)(seed >> 33) % n;
}

static void expression(char *out, size_t cap, int depth)
{
    static const char *const ends[] = {"", "", "", "*", "+", "?", "{2}", "{1,2}", "{0,1}", "{2,}"};
    for (unsigned n = 1 + draw(3); n > 0; n--) {
        char in[2000] = "";
        static const char *const atoms[] = {"a", "b", "[ab]", "[^a]", "."};
        unsigned kind = draw(depth > 0 ? 8 : 5);
        if (kind >= 5)
            expression(in, sizeof in, depth - 1);
        size_t used = strlen(out);
        const char *end = ends[draw(10)];
        if (kind >= 5)
            snprintf(out + used, cap - used, "(%s%s)%s", in, draw(2) ? "|b" : "", end);
        else
            snprintf(out + used, cap - used, "%s%s", atoms[kind], end);
    }
}

/* POSIX and RE2 agree on what these match. (glibc errs where ^ or $ stand inside.) */
static void test_same_as_the_system(void **state)
{
    int checked = 0;
    for (int i = 0; i < 3000; i++) {
        char in[2000] = "", text[2100] = "", line[16] = "";
        struct pattern *p = NULL;
        regex_t re;
        expression(in, sizeof in, 2);
        snprintf(text, sizeof text, "%s(%s)%s", draw(2) ? "^" : "", in, draw(2) ? "$" : "");
        if (strlen(text) > 100 || pattern_compile(text, &p, NULL) < 0)
            continue;
        assert_int_equal(regcomp(&re, text, REG_EXTENDED | REG_NOSUB), 0);
        for (int k = 0; k < 20; k++) {
            int64_t steps = 1000000;
            unsigned n = draw(9);
            for (unsigned c = 0; c < n; c++)
                line[c] = "aabc"[draw(4)];
            line[n] = '\0';
            if (pattern_find(p, line, n, &steps) != (regexec(&re, line, 0, NULL, 0) == 0))
                fail_msg("\"%s\" in \"%s\"", text, line);
            checked++;
        }
        regfree(&re);
        pattern_destroy(p);
    }
    assert_true(checked > 20000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_syntax),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_cost),
        cmocka_unit_test(test_same_as_the_system),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
