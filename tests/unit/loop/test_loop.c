/* The loop in local mode: order of calls, boundaries, stopping, restore. */
#include "fake_trial.h"
#include "fsx.h"
#include "hash.h"
#include "json.h"
#include "mem.h"
#include "sampler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

struct dir {
    char path[64];
    struct fake f;
};

static int setup(void **state)
{
    struct dir *d = det_zalloc(sizeof *d);
    strncpy(d->path, "/tmp/det-loop-XXXXXX", sizeof d->path - 1);
    assert_non_null(mkdtemp(d->path));
    fake_init(&d->f);
    d->f.config.checkpoint_dir = det_strdup(d->path);
    *state = d;
    return 0;
}

static int teardown(void **state)
{
    struct dir *d = *state;
    det_ignore(fsx_remove_tree(AT_FDCWD, d->path, NULL), "the test is over");
    fake_finish(&d->f);
    free(d);
    return 0;
}

static int run(struct fake *f)
{
    struct det_err err = {0};
    int rc = fake_run(f, &err);
    if (rc < 0)
        print_message("loop_run: %s\n", err.text);
    return rc;
}

/* docs/contract/loop.md 4: 2 epochs of 3 batches, validation every 4, checkpoint every epoch,
 * report every 2, policy none, step-zero validation. */
static void golden_trace(void **state)
{
    struct fake *f = &((struct dir *)*state)->f;
    f->config.length_unit = LOOP_LEN_EPOCHS;
    f->config.max_length = 2;
    f->config.validation_period = (struct loop_unit){.n = 4};
    f->config.checkpoint_period = (struct loop_unit){.kind = LOOP_EPOCHS, .n = 1};
    f->config.reporting_period.n = 2;
    f->config.step_zero_validation = true;
    f->n_lrs = 1;
    assert_int_equal(run(f), 0);
    assert_string_equal(
        buf_str(&f->trace),
        "init build_callbacks startup(0,none) train_loader val_loader training_start validate@0 "
        "epoch_start0 b0 b1 report@2 workload_end b2 lr_step epoch_end0 report@3 workload_end "
        "checkpoint@3 epoch_start1 b3 report@4 workload_end validate@4 b4 b5 lr_step epoch_end1 "
        "report@6 workload_end checkpoint@6 validate@6 shutdown1 shutdown0 destroy");
}

/* docs/contract/loop.md 5: length 6, epochs of 3, validate every 2, checkpoint every 4, report
 * every 3. */
static void boundaries(void **state)
{
    struct fake *f = &((struct dir *)*state)->f;
    f->n_callbacks = 0;
    f->config.max_length = 6;
    f->config.validation_period = (struct loop_unit){.n = 2};
    f->config.checkpoint_period = (struct loop_unit){.n = 4};
    f->config.reporting_period.n = 3;
    assert_int_equal(run(f), 0);
    assert_string_equal(buf_str(&f->trace),
                        "init build_callbacks train_loader val_loader b0 b1 report@2 validate@2 b2 "
                        "report@3 b3 report@4 validate@4 checkpoint@4 b4 b5 report@6 validate@6 "
                        "checkpoint@6 destroy");
}

static void stop_requested(void **state)
{
    struct fake *f = &((struct dir *)*state)->f;
    f->n_callbacks = 0;
    f->config.max_length = 9;
    f->config.reporting_period.n = 2;
    f->config.validation_period = (struct loop_unit){.n = 2};
    f->stop_at = 2; /* seen at the end of the workload, after what this boundary asks for */
    assert_int_equal(run(f), 0);
    assert_string_equal(buf_str(&f->trace),
                        "init build_callbacks train_loader val_loader b0 b1 report@2 validate@2 b2 "
                        "b3 report@4 validate@4 checkpoint@4 destroy");
}

