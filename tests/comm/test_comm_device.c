/* The NCCL module over a fake NCCL (fake_nccl.c): what it does when peers are slow, share a device,
 * fail or die. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "comm_device.h"
#include "ranks.h"

static char shared_name[32]; /* as fake_nccl.c has it */

static void set_number(const char *name, int v)
{
    char text[16];
    snprintf(text, sizeof text, "%d", v);
    setenv(name, text, 1);
}

static int open_device(int rank, int size, int port, struct comm **c, struct comm_device **d,
                       struct det_err *err)
{
    struct comm_options o = ranks_options(rank, size, port);
    o.timeout_ms = 20000;
    int rc = comm_open(&o, c, err);
    return rc < 0 ? rc : comm_device_open(*c, 0, d, err);
}

static int sum(struct comm_device *d, struct det_err *err)
{
    float v[3] = {0};
    int rc = comm_device_allreduce_mean_f32(d, v, 3, NULL, err);
    return rc < 0 ? rc : comm_device_wait(d, NULL, err);
}

static int slow_rank(int rank, int size, int port, void *arg)
{
    struct det_err err = {0};
    struct comm *c = NULL;
    struct comm_device *d = NULL;
    set_number("FAKE_GPU", rank);
    set_number("FAKE_POLLS", 700 * rank); /* more than are spun for */
    RANK_CHECK(open_device(rank, size, port, &c, &d, &err) == 0);
    RANK_CHECK(sum(d, &err) == 0);
    RANK_CHECK(sum(d, &err) == 0);
    RANK_CHECK(comm_barrier(c, &err) == 0); /* else the first to end is a peer that is gone */
    comm_device_close(d);
    comm_close(c);
    return 0;
}

static void test_in_progress_is_waited_for(void **state)
{
    ranks_pass(2, slow_rank, NULL, 60000);
}

/* Rank 1 comes when rank 0 has asked its stream to wake it, not before. */
static int late_rank(int rank, int size, int port, void *arg)
{
    struct det_err err = {0};
    struct comm *c = NULL;
    struct comm_device *d = NULL;
    set_number("FAKE_GPU", rank);
    set_number("FAKE_LATE", rank);
    RANK_CHECK(open_device(rank, size, port, &c, &d, &err) == 0);
    for (int i = 0; i < 3; i++)
        RANK_CHECK(sum(d, &err) == 0);
    RANK_CHECK(comm_barrier(c, &err) == 0);
    comm_device_close(d);
    comm_close(c);
    return 0;
}

static void test_a_stream_wakes_who_waits(void **state)
{
    ranks_pass(2, late_rank, NULL, 60000);
}

/* What a rank gives for place i of an all-reduce: no other rank, place or all-reduce has it. */
static float share(int rank, int which, int i)
{
    return (float)(1000 * which + 10 * i + rank);
}

/* Some are asked for before any is waited for, and each is of another part of one vector. */
static int adding_rank(int rank, int size, int port, void *arg)
{
    enum { PARTS = 20, EACH = 7 };
    float v[PARTS * EACH];
    struct det_err err = {0};
    struct comm *c = NULL;
    struct comm_device *d = NULL;
    set_number("FAKE_GPU", rank);
    RANK_CHECK(open_device(rank, size, port, &c, &d, &err) == 0);
    for (int i = 0; i < PARTS * EACH; i++)
        v[i] = share(rank, i / EACH, i % EACH);
    for (int p = PARTS - 1; p >= 0; p--) /* as gradients become known */
        RANK_CHECK(comm_device_allreduce_mean_f32(d, v + p * EACH, EACH, NULL, &err) == 0);
    RANK_CHECK(comm_device_wait(d, NULL, &err) == 0);
    for (int i = 0; i < PARTS * EACH; i++)
        RANK_CHECK(v[i] == share(0, i / EACH, i % EACH) + (float)(size - 1) / 2);
    comm_device_close(d);
    comm_close(c);
    return 0;
}

