/* Collectives between real processes: values, uneven sizes, dead and hung peers, strangers. */
#include "comm_device.h"
#include "comm_store.h"
#include "mem.h"
#include "ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int check_reduce(struct comm *c, int rank, int size, size_t n)
{
    struct det_err err = {0};
    float *v = det_alloc((n + 1) * sizeof *v);
    float *again = det_alloc((n + 1) * sizeof *again);
    for (int round = 0; round < 2; round++) {
        float *w = round ? again : v;
        for (size_t i = 0; i < n; i++)
            w[i] = (float)(rank + 1) * 0.1f + (float)i;
        RANK_CHECK(comm_allreduce_mean_f32(c, w, n, &err) == 0);
    }
    for (size_t i = 0; i < n; i++)
        RANK_CHECK(fabsf(v[i] - ((float)(size + 1) * 0.05f + (float)i)) <= 1e-6f * (float)(i + 1));
    RANK_CHECK(memcmp(v, again, n * sizeof *v) == 0);
    double *d = det_alloc((n + 1) * sizeof *d);
    for (size_t i = 0; i < n; i++)
        d[i] = (rank + 1) * 0.1 + (double)i;
    RANK_CHECK(comm_allreduce_mean_f64(c, d, n, &err) == 0);
    for (size_t i = 0; i < n; i++)
        RANK_CHECK(fabs(d[i] - ((size + 1) * 0.05 + (double)i)) <= 1e-14 * (double)(i + 1));
    free(d);
    struct comm_blobs all;
    RANK_CHECK(comm_allgather(c, v, n * sizeof *v, &all, &err) == 0);
    for (int r = 0; r < size; r++)
        RANK_CHECK(all.bytes[r] == n * sizeof *v && memcmp(all.v[r], v, all.bytes[r]) == 0);
    comm_blobs_finish(&all);
    free(v);
    free(again);
    return 0;
}

static int check_gather(struct comm *c, int rank, int size, size_t unit)
{
    struct det_err err = {0};
    struct comm_blobs all;
    size_t n = unit * (size_t)rank; /* rank 0 has nothing */
    char *mine = det_alloc(n + 1);
    memset(mine, 'a' + rank, n);
    RANK_CHECK(comm_allgather(c, mine, n, &all, &err) == 0);
    RANK_CHECK(all.n == size);
    for (int r = 0; r < size; r++) {
        RANK_CHECK(all.bytes[r] == unit * (size_t)r);
        for (size_t i = 0; i < all.bytes[r]; i++)
            RANK_CHECK(((const char *)all.v[r])[i] == 'a' + r);
    }
    comm_blobs_finish(&all);
    free(mine);
    return 0;
}

static int check_broadcast(struct comm *c, int rank, int size)
{
    struct det_err err = {0};
    for (int root = 0; root < size; root++) {
        int v[3] = {rank, rank, rank};
        RANK_CHECK(comm_broadcast(c, v, sizeof v, root, &err) == 0);
        RANK_CHECK(v[0] == root && v[2] == root);
    }
    void *p = NULL;
    size_t n = 9;
    RANK_CHECK(comm_broadcast_bytes(c, rank ? NULL : "hello", rank ? 0 : 5, &p, &n, &err) == 0);
    RANK_CHECK(n == 5 && strcmp(p, "hello") == 0);
    free(p);
    RANK_CHECK(comm_broadcast_bytes(c, "", 0, &p, &n, &err) == 0 && n == 0);
    free(p);
    return 0;
}

