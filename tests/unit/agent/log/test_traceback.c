/* Which exception ended a Python program, and where in the user's own code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "traceback.h"
#include <stdio.h>
#include <string.h>

#define DIR     "/var/lib/det/tasks/1.a.1"
#define HEAD    "Traceback (most recent call last):\n"
#define USERS   "  File \"" DIR "/work/my/model_def.py\", line 37, in train_batch\n"
#define LIBRARY "  File \"/usr/lib/python3/dist-packages/torch/nn.py\", line 4, in forward\n"

struct printed {
    int rank;
    const char *text;
};

static struct traceback read_lines(const struct printed *lines)
{
    struct traceback t = {0};
    for (; lines->text; lines++) {
        struct logline l = logline_parse(lines->text, strlen(lines->text));
        traceback_line(&t, DIR, lines->rank, &l);
    }
    return t;
}

static void the_users_line(void **state)
{
    struct traceback t = read_lines((struct printed[]){{0, "begins\n"},
                                                       {0, HEAD},
                                                       {0, LIBRARY},
                                                       {0, USERS},
                                                       {0, "    loss = x\n"},
                                                       {1, "what another rank prints\n"},
                                                       {0, LIBRARY},
                                                       {0, "ValueError: no good\n"},
                                                       {0, "more\n"},
                                                       {0, NULL}});
    assert_string_equal(t.exception, "ValueError: no good");
    assert_string_equal(t.at, "my/model_def.py, line 37, in train_batch");
}

/* "During handling of the above exception, ...": what follows it counts. */
static void the_last_of_several(void **state)
{
    struct traceback t = read_lines((struct printed[]){
        {0, HEAD},
        {0, USERS},
        {0, "KeyError: 'lr'\n"},
        {0, "\n"},
        {0, "During handling of the above exception, another exception occurred:\n"},
        {0, "\n"},
        {0, HEAD},
        {0, LIBRARY},
        {0, "RuntimeError: 7\n"},
        {0, NULL}});
    assert_string_equal(t.exception, "RuntimeError: 7");
    assert_string_equal(t.at, "");
}

/* An exception that ours explains is raised anew in a library. */
static void the_cause_has_the_users_line(void **state)
{
    struct traceback t = read_lines((struct printed[]){
        {0, HEAD},
        {0, USERS},
        {0, "PermissionError: /root/x\n"},
        {0, "\n"},
        {0, "The above exception was the direct cause of the following exception:\n"},
        {0, "\n"},
        {0, HEAD},
        {0, LIBRARY},
        {0, "PermissionError: /root/x. Who may not\n"},
        {0, NULL}});
    assert_string_equal(t.exception, "PermissionError: /root/x. Who may not");
    assert_string_equal(t.at, "my/model_def.py, line 37, in train_batch");
}

/* It has no function. */
static void a_syntax_errors_place(void **state)
{
    struct traceback t =
        read_lines((struct printed[]){{0, HEAD},
                                      {0, LIBRARY},
                                      {0, "  File \"" DIR "/work/model_def.py\", line 17\n"},
                                      {0, "    lr = get(\n"},
                                      {0, "SyntaxError: '(' was never closed\n"},
                                      {0, NULL}});
    assert_string_equal(t.exception, "SyntaxError: '(' was never closed");
    assert_string_equal(t.at, "model_def.py, line 17");
}

static void what_a_loaders_worker_had(void **state)
{
    struct traceback t = read_lines(
        (struct printed[]){{0, HEAD},
                           {0, LIBRARY},
                           {0, "ValueError: Caught ValueError in DataLoader worker process 1.\n"},
                           {0, "Original Traceback (most recent call last):\n"},
                           {0, LIBRARY},
                           {0, USERS},
                           {0, "ValueError: no good record\n"},
                           {0, NULL}});
    assert_string_equal(t.exception, "ValueError: no good record");
    assert_string_equal(t.at, "my/model_def.py, line 37, in train_batch");
}

/* The others fail of the first one's end. */
static void the_first_of_several_ranks(void **state)
{
    struct traceback t = read_lines((struct printed[]){{1, HEAD},
                                                       {0, HEAD},
                                                       {1, USERS},
                                                       {0, LIBRARY},
                                                       {0, "ConnectionError: 1 is gone\n"},
                                                       {1, "KeyError: 'lr'\n"},
                                                       {0, HEAD},
                                                       {0, "ConnectionError: 1 is gone\n"},
                                                       {0, NULL}});
    assert_string_equal(t.exception, "KeyError: 'lr'");
    assert_string_equal(t.at, "my/model_def.py, line 37, in train_batch");
    assert_int_equal(t.rank, 1);
}

static void none_and_half_a_one(void **state)
{
    struct traceback t = read_lines(
        (struct printed[]){{0, "ValueError: only said\n"}, {0, HEAD}, {0, USERS}, {0, NULL}});
    assert_string_equal(t.exception, "");
    assert_string_equal(t.at, "");
}

static void long_lines_are_cut(void **state)
{
    char message[2000], file[2000];
    memset(message, 'x', sizeof message);
    message[sizeof message - 2] = '\n';
    message[sizeof message - 1] = '\0';
    snprintf(file, sizeof file, "  File \"%.*s\", line 1, in f\n", 1500, message);
    struct traceback t =
        read_lines((struct printed[]){{0, HEAD}, {0, file}, {0, message}, {0, NULL}});
    assert_int_equal(strlen(t.exception), LINK_EXCEPTION_MAX);
    assert_string_equal(t.at, ""); /* no path is that long */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_users_line),
                                       cmocka_unit_test(the_last_of_several),
                                       cmocka_unit_test(the_cause_has_the_users_line),
                                       cmocka_unit_test(a_syntax_errors_place),
                                       cmocka_unit_test(what_a_loaders_worker_had),
                                       cmocka_unit_test(the_first_of_several_ranks),
                                       cmocka_unit_test(none_and_half_a_one),
                                       cmocka_unit_test(long_lines_are_cut)};
    return cmocka_run_group_tests_name("traceback", tests, NULL, NULL);
}