static void resumes(void **state)
{
    struct dir *d = *state;
    struct fake *f = &d->f;
    f->config.max_length = 7;
    f->config.reporting_period.n = 2;
    f->trace_fetch = true;
    f->stop_at = 4;
    f->n_callbacks = 1;
    assert_int_equal(run(f), 0); /* leaves at the boundary after batch 5 */
    f->config.latest_checkpoint = fake_checkpoint(d->path);
    f->trained = 0;
    f->stop_at = -1;
    buf_clear(&f->trace);
    assert_int_equal(run(f), 0);
    assert_string_equal(buf_str(&f->trace),
                        "init build_callbacks startup(6,uuid) train_loader val_loader load(6) "
                        "training_start epoch_start2 f2.0 b6 report@7 workload_end validate@7 f0.0 "
                        "f0.1 checkpoint@7 shutdown0 destroy");
}

static void damaged_checkpoint_is_refused(void **state)
{
    struct dir *d = *state;
    struct det_err err;
    d->f.config.max_length = 1;
    assert_int_equal(run(&d->f), 0);
    d->f.config.latest_checkpoint = fake_checkpoint(d->path);
    det_cleanup(freep) char *file =
        det_asprintf("%s/%s/state_dict.pth", d->path, d->f.config.latest_checkpoint);
    assert_int_equal(fsx_write_atomic(AT_FDCWD, file, "7", 1, 0644, NULL), 0);
    assert_int_equal(fake_run(&d->f, &err), DET_ECORRUPT);
    assert_non_null(strstr(err.text, "state_dict.pth"));
}