static int all_ops(int rank, int size, int port, void *arg)
{
    struct det_err err = {0};
    struct comm *c = NULL;
    struct comm_options o = ranks_options(rank, size, port);
    RANK_CHECK(comm_open(&o, &c, &err) == 0);
    RANK_CHECK(comm_rank(c) == rank && comm_size(c) == size);
    static const size_t lengths[] = {0, 1, 3, 7, 1000, 300001};
    for (size_t i = 0; i < DET_ARRAY_LEN(lengths); i++)
        if (check_reduce(c, rank, size, lengths[i]))
            return 1;
    if (check_gather(c, rank, size, 0) || check_gather(c, rank, size, 1) ||
        check_gather(c, rank, size, 70001) || check_broadcast(c, rank, size))
        return 1;
    RANK_CHECK(comm_barrier(c, &err) == 0);
    comm_close(c);
    return 0;
}

static void run_all_ops(int size)
{
    ranks_pass(size, all_ops, NULL, 100000);
}

static void one_rank(void **state)
{
    run_all_ops(1);
}

static void two_ranks(void **state)
{
    run_all_ops(2);
}

static void five_ranks(void **state)
{
    run_all_ops(5);
}

/* Rank 1 ends itself in the way of arg; the others must learn it, by name. */
static int lose_rank_1(int rank, int size, int port, void *arg)
{
    struct det_err err = {0};
    struct comm *c = NULL;
    struct comm_options o = ranks_options(rank, size, port);
    int signal = *(int *)arg;
    float v = 1;
    o.timeout_ms = 3000;
    RANK_CHECK(comm_open(&o, &c, &err) == 0);
    RANK_CHECK(comm_barrier(c, &err) == 0);
    if (rank == 1)
        raise(signal);
    int rc = comm_allreduce_mean_f32(c, &v, 1, &err);
    RANK_CHECK(rc == DET_EPEER || rc == DET_ETIMEOUT);
    RANK_CHECK(strstr(err.text, signal == SIGKILL ? "rank 1 is gone" : "rank 1 does not answer"));
    RANK_CHECK(comm_barrier(c, &err) == rc); /* dead for good */
    RANK_CHECK(strstr(err.text, "rank 1"));
    comm_close(c);
    return 0;
}

static void killed_peer(void **state)
{
    int codes[3], signal = SIGKILL;
    ranks_run(3, lose_rank_1, &signal, 100000, codes);
    assert_int_equal(codes[0], 0);
    assert_int_equal(codes[1], 1000 + SIGKILL);
    assert_int_equal(codes[2], 0);
}

static void hung_peer(void **state)
{
    int codes[3], signal = SIGSTOP;
    ranks_run(3, lose_rank_1, &signal, 100000, codes);
    assert_int_equal(codes[0], 0);
    assert_int_equal(codes[1], -1);
    assert_int_equal(codes[2], 0);
}

/* Rank 1 leaves with a reason; rank 2 asks for it when both others may be gone. */
static int leave(int rank, int size, int port, void *arg)
{
    struct det_err err = {0};
    struct comm *c = NULL;
    struct comm_options o = ranks_options(rank, size, port);
    det_cleanup(buf_finish) struct buf why = BUF_INIT;
    RANK_CHECK(comm_open(&o, &c, &err) == 0);
    RANK_CHECK(comm_barrier(c, &err) == 0);
    if (rank == 1)
        RANK_CHECK(comm_leave(c, "too large", &err) == 0);
    RANK_CHECK(comm_barrier(c, &err) == DET_EPEER);
    RANK_CHECK(rank != 1 || strstr(err.text, "rank 1 has left"));
    RANK_CHECK(comm_left(c, &why));
    RANK_CHECK(strcmp(buf_str(&why), "rank 1: too large") == 0);
    comm_close(c);
    return 0;
}

static void reason_of_a_peer(void **state)
{
    ranks_pass(3, leave, NULL, 60000);
}

/* Whoever has no collective for long looks, and hears of it there too; a group that is whole says
 * nothing. */
