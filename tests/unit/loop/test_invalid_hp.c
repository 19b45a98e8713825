/* Hyperparameters that cannot work, found by one rank of several: rank 0 saves the state and
 * reports, whoever found it and whatever the others are doing; and no rank waits for ever. */
#include "clk.h"
#include "fake_master.h"
#include "fake_trial.h"
#include "fsx.h"
#include "loop_alive.h"
#include "loop_impl.h"
#include "mem.h"
#include "ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char dir[] = "/tmp/det-invalid-XXXXXX";
static struct fake f;                   /* one rank is one process */
static struct det_loop_trial_type type; /* fake_type, changed */
static struct fake_master master;
static struct det_err err;

static void prepare(int rank, int size, int port)
{
    struct det_loop_config *c = &f.config;
    memset(&err, 0, sizeof err);
    fake_init(&f);
    type = fake_type;
    fake_master_init(&master);
    master.lengths[0] = 100;
    c->ranks = ranks_options(rank, size, port);
    c->managed = true;
    c->trial_id = 7;
    c->run_id = 1;
    c->task_id = det_strdup("3.x");
    c->allocation_id = det_strdup("3.x.1");
    c->checkpoint_storage = json_make("{s:s, s:s}", "type", "shared_fs", "host_path", dir);
    c->http = fake_master_http(&master);
    c->reporting_period.n = 2;
    f.train_batches = 6;
    f.n_callbacks = 0;
    f.fail_code = DET_EINVALIDHP;
}

static bool was_told(const char *what)
{
    pthread_mutex_lock(&master.lock);
    bool yes = strstr(buf_str(&master.calls), what);
    pthread_mutex_unlock(&master.lock);
    return yes;
}

static bool reported(void)
{
    return was_told("EXITED_REASON_INVALID_HP");
}

/* It ended well, for the reason that rank `by` found. */
static int ended(int rank, int by)
{
    char want[64];
    RANK_CHECK(loop_run(&f.config, &(struct det_loop_trial){&type, &f}, &err) == 0);
    RANK_CHECK(err.code == DET_EINVALIDHP && strstr(err.text, "told to fail"));
    snprintf(want, sizeof want, "rank %d: ", by);
    RANK_CHECK((strstr(err.text, want) != NULL) == (by >= 0 && rank != by));
    RANK_CHECK(reported() == (rank == 0));
    snprintf(want, sizeof want, "checkpointing | checkpoint %lld | EXITED_REASON",
             (long long)f.trained);
    RANK_CHECK(rank != 0 || strstr(buf_str(&master.calls), want));
    fake_finish(&f);
    fake_master_finish(&master);
    return 0;
}

/* Rank 1 leaves in batch 3; the others train that one, and find it out where its metrics are
 * averaged. */
static int rank_1_refuses(int rank, int size, int port, void *arg)
{
    prepare(rank, size, port);
    f.fail_at = rank == 1 ? 3 : -1;
    return ended(rank, 1);
}

static void another_rank(void **state)
{
    ranks_pass(3, rank_1_refuses, NULL, 100000);
    assert_int_equal(fake_checkpoints(dir), 1);
}

static int several_refuse(int rank, int size, int port, void *arg)
{
    prepare(rank, size, port);
    f.fail_at = rank > 0 ? 3 : -1;
    RANK_CHECK(fake_run(&f, &err) == 0);
    RANK_CHECK(err.code == DET_EINVALIDHP);
    RANK_CHECK(reported() == (rank == 0));
    return 0;
}

static void several_at_once(void **state)
{
    ranks_pass(3, several_refuse, NULL, 100000);
    assert_int_equal(fake_checkpoints(dir), 1);
}

/* Rank 0 itself: the others end well too, they hear it from its last words. */
static int rank_0_refuses(int rank, int size, int port, void *arg)
{
    prepare(rank, size, port);
    f.fail_at = rank == 0 ? 4 : -1;
    return ended(rank, 0);
}

static void rank_0(void **state)
{
    ranks_pass(3, rank_0_refuses, NULL, 100000);
    assert_int_equal(fake_checkpoints(dir), 1);
}

/* Rank 1 is about to leave, and the others are where they are to be: all meet. */
static void meet(void)
{
    det_ignore(comm_barrier(loop_comm(f.loop), &err), "a rank that left breaks it");
}

static void until_a_rank_left(void)
{
    while (comm_check(loop_comm(f.loop), &err) == 0)
        poll(NULL, 0, 1);
}

/* Rank 0 hears of it between two batches, where the next collective is far. */
static double meets(int64_t b)
{
    if (b == (f.config.ranks.rank == 1 ? 2 : 3))
        meet();
    if (b == 3)
        until_a_rank_left();
    return 0;
}

