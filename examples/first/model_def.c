/* A network of two layers learns the sine. */
#include <det/trial.h>
#include <math.h>

struct sine {
    struct det_module *net;
    struct det_optim *adam;
};

static void create(void *self, struct det_trial_context *ctx)
{
    struct sine *s = self;
    struct det_engine *e = det_trial_engine(ctx);
    s->net = det_nn_sequential(e,
        det_nn_linear(e, 1, 32),
        det_nn_tanh(e),
        det_nn_linear(e, 32, 1));
    det_trial_wrap_model(ctx, s->net);
    double lr = det_hparam_f64(ctx, "lr");
    s->adam = det_trial_wrap_optimizer(
        ctx, det_adam(s->net, .lr = lr));
}

static struct det_data_loader *data(
    void *self, struct det_trial_context *ctx)
{
    struct det_err *err = det_trial_err(ctx);
    float x[512], y[512];
    for (int i = 0; i < 512; i++) {
        x[i] = (float)(i - 256) / 80;
        y[i] = sinf(x[i]);
    }
    int64_t one[] = {1}, n = det_trial_per_slot_batch_size(ctx);
    struct det_dataset *ds = det_dataset_create(512, err);
    det_dataset_add(ds, "x", DET_F32, 1, one, x, err);
    det_dataset_add(ds, "y", DET_F32, 1, one, y, err);
    return det_data_loader(ds, err, .batch_size = n,
                           .shuffle = true);
}

static struct det_tensor *loss_of(
    struct sine *s, struct det_trial_context *ctx,
    const struct det_batch *b)
{
    struct det_engine *e = det_trial_engine(ctx);
    struct det_tensor *x = det_batch_tensor(b, "x");
    struct det_tensor *y = det_batch_tensor(b, "y");
    return det_mse_loss(e, det_forward(s->net, x), y);
}

static void train_batch(
    void *self, struct det_trial_context *ctx,
    const struct det_batch *batch, int64_t epoch_idx,
    int64_t batch_idx, struct det_metrics *metrics)
{
    struct sine *s = self;
    struct det_tensor *loss = loss_of(s, ctx, batch);
    det_trial_backward(ctx, loss);
    det_trial_step_optimizer(ctx, s->adam);
    det_metrics_tensor(metrics, "loss", loss);
}

static void evaluate_batch(
    void *self, struct det_trial_context *ctx,
    const struct det_batch *batch, int64_t batch_idx,
    struct det_metrics *metrics)
{
    det_metrics_tensor(metrics, "validation_loss",
                       loss_of(self, ctx, batch));
}

const struct det_trial_type SineTrial = {
    .det_api_version = DET_API_VERSION,
    .self_bytes = sizeof(struct sine),
    .create = create,
    .build_training_data_loader = data,
    .build_validation_data_loader = data,
    .train_batch = train_batch,
    .evaluate_batch = evaluate_batch,
};