static int look(int rank, int size, int port, void *arg)
{
    struct det_err err = {0};
    struct comm *c = NULL;
    struct comm_options o = ranks_options(rank, size, port);
    det_cleanup(buf_finish) struct buf why = BUF_INIT;
    RANK_CHECK(comm_open(&o, &c, &err) == 0);
    RANK_CHECK(comm_check(c, &err) == 0);
    RANK_CHECK(comm_barrier(c, &err) == 0);
    if (rank == 1)
        RANK_CHECK(comm_leave(c, "too large", &err) == 0);
    while (comm_check(c, &err) == 0)
        poll(NULL, 0, 1);
    RANK_CHECK(comm_check(c, &err) == DET_EPEER);
    RANK_CHECK(comm_left(c, &why));
    RANK_CHECK(strcmp(buf_str(&why), "rank 1: too large") == 0);
    comm_close(c);
    return 0;
}

static void looked_up(void **state)
{
    ranks_pass(3, look, NULL, 60000);
}

/* Rank 0 without a sign: asked again as long as it wants, until it has asked itself. */
static _Atomic int asked;

static int ask_thrice(void *arg, const char *why, int unheard_ms)
{
    return unheard_ms == 1 && strcmp(why, "rank 1: too large") == 0 && ++asked < 3 ? 1 : 0;
}

static int unheard(int rank, int size, int port, void *arg)
{
    struct det_err err = {0};
    struct comm *c = NULL;
    struct comm_options o = ranks_options(rank, size, port);
    det_cleanup(buf_finish) struct buf why = BUF_INIT;
    o.on_unheard = ask_thrice;
    o.unheard_ms = 1;
    RANK_CHECK(comm_open(&o, &c, &err) == 0);
    RANK_CHECK(comm_barrier(c, &err) == 0); /* else rank 1 may be gone while rank 0 still joins */
    if (rank == 1)
        RANK_CHECK(comm_leave(c, "too large", &err) == 0);
    while (rank == 0 && asked < 3)
        poll(NULL, 0, 1);
    RANK_CHECK(comm_left(c, &why));
    comm_close(c);
    return 0;
}

static void unheard_of(void **state)
{
    ranks_pass(2, unheard, NULL, 60000);
}

/* Once rank 0 was told that nobody had left, it asks no more: who leaves then is told so. */
static int leave_late(int rank, int size, int port, void *arg)
{
    struct det_err err = {0};
    struct comm *c = NULL;
    struct comm_options o = ranks_options(rank, size, port);
    det_cleanup(buf_finish) struct buf why = BUF_INIT;
    RANK_CHECK(comm_open(&o, &c, &err) == 0);
    RANK_CHECK(rank == 1 || !comm_left(c, &why));
    RANK_CHECK(comm_barrier(c, &err) == 0);
    if (rank == 1)
        RANK_CHECK(comm_leave(c, "too large", &err) == DET_EPEER);
    comm_close(c);
    return 0;
}

static void reason_that_comes_too_late(void **state)
{
    ranks_pass(2, leave_late, NULL, 60000);
}

/* Without GPUs (or without the module) every rank is told so, and none waits for another. */
static int no_devices(int rank, int size, int port, void *arg)
{
    struct det_err err = {0};
    struct comm *c = NULL;
    struct comm_device *d = NULL;
    struct comm_options o = ranks_options(rank, size, port);
    RANK_CHECK(comm_open(&o, &c, &err) == 0);
    int rc = comm_device_open(c, 1000 + rank, &d, &err); /* no host has so many */
    RANK_CHECK(rc == DET_EDEVICE || rc == DET_EUNAVAIL);
    RANK_CHECK(err.text[0]);
    RANK_CHECK(comm_barrier(c, &err) == 0);
    comm_close(c);
    return 0;
}

static void missing_devices(void **state)
{
    ranks_pass(2, no_devices, NULL, 60000);
}

static int stranger(int rank, int size, int port, void *arg)
{
    struct det_err err = {0};
    struct comm *c = NULL;
    struct comm_options o = ranks_options(rank, size, port);
    if (rank == 0)
        o.join_timeout_ms = 6000; /* rank 1 may be late */
    else
        o.secret = "another run's";
    int rc = comm_open(&o, &c, &err);
    RANK_CHECK(rank == 1 ? rc == DET_EPERM : rc < 0); /* rank 0 waits in vain */
    return 0;
}

