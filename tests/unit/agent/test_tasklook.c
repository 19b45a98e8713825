/* What is looked at in a box that cannot be entered. */
#include "tasklook.h"

#include "proctree.h"

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
    struct tasklook_limit limit = {.ms = 10};
    assert_int_equal(tasklook_within(&s, &b, &limit, look_for_ever, NULL, &out, &err),
                     DET_ETIMEOUT);
    assert_int_equal(out.len, 0);
    assert_false(proctree_has_child()); /* whether it has gone by now or not */
    limit.ms = 600000;
    assert_int_equal(tasklook_within(&s, &b, &limit, say_seen, NULL, &out, &err), 0);
    assert_string_equal(buf_str(&out), "seen");
    assert_int_equal(limit.late, 0);
}

/* Who asked may be gone while a mount still holds up who looks: nothing of it is kept open. */
static void say_open_files(void *arg, struct buf *out)
{
    buf_addf(out, "%d", fcntl(*(const int *)arg, F_GETFD));
}

static void test_nothing_is_kept_open(void **state)
{
    struct taskspec s = {0};
    struct taskbox b = TASKBOX_NONE;
    struct tasklook_limit limit = {.ms = 600000};
    struct det_err err = {0};
    det_cleanup(buf_finish) struct buf out = BUF_INIT;
    int fd[2];
    assert_int_equal(pipe(fd), 0);
    assert_int_equal(tasklook_within(&s, &b, &limit, say_open_files, &fd[1], &out, &err), 0);
    assert_string_equal(buf_str(&out), "-1");
    close(fd[0]);
    close(fd[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_box_that_is_closed),
                                       cmocka_unit_test(test_no_answer),
                                       cmocka_unit_test(test_nothing_is_kept_open)};
    return cmocka_run_group_tests_name("tasklook", tests, NULL, NULL);
}
