/* The loop as a trial of a cluster, against a master in memory: what goes over the wire, in what
 * order, and what happens when the master is away, forgets us, or wants us gone. */
#include "clk.h"
#include "fake_master.h"
#include "fake_trial.h"
#include "fsx.h"
#include "mem.h"
#include "spool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct dir {
    char path[64];
    struct fake f;
    struct fake_master m;
};

static void configure(struct dir *d)
{
    struct det_loop_config *c = &d->f.config;
    c->managed = true;
    c->trial_id = 7;
    c->experiment_id = 3;
    c->run_id = 1;
    c->task_id = det_strdup("3.x");
    c->allocation_id = det_strdup("3.x.1");
    c->searcher_metric = det_strdup("val_loss");
    c->checkpoint_storage = json_make("{s:s, s:s}", "type", "shared_fs", "host_path", d->path);
    c->policy = LOOP_POLICY_BEST;
    c->http = fake_master_http(&d->m);
    c->observer.training = NULL;
    d->f.n_callbacks = 0;
}

static int setup(void **state)
{
    struct dir *d = det_zalloc(sizeof *d);
    strncpy(d->path, "/tmp/det-loop-XXXXXX", sizeof d->path - 1);
    assert_non_null(mkdtemp(d->path));
    fake_init(&d->f);
    fake_master_init(&d->m);
    configure(d);
    *state = d;
    return 0;
}

static int teardown(void **state)
{
    struct dir *d = *state;
    det_ignore(fsx_remove_tree(AT_FDCWD, d->path, NULL), "the test is over");
    fake_finish(&d->f);
    fake_master_finish(&d->m);
    free(d);
    return 0;
}

static int run(struct dir *d)
{
    struct det_err err = {0};
    d->m.canceled = false;
    int rc = fake_run(&d->f, &err);
    if (rc < 0)
        print_message("loop_run: %s\n", err.text);
    return rc;
}

/* docs/contract/loop.md 5: length 6, epochs of 3, validate every 2, checkpoint every 4, report
 * every 3, policy best with equal metrics: checkpoints at 2 (the first is the best), 4 (period), 6
 * (the end). */
static double equal(int64_t trained, int64_t k)
{
    return 0.5;
}

static int on_upload_end(void *self, const char *uuid, struct det_err *err)
{
    return 0;
}

static void example_on_the_wire(void **state)
{
    struct dir *d = *state;
    d->f.n_callbacks = 1; /* training waits for it: the checkpoints' reports have their places */
    d->f.callbacks[0] = (struct loop_callback){.on_checkpoint_upload_end = on_upload_end};
    d->m.lengths[0] = 6;
    d->f.val = equal;
    d->f.config.validation_period = (struct loop_unit){.n = 2};
    d->f.config.checkpoint_period = (struct loop_unit){.n = 4};
    d->f.config.reporting_period.n = 3;
    assert_int_equal(run(d), 0);
    assert_string_equal(
        buf_str(&d->m.calls),
        "GET trial | GET operation | training | training 2 | validating | validation 2 | "
        "checkpointing | checkpoint 2 | training | training 3 | progress 3 | training | training 4 "
        "| validating | validation 4 | checkpointing | checkpoint 4 | training | training 6 | "
        "progress 6 | validating | validation 6 | completed 6=0.5 | checkpointing | checkpoint 6 | "
        "GET operation | ack");
    assert_string_equal(buf_str(&d->m.last_validation),
                        "{\"group\":\"validation\",\"metrics\":{\"metrics\":{\"avgMetrics\":"
                        "{\"val_loss\":0.5},\"batchMetrics\":null},\"stepsCompleted\":6,"
                        "\"trialId\":7,\"trialRunId\":1}}");
    assert_int_equal(d->m.epoch_length, 3);
}

/* Of data without an end nothing is said: a chart would have all of it in epoch 0. */
static void no_epochs(void **state)
{
    struct dir *d = *state;
    d->m.lengths[0] = 2;
    d->f.train_batches = INT64_MAX;
    assert_int_equal(run(d), 0);
    assert_non_null(strstr(buf_str(&d->m.calls), "completed 2"));
    assert_int_equal(d->m.epoch_length, -1);
}

static double first_diverges(int64_t trained, int64_t k)
{
    return trained == 2 ? NAN : 0.5;
}

