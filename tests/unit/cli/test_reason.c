/* Why a trial failed, as its log tells. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "mem.h"
#include "reason.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void assert_reason(const char *lines, const char *reason)
{
    JSON_OWN j = json_parse(lines, strlen(lines), NULL);
    char *got det_cleanup(freep) = reason_of(j);
    if (reason)
        assert_string_equal(got, reason);
    else
        assert_null(got);
}

#define L(rank, level, text)                                                                       \
    "{\"rankId\": " rank ", \"level\": \"LOG_LEVEL_" level "\", \"log\": \"" text "\\n\"}"
#define MASTER                                                                                     \
    "{\"level\": \"LOG_LEVEL_ERROR\", \"log\": \"Run 1 ended: rank 0 exited with code 1\"}"

/* clang-format off */
static void an_exception_has_the_users_line(void **state)
{
    assert_reason(
        "[" L("0", "INFO", "begins") "," L("0", "UNKNOWN", "Traceback (most recent call last):") ","
        L("0", "UNKNOWN", "  File \\\"/usr/lib/python3/x.py\\\", line 3, in run") ","
        L("0", "UNKNOWN", "  File \\\"/home/ann/work/tasks/1.5f9a7f8c-2faa-4497-b5a6-16b7c0cc21d8.1/work/my/work/model_def.py\\\", line 37, in train_batch") ","
        L("1", "UNKNOWN", "what another rank prints") ","
        L("0", "UNKNOWN", "    loss = x") ","
        L("0", "UNKNOWN", "  File \\\"/usr/lib/python3/dist-packages/torch/y.py\\\", line 4, in z") ","
        L("0", "UNKNOWN", "ValueError: no good") "," MASTER "]",
        "ValueError: no good (my/work/model_def.py, line 37, in train_batch)");
    assert_reason("[" L("0", "UNKNOWN", "Traceback (most recent call last):") ","
                  L("0", "UNKNOWN", "  File \\\"/var/lib/det/agent/tasks/5.d40b5eb7-7021-49a0-a0f9-6c9e2008f8f1.1.49db1567/work/model_def.py\\\", line 33, in train_batch") ","
                  L("0", "UNKNOWN", "ValueError: no good") "]",
                  "ValueError: no good (model_def.py, line 33, in train_batch)");
    assert_reason("[" L("0", "UNKNOWN", "Traceback (most recent call last):") ","
                  L("0", "UNKNOWN", "KeyError: 'lr'") "]", "KeyError: 'lr'");
    assert_reason("[" L("0", "UNKNOWN", "Traceback (most recent call last):") ","
                  L("0", "UNKNOWN", "  File \\\"/data/work/model_def.py\\\", line 1, in f") ","
                  L("0", "UNKNOWN", "KeyError: 'lr'") "]",
                  "KeyError: 'lr' (/data/work/model_def.py, line 1, in f)");
}

/* An exception that ours explains is raised anew in a library. */
static void the_cause_has_the_users_line(void **state)
{
    assert_reason(
        "[" L("0", "UNKNOWN", "Traceback (most recent call last):") ","
        L("0", "UNKNOWN", "  File \\\"model_def.py\\\", line 3, in data") ","
        L("0", "UNKNOWN", "PermissionError: /root/x") "," L("0", "UNKNOWN", "") ","
        L("0", "UNKNOWN", "The above exception was the direct cause of the following exception:") ","
        L("0", "UNKNOWN", "") "," L("0", "UNKNOWN", "Traceback (most recent call last):") ","
        L("0", "UNKNOWN", "  File \\\"/usr/lib/python3/x.py\\\", line 3, in run") ","
        L("0", "UNKNOWN", "PermissionError: /root/x. Who may not") "," MASTER "]",
        "PermissionError: /root/x. Who may not (model_def.py, line 3, in data)");
}

/* It has no function. */
static void a_syntax_error_has_its_place(void **state)
{
    assert_reason("[" L("0", "UNKNOWN", "Traceback (most recent call last):") ","
                  L("0", "UNKNOWN", "  File \\\"/usr/lib/python3.11/importlib/__init__.py\\\", line 126, in import_module") ","
                  L("0", "UNKNOWN", "  File \\\"/a/tasks/5.d40b5eb7-7021-49a0-a0f9-6c9e2008f8f1.1.49db1567/work/model_def.py\\\", line 17") ","
                  L("0", "UNKNOWN", "    lr = get(") "," L("0", "UNKNOWN", "            ^") ","
                  L("0", "UNKNOWN", "SyntaxError: '(' was never closed") "," MASTER "]",
                  "SyntaxError: '(' was never closed (model_def.py, line 17)");
}