static int rank_0_trains_on(int rank, int size, int port, void *arg)
{
    prepare(rank, size, port);
    f.fail_at = rank == 1 ? 3 : -1;
    f.config.reporting_period.n = 100;
    f.loss = meets;
    int rc = ended(rank, 1);
    RANK_CHECK(rank == 1 || f.trained == 4);
    return rc;
}

static void between_batches(void **state)
{
    ranks_pass(3, rank_0_trains_on, NULL, 100000);
    assert_int_equal(fake_checkpoints(dir), 1);
}

static int evaluate_or_refuse(void *self, const void *batch, int64_t k, struct loop_metrics *m,
                              struct det_err *e)
{
    meet();
    if (f.config.ranks.rank == 1)
        return det_fail(e, DET_EINVALIDHP, "told to fail");
    f.valid_batches--; /* how many are done; nothing looks at it any more */
    until_a_rank_left();
    return fake_type.evaluate_batch(self, batch, k, m, e);
}

static int rank_0_validates(int rank, int size, int port, void *arg)
{
    prepare(rank, size, port);
    type.evaluate_batch = evaluate_or_refuse;
    f.valid_batches = 100;
    f.config.validation_period.n = 2;
    RANK_CHECK(ended(rank, 1) == 0);
    RANK_CHECK(rank == 1 || f.valid_batches == 99);
    return 0;
}

static void between_batches_of_a_validation(void **state)
{
    ranks_pass(2, rank_0_validates, NULL, 100000);
    assert_int_equal(fake_checkpoints(dir), 1);
}

static bool asked, given_up;

/* What rank 0 does alone ends by itself, however long it takes: the master is told afterwards. */
static int evaluate_alone(void *self, struct loop_metrics *m, struct det_err *e)
{
    until_a_rank_left();
    while (loop_alive_silent_ms() <= 2 * loop_alive_longest_ms())
        poll(NULL, 0, 1);
    given_up = loop_invalid_hp_unheard(f.loop, "rank 1: left", 1) == 0;
    loop_metrics_f64(m, "val_loss", 1);
    return 0;
}

static int refuse_to_validate(void *self, bool training, struct det_err *e)
{
    return training || f.config.ranks.rank != 1 ? 0 : det_fail(e, DET_EINVALIDHP, "told to fail");
}

static int rank_0_works_alone(int rank, int size, int port, void *arg)
{
    prepare(rank, size, port);
    type.evaluate_batch = NULL;
    type.evaluate_all = evaluate_alone;
    type.set_training = refuse_to_validate;
    f.config.validation_period.n = 2;
    RANK_CHECK(ended(rank, 1) == 0);
    RANK_CHECK(!given_up);
    return 0;
}

static void rank_0_that_works_alone(void **state)
{
    ranks_pass(2, rank_0_works_alone, NULL, 100000);
    assert_int_equal(fake_checkpoints(dir), 1);
}

/* A batch may take as long as one took before, and as long again. */
static double takes_long(int64_t b)
{
    int64_t until_ms = clk_mono_ms() + 30;
    while (b == 1 && clk_mono_ms() < until_ms)
        poll(NULL, 0, 1);
    if (b != 2)
        return 0;
    while (loop_alive_silent_ms() < 2)
        poll(NULL, 0, 1);
    int again_ms = loop_invalid_hp_unheard(f.loop, "rank 1: left", 1);
    bool was_silent = loop_alive_silent_ms() >= 2 * loop_alive_longest_ms();
    given_up = loop_alive_longest_ms() < 30 || (again_ms == 0 && !was_silent);
    asked = true;
    return 0;
}

static int trains_slowly(int rank, int size, int port, void *arg)
{
    prepare(rank, size, port);
    master.lengths[0] = 3;
    f.loss = takes_long;
    RANK_CHECK(loop_run(&f.config, &(struct det_loop_trial){&type, &f}, &err) == 0);
    RANK_CHECK(asked && !given_up);
    return 0;
}

static void slow_batches(void **state)
{
    ranks_pass(1, trains_slowly, NULL, 100000);
}

/* A loss that is no number on one rank: all see it in the same averages, and whose it was. */
static double nan_at_3(int64_t b)
{
    return b < 3 ? 1 : __builtin_nan("");
}

/* Another metric, of another rank, is none either. */
static int train_with_aux(void *self, const void *batch, int64_t e, int64_t b,
                          struct loop_metrics *m, struct det_err *ret)
{
    int rc = fake_type.train_batch(self, batch, e, b, m, ret);
    loop_metrics_f64(m, "aux", b == 3 && f.config.ranks.rank == 0 ? INFINITY : 1);
    return rc;
}