static void wrong_secret(void **state)
{
    ranks_pass(2, stranger, NULL, 100000);
}

/* Rank 0 is late to close each group, so the others are at its port before the next one is. */
static int groups(int rank, int size, int port, void *arg)
{
    struct det_err err = {0};
    for (int i = 0; i < 5; i++) {
        struct comm *c = NULL;
        struct comm_options o = ranks_options(rank, size, port);
        RANK_CHECK(comm_open(&o, &c, &err) == 0);
        RANK_CHECK(comm_barrier(c, &err) == 0);
        if (rank == 0)
            poll(NULL, 0, 30);
        comm_close(c);
    }
    return 0;
}

static void one_after_the_other(void **state)
{
    int codes[3];
    ranks_run(3, groups, NULL, 100000, codes);
    for (int rank = 0; rank < 3; rank++)
        assert_int_equal(codes[rank], 0);
}

/* A data loader's worker, forked while the first group is there, outlives it with its sockets. */
static int groups_and_worker(int rank, int size, int port, void *arg)
{
    struct det_err err = {0};
    struct comm_options o = ranks_options(rank, size, port);
    struct comm *c = NULL;
    int hold[2];
    char byte;
    RANK_CHECK(pipe(hold) == 0 && comm_open(&o, &c, &err) == 0);
    pid_t worker = fork();
    if (worker == 0) {
        close(hold[1]);
        _exit(read(hold[0], &byte, 1) != 0);
    }
    RANK_CHECK(comm_barrier(c, &err) == 0);
    if (rank == 0)
        poll(NULL, 0, 30);
    comm_close(c);
    o.join_timeout_ms = 20000;
    RANK_CHECK(comm_open(&o, &c, &err) == 0);
    RANK_CHECK(comm_barrier(c, &err) == 0);
    comm_close(c);
    close(hold[1]);
    return waitpid(worker, NULL, 0) == worker ? 0 : 1;
}

/* A process that the model's code forked ends its copy in its own way: nobody notices. */
static int group_and_copy(int rank, int size, int port, void *arg)
{
    struct det_err err = {0};
    struct comm_options o = ranks_options(rank, size, port);
    struct comm *c = NULL;
    RANK_CHECK(comm_open(&o, &c, &err) == 0);
    pid_t copy = fork();
    if (copy == 0) {
        comm_close(c);
        _exit(0);
    }
    RANK_CHECK(waitpid(copy, NULL, 0) == copy);
    RANK_CHECK(comm_barrier(c, &err) == 0 && comm_check(c, &err) == 0);
    RANK_CHECK(comm_barrier(c, &err) == 0);
    comm_close(c);
    return 0;
}

static void a_forked_copy_ends_nothing(void **state)
{
    ranks_pass(2, group_and_copy, NULL, 100000);
}

static void one_after_the_other_beside_a_worker(void **state)
{
    ranks_pass(2, groups_and_worker, NULL, 100000);
}

/* Says n bytes to rank 0, when it is patient as soon as that listens; false when it does not. */
static bool say(int port, bool patient, const void *p, size_t n)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (;;) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fd, (struct sockaddr *)&a, sizeof a) == 0)
            return send(fd, p, n, MSG_NOSIGNAL) == (ssize_t)n;
        close(fd);
        if (!patient)
            return false;
        poll(NULL, 0, 2);
    }
}

/* Whether the process has this socket. */
static bool has_socket(pid_t pid, unsigned long inode)
{
    char dir[64], path[128], to[64], want[64];
    snprintf(want, sizeof want, "socket:[%lu]", inode);
    snprintf(dir, sizeof dir, "/proc/%d/fd", (int)pid);
    DIR *fds = opendir(dir);
    bool found = false;
    for (struct dirent *d; fds && !found && (d = readdir(fds));) {
        snprintf(path, sizeof path, "%s/%.20s", dir, d->d_name);
        ssize_t n = readlink(path, to, sizeof to - 1);
        to[n > 0 ? n : 0] = 0;
        found = strcmp(to, want) == 0;
    }
    if (fds)
        closedir(fds);
    return found;
}