static void a_loaders_worker_has_its_own(void **state)
{
    assert_reason("[" L("0", "UNKNOWN", "Traceback (most recent call last):") ","
                  L("0", "UNKNOWN", "  File \\\"/usr/lib/python3/dist-packages/torch/_utils.py\\\", line 5, in reraise") ","
                  L("0", "UNKNOWN", "ValueError: Caught ValueError in DataLoader worker process 1.") ","
                  L("0", "UNKNOWN", "Original Traceback (most recent call last):") ","
                  L("0", "UNKNOWN", "  File \\\"/usr/lib/python3/dist-packages/torch/worker.py\\\", line 3, in loop") ","
                  L("0", "UNKNOWN", "  File \\\"model_def.py\\\", line 13, in __getitem__") ","
                  L("0", "UNKNOWN", "ValueError: no good record") "," MASTER "]",
                  "ValueError: no good record (model_def.py, line 13, in __getitem__)");
}
/* clang-format on */

#define OWN(level, text)                                                                           \
    "{\"stdtype\": \"stderr\", \"level\": \"LOG_LEVEL_" level "\", \"log\": \"" text "\\n\"}"
#define ENDED(text)                                                                                \
    "{\"stdtype\": \"stdout\", \"level\": \"LOG_LEVEL_ERROR\", \"log\": \"Run 1 ended: " text "\"}"

static void a_command_has_its_last_line(void **state)
{
    assert_reason("[" OWN("UNSPECIFIED", "no such corpus") "," OWN("INFO", "bye") "," ENDED(
                      "the command exited with code 3") "]",
                  "the command exited with code 3; its last line of error: no such corpus");
    assert_reason("[" OWN("UNSPECIFIED", "of an earlier run") "," ENDED(
                      "the agent is lost") "," ENDED("the command exited with code 3") "]",
                  "the command exited with code 3");
    assert_reason("[" OWN("UNSPECIFIED", "x") "," ENDED("the command exited with code 3; y") "]",
                  "the command exited with code 3; y");
    assert_reason("[" OWN("UNSPECIFIED", "x") "," ENDED("rank 0 stalled") "]", "rank 0 stalled");
}

#define OF_RANK(rank, text)                                                                        \
    "{\"rankId\": " rank ", \"stdtype\": \"stderr\", \"level\": \"LOG_LEVEL_UNSPECIFIED\", "       \
    "\"log\": \"" text "\\n\"}"

/* The others of its run speak too, and later. */
static void a_rank_has_its_own_last_line(void **state)
{
    assert_reason("[" OF_RANK("1", "no such corpus") "," OF_RANK("0", "rank 1 is gone") "," ENDED(
                      "rank 1 exited with code 3") "]",
                  "rank 1 exited with code 3; its last line of error: no such corpus");
    assert_reason("[" OF_RANK("0", "rank 1 is gone") "," ENDED("rank 1 exited with code 3") "]",
                  "rank 1 exited with code 3");
    assert_reason("[" OF_RANK("1", "of an earlier run") "," ENDED("the agent is lost") "," ENDED(
                      "rank 1 exited with code 3") "]",
                  "rank 1 exited with code 3");
}

static void a_stalled_rank_has_the_users_line(void **state)
{
    static const char ended[] = "{\"log\": \"Run 1 ended: rank 0 stalled: no batch for 8.0 s\"}";
    char lines[1024];
    snprintf(lines, sizeof lines, "[%s,%s]",
             L("-1", "INFO", "rank 0 is at model_def.py, line 24, in stuck"), ended);
    assert_reason(lines, "rank 0 stalled: no batch for 8.0 s (model_def.py, line 24, in stuck)");
    snprintf(lines, sizeof lines, "[%s,%s]", /* a command, of which nobody knows the ranks */
             L("-1", "INFO", "process 77 is at train.py, line 4, in waits"), ended);
    assert_reason(lines, "rank 0 stalled: no batch for 8.0 s (train.py, line 4, in waits)");
    assert_reason("[" L("-1", "INFO", "rank 0 is at model_def.py, line 24, in stuck") "," MASTER
                                                                                      "]",
                  "rank 0 exited with code 1"); /* it was only asked */
}