static void test_means_are_over_all_ranks(void **state)
{
    ranks_pass(1, adding_rank, NULL, 60000);
    ranks_pass(2, adding_rank, NULL, 60000);
    ranks_pass(5, adding_rank, NULL, 60000);
}

/* A rank whose part is of another size. */
static int unlike_rank(int rank, int size, int port, void *arg)
{
    float v[8] = {0};
    struct det_err err = {0};
    struct comm *c = NULL;
    struct comm_device *d = NULL;
    set_number("FAKE_GPU", rank);
    RANK_CHECK(open_device(rank, size, port, &c, &d, &err) == 0);
    int rc = comm_device_allreduce_mean_f32(d, v, rank == 1 ? 7 : 8, NULL, &err);
    RANK_CHECK((rc < 0 ? rc : comm_device_wait(d, NULL, &err)) == DET_EPEER);
    comm_device_close(d);
    comm_close(c);
    return 0;
}

static void test_ranks_that_ask_for_different_things_end(void **state)
{
    ranks_pass(2, unlike_rank, NULL, 60000);
}

static int sharing_rank(int rank, int size, int port, void *arg)
{
    struct det_err err = {0};
    struct comm *c = NULL;
    struct comm_device *d = NULL;
    set_number("FAKE_GPU", rank == 2 ? 1 : rank);
    RANK_CHECK(open_device(rank, size, port, &c, &d, &err) == DET_EUNAVAIL);
    RANK_CHECK(strstr(err.text, "ranks 1 and 2 share a device") != NULL);
    RANK_CHECK(comm_barrier(c, &err) == 0); /* gloo goes on */
    comm_close(c);
    return 0;
}

static void test_a_shared_device_is_left_to_gloo(void **state)
{
    ranks_pass(3, sharing_rank, NULL, 60000);
}

static int failing_rank(int rank, int size, int port, void *arg)
{
    struct det_err err = {0};
    struct comm *c = NULL;
    struct comm_device *d = NULL;
    set_number("FAKE_GPU", rank);
    set_number("FAKE_ASYNC_ERROR", 1);
    RANK_CHECK(open_device(rank, size, port, &c, &d, &err) == 0);
    RANK_CHECK(sum(d, &err) == DET_EPEER);
    RANK_CHECK(strstr(err.text, "remote error") != NULL);
    RANK_CHECK(strstr(err.text, "[cuda:1, driver for CUDA 12.4, runtime 13.0, NCCL 2.27.3]"));
    RANK_CHECK(sum(d, &err) == DET_EPEER); /* it stays dead, and says the same */
    RANK_CHECK(strstr(err.text, "remote error") != NULL);
    comm_device_close(d);
    comm_close(c);
    return 0;
}

static void test_an_error_of_a_peer_ends_it(void **state)
{
    ranks_pass(2, failing_rank, NULL, 60000);
}

/* The communicator itself sees nothing, as with transports within a host: rank 2 just ends. */
static int left_rank(int rank, int size, int port, void *arg)
{
    struct det_err err = {0};
    struct comm *c = NULL;
    struct comm_device *d = NULL;
    set_number("FAKE_GPU", rank);
    set_number("FAKE_STUCK", 1);
    RANK_CHECK(open_device(rank, size, port, &c, &d, &err) == 0);
    if (rank == 2)
        _exit(0);
    RANK_CHECK(sum(d, &err) == DET_EPEER); /* DET_ETIMEOUT: it was the patience that ended */
    RANK_CHECK(strstr(err.text, "rank 2 is gone") != NULL);
    comm_device_close(d);
    comm_close(c);
    return 0;
}

static void test_a_dead_peer_is_noticed_and_named(void **state)
{
    ranks_pass(3, left_rank, NULL, 60000);
}

/* Killed after it was told the id and before it has joined: the communicator of the others stays
 * "in progress". */
