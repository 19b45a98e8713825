/* The loop on several ranks: shards, averages over ranks, one checkpoint, common decisions. */
#include "clk.h"
#include "fake_trial.h"
#include "fsx.h"
#include "mem.h"
#include "progress.h"
#include "ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char dir[] = "/tmp/det-ranks-XXXXXX";
static int this_rank;
static double averaged, validated, sum;

static double loss(int64_t b)
{
    return (double)b + this_rank; /* the mean over two ranks: b + 0.5 */
}

static double val(int64_t trained, int64_t k)
{
    return this_rank ? 10 : 1;
}

static void on_training(void *self, int64_t steps, const struct loop_metrics *avg)
{
    loop_metric_scalar(loop_metrics_find(avg, "loss"), &averaged);
}

static void on_validation(void *self, int64_t steps, const struct loop_metrics *m)
{
    loop_metric_scalar(loop_metrics_find(m, "val_loss"), &validated);
    loop_metric_scalar(loop_metrics_find(m, "ranks"), &sum);
}

static int reset(void *self, struct det_err *err)
{
    return 0;
}

static int per_slot(void *self, void **ret, size_t *n, struct det_err *err)
{
    *n = (size_t)this_rank + 1; /* uneven */
    *ret = det_zalloc(*n);
    return 0;
}

static int cross_slot(void *self, const void *const *values, const size_t *bytes, size_t n,
                      struct loop_metrics *out, struct det_err *err)
{
    double total = 0;
    for (size_t i = 0; i < n; i++)
        total += (double)bytes[i];
    loop_metrics_f64(out, "ranks", total);
    return 0;
}

static void prepare(struct fake *f, int rank, int size, int port)
{
    this_rank = rank;
    fake_init(f);
    f->config.ranks = ranks_options(rank, size, port);
    f->config.checkpoint_dir = det_strdup(dir);
    f->config.max_length = 4;
    f->config.reporting_period.n = 2;
    f->config.observer =
        (struct loop_observer){.training = on_training, .validation = on_validation};
    f->train_batches = 5;
    f->valid_batches = 3; /* two for rank 0, one for rank 1 */
    f->trace_fetch = true;
    f->n_callbacks = 0;
    f->loss = loss;
    f->val = val;
    f->n_reducers = 1;
    f->reducer = (struct loop_reducer){NULL, "ranks", false, true, reset, per_slot, cross_slot};
}

static int two(int rank, int size, int port, void *arg)
{
    struct fake f;
    struct det_err err = {0};
    prepare(&f, rank, size, port);
    RANK_CHECK(fake_run(&f, &err) == 0);
    const char *want[] = {"init build_callbacks train_loader val_loader f0.0 b0 f0.2 b1 f0.4 b2 "
                          "f1.1 b3 validate@4 f0.0 f0.2 checkpoint@4 destroy",
                          "init build_callbacks train_loader val_loader f0.1 b0 f0.3 b1 f1.0 b2 "
                          "f1.2 b3 validate@4 f0.1 destroy"};
    snprintf(err.text, sizeof err.text, "%s", buf_str(&f.trace));
    RANK_CHECK(strcmp(buf_str(&f.trace), want[rank]) == 0);
    if (rank == 0) {
        RANK_CHECK(averaged == 3.0);
        RANK_CHECK(validated == 4.0); /* (2 * 1 + 1 * 10) / 3 */
        RANK_CHECK(sum == 3.0);
    }
    fake_finish(&f);
    return 0;
}

static void shards_and_averages(void **state)
{
    ranks_pass(2, two, NULL, 100000);
    assert_int_equal(fake_checkpoints(dir), 1);
}

/* One rank wants to stop: all do, at the same batch, with one checkpoint. */
static int one_stops(int rank, int size, int port, void *arg)
{
    struct fake f;
    struct det_err err = {0};
    prepare(&f, rank, size, port);
    f.config.max_length = 100;
    f.stop_at = rank == 1 ? 5 : -1;
    RANK_CHECK(fake_run(&f, &err) == 0);
    RANK_CHECK(f.trained == 6);
    fake_finish(&f);
    return 0;
}

