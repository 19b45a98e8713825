/* What is looked at in a box that cannot be entered. */
#include "tasklook.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

static void say_seen(void *arg, struct buf *out)
{
    (void)arg;
    buf_add_str(out, "seen");
}

/* It tells nothing of what the task wants: the host's trouble, not that something is not there. */
static void test_a_box_that_is_closed(void **state)
{
    struct taskspec s = {0};
    struct taskbox b = TASKBOX_NONE;
    struct det_err err = {0};
    det_cleanup(buf_finish) struct buf out = BUF_INIT;
    b.pidfd = open("/dev/null", O_RDONLY | O_CLOEXEC); /* of no process */
    b.spaces = CLONE_NEWNS;
    assert_true(b.pidfd >= 0);
    assert_int_equal(tasklook(&s, &b, say_seen, NULL, &out, &err), DET_EIO);
    assert_int_equal(out.len, 0);
    taskbox_close(&b);
}

/* A mount that does not answer, say. */
static void look_for_ever(void *arg, struct buf *out)
{
    (void)arg, (void)out;
    for (;;)
        pause();
}

static void test_no_answer(void **state)
{
    struct taskspec s = {0};
    struct taskbox b = TASKBOX_NONE;
    struct det_err err = {0};
    det_cleanup(buf_finish) struct buf out = BUF_INIT;
    assert_int_equal(tasklook_within(&s, &b, 10, look_for_ever, NULL, &out, &err), DET_ETIMEOUT);
    assert_int_equal(out.len, 0);
    assert_int_equal(tasklook_within(&s, &b, 600000, say_seen, NULL, &out, &err), 0);
    assert_string_equal(buf_str(&out), "seen");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_box_that_is_closed),
                                       cmocka_unit_test(test_no_answer)};
    return cmocka_run_group_tests_name("tasklook", tests, NULL, NULL);
}
