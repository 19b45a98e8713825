/* Checkpoints written while training goes on: order, failures, what is left after a crash. */
#include "fake_trial.h"
#include "fsx.h"
#include "mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE_MS 60000

/* The fake trial, and what its writer does. */
static struct background {
    struct fake f; /* first: hooks get it */
    char dir[64];
    atomic_long trained, writing, written;
    long wait_for; /* the first write ends when so many batches are trained */
    int fail_write;
    char *gate;   /* without snapshots: the rest of a checkpoint waits until this pipe is read */
    long gate_at; /* that of so many batches; 0: none has a gate */
    bool killed;  /* two batches later, instead of reading it */
} * bg;

static int n_published(void)
{
    int n = 0;
    DIR *d = opendir(bg->dir);
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

/* Training is two batches further: the checkpoint was not waited for, and is not there yet. */
static void open_gate(void)
{
    char chunk[4096];
    assert_int_equal(n_published(), bg->gate_at / 2 - 1);
    if (bg->killed)
        raise(SIGKILL);
    det_cleanup(det_closep) int fd = open(bg->gate, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(unlink(bg->gate), 0);
    while (read(fd, chunk, sizeof chunk) > 0)
        continue;
}

static int train_batch(void *self, const void *batch, int64_t e, int64_t b, struct loop_metrics *m,
                       struct det_err *err)
{
    int rc = fake_type.train_batch(self, batch, e, b, m, err);
    atomic_store(&bg->trained, (long)bg->f.trained);
    if (bg->gate && bg->f.trained == bg->gate_at + 2)
        open_gate();
    return rc;
}

/* Of a trial without snapshots. */
static int save(void *self, const char *dir, struct det_err *err)
{
    int rc = fake_type.save(self, dir, err);
    if (rc == 0 && bg->f.trained == bg->gate_at) {
        bg->gate = det_asprintf("%s/load_data.json", dir);
        assert_int_equal(mkfifo(bg->gate, 0644), 0);
    }
    if (rc == 0 && bg->fail_write) {
        det_cleanup(freep) char *path = det_asprintf("%s/\xff", dir); /* no name for JSON */
        rc = fsx_write_atomic(AT_FDCWD, path, "", 0, 0644, err);
    }
    return rc;
}

static int run_saving(struct det_err *err)
{
    struct det_loop_trial_type t = fake_type;
    t.train_batch = train_batch;
    t.save = save;
    return loop_run(&bg->f.config, &(struct det_loop_trial){&t, bg}, err);
}

static int snapshot(void *self, void **ret, struct det_err *err)
{
    struct fake *f = self;
    assert_int_equal(atomic_load(&bg->writing), 0); /* at most one */
    fake_note(f, "snapshot@%lld", (long long)f->trained);
    *ret = det_asprintf("%lld", (long long)f->trained);
    return 0;
}

static int write_snapshot(void *s, const char *dir, json_t *hashes, struct det_err *err)
{
    det_cleanup(freep) char *path = det_asprintf("%s/state_dict.pth", dir);
    atomic_fetch_add(&bg->writing, 1);
    for (int ms = 0; atomic_load(&bg->trained) < bg->wait_for && ms < DEADLINE_MS; ms++)
        poll(NULL, 0, 1);
    int rc = bg->fail_write ? det_fail(err, bg->fail_write, "told to fail") : 0;
    if (rc == 0 && atomic_load(&bg->trained) < bg->wait_for)
        rc = det_fail(err, DET_ETIMEOUT, "training waits for the checkpoint");
    if (rc == 0)
        rc = fsx_write_atomic(AT_FDCWD, path, s, strlen(s), 0644, err);
    atomic_fetch_sub(&bg->writing, 1);
    atomic_fetch_add(&bg->written, 1);
    return rc;
}

static int run(struct det_err *err)
{
    struct det_loop_trial_type t = fake_type;
    t.train_batch = train_batch;
    t.save = NULL;
    t.snapshot = snapshot;
    t.write_snapshot = write_snapshot;
    t.free_snapshot = free;
    return loop_run(&bg->f.config, &(struct det_loop_trial){&t, bg}, err);
}

static int setup(void **state)
{
    bg = det_zalloc(sizeof *bg);
    snprintf(bg->dir, sizeof bg->dir, "/tmp/det-background-XXXXXX");
    assert_non_null(mkdtemp(bg->dir));
    fake_init(&bg->f);
    bg->f.config.checkpoint_dir = det_strdup(bg->dir);
    bg->f.config.max_length = 8;
    bg->f.config.checkpoint_period.n = 2;
    bg->f.config.policy = LOOP_POLICY_NONE;
    return 0;
}

static int teardown(void **state)
{
    det_ignore(fsx_remove_tree(AT_FDCWD, bg->dir, NULL), "the test is over");
    fake_finish(&bg->f);
    free(bg->gate);
    free(bg);
    return 0;
}

/* The checkpoints of the store as the sum of 1 << what their states say; begun ones count too. */
static unsigned stored(void)
{
    unsigned sum = 0;
    DIR *d = opendir(bg->dir);
    for (struct dirent *e; (e = readdir(d));) {
        det_cleanup(buf_finish) struct buf b = BUF_INIT;
        det_cleanup(freep) char *path = det_asprintf("%s/%s/state_dict.pth", bg->dir, e->d_name);
        if (strlen(e->d_name) < 3 || (bg->killed && e->d_name[0] == '.'))
            continue;
        assert_true(e->d_name[0] != '.');
        assert_int_equal(fsx_read_file(AT_FDCWD, path, 100, &b, NULL), 0);
        sum += 1u << strtol(buf_str(&b), NULL, 10);
    }
    closedir(d);
    return sum;
}

static void training_goes_on(void **state)
{
    struct det_err err = {0};
    bg->wait_for = 4; /* the one after batch 2 is written while 3 and 4 are trained */
    bg->f.n_callbacks = 0;
    assert_int_equal(run(&err), 0);
    assert_int_equal(stored(), 1u << 2 | 1u << 4 | 1u << 6 | 1u << 8);
    assert_non_null(strstr(buf_str(&bg->f.trace), "report@2 snapshot@2 b2 b3 report@4 snapshot@4"));
}

static int on_written(void *self, const char *dir, struct det_err *err)
{
    fake_note(&bg->f, "written@%ld", atomic_load(&bg->written));
    return 0;
}

static void a_hook_that_wants_the_files_is_waited_for(void **state)
{
    struct det_err err = {0};
    bg->f.n_callbacks = 1;
    bg->f.callbacks[0] = (struct loop_callback){.on_checkpoint_write_end = on_written};
    assert_int_equal(run(&err), 0);
    assert_non_null(
        strstr(buf_str(&bg->f.trace), "snapshot@2 written@1 b2 b3 report@4 snapshot@4 written@2"));
}

static void a_failed_write_ends_the_run(void **state)
{
    struct det_err err = {0};
    bg->fail_write = DET_EIO;
    assert_int_equal(run(&err), DET_EIO);
    assert_non_null(strstr(err.text, "told to fail"));
    assert_int_equal(stored(), 0);
}

static void a_crash_keeps_what_is_being_written(void **state)
{
    struct det_err err = {0};
    bg->f.fail_at = 3;
    bg->f.fail_code = DET_EINVAL;
    bg->wait_for = 3;
    assert_int_equal(run(&err), DET_EINVAL);
    assert_int_equal(stored(), 1u << 2);
}

static void a_run_that_lost_its_right_publishes_nothing_more(void **state)
{
    struct det_err err = {0};
    bg->f.fail_at = 3;
    bg->f.fail_code = DET_ESTALE;
    bg->wait_for = 3;
    assert_int_equal(run(&err), DET_ESTALE);
    assert_int_equal(stored() & ~(1u << 2), 0); /* that one may have been published just before */
}

static void without_snapshots_it_goes_on_too(void **state)
{
    struct det_err err = {0};
    bg->gate_at = 2;
    alarm(DEADLINE_MS / 1000); /* should training wait for what waits for it */
    assert_int_equal(run_saving(&err), 0);
    alarm(0);
    assert_int_equal(stored(), 1u << 2 | 1u << 4 | 1u << 6 | 1u << 8);
}

static void what_fails_behind_training_ends_the_run(void **state)
{
    struct det_err err = {0};
    bg->fail_write = 1;
    assert_int_equal(run_saving(&err), DET_EINVAL);
    assert_non_null(strstr(err.text, "must be UTF-8"));
    assert_int_equal(stored(), 0);
}

static void killed_meanwhile_it_goes_on_from_the_one_before(void **state)
{
    struct det_err err = {0};
    int status = 0;
    bg->gate_at = 4;
    bg->killed = true;
    pid_t pid = fork();
    if (pid == 0) {
        alarm(DEADLINE_MS / 1000);
        run_saving(&err);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(stored(), 1u << 2);
    bg->gate_at = 0;
    bg->f.config.latest_checkpoint = fake_checkpoint(bg->dir);
    bg->f.config.steps_completed = 2;
    assert_int_equal(run_saving(&err), 0);
    assert_non_null(strstr(buf_str(&bg->f.trace), "load(2)"));
    assert_int_equal(stored(), 1u << 2 | 1u << 4 | 1u << 6 | 1u << 8);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(training_goes_on),
        T(a_hook_that_wants_the_files_is_waited_for),
        T(a_failed_write_ends_the_run),
        T(a_crash_keeps_what_is_being_written),
        T(a_run_that_lost_its_right_publishes_nothing_more),
        T(without_snapshots_it_goes_on_too),
        T(what_fails_behind_training_ends_the_run),
        T(killed_meanwhile_it_goes_on_from_the_one_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
