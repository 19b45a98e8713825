/* Mixed precision of a trial: with a gradient scaler of its own the steps are those without, and
 * its state goes through the checkpoint; use_amp computes in bf16. y = w x with w = 1 wants 3; lr
 * 1/4 goes half way each time. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "det/trainer.h"
#include "fsx.h"
#include "line.h"
#include "mem.h"
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static char dir[] = "/tmp/det-scaler-XXXXXX";
static struct det_err err;

struct tiny {
    struct det_grad_scaler *scaler;
    struct det_module *fc;
    struct det_optim *sgd;
};

static void create(void *self, struct det_trial_context *ctx)
{
    struct tiny *t = self;
    struct det_engine *e = det_trial_engine(ctx);
    t->scaler =
        det_trial_wrap_scaler(ctx, det_grad_scaler(e, .init_scale = 8, .growth_interval = 2));
    t->fc = line_model(ctx, 1);
    t->sgd = det_trial_wrap_optimizer(ctx, det_sgd(t->fc, .lr = 0.25));
}

static struct det_data_loader *loader(void *self, struct det_trial_context *ctx)
{
    return line_loader(ctx, 2, 1);
}

static struct det_tensor *loss_of(struct tiny *t, struct det_trial_context *ctx,
                                  const struct det_batch *batch)
{
    return line_loss(ctx, t->fc, batch);
}

/* The third batch overflows: its step is left out, and the scale halved. */
static void train_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                        int64_t epoch_idx, int64_t batch_idx, struct det_metrics *m)
{
    struct tiny *t = self;
    struct det_tensor *loss = loss_of(t, ctx, batch);
    if (batch_idx == 2)
        loss = det_scale(det_trial_engine(ctx), loss, INFINITY);
    det_trial_backward(ctx, det_grad_scaler_scale(t->scaler, loss));
    det_trial_step_optimizer(ctx, t->sgd, .scaler = t->scaler);
    det_grad_scaler_update(t->scaler);
    det_metrics_f64(m, "scale", det_grad_scaler_get_scale(t->scaler));
}

static void evaluate_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                           int64_t batch_idx, struct det_metrics *m)
{
    det_metrics_tensor(m, "val_loss", loss_of(self, ctx, batch));
}

static const struct det_trial_type tiny = {.det_api_version = DET_API_VERSION,
                                           .self_bytes = sizeof(struct tiny),
                                           .create = create,
                                           .build_training_data_loader = loader,
                                           .build_validation_data_loader = loader,
                                           .train_batch = train_batch,
                                           .evaluate_batch = evaluate_batch};

/* Gradients of -4 and -3.5 are clipped to 1 as without the scale, whoever unscales them. */
static void train_clipped(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                          int64_t epoch_idx, int64_t batch_idx, struct det_metrics *m)
{
    struct tiny *t = self;
    det_trial_backward(ctx, det_grad_scaler_scale(t->scaler, loss_of(t, ctx, batch)));
    if (batch_idx == 1)
        det_grad_scaler_unscale(t->scaler, t->sgd);
    det_trial_step_optimizer(ctx, t->sgd, .scaler = t->scaler, .clip_norm = 1);
    det_grad_scaler_update(t->scaler);
    det_metrics_f64(m, "scale", det_grad_scaler_get_scale(t->scaler));
}

static const struct det_trial_type clipped = {.det_api_version = DET_API_VERSION,
                                              .self_bytes = sizeof(struct tiny),
                                              .create = create,
                                              .build_training_data_loader = loader,
                                              .build_validation_data_loader = loader,
                                              .train_batch = train_clipped,
                                              .evaluate_batch = evaluate_batch};

/* use_amp: x = w = 1 + 2^-9 is 1 in bf16, where a product is made; the weight stays f32. */
static void create_amp(void *self, struct det_trial_context *ctx)
{
    struct tiny *t = self;
    det_trial_use_amp(ctx);
    t->fc = line_model(ctx, 1 + 0x1p-9f);
    t->sgd = det_trial_wrap_optimizer(ctx, det_sgd(t->fc, .lr = 0.25));
    t->scaler = NULL;
}