/* Its main thread stands first; who was asked before, other threads and other ranks are not it. */
static void where_a_stall_was(void **state)
{
#define AT(who, place) L("-1", "INFO", who " is at " place)
#define STALL          L("-1", "ERROR", "rank 1 stalled: no batch for 8.0 s")
#define END            "{\"log\": \"Run 2 ended: rank 1 stalled: no batch for 8.0 s\"}"
    static const char want[] = "rank 1 stalled: no batch for 8.0 s (m.py, line 2, in f)";
    assert_reason(
        "[" AT("rank 1", "asked.py, line 1, in a") "," STALL "," AT(
            "rank 0",
            "m.py, line 9, in z") "," AT("rank 1",
                                         "m.py, line 2, in f") "," AT("rank 1",
                                                                      "m.py, line 3, in g") "," END
                                                                                            "]",
        want);
    assert_reason(
        "[" STALL "," AT("rank 1", "m.py, line 2, in f") "," AT(
            "rank 0", "m.py, line 9, in z") "," AT("process 7", "w.py, line 1, in w") "," END "]",
        want);
    assert_reason("[" STALL "," AT("rank 1", "old.py, line 7, in o") "," STALL "," AT(
                      "rank 1", "m.py, line 2, in f") "," END "]",
                  want);
}

#define OWN_TMP L("-1", "WARNING", "Of the line above: a task has a /tmp of its own.")

static void why_a_task_cannot_have_a_file(void **state)
{
    assert_reason("[" L("0", "UNKNOWN", "Traceback (most recent call last):") "," L(
                      "0", "UNKNOWN", "FileNotFoundError: '/tmp/x'") "," OWN_TMP "," MASTER "]",
                  "FileNotFoundError: '/tmp/x': a task has a /tmp of its own");
    assert_reason("[" L("-1", "INFO", "cat: /tmp/x: No such file") "," OWN_TMP "," L(
                      "0", "ERROR", "model_def.c: no function") "," MASTER "]",
                  "model_def.c: no function");
}

/* clang-format off */
/* A run after it failed of something else. */
static void an_explanation_stays_with_its_line(void **state)
{
    assert_reason("[" L("0", "UNKNOWN", "Traceback (most recent call last):") ","
                  L("0", "UNKNOWN", "FileNotFoundError: '/tmp/x'") "," OWN_TMP "," MASTER ","
                  L("0", "UNKNOWN", "Traceback (most recent call last):") ","
                  L("0", "UNKNOWN", "ValueError: shape") "," MASTER "]", "ValueError: shape");
    assert_reason("[" L("0", "ERROR", "cannot open /tmp/x") "," OWN_TMP ","
                  L("0", "ERROR", "model_def.c: no function") "," MASTER "]",
                  "model_def.c: no function");
}
/* clang-format on */

static void another_program_has_its_error(void **state)
{
    assert_reason("[" L("0", "ERROR", "model_def.c: no function train_batch") "," MASTER "]",
                  "model_def.c: no function train_batch");
    assert_reason("[" L("0", "UNKNOWN", "model_def.c:12:5: error: expected ;") "," MASTER "]",
                  "model_def.c:12:5: error: expected ;");
    assert_reason("[" MASTER "]", "rank 0 exited with code 1");
    assert_reason("[]", NULL);
}

/* The hosts' fault is told with the hosts, until a later run says something else. */
static void a_trial_that_no_host_can_start_names_them(void **state)
{
#define NOWHERE(id)                                                                                \
    "{\"level\": \"LOG_LEVEL_ERROR\"" id                                                           \
    ", \"log\": \"Trial 7 cannot be started on any agent that "                                    \
    "could have it: agent a: the task could not be started: no cc (8 times).\\n\"}"
#define START                                                                                      \
    "{\"level\": \"LOG_LEVEL_ERROR\", "                                                            \
    "\"log\": \"Run 8 ended: the task could not be started: no cc\"}"
    assert_reason("[" L("0", "ERROR", "det: start cc: no cc") "," START "," NOWHERE("") "]",
                  "agent a: the task could not be started: no cc (8 times)");
    assert_reason("[" NOWHERE("") "," MASTER "]", "rank 0 exited with code 1");
    assert_reason("[" NOWHERE(", \"containerId\": \"k\"") "," START "]",
                  "the task could not be started: no cc");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_exception_has_the_users_line),
                                       cmocka_unit_test(the_cause_has_the_users_line),
                                       cmocka_unit_test(a_syntax_error_has_its_place),
                                       cmocka_unit_test(a_loaders_worker_has_its_own),
                                       cmocka_unit_test(a_command_has_its_last_line),
                                       cmocka_unit_test(a_rank_has_its_own_last_line),
                                       cmocka_unit_test(a_stalled_rank_has_the_users_line),
                                       cmocka_unit_test(where_a_stall_was),
                                       cmocka_unit_test(why_a_task_cannot_have_a_file),
                                       cmocka_unit_test(an_explanation_stays_with_its_line),
                                       cmocka_unit_test(another_program_has_its_error),
                                       cmocka_unit_test(a_trial_that_no_host_can_start_names_them)};
    return cmocka_run_group_tests_name("reason", tests, NULL, NULL);
}
