/* The trainer of a user's own program: fit once and again, periods as lists, what it refuses; and a
 * trained trial loaded for inference. The trial is y = w x with w = 1 that wants w = 3. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "det/trainer.h"
#include "fsx.h"
#include "json.h"
#include "line.h"
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/det-trainer-XXXXXX";
static struct det_err err;
static struct buf trace;

struct tiny {
    struct det_module *fc;
    struct det_optim *sgd;
};

static void create(void *self, struct det_trial_context *ctx)
{
    struct tiny *t = self;
    t->fc = line_model(ctx, 1);
    t->sgd = det_trial_wrap_optimizer(ctx, det_sgd(t->fc, .lr = det_hparam_f64(ctx, "lr")));
    buf_addf(&trace, "create(%s,%s) ", det_trial_kwargs_json(ctx),
             det_trial_arg(ctx) ? (char *)det_trial_arg(ctx) : "-");
}

static struct det_data_loader *loader(void *self, struct det_trial_context *ctx)
{
    return line_loader(ctx, 4, 2);
}

static struct det_tensor *loss_of(struct tiny *t, struct det_trial_context *ctx,
                                  const struct det_batch *batch)
{
    return line_loss(ctx, t->fc, batch);
}

static void train_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                        int64_t epoch_idx, int64_t batch_idx, struct det_metrics *m)
{
    struct tiny *t = self;
    struct det_tensor *loss = loss_of(t, ctx, batch);
    buf_addf(&trace, "b%d ", (int)batch_idx);
    det_trial_backward(ctx, loss);
    det_trial_step_optimizer(ctx, t->sgd);
    det_metrics_tensor(m, "loss", loss);
    if (det_hparam_has(ctx, "raise") && det_hparam_i64(ctx, "raise") == batch_idx)
        raise(SIGINT);
}

static void evaluate_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                           int64_t batch_idx, struct det_metrics *m)
{
    if (batch_idx == 0)
        buf_add_str(&trace, "val ");
    det_metrics_tensor(m, "val_loss", loss_of(self, ctx, batch));
}

static void saved(void *self, const char *uuid)
{
    buf_add_str(&trace, "ckpt ");
}

static void build_callbacks(void *self, struct det_trial_context *ctx)
{
    det_trial_add_callback(
        ctx, &(struct det_callback){.name = "saves", .on_checkpoint_upload_end = saved});
}

static const struct det_trial_type tiny = {.det_api_version = DET_API_VERSION,
                                           .self_bytes = sizeof(struct tiny),
                                           .create = create,
                                           .build_training_data_loader = loader,
                                           .build_validation_data_loader = loader,
                                           .train_batch = train_batch,
                                           .evaluate_batch = evaluate_batch,
                                           .build_callbacks = build_callbacks};

static double weight(struct tiny *t)
{
    float w = NAN;
    size_t n;
    const struct det_named_tensor *p = det_module_params(t->fc, &n);
    assert_int_equal(det_tensor_read(p[0].tensor, &w, sizeof w, &err), 0);
    return w;
}

/* lr 1/4: w goes half way to 3 at each step. */
static struct det_trainer *trainer(const char *hparams)
{
    struct det_trainer *t = NULL;
    struct det_trainer_options o = {
        .hparams = hparams, .checkpoint_dir = dir, .arg = "arg", .kwargs = "{\"k\":1}"};
    assert_int_equal(det_trainer_create(&tiny, &o, &t, &err), 0);
    return t;
}

static int setup(void **state)
{
    buf_clear(&trace);
    memset(&err, 0, sizeof err);
    return 0;
}

static int teardown(void **state)
{
    return fsx_remove_tree(AT_FDCWD, dir, &err);
}

static void ok(int rc)
{
    if (rc < 0)
        fail_msg("%s", err.text);
}

/* ---- the tests ---- */