static void train_amp(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                      int64_t epoch_idx, int64_t batch_idx, struct det_metrics *m)
{
    struct tiny *t = self;
    struct det_engine *e = det_trial_engine(ctx);
    assert_int_equal(det_autocast_dtype(e), DET_BF16);
    struct det_tensor *loss = loss_of(t, ctx, batch);
    det_metrics_tensor(m, "loss", loss);
    if (batch_idx == 0)
        assert_true(det_item(e, loss) == 4);
    det_trial_backward(ctx, loss);
    det_trial_step_optimizer(ctx, t->sgd, .clip_norm = 1);
    assert_int_equal(det_autocast_dtype(e), DET_BF16);
    if (batch_idx == 0) /* the new weight is cast anew: (1.25 - 3)^2 */
        assert_true(det_item(e, loss_of(t, ctx, batch)) == 1.75 * 1.75);
}

static const struct det_trial_type amp = {.det_api_version = DET_API_VERSION,
                                          .self_bytes = sizeof(struct tiny),
                                          .create = create_amp,
                                          .build_training_data_loader = loader,
                                          .build_validation_data_loader = loader,
                                          .train_batch = train_amp,
                                          .evaluate_batch = evaluate_batch};

static void expect(struct det_trainer *t, double w, double scale)
{
    struct tiny *self = det_trainer_trial(t);
    float now = NAN;
    size_t n;
    det_tensor_read(det_module_params(self->fc, &n)[0].tensor, &now, sizeof now, &err);
    assert_true(fabs(now - w) < 1e-6);
    assert_true(det_grad_scaler_get_scale(self->scaler) == scale);
}

static struct det_trainer *trainer(const struct det_trial_type *type)
{
    struct det_trainer *t = NULL;
    struct det_trainer_options o = {.checkpoint_dir = dir};
    assert_int_equal(det_trainer_create(type, &o, &t, &err), 0);
    return t;
}

static void scales_and_is_restored(void **state)
{
    struct det_trainer *t = trainer(&tiny);
    if (det_trainer_fit(t, &err, .max_length = DET_BATCHES(2), .quiet = true) < 0)
        fail_msg("%s", err.text);
    expect(t, 2.5, 16);
    det_cleanup(freep) char *at = det_strdup(det_trainer_checkpoint(t));
    det_trainer_destroy(t);
    t = trainer(&tiny);
    if (det_trainer_fit(t, &err, .max_length = DET_BATCHES(4), .quiet = true,
                        .latest_checkpoint = at) < 0)
        fail_msg("%s", err.text);
    expect(t, 2.75, 8);
    det_trainer_destroy(t);
}

static void clips_what_is_unscaled(void **state)
{
    struct det_trainer *t = trainer(&clipped);
    if (det_trainer_fit(t, &err, .max_length = DET_BATCHES(2), .quiet = true) < 0)
        fail_msg("%s", err.text);
    expect(t, 1.5, 16);
    det_trainer_destroy(t);
}

static void amp_computes_in_bf16(void **state)
{
    struct det_trainer *t = NULL;
    struct det_trainer_options o = {.checkpoint_dir = dir};
    assert_int_equal(det_trainer_create(&amp, &o, &t, &err), 0);
    if (det_trainer_fit(t, &err, .max_length = DET_BATCHES(1), .quiet = true) < 0)
        fail_msg("%s", err.text);
    struct det_trial_context *ctx = det_trainer_context(t);
    struct tiny *self = det_trainer_trial(t);
    float now = 0;
    size_t n;
    assert_int_equal(det_autocast_dtype(det_trial_engine(ctx)), DET_F32);
    det_tensor_read(det_module_params(self->fc, &n)[0].tensor, &now, sizeof now, &err);
    assert_true(fabs(now - (1 + 0x1p-9 + 0.25)) < 1e-5); /* clipped to 1, lr 1/4 */
    det_trainer_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(scales_and_is_restored),
                                       cmocka_unit_test(clips_what_is_unscaled),
                                       cmocka_unit_test(amp_computes_in_bf16)};
    if (!mkdtemp(dir) || chdir(dir) < 0)
        return 1;
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    det_ignore(fsx_remove_tree(AT_FDCWD, dir, NULL), "the test is over");
    return rc;
}