/* The first port but one that the process listens on; 0: there is none yet. */
static int listens_on(pid_t pid, int but)
{
    char line[512];
    int port = 0;
    FILE *f = fopen("/proc/net/tcp", "re");
    while (f && !port && fgets(line, sizeof line, f)) {
        unsigned at, state;
        unsigned long inode;
        if (sscanf(line, "%*d: %*x:%x %*x:%*x %x %*s %*s %*s %*s %*s %lu", &at, &state, &inode) ==
                3 &&
            state == 0x0a && (int)at != but && has_socket(pid, inode))
            port = (int)at;
    }
    if (f)
        fclose(f);
    return port;
}

/* Who connects to where rank 0 waits for rank 1, before that does, is not taken for it. */
static int with_stranger(int rank, int size, int port, void *arg)
{
    const int *pipes = arg; /* rank 0's process id; then the word that rank 1 may begin */
    pid_t pid = getpid();
    char ch = 0;
    if (rank == 0 && write(pipes[1], &pid, sizeof pid) != sizeof pid)
        return 1;
    if (rank == 1 && read(pipes[2], &ch, 1) != 1)
        return 1;
    if (rank < 2)
        return all_ops(rank, 2, port, NULL);
    if (read(pipes[0], &pid, sizeof pid) != sizeof pid)
        return 1;
    int at;
    while ((at = listens_on(pid, port)) == 0)
        poll(NULL, 0, 2);
    bool said = say(at, false, &(uint64_t){0}, sizeof(uint64_t));
    if (!said || write(pipes[3], &ch, 1) != 1)
        return 1;
    while (kill(pid, 0) == 0 &&
           listens_on(pid, 0) != 0) /* it holds its connection until they are done */
        poll(NULL, 0, 20);
    return 0;
}

static void stranger_in_a_ranks_place(void **state)
{
    int pipes[4];
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    assert_int_equal(pipe2(pipes + 2, O_CLOEXEC), 0);
    ranks_pass(3, with_stranger, pipes, 100000);
    for (int i = 0; i < 4; i++)
        close(pipes[i]);
}

/* Rank 1 finds the others, and ends before it has told where it is to be reached: those do not wait
 * until the time for joining is over. */
static int joins_halfway(int rank, int size, int port, void *arg)
{
    struct det_err err = {0};
    struct comm *c = NULL;
    struct comm_options o = ranks_options(rank, size, port);
    o.join_timeout_ms = 3600000;
    if (rank == 1) {
        struct comm_store *s = NULL;
        const struct comm_store_options so = {.host = "127.0.0.1",
                                              .port = port,
                                              .rank = rank,
                                              .size = size,
                                              .secret = o.secret,
                                              .timeout_ms = o.join_timeout_ms};
        RANK_CHECK(comm_store_connect(&so, &s, &err) == 0);
        comm_store_close(s);
        return 0;
    }
    RANK_CHECK(comm_open(&o, &c, &err) == DET_EPEER);
    RANK_CHECK(strstr(err.text, "rank 1 is gone"));
    return 0;
}

static void ends_before_all_have_joined(void **state)
{
    ranks_pass(3, joins_halfway, NULL, 100000);
}

/* The third process knows no protocol: frames of impossible lengths, half frames, requests
 * without a HELLO, noise. The two ranks must not notice. Rank 1 joins after the first of it: rank 0
 * listens until both are done. */