/* As it was written when metadata.json held SHA-256. */
static void make_older(const char *dir)
{
    char hex[HASH_HEX_MAX];
    struct buf b = BUF_INIT;
    const char *file;
    json_t *value;
    det_cleanup(freep) char *metadata = det_asprintf("%s/metadata.json", dir);
    assert_int_equal(fsx_read_file(AT_FDCWD, metadata, 1 << 20, &b, NULL), 0);
    JSON_OWN j = json_parse(buf_str(&b), b.len, NULL);
    json_t *sums = json_object();
    json_object_foreach(json_obj(j, "xxh128"), file, value)
    {
        det_cleanup(freep) char *path = det_asprintf("%s/%s", dir, file);
        det_cleanup(det_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_int_equal(hash_fd(HASH_SHA256, fd, hex, NULL), 0);
        json_set(sums, file, json_string(hex));
    }
    assert_true(json_object_size(sums) > 0);
    json_set(j, "sha256", sums);
    json_object_del(j, "xxh128");
    buf_clear(&b);
    json_write_pretty(&b, j);
    assert_int_equal(fsx_write_atomic(AT_FDCWD, metadata, b.p, b.len, 0644, NULL), 0);
    buf_finish(&b);
}

static void older_checkpoint_resumes_unless_damaged(void **state)
{
    struct dir *d = *state;
    struct det_err err;
    d->f.config.max_length = 2;
    assert_int_equal(run(&d->f), 0);
    const char *uuid = d->f.config.latest_checkpoint = fake_checkpoint(d->path);
    det_cleanup(freep) char *dir = det_asprintf("%s/%s", d->path, uuid);
    make_older(dir);
    d->f.config.max_length = 3;
    buf_clear(&d->f.trace);
    assert_int_equal(fake_run(&d->f, &err), 0);
    assert_non_null(strstr(buf_str(&d->f.trace), "load(2)"));
    det_cleanup(freep) char *file = det_asprintf("%s/state_dict.pth", dir);
    assert_int_equal(fsx_write_atomic(AT_FDCWD, file, "7", 1, 0644, NULL), 0);
    assert_int_equal(fake_run(&d->f, &err), DET_ECORRUPT);
    assert_non_null(strstr(err.text, "state_dict.pth: its sha256 is"));
}

static void crash_makes_no_checkpoint(void **state)
{
    struct dir *d = *state;
    struct det_err err;
    d->f.config.max_length = 6;
    d->f.fail_at = 3;
    d->f.n_callbacks = 1;
    assert_int_equal(fake_run(&d->f, &err), DET_EDEVICE);
    assert_string_equal(err.text, "train_batch, batch 3: told to fail");
    assert_non_null(strstr(buf_str(&d->f.trace), "b3 shutdown0 destroy"));
    assert_null(strstr(buf_str(&d->f.trace), "checkpoint"));
}

static void invalid_hp_makes_a_checkpoint(void **state)
{
    struct dir *d = *state;
    d->f.config.max_length = 6;
    d->f.fail_at = 3;
    d->f.fail_code = DET_EINVALIDHP;
    d->f.n_callbacks = 1;
    assert_int_equal(run(&d->f), 0);
    assert_non_null(strstr(buf_str(&d->f.trace), "b3 checkpoint@3 shutdown0 destroy"));
}

static void invalid_hp_in_create_or_checkpoint(void **state)
{
    struct dir *d = *state;
    d->f.config.max_length = 2;
    d->f.fail_create = DET_EINVALIDHP;
    assert_int_equal(run(&d->f), 0);
    assert_string_equal(buf_str(&d->f.trace), "init destroy");
    d->f.fail_create = 0;
    d->f.fail_save = DET_EINVALIDHP;
    d->f.n_callbacks = 0;
    buf_clear(&d->f.trace);
    assert_int_equal(run(&d->f), 0);
    assert_string_equal(buf_str(&d->f.trace),
                        "init build_callbacks train_loader val_loader b0 b1 report@2 validate@2 "
                        "checkpoint@2 destroy");
}

static void test_mode(void **state)
{
    struct dir *d = *state;
    d->f.config.test_mode = true;
    d->f.config.max_length = 100;
    d->f.trace_fetch = true;
    d->f.n_callbacks = 0;
    assert_int_equal(run(&d->f), 0);
    assert_string_equal(buf_str(&d->f.trace),
                        "init build_callbacks train_loader val_loader f0.0 b0 report@1 validate@1 "
                        "f0.0 checkpoint@1 destroy");
}

static void policy_all_after_every_validation(void **state)
{
    struct dir *d = *state;
    d->f.config.policy = LOOP_POLICY_BEST; /* all, in local mode */
    d->f.config.max_length = 4;
    d->f.config.validation_period = (struct loop_unit){.n = 2};
    d->f.n_callbacks = 0;
    assert_int_equal(run(&d->f), 0);
    assert_string_equal(buf_str(&d->f.trace),
                        "init build_callbacks train_loader val_loader b0 b1 report@2 validate@2 "
                        "checkpoint@2 b2 b3 report@4 validate@4 checkpoint@4 destroy");
}

static void bad_configurations(void **state)
{
    struct dir *d = *state;
    struct det_err err;
    d->f.config.max_length = 0;
    assert_int_equal(fake_run(&d->f, &err), DET_EINVAL);
    d->f.config.max_length = 1;
    d->f.config.length_unit = LOOP_LEN_RECORDS;
    assert_int_equal(fake_run(&d->f, &err), DET_EINVAL);
    assert_non_null(strstr(err.text, "global_batch_size"));
    d->f.config.length_unit = LOOP_LEN_BATCHES;
    d->f.train_batches = 0;
    assert_int_equal(fake_run(&d->f, &err), DET_EINVAL);
    d->f.train_batches = 3;
    d->f.valid_batches = 0;
    assert_int_equal(fake_run(&d->f, &err), DET_EINVAL);
    assert_non_null(strstr(err.text, "validation_loader is empty."));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        T(golden_trace),
        T(boundaries),
        T(stop_requested),
        T(resumes),
        T(damaged_checkpoint_is_refused),
        T(older_checkpoint_resumes_unless_damaged),
        T(crash_makes_no_checkpoint),
        T(invalid_hp_makes_a_checkpoint),
        T(invalid_hp_in_create_or_checkpoint),
        T(test_mode),
        T(policy_all_after_every_validation),
        T(bad_configurations),
    };
    return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
