#include "opt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

static bool follow;
static const char *master;
static int64_t count, tail;
static struct opt_list config;

static const struct opt table[] = {
    {"follow", 'f', OPT_FLAG, &follow, NULL, "follow it"},
    {"master", 'm', OPT_STR, &master, "URL", "the master's address"},
    {"count", 0, OPT_INT, &count, NULL, "how many"},
    {"tail", 0, OPT_COUNT, &tail, "N", "the last ones"},
    {"config", 0, OPT_STR_LIST, &config, "KEY=VALUE", "override"},
    {"local", 'l', OPT_ABSENT, NULL, NULL, "run the file itself"},
    {NULL, 0, OPT_FLAG, NULL, NULL, NULL},
};

static int parse(struct opt_list *pos, struct det_err *err, int argc, char **argv)
{
    follow = false;
    master = NULL;
    count = 0;
    opt_list_finish(&config);
    return opt_parse(table, argc, argv, 1, pos, err);
}
#define PARSE(pos, err, ...)                                                                       \
    parse(pos, err, sizeof((char *[]){"det", __VA_ARGS__}) / sizeof(char *),                       \
          (char *[]){"det", __VA_ARGS__})

static void test_forms(void **state)
{
    struct opt_list pos = {0};
    struct det_err err;
    assert_int_equal(PARSE(&pos, &err, "a", "--config", "x=1", "-fmU", "--config=y=2", "--count=-3",
                           "-", "-1.5", "--", "-z"),
                     0);
    assert_true(follow);
    assert_string_equal(master, "U");
    assert_int_equal(count, -3);
    assert_int_equal(config.n, 2);
    assert_string_equal(config.v[1], "y=2");
    assert_int_equal(pos.n, 4);
    assert_string_equal(pos.v[0], "a");
    assert_string_equal(pos.v[1], "-");
    assert_string_equal(pos.v[2], "-1.5");
    assert_string_equal(pos.v[3], "-z");
    opt_list_finish(&pos);
    assert_int_equal(PARSE(&pos, &err, "--fol"), 0);
    assert_true(follow);
    opt_list_finish(&config);
}

/* Known by its whole name alone: prefixes, guesses and the help are of what is there. */
static void test_absent(void **state)
{
    struct opt_list pos = {0};
    struct det_err err;
    assert_int_equal(PARSE(&pos, &err, "--local"), DET_EINVAL);
    assert_string_equal(err.text, "there is no --local here: run the file itself");
    assert_int_equal(PARSE(&pos, &err, "--local=x"), DET_EINVAL);
    assert_int_equal(PARSE(&pos, &err, "-fl"), DET_EINVAL);
    assert_non_null(strstr(err.text, "run the file itself"));
    assert_int_equal(PARSE(&pos, &err, "--loca"), DET_EINVAL);
    assert_string_equal(err.text, "unknown option --loca; --help lists the options");
    struct buf b = BUF_INIT;
    opt_help(table, &b);
    assert_null(strstr(buf_str(&b), "local"));
    buf_finish(&b);
}

static void test_errors(void **state)
{
    struct opt_list pos = {0};
    struct det_err err;
    assert_int_equal(PARSE(&pos, &err, "--folow"), DET_EINVAL);
    assert_non_null(strstr(err.text, "--follow"));
    assert_int_equal(PARSE(&pos, &err, "--co"), DET_EINVAL);
    assert_non_null(strstr(err.text, "--count, --config"));
    assert_int_equal(PARSE(&pos, &err, "--master"), DET_EINVAL);
    assert_non_null(strstr(err.text, "URL"));
    assert_int_equal(PARSE(&pos, &err, "--count", "1x"), DET_EINVAL);
    assert_int_equal(PARSE(&pos, &err, "--follow=maybe"), DET_EINVAL);
    assert_int_equal(PARSE(&pos, &err, "-fx"), DET_EINVAL);
    assert_int_equal(PARSE(&pos, &err, "--="), DET_EINVAL);
    assert_int_equal(PARSE(&pos, &err, "--tail", "-1"), DET_EINVAL);
    assert_non_null(strstr(err.text, "--tail: expected 1 or more, got -1"));
    assert_int_equal(PARSE(&pos, &err, "--tail=0"), DET_EINVAL);
    assert_int_equal(PARSE(&pos, &err, "--tail=1"), 0);
    assert_int_equal(tail, 1);
}

static void test_help(void **state)
{
    struct buf b = BUF_INIT;
    opt_help(table, &b);
    assert_non_null(strstr(b.p, "  -m, --master URL"));
    assert_non_null(strstr(b.p, "      --count VALUE"));
    buf_finish(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_absent),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_help),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