static int missing_rank(int rank, int size, int port, void *arg)
{
    struct det_err err = {0};
    struct comm *c = NULL;
    struct comm_device *d = NULL;
    const int missing = *(int *)arg;
    char said[32];
    set_number("FAKE_GPU", rank);
    set_number("FAKE_KILLED", rank == missing);
    RANK_CHECK(open_device(rank, size, port, &c, &d, &err) == DET_EPEER); /* no DET_ETIMEOUT */
    snprintf(said, sizeof said, "rank %d is gone", missing);
    RANK_CHECK(strstr(err.text, said) != NULL);
    comm_close(c);
    return 0;
}

static void miss(int rank)
{
    int codes[3];
    ranks_run(3, missing_rank, &rank, 50000, codes); /* less than a join's patience */
    for (int r = 0; r < 3; r++)
        assert_int_equal(codes[r], r == rank ? 1000 + SIGKILL : 0);
}

static void test_a_rank_killed_before_it_has_joined_is_named(void **state)
{
    miss(1);
    miss(2);
}

static void test_rank_0_killed_before_it_has_joined_is_named(void **state)
{
    miss(0);
}

/* It says so to the others, in its own words, and all have their group still. */
static int unable_rank(int rank, int size, int port, void *arg)
{
    struct det_err err = {0};
    struct comm *c = NULL;
    struct comm_device *d = NULL;
    const int unable = *(int *)arg;
    set_number("FAKE_GPU", rank);
    set_number("FAKE_NO_DEVICE", rank == unable);
    int rc = open_device(rank, size, port, &c, &d, &err);
    RANK_CHECK(rc == (rank == unable ? DET_EDEVICE : DET_EPEER));
    RANK_CHECK(strstr(err.text, "CUDA: set device: fake CUDA error") != NULL);
    RANK_CHECK(rank == unable || strstr(err.text, unable ? "rank 1: CUDA" : "rank 0: CUDA"));
    RANK_CHECK(comm_barrier(c, &err) == 0);
    comm_close(c);
    return 0;
}

static void test_a_rank_that_cannot_join_tells_why(void **state)
{
    ranks_pass(3, unable_rank, &(int){0}, 50000);
    ranks_pass(3, unable_rank, &(int){1}, 50000);
}

/* An all-reduce whose launch waits for a rank that is gone. */
static int unsettled_rank(int rank, int size, int port, void *arg)
{
    struct det_err err = {0};
    struct comm *c = NULL;
    struct comm_device *d = NULL;
    set_number("FAKE_GPU", rank);
    set_number("FAKE_UNSETTLED", 1);
    RANK_CHECK(open_device(rank, size, port, &c, &d, &err) == 0);
    if (rank == 2)
        _exit(0);
    RANK_CHECK(sum(d, &err) == DET_EPEER);
    RANK_CHECK(strstr(err.text, "rank 2 is gone") != NULL);
    comm_device_close(d);
    comm_close(c);
    return 0;
}

static void test_a_launch_does_not_wait_for_a_dead_peer(void **state)
{
    ranks_pass(3, unsettled_rank, NULL, 60000);
}

/* What ranks share stays where one of them ended before all had joined. */
static int forget_shared(void **state)
{
    shm_unlink(shared_name);
    return 0;
}

#define CASE(f) cmocka_unit_test_teardown(f, forget_shared)

int main(void)
{
    snprintf(shared_name, sizeof shared_name, "/det-fake-nccl-%d", (int)getpid());
    const struct CMUnitTest tests[] = {
        CASE(test_in_progress_is_waited_for),
        CASE(test_a_stream_wakes_who_waits),
        CASE(test_means_are_over_all_ranks),
        CASE(test_ranks_that_ask_for_different_things_end),
        CASE(test_a_shared_device_is_left_to_gloo),
        CASE(test_an_error_of_a_peer_ends_it),
        CASE(test_a_dead_peer_is_noticed_and_named),
        CASE(test_a_rank_killed_before_it_has_joined_is_named),
        CASE(test_rank_0_killed_before_it_has_joined_is_named),
        CASE(test_a_rank_that_cannot_join_tells_why),
        CASE(test_a_launch_does_not_wait_for_a_dead_peer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