/* The first validation is the best there is, NaN or not; what comes after a NaN is better. */
static void best_after_nan(void **state)
{
    struct dir *d = *state;
    d->m.lengths[0] = 8;
    d->f.val = first_diverges;
    d->f.config.validation_period = (struct loop_unit){.n = 2};
    assert_int_equal(run(d), 0);
    assert_non_null(strstr(buf_str(&d->m.calls), "checkpoint 2 | "));
    assert_non_null(strstr(buf_str(&d->m.calls), "checkpoint 4 | "));
    assert_null(strstr(buf_str(&d->m.calls), "checkpoint 6"));
}

static double settles(int64_t trained, int64_t k)
{
    return trained < 4 ? 0.75 : 0.5;
}

/* A run that reported its best and died before that checkpoint: what comes to it again makes it. */
static void best_again_after_a_crash(void **state)
{
    struct dir *d = *state;
    d->m.lengths[0] = 8;
    d->m.known_validation = 4;
    d->m.best = 0.5;
    d->f.val = settles;
    d->f.config.validation_period = (struct loop_unit){.n = 2};
    assert_int_equal(run(d), 0);
    assert_null(strstr(buf_str(&d->m.calls), "checkpoint 2 | "));
    assert_non_null(strstr(buf_str(&d->m.calls), "checkpoint 4 | "));
    assert_null(strstr(buf_str(&d->m.calls), "checkpoint 6 | "));
}

static void operations_follow_each_other(void **state)
{
    struct dir *d = *state;
    d->m.lengths[0] = 2;
    d->m.lengths[1] = 5;
    d->f.config.policy = LOOP_POLICY_NONE;
    assert_int_equal(run(d), 0);
    assert_string_equal(buf_str(&d->f.trace),
                        "init build_callbacks train_loader val_loader b0 b1 validate@2 "
                        "checkpoint@2 b2 b3 b4 validate@5 checkpoint@5 destroy");
}

static void master_away(void **state)
{
    struct dir *d = *state;
    d->m.lengths[0] = 4;
    d->f.config.reporting_period.n = 1;
    d->m.away = 3; /* 503, then no answer at all */
    assert_int_equal(run(d), 0);
    d->m.away = -3;
    d->m.op = 0;
    assert_int_equal(run(d), 0);
    assert_non_null(
        strstr(buf_str(&d->m.calls), "training 1 | progress 1 | training | training 2"));
}

static void older_run_ends_at_once(void **state)
{
    struct dir *d = *state;
    struct det_err err = {0};
    d->m.lengths[0] = 1000000000;
    d->m.stale_after = 5;
    d->f.config.reporting_period.n = 1;
    assert_int_equal(fake_run(&d->f, &err), DET_ESTALE);
    assert_non_null(strstr(err.text, "409: run 1 is not the current run"));
    assert_null(strstr(buf_str(&d->f.trace), "checkpoint"));
    assert_int_equal(loop_exit_code(DET_ESTALE), 75);
}

static void preempted(void **state)
{
    struct dir *d = *state;
    d->m.lengths[0] = 1000000000;
    d->m.preempt_after = 3;
    d->f.config.reporting_period.n = 2;
    assert_int_equal(run(d), 0);
    const char *calls = buf_str(&d->m.calls);
    const char *ack = strstr(calls, "ack | checkpointing | checkpoint ");
    assert_non_null(ack); /* acknowledged before the checkpoint, nothing after it */
    assert_null(strstr(ack + 34, "|"));
}

/* The wish is heard behind the validation, before the boundary that tells of progress. */
static void preempted_between_boundaries(void **state)
{
    struct dir *d = *state;
    long last = 0;
    char said[64];
    d->m.lengths[0] = 1000000000;
    d->m.preempt_after = 3;
    d->f.val = equal;
    d->f.config.validation_period = (struct loop_unit){.n = 2};
    d->f.config.reporting_period.n = 2;
    assert_int_equal(run(d), 0);
    const char *calls = buf_str(&d->m.calls);
    for (const char *p = calls; (p = strstr(p, "validation ")); p++)
        last = strtol(p + strlen("validation "), NULL, 10);
    snprintf(said, sizeof said, "| progress %ld |", last);
    assert_non_null(strstr(calls, said));
}