static void fits_again_from_where_the_weights_are(void **state)
{
    struct det_trainer *t = trainer("{\"lr\":0.25}");
    assert_null(det_trainer_context(t));
    ok(det_trainer_fit(t, &err, .max_length = DET_BATCHES(2), .quiet = true));
    assert_true(fabs(weight(det_trainer_trial(t)) - 2.5) < 1e-6);
    ok(det_trainer_fit(t, &err, .max_length = DET_EPOCHS(1), .quiet = true));
    assert_true(fabs(weight(det_trainer_trial(t)) - 2.875) < 1e-6);
    assert_string_equal(buf_str(&trace), "create({\"k\":1},arg) b0 b1 val ckpt b0 b1 val ckpt ");
    assert_int_equal(access(det_trainer_checkpoint(t), R_OK), 0);
    det_trainer_destroy(t);
}

static void goes_on_from_a_checkpoint(void **state)
{
    struct det_trainer *t = trainer("{\"lr\":0.25}");
    ok(det_trainer_fit(t, &err, .max_length = DET_BATCHES(3), .quiet = true));
    det_cleanup(freep) char *at = det_strdup(det_trainer_checkpoint(t));
    det_trainer_destroy(t);
    t = trainer("{\"lr\":0.25}");
    buf_clear(&trace);
    ok(det_trainer_fit(t, &err, .max_length = DET_BATCHES(5), .quiet = true,
                       .latest_checkpoint = at));
    assert_string_equal(buf_str(&trace), "create({\"k\":1},arg) b3 b4 val ckpt ");
    assert_true(fabs(weight(det_trainer_trial(t)) - (3 - 2.0 / 32)) < 1e-6);
    det_trainer_destroy(t);
}

static void periods_may_be_lists(void **state)
{
    const int64_t at[] = {1, 4};
    struct det_trainer *t = trainer("{\"lr\":0.25,\"global_batch_size\":2}");
    ok(det_trainer_fit(t, &err, .max_length = DET_RECORDS(10), .quiet = true,
                       .validation_period = {.at = at, .n_at = 2},
                       .checkpoint_period = DET_EPOCHS(2), .checkpoint_policy = "none",
                       .step_zero_validation = true));
    assert_string_equal(buf_str(&trace),
                        "create({\"k\":1},arg) val b0 val b1 b2 b3 val ckpt b4 val ckpt ");
    det_trainer_destroy(t);
}

static volatile sig_atomic_t interrupted;

static void on_signal(int sig)
{
    interrupted = 1;
}

static void an_interrupt_saves(void **state)
{
    struct det_trainer *t = trainer("{\"lr\":0.25,\"raise\":2}");
    signal(SIGINT, on_signal);
    ok(det_trainer_fit(t, &err, .max_length = DET_BATCHES(1000), .quiet = true,
                       .interrupt = &interrupted));
    assert_string_equal(buf_str(&trace), "create({\"k\":1},arg) b0 b1 b2 ckpt ");
    det_trainer_destroy(t);
}

static void test_mode_does_one_of_each(void **state)
{
    struct det_trainer *t = trainer("{\"lr\":0.25}");
    ok(det_trainer_fit(t, &err, .test_mode = true, .quiet = true));
    assert_string_equal(buf_str(&trace), "create({\"k\":1},arg) b0 val ckpt ");
    det_trainer_destroy(t);
}

static void wrong_calls_say_what_to_do(void **state)
{
    struct det_trainer *t = NULL;
    struct det_trainer_options o = {.hparams = "[1]"};
    assert_int_equal(det_trainer_create(&tiny, &o, &t, &err), DET_EINVAL);
    assert_non_null(strstr(err.text, "hparams must be a JSON object"));
    o.hparams = "{\"lr\": }";
    assert_true(det_trainer_create(&tiny, &o, &t, &err) < 0);
    assert_null(t);
    t = trainer("{\"lr\":0.25}");
    assert_int_equal(det_trainer_fit(t, &err, .quiet = true), DET_EINVAL);
    assert_non_null(strstr(err.text, "max_length must be given"));
    assert_int_equal(det_trainer_fit(t, &err, .max_length = DET_BATCHES(1), .quiet = true,
                                     .checkpoint_policy = "sometimes"),
                     DET_EINVAL);
    assert_non_null(strstr(err.text, "best, all or none"));
    assert_int_equal(det_trainer_fit(t, &err, .max_length = DET_BATCHES(1), .quiet = true,
                                     .validation_period = DET_RECORDS(5)),
                     DET_EINVAL);
    assert_non_null(strstr(err.text, "global_batch_size"));
    assert_true(det_trainer_fit(t, &err, .max_length = DET_BATCHES(1), .quiet = true,
                                .latest_checkpoint = "/nowhere/x") < 0);
    assert_non_null(strstr(err.text, "/nowhere/x"));
    ok(det_trainer_fit(t, &err, .max_length = DET_BATCHES(1), .quiet = true));
    det_trainer_destroy(t);
}

