#include "core.h"
#include "db_lives.h"
#include "driver.h"
#include "lives.h"
#include "mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>

#define OURS   "0c5a5b5e-0000-4000-8000-000000000001"
#define NOW    "1d5a5b5e-0000-4000-8000-000000000002"
#define OTHERS "2e5a5b5e-0000-4000-8000-000000000003"

static uv_loop_t loop;
static struct shell sh;

/* Leadership 3 ended with batch 50, 4 leads. */
static void begin(bool is_new, bool is_chosen)
{
    struct db_life *v = det_zalloc(2 * sizeof *v);
    v[0] = (struct db_life){.epoch = 3, .last_batch = 50, .nonce = OURS};
    v[1] = (struct db_life){.epoch = 4,
                            .last_batch = INT64_MAX,
                            .nonce = NOW,
                            .is_new = is_new,
                            .is_chosen = is_chosen};
    lives_destroy(sh.lives);
    sh.lives = lives_create(&sh, v, 2);
}

static int judge(const char *cluster, int64_t epoch, const char *nonce, int64_t batch, bool tasks)
{
    const struct link_life seen = {cluster, nonce, epoch, batch, 1, 1};
    struct det_err err;
    return lives_judge(sh.lives, "a", &seen, tasks, &err);
}

static size_t refused(void)
{
    JSON_OWN all = lives_refused(sh.lives);
    return json_array_size(all);
}

static void test_past(void **state)
{
    begin(false, false);
    assert_int_equal(judge("c", 3, OURS, 50, true), 0);
    assert_int_equal(judge("c", 4, NOW, 0, true), 0);
    assert_int_equal(refused(), 0);
}

static void test_restored(void **state)
{
    begin(true, false); /* that it is a new life lets nobody in: the other master may live */
    assert_int_equal(judge("c", 3, OURS, 51, false), DET_ESTALE);
    assert_int_equal(judge("c", 4, OTHERS, 0, false), DET_ESTALE);
    assert_int_equal(judge("c", 9, OTHERS, 0, false), DET_ESTALE);
    assert_int_equal(refused(), 1);
    assert_int_equal(judge("c", 3, OURS, 49, false), 0);
    assert_int_equal(refused(), 0);
}

static void test_chosen(void **state)
{
    begin(true, true);
    assert_int_equal(judge("c", 3, OURS, 51, true), 0);
    assert_int_equal(judge("c", 9, OTHERS, 0, true), 0);
}

static void test_other_cluster(void **state)
{
    begin(true, true);
    assert_int_equal(judge("another", 9, OTHERS, 0, true), DET_ESTALE);
    assert_int_equal(judge("another", 9, OTHERS, 0, false), 0);
}

static void test_tokens(void **state)
{
    begin(false, false);
    assert_true(lives_has(sh.lives, 3, "0c5a5b5e", 50));
    assert_false(lives_has(sh.lives, 3, "0c5a5b5e", 51));
    assert_false(lives_has(sh.lives, 3, "2e5a5b5e", 50));
    assert_false(lives_has(sh.lives, 2, "0c5a5b5e", 1));
    assert_true(lives_has(sh.lives, 4, "1d5a5b5e", 0));
    assert_false(lives_has(sh.lives, 4, "1d5a5b5e", 1)); /* not written yet, so not ours */
    assert_true(lives_has(sh.lives, 0, "", 0));
    begin(true, false);
    assert_false(lives_has(sh.lives, 0, "", 0)); /* of before: nobody can tell */
}

static int setup(void **state)
{
    uv_loop_init(&loop);
    sh.loop = &loop;
    snprintf(sh.cluster_id, sizeof sh.cluster_id, "c");
    sh.driver = driver_create(&sh, core_create(&core_options_default), NULL, NULL);
    return 0;
}

static int teardown(void **state)
{
    driver_stop(sh.driver);
    driver_destroy(sh.driver);
    lives_destroy(sh.lives);
    uv_run(&loop, UV_RUN_DEFAULT);
    return uv_loop_close(&loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_past),   cmocka_unit_test(test_restored),
        cmocka_unit_test(test_chosen), cmocka_unit_test(test_other_cluster),
        cmocka_unit_test(test_tokens),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