static void invalid_hp(void **state)
{
    struct dir *d = *state;
    d->m.lengths[0] = 10;
    d->f.fail_at = 4;
    d->f.fail_code = DET_EINVALIDHP;
    d->f.config.reporting_period.n = 2;
    assert_int_equal(run(d), 0);
    assert_non_null(
        strstr(buf_str(&d->m.calls), "checkpointing | checkpoint 4 | EXITED_REASON_INVALID_HP"));
}

static void crash_reports_what_was_done(void **state)
{
    struct dir *d = *state;
    struct det_err err = {0};
    d->m.lengths[0] = 10;
    d->f.fail_at = 4;
    d->f.config.reporting_period.n = 2;
    assert_int_equal(fake_run(&d->f, &err), DET_EDEVICE);
    assert_non_null(strstr(buf_str(&d->m.calls), "training 4"));
    assert_null(strstr(buf_str(&d->m.calls), "checkpoint"));
}

/* A master that takes calls and is silent keeps no crashed rank: what is left is det-task's to
 * send. */
static void crash_before_a_silent_master(void **state)
{
    struct dir *d = *state;
    struct det_err err = {0};
    int64_t start_ms = clk_mono_ms();
    d->m.lengths[0] = 10;
    d->m.hangs = true;
    d->f.fail_at = 1;
    assert_int_equal(fake_run(&d->f, &err), DET_EDEVICE);
    assert_in_range(clk_mono_ms() - start_ms, 0, 60000);
}

static void missing_searcher_metric(void **state)
{
    struct dir *d = *state;
    struct det_err err = {0};
    d->m.lengths[0] = 1;
    free(d->f.config.searcher_metric);
    d->f.config.searcher_metric = det_strdup("accuracy");
    assert_int_equal(fake_run(&d->f, &err), DET_EINVAL);
    assert_non_null(strstr(err.text, "\"accuracy\" is not among the validation metrics: "
                                     "\"val_loss\""));
}

/* The uuids of the checkpoints, newest first by the steps in their metadata; the master's list. */
static char *list_checkpoints(struct dir *d, char *newest)
{
    struct buf b = BUF_INIT;
    int64_t most = -1;
    buf_add_str(&b, "{\"checkpoints\":[");
    DIR *dir = opendir(d->path);
    for (struct dirent *e; (e = readdir(dir));) {
        det_cleanup(buf_finish) struct buf text = BUF_INIT;
        det_cleanup(freep) char *file = det_asprintf("%s/%s/metadata.json", d->path, e->d_name);
        if (e->d_name[0] == '.' || fsx_read_file(AT_FDCWD, file, 10000, &text, NULL) < 0)
            continue;
        JSON_OWN m = json_parse(text.p, text.len, NULL);
        int64_t steps = json_int(m, "steps_completed", -1);
        buf_addf(&b,
                 "%s{\"uuid\":\"%s\",\"state\":\"STATE_COMPLETED\",\"metadata\":"
                 "{\"steps_completed\":%lld}}",
                 b.p[b.len - 1] == '[' ? "" : ",", e->d_name, (long long)steps);
        if (steps > most) {
            most = steps;
            memcpy(newest, e->d_name, 37);
        }
    }
    closedir(dir);
    buf_add_str(&b, "]}");
    return buf_steal(&b);
}

static void falls_back_to_the_previous_checkpoint(void **state)
{
    struct dir *d = *state;
    char newest[64] = "";
    d->m.lengths[0] = 4;
    d->f.config.checkpoint_period = (struct loop_unit){.n = 2};
    d->f.config.policy = LOOP_POLICY_NONE;
    assert_int_equal(run(d), 0);
    det_cleanup(freep) char *list = list_checkpoints(d, newest);
    det_cleanup(freep) char *file = det_asprintf("%s/%s/state_dict.pth", d->path, newest);
    assert_int_equal(fsx_write_atomic(AT_FDCWD, file, "x", 1, 0644, NULL), 0);
    d->m.checkpoints = list;
    d->m.lengths[0] = 5;
    d->m.op = 0;
    d->f.config.latest_checkpoint = det_strdup(newest);
    d->f.config.steps_completed = 4;
    d->f.n_callbacks = 1;
    buf_clear(&d->f.trace);
    assert_int_equal(run(d), 0);
    assert_non_null(strstr(buf_str(&d->f.trace), "startup(2,uuid)"));
    assert_non_null(strstr(buf_str(&d->f.trace), "load(2) training_start b2"));
}

