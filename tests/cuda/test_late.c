/* Metrics that stay on the device until somebody looks, on the emulated one: a single rank, whose
 * batches have a target that is out of range, which the device says once and late. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fsx.h"
#include "mem.h"
#include "trial_context.h"
#include "trial_loop.h"

enum { RECORDS = 12, BATCH = 2, BATCHES = RECORDS / BATCH, BAD = 4, MANY = 1200 };

static char dir[] = "/tmp/det-late-XXXXXX";

/* ---- the numbers alone ---- */

static struct det_engine *open_engine(void)
{
    struct det_engine *e;
    struct det_err err;
    const struct det_engine_options o = {.device = "cuda", .seed = 1, .threads = 1};
    if (det_engine_create(&o, &e, &err) < 0)
        fail_msg("%s", err.text);
    return e;
}

/* The loss of a target that is out of range. */
static struct det_tensor *bad_loss(struct det_engine *e)
{
    const int64_t target[] = {7}, n = 1;
    struct det_tensor *y = det_host_tensor(DET_I64, 1, &n, NULL);
    memcpy(det_tensor_data(y), target, sizeof target);
    struct det_tensor *x = det_zeros(e, DET_F32, 2, (int64_t[]){1, 3});
    struct det_tensor *loss = det_cross_entropy(e, x, y);
    det_tensor_unref(y);
    return loss;
}

/* Each lies at its ticket, whatever became of its tensor; tickets begin anew after a reading. */
static void test_many_numbers(void **state)
{
    struct det_engine *e = open_engine();
    struct trial_late late = {0};
    struct det_err err;
    const double *v;
    size_t ticket, n;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < MANY; i++) {
            struct det_tensor *t = det_full(e, DET_F32, 0, NULL, i + round);
            assert_true(trial_late_put(&late, e, t, &ticket));
            assert_int_equal(ticket, i);
            det_engine_step_end(e);
        }
        assert_true(trial_late_look(&late, 0) == round);
        assert_true(trial_late_look(&late, MANY - 1) == MANY - 1 + round);
        assert_true(isnan(trial_late_look(&late, MANY)));
        assert_int_equal(trial_late_read(&late, &v, &n, &err), 0);
        assert_int_equal(n, MANY);
        for (int i = 0; i < MANY; i++)
            assert_true(v[i] == i + round);
    }
    assert_int_equal(det_engine_error(e, &err), 0);
    trial_late_finish(&late);
    det_engine_destroy(e);
}

static void test_a_reading_that_fails(void **state)
{
    struct det_engine *e = open_engine();
    struct trial_late late = {0};
    struct det_err err;
    const double *v;
    size_t ticket, n = 1;
    assert_true(trial_late_put(&late, e, bad_loss(e), &ticket));
    assert_int_equal(trial_late_read(&late, &v, &n, &err), DET_EINVAL);
    assert_non_null(strstr(err.text, "out of range"));
    assert_int_equal(n, 0);
    assert_true(trial_late_put(&late, e, det_full(e, DET_F32, 0, NULL, 5), &ticket));
    assert_int_equal(ticket, 0);
    assert_true(trial_late_look(&late, 0) == 5);
    trial_late_finish(&late);
    det_engine_destroy(e);
}

static void test_a_look_that_fails(void **state)
{
    struct det_engine *e = open_engine();
    struct trial_late late = {0};
    struct det_err err;
    size_t ticket;
    assert_true(trial_late_put(&late, e, bad_loss(e), &ticket));
    assert_true(isnan(trial_late_look(&late, ticket)));
    assert_int_equal(det_engine_error(e, &err), DET_EINVAL);
    assert_non_null(strstr(err.text, "out of range"));
    trial_late_finish(&late);
    det_engine_destroy(e);
}

/* ---- a trial ---- */

struct linear {
    struct det_module *fc;
    struct det_optim *sgd;
};

static int64_t bad_at; /* of the first batch with a bad target; -1: none */
static bool looks;     /* within the hook */
static int64_t wanted; /* by the observer: every so many batches one; 0: there is none */
static int64_t shown;
static double seen[BATCHES];

static void create(void *self, struct det_trial_context *ctx)
{
    struct linear *t = self;
    t->fc = det_trial_wrap_model(ctx, det_nn_linear(det_trial_engine(ctx), 1, 3));
    t->sgd = det_trial_wrap_optimizer(ctx, det_sgd(t->fc, .lr = 0.01));
}

static struct det_data_loader *loader(void *self, struct det_trial_context *ctx)
{
    float x[RECORDS] = {0};
    int64_t one = 1;
    struct det_dataset *ds = det_dataset_create(RECORDS, det_trial_err(ctx));
    det_dataset_add(ds, "x", DET_F32, 1, &one, x, det_trial_err(ctx));
    return det_data_loader(ds, det_trial_err(ctx), .batch_size = BATCH);
}

