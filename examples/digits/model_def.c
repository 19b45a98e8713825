/*
 * A small convolutional network that reads handwritten digits (8x8 images), as a trial.
 *
 * Hyperparameters: global_batch_size, learning_rate, dropout; optional: momentum, lr_decay.
 */
#include <det/trial.h>

#include <stdbool.h>

struct digits {
    struct det_module *net, *conv1, *conv2, *fc1, *fc2;
    struct det_optim *sgd;
    double dropout;
};

static struct det_tensor *forward(struct det_module *net, struct det_tensor *x, void *arg)
{
    struct digits *d = arg;
    struct det_engine *e = det_module_engine(net);
    x = det_relu(e, det_forward(d->conv1, x));
    x = det_relu(e, det_forward(d->conv2, x));
    x = det_max_pool2d(e, x, 2, 2, 0);
    x = det_dropout(e, det_flatten(e, x, 1), d->dropout, det_module_training(net));
    x = det_relu(e, det_forward(d->fc1, x));
    return det_forward(d->fc2, x);
}

static void create(void *self, struct det_trial_context *ctx)
{
    struct digits *d = self;
    struct det_engine *e = det_trial_engine(ctx);

    d->dropout = det_hparam_f64(ctx, "dropout");
    if (d->dropout < 0 || d->dropout >= 1)
        det_trial_invalid_hp(ctx, "dropout is %g, it must be at least 0 and below 1", d->dropout);

    d->net = det_nn_module(e);
    d->conv1 = det_module_add(d->net, "conv1", det_nn_conv2d(e, 1, 16, 3, .padding = 1));
    d->conv2 = det_module_add(d->net, "conv2", det_nn_conv2d(e, 16, 32, 3, .padding = 1));
    d->fc1 = det_module_add(d->net, "fc1", det_nn_linear(e, 32 * 4 * 4, 64));
    d->fc2 = det_module_add(d->net, "fc2", det_nn_linear(e, 64, 10));
    det_module_set_forward(d->net, forward, d);
    det_trial_wrap_model(ctx, d->net);

    bool has_momentum = det_hparam_has(ctx, "momentum");
    d->sgd = det_sgd(d->net, .lr = det_hparam_f64(ctx, "learning_rate"),
                     .momentum = has_momentum ? det_hparam_f64(ctx, "momentum") : 0.9);
    det_trial_wrap_optimizer(ctx, d->sgd);

    if (det_hparam_has(ctx, "lr_decay"))
        det_trial_wrap_lr_scheduler(ctx,
                                    det_exponential_lr(d->sgd, det_hparam_f64(ctx, "lr_decay")),
                                    DET_STEP_EVERY_EPOCH, 1);
}

/* ---- data: every fifth row is kept for validation ---- */

static bool is_validation(void *arg, int64_t row)
{
    return row % 5 == 4;
}

static bool is_training(void *arg, int64_t row)
{
    return row % 5 != 4;
}

static struct det_dataset *read_digits(struct det_trial_context *ctx,
                                       bool (*keep)(void *arg, int64_t row))
{
    static const struct det_csv_field fields[] = {
        {"image", .columns = 64, .dtype = DET_F32, .ndim = 3, .dims = {1, 8, 8}, .scale = 1.0 / 16},
        {"label", .first = 64, .columns = 1, .dtype = DET_I64},
        {0},
    };
    const char *path = det_data_str(ctx, "path", "digits.csv.gz");
    struct det_dataset *all = det_dataset_csv(
        path, &(const struct det_csv_options){.fields = fields}, det_trial_err(ctx));
    struct det_dataset *part = det_dataset_filter(all, keep, NULL, det_trial_err(ctx));
    det_dataset_unref(all);
    return part;
}

static struct det_data_loader *training_loader(void *self, struct det_trial_context *ctx)
{
    return det_data_loader(read_digits(ctx, is_training), det_trial_err(ctx),
                           .batch_size = det_trial_per_slot_batch_size(ctx), .shuffle = true);
}

static struct det_data_loader *validation_loader(void *self, struct det_trial_context *ctx)
{
    return det_data_loader(read_digits(ctx, is_validation), det_trial_err(ctx), .batch_size = 60);
}

/* ---- training ---- */

static void train_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                        int64_t epoch_idx, int64_t batch_idx, struct det_metrics *metrics)
{
    struct digits *d = self;
    struct det_engine *e = det_trial_engine(ctx);
    struct det_tensor *label = det_batch_tensor(batch, "label");

    struct det_tensor *out = det_forward(d->net, det_batch_tensor(batch, "image"));
    struct det_tensor *loss = det_cross_entropy(e, out, label);
    det_trial_backward(ctx, loss);
    det_trial_step_optimizer(ctx, d->sgd, .clip_norm = 5);

    det_metrics_tensor(metrics, "loss", loss);
}

static void evaluate_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                           int64_t batch_idx, struct det_metrics *metrics)
{
    struct digits *d = self;
    struct det_engine *e = det_trial_engine(ctx);
    struct det_tensor *label = det_batch_tensor(batch, "label");

    struct det_tensor *out = det_forward(d->net, det_batch_tensor(batch, "image"));
    det_metrics_tensor(metrics, "validation_loss", det_cross_entropy(e, out, label));
    det_metrics_tensor(metrics, "accuracy", det_accuracy(e, out, label));
}

const struct det_trial_type DigitsTrial = {
    .det_api_version = DET_API_VERSION,
    .self_bytes = sizeof(struct digits),
    .create = create,
    .build_training_data_loader = training_loader,
    .build_validation_data_loader = validation_loader,
    .train_batch = train_batch,
    .evaluate_batch = evaluate_batch,
};