static void stop_of_one_is_stop_of_all(void **state)
{
    ranks_pass(2, one_stops, NULL, 100000);
}

/* A rank that crashes ends the others too, by name, within seconds. */
static int one_crashes(int rank, int size, int port, void *arg)
{
    struct fake f;
    struct det_err err = {0};
    prepare(&f, rank, size, port);
    f.config.max_length = 100;
    f.fail_at = rank == 1 ? 3 : -1;
    int rc = fake_run(&f, &err);
    RANK_CHECK(rank == 1 ? rc == DET_EDEVICE : rc == DET_EPEER);
    if (rank == 0)
        RANK_CHECK(strstr(err.text, "rank 1 is gone"));
    fake_finish(&f);
    return 0;
}

static void crash_of_one(void **state)
{
    ranks_pass(2, one_crashes, NULL, 100000);
}

/* What only rank 0 can see wrong, all learn, before anything is built: here, a store in which no
 * directory can be made, or that cannot be. */
static int bad_store(int rank, int size, int port, void *arg)
{
    struct fake f;
    struct det_err err = {0};
    prepare(&f, rank, size, port);
    free(f.config.checkpoint_dir);
    f.config.checkpoint_dir = det_strdup(arg);
    RANK_CHECK(fake_run(&f, &err) < 0);
    RANK_CHECK(strstr(err.text, arg) && strstr(err.text, "--checkpoint-dir"));
    RANK_CHECK(f.trace.len == 0 || strcmp(buf_str(&f.trace), "destroy") == 0);
    fake_finish(&f);
    return 0;
}

static void failure_of_rank_0_is_known_to_all(void **state)
{
    ranks_pass(2, bad_store, "/proc/no/such/place", 100000);
    ranks_pass(2, bad_store, "/proc", 100000);
    ranks_pass(1, bad_store, "/proc", 100000);
}

/* A rank that waits for rank 0 shows that it lives: rank 0 may wait for the master for hours. */
static const struct progress *of_rank_1;

static int64_t pulse_of_rank_1(void)
{
    return atomic_load(&((struct progress *)of_rank_1)->mono_ms);
}

static int until_rank_1_pulses(void *self, const char *path, struct det_err *err)
{
    int64_t until = clk_mono_ms() + 60000;
    for (int pulses = 0; pulses < 3; pulses++) { /* more than it had to do when this began */
        int64_t before = pulse_of_rank_1();
        while (pulse_of_rank_1() == before)
            if (clk_mono_ms() > until)
                return det_fail(err, DET_ETIMEOUT, "rank 1 looks dead after %d pulses", pulses);
            else
                poll(NULL, 0, 10);
    }
    return 0;
}

static int slow_store(int rank, int size, int port, void *arg)
{
    struct fake f;
    struct det_err err = {0};
    prepare(&f, rank, size, port);
    of_rank_1 = arg;
    if (rank == 1)
        setenv(PROGRESS_ENV, "/proc/self/fd/100", 1);
    f.n_callbacks = 1;
    f.callbacks[0] = (struct loop_callback){.on_checkpoint_write_end = until_rank_1_pulses};
    RANK_CHECK(fake_run(&f, &err) == 0);
    fake_finish(&f);
    return 0;
}

static void waiting_is_not_being_stuck(void **state)
{
    int file = memfd_create("progress", 0);
    assert_int_equal(ftruncate(file, PROGRESS_BYTES), 0);
    assert_int_equal(dup2(file, 100), 100);
    void *p = mmap(NULL, PROGRESS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    assert_true(p != MAP_FAILED);
    ranks_pass(2, slow_store, p, 100000);
    munmap(p, PROGRESS_BYTES);
    close(file);
    close(100);
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
        T(shards_and_averages),
        T(stop_of_one_is_stop_of_all),
        T(crash_of_one),
        T(failure_of_rank_0_is_known_to_all),
        T(waiting_is_not_being_stuck),
    };
    return cmocka_run_group_tests_name("loop_ranks", tests, NULL, NULL);
}