static void train_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                        int64_t epoch_idx, int64_t batch_idx, struct det_metrics *m)
{
    struct linear *t = self;
    struct det_engine *e = det_trial_engine(ctx);
    struct det_tensor *out = det_forward(t->fc, det_batch_tensor(batch, "x"));
    det_trial_backward(ctx, det_mean(e, det_mul(e, out, out)));
    det_trial_step_optimizer(ctx, t->sgd);
    det_metrics_tensor(m, "batch", det_full(e, DET_F32, 0, NULL, (double)batch_idx));
    det_metrics_tensor(m, "bad",
                       batch_idx == bad_at ? bad_loss(e) : det_zeros(e, DET_F32, 0, NULL));
    if (looks)
        seen[batch_idx] = det_metrics_get(m, "batch");
}

static void evaluate_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                           int64_t batch_idx, struct det_metrics *m)
{
    det_metrics_f64(m, "val", 1);
}

static const struct det_trial_type linear = {.det_api_version = DET_API_VERSION,
                                             .self_bytes = sizeof(struct linear),
                                             .create = create,
                                             .build_training_data_loader = loader,
                                             .build_validation_data_loader = loader,
                                             .train_batch = train_batch,
                                             .evaluate_batch = evaluate_batch};

static bool wants_batch(void *self, const struct loop *l)
{
    return loop_batches_trained(l) % wanted == 0;
}

static void on_batch(void *self, const struct loop *l, const struct loop_metrics *m)
{
    double v;
    assert_true(loop_metric_scalar(loop_metrics_find(m, "batch"), &v));
    assert_true(v == (double)loop_batches_trained(l) - 1);
    shown++;
}

static void on_training(void *self, int64_t steps, const struct loop_metrics *avg)
{
    double v;
    assert_true(loop_metric_scalar(loop_metrics_find(avg, "batch"), &v));
    assert_true(v == (BATCHES - 1) / 2.0);
}

/* One scheduling unit of all batches. */
static int run(struct det_err *err)
{
    struct det_loop_config c = LOOP_CONFIG_INIT;
    c.observer = (struct loop_observer){
        .training = on_training, .wants_batch = wants_batch, .batch = wanted ? on_batch : NULL};
    c.max_length = BATCHES;
    c.reporting_period.n = BATCHES;
    c.policy = LOOP_POLICY_NONE;
    c.checkpoint_dir = det_strdup(dir);
    struct trial_run *r = trial_run_create(&linear);
    struct det_loop_trial client = trial_run_client(r);
    shown = 0;
    int rc = loop_run(&c, &client, err);
    trial_run_destroy(r);
    loop_config_finish(&c);
    return rc;
}

static void test_a_hook_looks(void **state)
{
    struct det_err err;
    bad_at = -1;
    looks = true;
    wanted = 0;
    if (run(&err) < 0)
        fail_msg("%s", err.text);
    for (int i = 0; i < BATCHES; i++)
        assert_true(seen[i] == i);
}

/* What the device said to the hook's look is not lost. */
static void test_a_look_that_fails_ends_its_batch(void **state)
{
    struct det_err err;
    bad_at = BAD;
    looks = true;
    wanted = 0;
    assert_true(run(&err) < 0);
    assert_non_null(strstr(err.text, "train_batch, batch 4"));
    assert_non_null(strstr(err.text, "out of range"));
}

static void test_an_observer_sees_batches(void **state)
{
    struct det_err err;
    bad_at = -1;
    looks = false;
    for (wanted = 1; wanted <= 3; wanted++) {
        if (run(&err) < 0)
            fail_msg("%s", err.text);
        assert_int_equal(shown, BATCHES / wanted);
    }
}

/* The batches since the device was asked last. */
static void test_a_late_failure_names_its_batches(void **state)
{
    struct det_err err;
    bad_at = BAD;
    looks = false;
    wanted = 0;
    assert_true(run(&err) < 0);
    assert_non_null(strstr(err.text, "training metrics of batches 0 to 5 "));
    assert_non_null(strstr(err.text, "out of range"));
    wanted = 3;
    assert_true(run(&err) < 0);
    assert_non_null(strstr(err.text, "training metrics of batches 3 to 5 "));
    assert_int_equal(shown, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_numbers),
        cmocka_unit_test(test_a_reading_that_fails),
        cmocka_unit_test(test_a_look_that_fails),
        cmocka_unit_test(test_a_hook_looks),
        cmocka_unit_test(test_a_look_that_fails_ends_its_batch),
        cmocka_unit_test(test_an_observer_sees_batches),
        cmocka_unit_test(test_a_late_failure_names_its_batches),
    };
    setenv("DET_DEVICE", "cuda", 1);
    if (!mkdtemp(dir))
        return 1;
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    det_ignore(fsx_remove_tree(AT_FDCWD, dir, NULL), "the test is over");
    return rc;
}
