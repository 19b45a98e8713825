/*
 * CIFAR-10 by a residual network with the stem for small images: random crops and flips, SGD with
 * Nesterov momentum under one cycle of the learning rate.
 *
 * data.path names a directory of the binary version: data_batch_1.bin, ... and test_batch.bin.
 */
#include <det/trial.h>
#include <det/vision.h>

#include <stdio.h>
#include <unistd.h>

/* clang-format off */
#define MEAN {0.4914, 0.4822, 0.4465}
#define STD  {0.2470, 0.2435, 0.2616}
/* clang-format on */

struct cifar {
    struct det_dataset *train;
    struct det_module *net;
    struct det_optim *sgd;
    double label_smoothing;
};

/* ---- data ---- */

static const struct det_image_step for_training[] = {
    {DET_RANDOM_CROP, .size = 32, .padding = 4},
    {.op = DET_RANDOM_HORIZONTAL_FLIP},
    {DET_NORMALIZE, .mean = MEAN, .std = STD},
    {0},
};
static const struct det_image_step for_validation[] = {
    {DET_NORMALIZE, .mean = MEAN, .std = STD},
    {0},
};

/* data_batch_1.bin to data_batch_5.bin: as many of them as there are. */
static struct det_dataset *training_set(struct det_trial_context *ctx)
{
    char paths[5][4096];
    const char *files[6] = {0};
    const char *dir = det_data_str(ctx, "path", ".");
    for (int i = 0; i < 5; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/data_batch_%d.bin", dir, i + 1);
        if (i > 0 && access(paths[i], R_OK) != 0)
            break;
        files[i] = paths[i];
    }
    return det_dataset_cifar(
        &(const struct det_cifar_options){.files = files, .steps = for_training},
        det_trial_err(ctx));
}

static struct det_data_loader *training_loader(void *self, struct det_trial_context *ctx)
{
    struct cifar *c = self;
    return det_data_loader(det_dataset_ref(c->train), det_trial_err(ctx), .shuffle = true,
                           .workers = (int)det_data_i64(ctx, "workers", 1),
                           .batch_size = det_trial_per_slot_batch_size(ctx));
}

static struct det_data_loader *validation_loader(void *self, struct det_trial_context *ctx)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/test_batch.bin", det_data_str(ctx, "path", "."));
    const char *const files[] = {path, NULL};
    return det_data_loader(
        det_dataset_cifar(
            &(const struct det_cifar_options){.files = files, .steps = for_validation},
            det_trial_err(ctx)),
        det_trial_err(ctx), .batch_size = 100);
}

/* ---- the model ---- */

static void create(void *self, struct det_trial_context *ctx)
{
    struct cifar *c = self;
    c->label_smoothing = det_hparam_f64(ctx, "label_smoothing");
    if (det_hparam_bool(ctx, "amp"))
        det_trial_use_amp(ctx); /* mixed precision, bf16 on a CPU */
    c->train = training_set(ctx);
    c->net = det_nn_resnet(det_trial_engine(ctx), (int)det_hparam_i64(ctx, "depth"), .classes = 10,
                           .small_images = true);
    det_trial_wrap_model(ctx, c->net);
    c->sgd = det_trial_wrap_optimizer(
        ctx, det_sgd(c->net, .lr = det_hparam_f64(ctx, "max_lr"), .momentum = 0.9, .nesterov = true,
                     .weight_decay = det_hparam_f64(ctx, "weight_decay")));

    /* The cycle is as long as the training. */
    int64_t batch = det_trial_global_batch_size(ctx);
    int64_t batches = batch ? (det_dataset_length(c->train) + batch - 1) / batch : 0;
    det_trial_wrap_lr_scheduler(ctx,
                                det_one_cycle_lr(c->sgd, det_hparam_f64(ctx, "max_lr"),
                                                 batches * det_hparam_i64(ctx, "epochs")),
                                DET_STEP_EVERY_BATCH, 1);
}

static void destroy(void *self, struct det_trial_context *ctx)
{
    struct cifar *c = self;
    det_dataset_unref(c->train);
}

/* ---- training ---- */

static void train_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                        int64_t epoch_idx, int64_t batch_idx, struct det_metrics *metrics)
{
    struct cifar *c = self;
    struct det_engine *e = det_trial_engine(ctx);
    struct det_tensor *label = det_batch_tensor(batch, "label");
    struct det_tensor *out = det_forward(c->net, det_batch_tensor(batch, "image"));
    struct det_tensor *loss =
        det_cross_entropy(e, out, label, .label_smoothing = c->label_smoothing);
    det_trial_backward(ctx, loss);
    det_trial_step_optimizer(ctx, c->sgd);
    det_metrics_tensor(metrics, "loss", loss);
    det_metrics_tensor(metrics, "train_accuracy", det_accuracy(e, out, label));
}

static void evaluate_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                           int64_t batch_idx, struct det_metrics *metrics)
{
    struct cifar *c = self;
    struct det_engine *e = det_trial_engine(ctx);
    struct det_tensor *label = det_batch_tensor(batch, "label");
    struct det_tensor *out = det_forward(c->net, det_batch_tensor(batch, "image"));
    det_metrics_tensor(metrics, "validation_loss", det_cross_entropy(e, out, label));
    det_metrics_tensor(metrics, "accuracy", det_accuracy(e, out, label));
}

const struct det_trial_type CifarTrial = {
    .det_api_version = DET_API_VERSION,
    .self_bytes = sizeof(struct cifar),
    .create = create,
    .destroy = destroy,
    .build_training_data_loader = training_loader,
    .build_validation_data_loader = validation_loader,
    .train_batch = train_batch,
    .evaluate_batch = evaluate_batch,
};