static void a_trial_is_loaded_for_inference(void **state)
{
    struct det_trainer *t = trainer("{\"lr\":0.25}");
    struct det_loaded_trial *l = NULL;
    float two = 2;
    int64_t one = 1;
    ok(det_trainer_fit(t, &err, .max_length = DET_BATCHES(2), .quiet = true));
    struct det_load_options o = {.type = &tiny, .kwargs = "{\"k\":2}"};
    assert_int_equal(det_load_trial_from_checkpoint(det_trainer_checkpoint(t), NULL, &l, &err),
                     DET_EINVAL); /* a program's own trial is in no module */
    assert_non_null(strstr(err.text, ".type"));
    ok(det_load_trial_from_checkpoint(det_trainer_checkpoint(t), &o, &l, &err));
    assert_true(det_hparam_f64(det_loaded_trial_context(l), "lr") == 0.25); /* as trained */
    det_loaded_trial_destroy(l);
    o.hparams = "{\"lr\":7}";
    ok(det_load_trial_from_checkpoint(det_trainer_checkpoint(t), &o, &l, &err));
    struct det_trial_context *ctx = det_loaded_trial_context(l);
    struct tiny *self = det_loaded_trial_trial(l);
    assert_string_equal(det_trial_kwargs_json(ctx), "{\"k\":2}");
    assert_true(det_hparam_f64(ctx, "lr") == 7);
    assert_false(det_grad_enabled(det_trial_engine(ctx)));
    struct det_tensor *x = det_from_host(det_trial_engine(ctx), DET_F32, 1, &one, &two);
    assert_true(fabs(det_item(det_trial_engine(ctx), det_forward(self->fc, x)) - 5) < 1e-6);
    det_trial_is_epoch_start(ctx);
    assert_true(det_trial_failed(ctx));
    det_loaded_trial_destroy(l);
    det_trainer_destroy(t);
    assert_true(det_load_trial_from_checkpoint("/nowhere", &o, &l, &err) < 0);
    assert_non_null(strstr(err.text, "/nowhere is not a checkpoint"));
}

static void a_relative_directory_is_made_absolute(void **state)
{
    struct det_trainer *t = NULL;
    struct det_trainer_options o = {.hparams = "{\"lr\":0.25}",
                                    .checkpoint_dir = "../made/here",
                                    .arg = "arg",
                                    .kwargs = "{\"k\":1}"};
    assert_int_equal(mkdir("within", 0755), 0);
    assert_int_equal(chdir("within"), 0);
    assert_int_equal(det_trainer_create(&tiny, &o, &t, &err), 0);
    ok(det_trainer_fit(t, &err, .test_mode = true, .quiet = true));
    det_cleanup(freep) char *made = det_asprintf("%s/made/here/", dir);
    assert_memory_equal(det_trainer_checkpoint(t), made, strlen(made));
    assert_int_equal(access(det_trainer_checkpoint(t), R_OK), 0);
    det_trainer_destroy(t);
    assert_int_equal(chdir(dir), 0);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup(fn, setup)
    const struct CMUnitTest tests[] = {
        T(fits_again_from_where_the_weights_are),
        T(goes_on_from_a_checkpoint),
        T(periods_may_be_lists),
        T(an_interrupt_saves),
        T(test_mode_does_one_of_each),
        T(wrong_calls_say_what_to_do),
        T(a_trial_is_loaded_for_inference),
        T(a_relative_directory_is_made_absolute),
    };
    if (!mkdtemp(dir) || chdir(dir) < 0) /* code/ is a copy of the working directory */
        return 1;
    int rc = cmocka_run_group_tests(tests, NULL, teardown);
    buf_finish(&trace);
    return rc;
}