static int with_noise(int rank, int size, int port, void *arg)
{
    uint32_t frames[][3] = {
        {2, UINT32_MAX, UINT32_MAX}, {1, 0, 1 << 20}, {3, 3, 0}, {4, 0, 4}, {1, 0, 5}, {99, 0, 0}};
    const int *begun = arg;
    unsigned seed = 1;
    char noise[1000], ch = 0;
    if (rank == 1 && read(begun[0], &ch, 1) != 1)
        return 1;
    if (rank < 2)
        return all_ops(rank, 2, port, arg);
    if (!say(port, true, frames[0], sizeof frames[0]) || write(begun[1], &ch, 1) != 1)
        return 1;
    for (size_t i = 1; i < DET_ARRAY_LEN(frames); i++)
        say(port, false, frames[i], sizeof frames[i]);
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (char)rand_r(&seed);
    for (size_t n = 1; n < sizeof noise; n *= 3)
        say(port, false, noise, n);
    return 0; /* the connections end with the process */
}

static void noise_on_the_port(void **state)
{
    int begun[2];
    assert_int_equal(pipe(begun), 0);
    ranks_pass(3, with_noise, begun, 100000);
    close(begun[0]);
    close(begun[1]);
}

static void nobody_there(void **state)
{
    struct det_err err;
    struct comm *c = NULL;
    struct comm_options o = ranks_options(1, 2, ranks_free_port());
    o.join_timeout_ms = 100;
    assert_int_equal(comm_open(&o, &c, &err), DET_ETIMEOUT);
    assert_non_null(strstr(err.text, "rank 0 did not open"));
    assert_non_null(strstr(err.text, "Connection refused")); /* it may be an unknown host as well */
    o.rank = 2;
    assert_int_equal(comm_open(&o, &c, &err), DET_EINVAL);
}

static void open_stores(struct comm_store_server **server, struct comm_store *v[2])
{
    struct comm_store_options o = {
        .host = "127.0.0.1", .port = ranks_free_port(), .size = 2, .timeout_ms = 60000};
    assert_int_equal(comm_store_serve(&o, server, NULL), 0);
    for (o.rank = 0; o.rank < 2; o.rank++)
        assert_int_equal(comm_store_connect(&o, &v[o.rank], NULL), 0);
}

static int take(struct comm_store *s, const char *key, int timeout_ms, struct det_err *err)
{
    void *p = NULL;
    size_t n;
    int rc = comm_store_take(s, key, timeout_ms, &p, &n, err);
    free(p);
    return rc;
}

/* That a key will never come ends nothing; an answer that fails to come, after that too, does. */
static void what_is_lost_is_asked_for_in_step(void **state)
{
    struct det_err err;
    struct comm_store_server *server = NULL;
    struct comm_store *v[2];
    open_stores(&server, v);
    comm_store_close(v[1]);
    assert_int_equal(take(v[0], "a", 60000, &err), DET_EPEER);
    assert_string_equal(err.text, "rank 1 is gone");
    assert_int_equal(comm_store_put(v[0], "b", "", 0, &err), 0);
    assert_int_equal(take(v[0], "b", 60000, &err), 0);
    assert_int_equal(take(v[0], "a", 60000, &err), DET_EPEER);
    comm_store_server_stop(server);
    assert_int_equal(take(v[0], "b", 60000, &err), DET_EPEER);
    assert_string_equal(err.text, "rank 1 is gone"); /* its last words */
    assert_int_equal(take(v[0], "b", 60000, &err), DET_EPEER);
    assert_int_equal(take(v[0], "b", 60000, &err), DET_EPEER);
    assert_string_equal(err.text, "the connection to rank 0 is gone");
    comm_store_close(v[0]);
}

