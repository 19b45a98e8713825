/* Records as text and as JSON, their fields, and the sink. */
#include "log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "json.h"

static char last[512];
static int seen;

static void sink(void *arg, const struct log_record *r)
{
    snprintf(last, sizeof last, "%d %s", (int)r->level, r->text);
    seen++;
}

/* Runs fn with stderr in a file and returns what it wrote. */
static char *captured(void (*fn)(void))
{
    static char text[4096];
    FILE *f = tmpfile();
    int saved = dup(STDERR_FILENO);
    dup2(fileno(f), STDERR_FILENO);
    fn();
    dup2(saved, STDERR_FILENO);
    close(saved);
    rewind(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    return text;
}

static void write_some(void)
{
    log_with(LOG_WARNING, LOG_FIELDS("agent", "a1", "allocation", NULL), "lost\nof %d", 7);
    log_debug("below the level");
}

static void test_text(void **state)
{
    log_init("test", LOG_INFO);
    log_set_sink(sink, NULL);
    const char *text = captured(write_some);
    assert_non_null(strstr(text, "Z WARNING test: lost of 7 agent=a1\n"));
    assert_string_equal(last, "3 lost of 7 agent=a1");
    assert_int_equal(seen, 1);
    log_set_sink(NULL, NULL);
}

static void write_odd(void)
{
    log_with(LOG_INFO, LOG_FIELDS("task", "\"x\xff"), "say \"hi\"");
}

static void test_json(void **state)
{
    log_set_format(LOG_JSON);
    const char *text = captured(write_some);
    JSON_OWN j = json_parse(text, strlen(text), NULL);
    assert_string_equal(json_str(j, "level", ""), "WARNING");
    assert_string_equal(json_str(j, "program", ""), "test");
    assert_string_equal(json_str(j, "component", ""), "test_log");
    assert_string_equal(json_str(j, "message", ""), "lost of 7");
    assert_string_equal(json_str(j, "agent", ""), "a1");
    assert_null(json_object_get(j, "allocation"));
    text = captured(write_odd);
    JSON_OWN odd = json_parse(text, strlen(text), NULL);
    assert_string_equal(json_str(odd, "message", ""), "say \"hi\"");
    assert_string_equal(json_str(odd, "task", ""), "\"x\xef\xbf\xbd");
    log_set_format(LOG_TEXT);
    assert_int_equal(seen, 1); /* the sink was taken off */
}

static void test_levels(void **state)
{
    enum log_level l;
    assert_int_equal(log_level_parse("Warn", &l), 0);
    assert_int_equal(l, LOG_WARNING);
    assert_int_equal(log_level_parse("loud", &l), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