static int loses_numbers(int rank, int size, int port, void *stops)
{
    prepare(rank, size, port);
    type.train_batch = train_with_aux;
    master.lengths[0] = 6;
    f.loss = rank == 1 ? nan_at_3 : NULL;
    f.config.stop_on_nan = stops != NULL;
    RANK_CHECK(loop_run(&f.config, &(struct det_loop_trial){&type, &f}, &err) == 0);
    RANK_CHECK((err.code == DET_EINVALIDHP) == (stops != NULL));
    RANK_CHECK(!stops || strstr(err.text, "training metric \"loss\" is NaN on rank 1 at batch 3"));
    RANK_CHECK(reported() == (rank == 0 && stops));
    fake_finish(&f);
    fake_master_finish(&master);
    return 0;
}

static void losses_that_are_no_numbers(void **state)
{
    static char yes[] = "stops";
    ranks_pass(2, loses_numbers, yes, 100000);
    ranks_pass(2, loses_numbers, NULL, 100000);
}

/* So is a validation metric: it is reported, and the operation is not completed with it. */
static double val_nan_at_4(int64_t trained, int64_t k)
{
    return trained < 4 || f.config.ranks.rank == 0 ? 1 : __builtin_nan("");
}

static int validates_to_nan(int rank, int size, int port, void *stops)
{
    prepare(rank, size, port);
    master.lengths[0] = 4;
    f.val = val_nan_at_4;
    f.config.validation_period.n = 2;
    f.config.stop_on_nan = stops != NULL;
    RANK_CHECK(loop_run(&f.config, &(struct det_loop_trial){&type, &f}, &err) == 0);
    RANK_CHECK((err.code == DET_EINVALIDHP) == (stops != NULL));
    RANK_CHECK(!stops ||
               strstr(err.text, "validation metric \"val_loss\" is NaN on rank 1 at batch 4"));
    RANK_CHECK(reported() == (rank == 0 && stops));
    RANK_CHECK(rank != 0 || (was_told("validation 4") && was_told("completed") == !stops));
    fake_finish(&f);
    fake_master_finish(&master);
    return 0;
}

static void validations_that_are_no_numbers(void **state)
{
    static char yes[] = "stops";
    ranks_pass(2, validates_to_nan, yes, 100000);
    ranks_pass(2, validates_to_nan, NULL, 100000);
}

/* Nor may the metric of the whole dataset, which rank 0 alone evaluates, be infinite. */
static int evaluate_all(void *self, struct loop_metrics *m, struct det_err *e)
{
    loop_metrics_f64(m, "whole", INFINITY);
    return 0;
}

static int whole_dataset(int rank, int size, int port, void *arg)
{
    prepare(rank, size, port);
    type.evaluate_batch = NULL;
    type.evaluate_all = evaluate_all;
    f.config.validation_period.n = 2;
    f.config.stop_on_nan = true;
    RANK_CHECK(loop_run(&f.config, &(struct det_loop_trial){&type, &f}, &err) == 0);
    RANK_CHECK(err.code == DET_EINVALIDHP);
    RANK_CHECK(strstr(err.text, "validation metric \"whole\" is infinite at batch 2"));
    RANK_CHECK(reported() == (rank == 0));
    fake_finish(&f);
    fake_master_finish(&master);
    return 0;
}

static void whole_dataset_is_infinite(void **state)
{
    ranks_pass(2, whole_dataset, NULL, 100000);
}

/* What breaks may be the exchange before a save: nothing has been saved then. */
static int gather_or_refuse(void *self, struct comm *comm, struct det_err *e)
{
    return f.config.ranks.rank == 1 ? det_fail(e, DET_EINVALIDHP, "told to fail")
                                    : comm_barrier(comm, e);
}

static int save_that_breaks(int rank, int size, int port, void *arg)
{
    prepare(rank, size, port);
    type.before_save = gather_or_refuse;
    f.config.checkpoint_period.n = 2;
    return ended(rank, 1);
}

static void before_a_save(void **state)
{
    ranks_pass(2, save_that_breaks, NULL, 100000);
    assert_int_equal(fake_checkpoints(dir), 1);
}

/* A framework's collective that broke: the rank's own failure is the echo of the other's. */
static double breaks(int64_t b)
{
    if (b == (f.config.ranks.rank == 1 ? 2 : 3))
        meet();
    if (b == 3)
        det_ignore(comm_barrier(loop_comm(f.loop), NULL),
                   "a rank that left breaks it"); /* as torch's would: until rank 1 is gone */
    return 0;
}