/* gloo keeps the addresses of a device that it cannot make. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:gloo::transport::tcp::CreateDeviceAttr\n";
}

/* Rank 0 leaves after rank 1, and nobody has asked who is gone. */
static void last_words_name_who_left(void **state)
{
    for (int asks_verdict = 0; asks_verdict < 2; asks_verdict++) {
        det_cleanup(buf_finish) struct buf who = BUF_INIT;
        struct det_err err;
        struct comm_store_server *server = NULL;
        struct comm_store *v[2];
        open_stores(&server, v);
        comm_store_close(v[1]);
        assert_int_equal(take(v[0], "a", 60000, &err), DET_EPEER);
        comm_store_server_stop(server);
        if (asks_verdict)
            comm_store_verdict(v[0], 60000, &who);
        else
            assert_int_equal(comm_store_gone(v[0], 60000, &who, &err), 0);
        assert_string_equal(buf_str(&who), "rank 1 is gone");
        comm_store_close(v[0]);
    }
}

/* What keeps a rank from joining is said, though the others, who wait for it, say nothing. */
static void cause_of_its_own(void **state)
{
    struct det_err err;
    struct comm_store_server *server = NULL;
    struct comm_store *v[2];
    const struct comm_transport *transport = NULL;
    void *self = NULL;
    open_stores(&server, v);
    int rc = comm_gloo_open(1, 2, "192.0.2.1", v[1], 200, &transport, &self, &err);
    assert_true(rc < 0);
    assert_non_null(strstr(err.text, "192.0.2.1"));
    comm_store_close(v[0]);
    comm_store_close(v[1]);
    comm_store_server_stop(server);
}

/* Rank 0, which can never join; until rank 1 is gone. */
static void *join_in_vain(void *store)
{
    static struct det_err err;
    const struct comm_transport *transport = NULL;
    void *self = NULL;
    int rc = comm_gloo_open(0, 2, "192.0.2.1", store, 3600000, &transport, &self, &err);
    return rc < 0 ? err.text : NULL;
}

/* The keys of attempts do not pile up while ranks try to join again and again. */
static void keys_of_attempts(void **state)
{
    struct det_err err;
    struct comm_store_server *server = NULL;
    struct comm_store *v[2];
    pthread_t rank_0;
    void *said = NULL;
    open_stores(&server, v);
    assert_int_equal(pthread_create(&rank_0, NULL, join_in_vain, v[0]), 0);
    for (int attempt = 0; attempt < 3; attempt++) {
        char mine[32], its[32];
        snprintf(mine, sizeof mine, "joined/%d/1", attempt);
        snprintf(its, sizeof its, "joined/%d/0", attempt);
        if (attempt < 2) /* the third does not end, so that what the second left is there */
            assert_int_equal(comm_store_put(v[1], mine, "0", 1, &err), 0);
        assert_int_equal(take(v[1], its, 60000, &err), 0);
    }
    assert_int_equal(take(v[1], "joined/1/1", 60000, &err), 0);
    assert_int_equal(take(v[1], "joined/0/1", 1, &err), DET_ETIMEOUT);
    assert_int_equal(pthread_join(rank_0, &said), 0);
    assert_non_null(said);
    assert_non_null(strstr(said, "rank 1 is gone"));
    comm_store_close(v[0]);
    comm_store_close(v[1]);
    comm_store_server_stop(server);
}

/* Only rank 0 forgets, and only what begins so. */
static void dropped_keys(void **state)
{
    struct det_err err;
    struct comm_store_server *server = NULL;
    struct comm_store *v[2];
    open_stores(&server, v);
    assert_int_equal(comm_store_put(v[0], "a/1/x", "", 0, &err), 0);
    assert_int_equal(comm_store_put(v[0], "a/12/x", "", 0, &err), 0);
    assert_int_equal(comm_store_drop(v[0], "a/1/", &err), 0);
    assert_int_equal(take(v[0], "a/12/x", 60000, &err), 0);
    assert_int_equal(comm_store_drop(v[1], "a/12/", &err), 0);
    assert_int_equal(take(v[1], "a/12/x", 60000, &err), DET_EPEER);
    assert_int_equal(take(v[0], "a/12/x", 60000, &err), 0);
    assert_int_equal(take(v[0], "a/1/x", 60000, &err), DET_EPEER);
    assert_string_equal(err.text, "rank 1 is gone");
    comm_store_close(v[0]);
    comm_store_close(v[1]);
    comm_store_server_stop(server);
}

