/* Hyperparameters that cannot work, found by one rank of several: rank 0 saves the state and
 * reports, whoever found it and whatever the others are doing; and no rank waits for ever. */
#include "clk.h"
#include "fake_master.h"
#include "fake_trial.h"
#include "fsx.h"
#include "mem.h"
#include "ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(x)                                                                                   \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            fprintf(stderr, "rank %d: line %d: %s: %s\n", rank, __LINE__, #x, err.text);           \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

static char dir[] = "/tmp/det-invalid-XXXXXX";
static struct fake f; /* one rank is one process */
static struct fake_master master;
static struct det_err err;

static void prepare(int rank, int size, int port)
{
    struct det_loop_config *c = &f.config;
    memset(&err, 0, sizeof err);
    fake_init(&f);
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

static bool reported(void)
{
    pthread_mutex_lock(&master.lock);
    bool yes = strstr(buf_str(&master.calls), "EXITED_REASON_INVALID_HP");
    pthread_mutex_unlock(&master.lock);
    return yes;
}

/* It ended well, for the reason that rank `by` found. */
static int ended(int rank, int by)
{
    char want[64];
    CHECK(fake_run(&f, &err) == 0);
    CHECK(err.code == DET_EINVALIDHP && strstr(err.text, "told to fail"));
    snprintf(want, sizeof want, "rank %d: ", by);
    CHECK((strstr(err.text, want) != NULL) == (by >= 0 && rank != by));
    CHECK(reported() == (rank == 0));
    if (rank == 0)
        CHECK(strstr(buf_str(&master.calls), "checkpointing | checkpoint 4 | EXITED_REASON"));
    fake_finish(&f);
    fake_master_finish(&master);
    return 0;
}

static int checkpoints(void)
{
    int n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
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
    assert_int_equal(checkpoints(), 1);
}

static int several_refuse(int rank, int size, int port, void *arg)
{
    prepare(rank, size, port);
    f.fail_at = rank > 0 ? 3 : -1;
    CHECK(fake_run(&f, &err) == 0);
    CHECK(err.code == DET_EINVALIDHP);
    CHECK(reported() == (rank == 0));
    return 0;
}

static void several_at_once(void **state)
{
    ranks_pass(3, several_refuse, NULL, 100000);
    assert_int_equal(checkpoints(), 1);
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
    assert_int_equal(checkpoints(), 1);
}

/* A framework's collective that broke: the rank's own failure is the echo of the other's. */
static double breaks(int64_t b)
{
    if (b == 3)
        comm_barrier(loop_comm(f.loop), NULL); /* as torch's would: until rank 1 is gone */
    return 0;
}

static int rank_0_fails_for_it(int rank, int size, int port, void *arg)
{
    prepare(rank, size, port);
    f.fail_at = rank == 1 ? 3 : 4;
    f.fail_code = rank == 1 ? DET_EINVALIDHP : DET_EDEVICE;
    f.config.reporting_period.n = 100;
    f.loss = rank == 0 ? breaks : NULL;
    return ended(rank, 1);
}

static void failure_that_is_an_echo(void **state)
{
    ranks_pass(2, rank_0_fails_for_it, NULL, 100000);
    assert_int_equal(checkpoints(), 1);
}

/* Rank 0 is gone when rank 1 finds it: then that one reports. */
static double until_rank_0_is_gone(int64_t b)
{
    comm_barrier(loop_comm(f.loop), NULL);
    return 0;
}

static int rank_0_is_gone(int rank, int size, int port, void *arg)
{
    prepare(rank, size, port);
    f.config.reporting_period.n = 100;
    f.fail_at = rank;
    f.loss = until_rank_0_is_gone;
    if (rank == 0)
        f.fail_code = DET_EDEVICE;
    int rc = fake_run(&f, &err);
    CHECK(rank == 0 ? rc == DET_EDEVICE : rc == 0 && err.code == DET_EINVALIDHP);
    CHECK(reported() == (rank == 1));
    return 0;
}

static void without_rank_0(void **state)
{
    ranks_pass(2, rank_0_is_gone, NULL, 100000);
    assert_int_equal(checkpoints(), 0);
}

/* Rank 0 is in something that does not end because rank 1 left: the master is told all the same. */
static double hangs(int64_t b)
{
    for (int64_t until = clk_mono_ms() + 60000; !reported() && clk_mono_ms() < until;)
        poll(NULL, 0, 5);
    return 0;
}

static int rank_0_hangs(int rank, int size, int port, void *arg)
{
    prepare(rank, size, port);
    f.config.ranks.unheard_ms = 1;
    f.fail_at = rank == 1 ? 0 : -1;
    f.loss = hangs;
    CHECK(fake_run(&f, &err) == 0);
    CHECK(reported() == (rank == 0));
    CHECK(rank == 1 || strstr(buf_str(&master.calls), "training | EXITED_REASON_INVALID_HP"));
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
    CHECK(fake_run(&f, &err) == 0);
    CHECK(err.code == DET_EINVALIDHP && strstr(err.text, "create was told to fail"));
    CHECK(reported() == (rank == 0));
    return 0;
}

static void in_create(void **state)
{
    ranks_pass(2, refuses_to_begin, NULL, 100000);
    assert_int_equal(checkpoints(), 0);
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
        T(failure_that_is_an_echo),
        T(without_rank_0),
        T(rank_0_that_hangs),
        T(in_create),
    };
    return cmocka_run_group_tests_name("invalid_hp", tests, NULL, NULL);
}