/* A run that was repeated left two checkpoints of each step. */
static void falls_back_to_another_of_the_same_step(void **state)
{
    struct dir *d = *state;
    char newest[64] = "";
    d->f.config.policy = LOOP_POLICY_NONE;
    d->m.lengths[0] = 4;
    for (int i = 0; i < 2; i++) {
        d->m.op = 0;
        assert_int_equal(run(d), 0);
    }
    det_cleanup(freep) char *list = list_checkpoints(d, newest);
    det_cleanup(freep) char *file = det_asprintf("%s/%s/state_dict.pth", d->path, newest);
    assert_int_equal(fsx_write_atomic(AT_FDCWD, file, "x", 1, 0644, NULL), 0);
    d->m.checkpoints = list;
    d->m.lengths[0] = 5;
    d->m.op = 0;
    d->f.config.latest_checkpoint = det_strdup(newest);
    d->f.config.steps_completed = 4;
    d->f.n_callbacks = 1;
    buf_clear(&d->f.trace);
    assert_int_equal(run(d), 0);
    assert_non_null(strstr(buf_str(&d->f.trace), "startup(4,uuid)"));
}

/* Trained, checkpointed and validated to the end, but the completion did not arrive. */
static void completes_after_a_restart(void **state)
{
    struct dir *d = *state;
    char newest[64] = "";
    d->m.lengths[0] = 4;
    d->f.config.policy = LOOP_POLICY_NONE;
    assert_int_equal(run(d), 0);
    det_cleanup(freep) char *list = list_checkpoints(d, newest);
    d->m.op = 0;
    d->m.known_validation = 4;
    d->f.config.latest_checkpoint = det_strdup(newest);
    d->f.config.steps_completed = 4;
    buf_clear(&d->m.calls);
    assert_int_equal(run(d), 0);
    assert_string_equal(buf_str(&d->m.calls),
                        "GET trial | GET operation | validating | validation 4 | completed 4=0.2 | "
                        "GET operation | ack");
}

/* A warm start: another trial's weights, this trial's counters. */
static void warm_start(void **state)
{
    struct dir *d = *state;
    char newest[64] = "";
    d->m.lengths[0] = 4;
    assert_int_equal(run(d), 0);
    free(list_checkpoints(d, newest));
    d->m.op = 0;
    d->f.config.trial_id = 8;
    d->f.config.latest_checkpoint = det_strdup(newest);
    buf_clear(&d->f.trace);
    assert_int_equal(run(d), 0);
    assert_non_null(strstr(buf_str(&d->f.trace), "load("));
    assert_non_null(strstr(buf_str(&d->f.trace), "b0 b1 b2 b3"));
}

/* What a run could not send lies in its spool, in order. */
static void spool_keeps_what_was_not_sent(void **state)
{
    struct dir *d = *state;
    struct det_err err = {0};
    struct spool *s = NULL;
    struct spool_record r;
    d->m.lengths[0] = 10;
    d->f.fail_at = 2;
    d->f.config.reporting_period.n = 1;
    d->f.config.spool_path = det_asprintf("%s/.spool", d->path);
    d->m.stale_after = 3;
    fake_run(&d->f, &err);
    assert_int_equal(spool_open(d->f.config.spool_path, &s, &err), 0);
    assert_int_equal(spool_next(s, &r, &err), 0);
    assert_string_equal(r.seq, "1.4");
    assert_string_equal(r.path, "/api/v1/trials/7/runner/metadata");
    spool_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        T(example_on_the_wire),
        T(no_epochs),
        T(best_after_nan),
        T(best_again_after_a_crash),
        T(operations_follow_each_other),
        T(master_away),
        T(older_run_ends_at_once),
        T(preempted),
        T(preempted_between_boundaries),
        T(invalid_hp),
        T(crash_reports_what_was_done),
        T(crash_before_a_silent_master),
        T(missing_searcher_metric),
        T(falls_back_to_the_previous_checkpoint),
        T(falls_back_to_another_of_the_same_step),
        T(completes_after_a_restart),
        T(warm_start),
        T(spool_keeps_what_was_not_sent),
    };
    return cmocka_run_group_tests_name("managed", tests, NULL, NULL);
}