/* A store that could not be told to end would be served, and freed under its thread. */
static void no_descriptor_to_end_by(void **state)
{
    struct det_err err;
    struct rlimit before, few;
    struct comm_store_server *server = NULL;
    struct comm_store_options o = {.host = "127.0.0.1", .port = ranks_free_port(), .size = 2};
    int lowest = dup(STDERR_FILENO);
    close(lowest);
    getrlimit(RLIMIT_NOFILE, &before);
    few = (struct rlimit){(rlim_t)lowest + 1, before.rlim_max}; /* the listener's alone */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    int rc = comm_store_serve(&o, &server, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(rc, DET_EIO);
    assert_non_null(strstr(err.text, "thread: Too many open files"));
    assert_int_equal(comm_store_serve(&o, &server, &err), 0); /* the port is free again */
    comm_store_server_stop(server);
}

static void environment(void **state)
{
    struct comm_options o;
    struct det_err err;
    unsetenv("WORLD_SIZE");
    unsetenv("RANK");
    assert_int_equal(comm_options_from_env(&o, &err), 0);
    assert_int_equal(o.size, 1);
    setenv("WORLD_SIZE", "4", 1);
    setenv("RANK", "3", 1);
    setenv("LOCAL_WORLD_SIZE", "2", 1);
    setenv("DET_CHIEF_IP", "10.0.0.1", 1);
    assert_int_equal(comm_options_from_env(&o, &err), 0);
    assert_int_equal(o.rank, 3);
    assert_int_equal(o.local_rank, 1);
    assert_int_equal(o.port, 29400);
    assert_string_equal(o.chief_host, "10.0.0.1");
    assert_int_equal(o.timeout_ms, 0);
    setenv("DET_COLLECTIVE_TIMEOUT_S", "7", 1);
    assert_int_equal(comm_options_from_env(&o, &err), 0);
    assert_int_equal(o.timeout_ms, 7000);
    setenv("DET_COLLECTIVE_TIMEOUT_S", "soon", 1);
    assert_int_equal(comm_options_from_env(&o, &err), DET_EINVAL);
    unsetenv("DET_COLLECTIVE_TIMEOUT_S");
    setenv("RANK", "4", 1);
    assert_int_equal(comm_options_from_env(&o, &err), DET_EINVAL);
    assert_non_null(strstr(err.text, "RANK=4"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rank),
        cmocka_unit_test(two_ranks),
        cmocka_unit_test(five_ranks),
        cmocka_unit_test(killed_peer),
        cmocka_unit_test(hung_peer),
        cmocka_unit_test(reason_of_a_peer),
        cmocka_unit_test(looked_up),
        cmocka_unit_test(unheard_of),
        cmocka_unit_test(reason_that_comes_too_late),
        cmocka_unit_test(missing_devices),
        cmocka_unit_test(wrong_secret),
        cmocka_unit_test(one_after_the_other),
        cmocka_unit_test(one_after_the_other_beside_a_worker),
        cmocka_unit_test(a_forked_copy_ends_nothing),
        cmocka_unit_test(stranger_in_a_ranks_place),
        cmocka_unit_test(ends_before_all_have_joined),
        cmocka_unit_test(noise_on_the_port),
        cmocka_unit_test(nobody_there),
        cmocka_unit_test(what_is_lost_is_asked_for_in_step),
        cmocka_unit_test(last_words_name_who_left),
        cmocka_unit_test(cause_of_its_own),
        cmocka_unit_test(keys_of_attempts),
        cmocka_unit_test(dropped_keys),
        cmocka_unit_test(no_descriptor_to_end_by),
        cmocka_unit_test(environment),
    };
    return cmocka_run_group_tests_name("comm", tests, NULL, NULL);
}