static int rank_0_fails_for_it(int rank, int size, int port, void *arg)
{
    prepare(rank, size, port);
    f.fail_at = rank == 1 ? 3 : 4;
    f.fail_code = rank == 1 ? DET_EINVALIDHP : DET_EDEVICE;
    f.config.reporting_period.n = 100;
    f.loss = breaks;
    return ended(rank, 1);
}

static void failure_that_is_an_echo(void **state)
{
    ranks_pass(2, rank_0_fails_for_it, NULL, 100000);
    assert_int_equal(fake_checkpoints(dir), 1);
}

/* Rank 0 is gone when rank 1 finds it: then that one reports. */
static int until_rank_0_is_gone(void *self, const void *batch, int64_t e, int64_t b,
                                struct loop_metrics *m, struct det_err *ret)
{
    meet();
    if (f.config.ranks.rank == 0)
        return det_fail(ret, DET_EDEVICE, "its device is lost");
    det_ignore(comm_barrier(loop_comm(f.loop), NULL), "a rank that left breaks it");
    return det_fail(ret, DET_EINVALIDHP, "told to fail");
}

static int rank_0_is_gone(int rank, int size, int port, void *arg)
{
    prepare(rank, size, port);
    type.train_batch = until_rank_0_is_gone;
    int rc = loop_run(&f.config, &(struct det_loop_trial){&type, &f}, &err);
    RANK_CHECK(rank == 0 ? rc == DET_EDEVICE : rc == 0 && err.code == DET_EINVALIDHP);
    RANK_CHECK(reported() == (rank == 1));
    return 0;
}

static void without_rank_0(void **state)
{
    ranks_pass(2, rank_0_is_gone, NULL, 100000);
    assert_int_equal(fake_checkpoints(dir), 0);
}

/* Rank 0 is in something that does not end because rank 1 left: the master is told all the same. */
static int hangs_or_refuses(void *self, const void *batch, int64_t e, int64_t b,
                            struct loop_metrics *m, struct det_err *ret)
{
    meet();
    if (f.config.ranks.rank == 1)
        return det_fail(ret, DET_EINVALIDHP, "told to fail");
    for (int64_t until = clk_mono_ms() + 60000; !reported() && clk_mono_ms() < until;)
        poll(NULL, 0, 5);
    return 0;
}

static int rank_0_hangs(int rank, int size, int port, void *arg)
{
    prepare(rank, size, port);
    f.config.ranks.unheard_ms = 1;
    type.train_batch = hangs_or_refuses;
    RANK_CHECK(loop_run(&f.config, &(struct det_loop_trial){&type, &f}, &err) == 0);
    RANK_CHECK(reported() == (rank == 0));
    RANK_CHECK(rank == 1 || (strstr(master.why, "rank 1: ") && strstr(master.why, "told to fail")));
    RANK_CHECK(rank == 1 || strstr(buf_str(&master.calls), "training | EXITED_REASON_INVALID_HP"));
    return 0;
}

static void rank_0_that_hangs(void **state)
{
    ranks_pass(2, rank_0_hangs, NULL, 100000);
}

/* Before training there is nothing to save. */
static int refuses_to_begin(int rank, int size, int port, void *arg)
{
    prepare(rank, size, port);
    f.fail_create = rank == 1 ? DET_EINVALIDHP : 0;
    RANK_CHECK(fake_run(&f, &err) == 0);
    RANK_CHECK(err.code == DET_EINVALIDHP && strstr(err.text, "create was told to fail"));
    RANK_CHECK(reported() == (rank == 0));
    return 0;
}

static void in_create(void **state)
{
    ranks_pass(2, refuses_to_begin, NULL, 100000);
    assert_int_equal(fake_checkpoints(dir), 0);
}

static int setup(void **state)
{
    memcpy(dir + sizeof dir - 7, "XXXXXX", 6);
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    return fsx_remove_tree(AT_FDCWD, dir, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        T(another_rank),
        T(several_at_once),
        T(rank_0),
        T(between_batches),
        T(between_batches_of_a_validation),
        T(rank_0_that_works_alone),
        T(slow_batches),
        T(losses_that_are_no_numbers),
        T(validations_that_are_no_numbers),
        T(whole_dataset_is_infinite),
        T(before_a_save),
        T(failure_that_is_an_echo),
        T(without_rank_0),
        T(rank_0_that_hangs),
        T(in_create),
    };
    signal(SIGPIPE, SIG_IGN); /* as det-harness and Python do: gloo may write to one that left */
    return cmocka_run_group_tests_name("invalid_hp", tests, NULL, NULL);
}
