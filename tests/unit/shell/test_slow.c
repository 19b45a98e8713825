/* Work in threads that come after all others: its order, its limits, an end in its midst. */
#include "slow.h"

#include "mem.h"

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

enum { JOBS = 4 };

static struct {
    struct slow_job job;
    int nice;
} jobs[JOBS];
static uv_loop_t loop;
static sem_t may_end;
static char order[2 * JOBS]; /* what was cancelled by letter */

static void work(struct slow_job *j)
{
    size_t i = (size_t)((char *)j - (char *)jobs) / sizeof jobs[0];
    jobs[i].nice = getpriority(PRIO_PROCESS, (id_t)gettid());
    sem_wait(&may_end);
}

static void done(struct slow_job *j, int status)
{
    size_t i = (size_t)((char *)j - (char *)jobs) / sizeof jobs[0];
    assert_true(status == 0 || status == UV_ECANCELED);
    order[strlen(order)] = (char)((status == 0 ? '0' : 'a') + i);
}

static int setup(void **state)
{
    memset(jobs, 0, sizeof jobs);
    memset(order, 0, sizeof order);
    for (size_t i = 0; i < JOBS; i++)
        jobs[i].job = (struct slow_job){.work = work, .done = done};
    sem_init(&may_end, 0, 0);
    return uv_loop_init(&loop);
}

static int teardown(void **state)
{
    sem_destroy(&may_end);
    return uv_loop_close(&loop);
}

static void let_all_end(void)
{
    for (int i = 0; i < JOBS; i++)
        sem_post(&may_end);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
}

static void test_in_order_and_no_more_than_may_wait(void **state)
{
    int mine = getpriority(PRIO_PROCESS, 0);
    struct slow *q = slow_create(&loop, 1, 2);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(slow_push(q, &jobs[i].job), 0);
    assert_int_equal(slow_push(q, &jobs[3].job), DET_EUNAVAIL);
    let_all_end();
    assert_string_equal(order, "012");
    assert_int_equal(jobs[0].nice, 10);
    assert_int_equal(getpriority(PRIO_PROCESS, 0), mine); /* of the loop: as before */
    assert_int_equal(slow_push(q, &jobs[3].job), 0);      /* there is room again */
    let_all_end();
    assert_string_equal(order, "0123");
    slow_destroy(q);
}

static void test_several_at_a_time(void **state)
{
    struct slow *q = slow_create(&loop, 2, 2);
    for (size_t i = 0; i < JOBS; i++)
        assert_int_equal(slow_push(q, &jobs[i].job), 0);
    let_all_end();
    assert_int_equal(strlen(order), JOBS);
    slow_destroy(q);
}

static void test_what_waits_is_done_after_the_end(void **state)
{
    struct slow *q = slow_create(&loop, 1, 2);
    slow_destroy(NULL);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(slow_push(q, &jobs[i].job), 0);
    slow_destroy(q);
    let_all_end();
    assert_string_equal(order, "012");
    assert_in_range(slow_threads(), 1, 4);
}

static void on_drained(void *arg)
{
    order[strlen(order)] = '.';
    slow_destroy(arg);
}

static void test_drained(void **state)
{
    struct slow *q = slow_create(&loop, 1, 2);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(slow_push(q, &jobs[i].job), 0);
    slow_drain(q, on_drained, q);
    assert_string_equal(order, "bc");
    assert_int_equal(slow_push(q, &jobs[3].job), DET_EUNAVAIL);
    let_all_end();
    assert_string_equal(order, "bc0.");
    q = slow_create(&loop, 1, 2);
    slow_drain(q, on_drained, q);
    assert_string_equal(order, "bc0..");
}

static void test_first(void **state)
{
    struct slow *q = slow_create(&loop, 1, 2);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(slow_push(q, &jobs[i].job), 0);
    assert_int_equal(slow_push_first(q, &jobs[3].job), 0); /* though no more may wait */
    let_all_end();
    assert_string_equal(order, "0312");
    slow_destroy(q);
}

static void test_now(void **state)
{
    int mine = getpriority(PRIO_PROCESS, 0);
    struct slow *q = slow_create(&loop, 1, 1);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(slow_push(q, &jobs[i].job), 0);
    slow_do_now(&loop, &jobs[2].job); /* in no queue: however full it is */
    let_all_end();
    assert_non_null(strchr(order, '2'));
    assert_int_equal(jobs[2].nice, mine);
    slow_destroy(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_in_order_and_no_more_than_may_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(test_several_at_a_time, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_waits_is_done_after_the_end, setup, teardown),
        cmocka_unit_test_setup_teardown(test_drained, setup, teardown),
        cmocka_unit_test_setup_teardown(test_first, setup, teardown),
        cmocka_unit_test_setup_teardown(test_now, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
