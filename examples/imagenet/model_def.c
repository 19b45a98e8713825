/*
 * A residual network over an image folder, as PyTorch's ImageNet example trains it: random resized
 * crops and flips, SGD with momentum, the learning rate divided by ten every 30 epochs.
 *
 * data.path names a directory with train/ and val/, each with one subdirectory of JPEG files per
 * class, on every host.
 */
#include <det/trial.h>
#include <det/vision.h>
#include <det/weights.h>

#include <stdio.h>
#include <string.h>

struct imagenet {
    struct det_dataset *train;
    struct det_module *net;
    struct det_optim *sgd;
};

/* ---- data ---- */

static struct det_dataset *folder(struct det_trial_context *ctx, const char *part,
                                  const struct det_image_step *steps)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", det_data_str(ctx, "path", "."), part);
    return det_dataset_image_folder(
        &(const struct det_image_folder_options){.path = path, .steps = steps}, det_trial_err(ctx));
}

static struct det_dataset *training_set(struct det_trial_context *ctx)
{
    const struct det_image_step steps[] = {
        {DET_RANDOM_RESIZED_CROP, .size = (int)det_hparam_i64(ctx, "image_size")},
        {.op = DET_RANDOM_HORIZONTAL_FLIP},
        {DET_NORMALIZE, .mean = DET_IMAGENET_MEAN, .std = DET_IMAGENET_STD},
        {0},
    };
    return folder(ctx, "train", steps);
}

/* The middle of the image, an eighth of it left out on either side. */
static struct det_dataset *validation_set(struct det_trial_context *ctx)
{
    int size = (int)det_hparam_i64(ctx, "image_size");
    const struct det_image_step steps[] = {
        {DET_RESIZE, .size = size * 8 / 7},
        {DET_CENTER_CROP, .size = size},
        {DET_NORMALIZE, .mean = DET_IMAGENET_MEAN, .std = DET_IMAGENET_STD},
        {0},
    };
    return folder(ctx, "val", steps);
}

static struct det_data_loader *loader(struct det_trial_context *ctx, struct det_dataset *ds,
                                      bool shuffle)
{
    return det_data_loader(ds, det_trial_err(ctx), .shuffle = shuffle,
                           .workers = (int)det_data_i64(ctx, "workers", 2),
                           .batch_size = det_trial_per_slot_batch_size(ctx));
}

static struct det_data_loader *training_loader(void *self, struct det_trial_context *ctx)
{
    struct imagenet *n = self;
    return loader(ctx, det_dataset_ref(n->train), true);
}

static struct det_data_loader *validation_loader(void *self, struct det_trial_context *ctx)
{
    return loader(ctx, validation_set(ctx), false);
}

/* ---- the model ---- */

static int64_t count_classes(const struct det_dataset *ds)
{
    int64_t n = 0;
    while (det_dataset_class_name(ds, n))
        n++;
    return n;
}

static const char *but_the_last_layer(void *arg, const char *name)
{
    return strncmp(name, "fc.", 3) == 0 ? NULL : name;
}

/* torchvision's weights, say; where the classes are others, all but the last layer's. */
static void load_pretrained(struct imagenet *n, struct det_trial_context *ctx)
{
    const char *path = det_data_str(ctx, "pretrained", "");
    bool other = count_classes(n->train) != 1000;
    if (*path)
        det_module_load_file(n->net, path, det_trial_err(ctx), .partial = other,
                             .map = other ? but_the_last_layer : NULL);
}

static void create(void *self, struct det_trial_context *ctx)
{
    struct imagenet *n = self;
    n->train = training_set(ctx);
    n->net = det_nn_resnet(det_trial_engine(ctx), (int)det_hparam_i64(ctx, "depth"),
                           .classes = count_classes(n->train));
    load_pretrained(n, ctx);
    det_trial_wrap_model(ctx, n->net);
    n->sgd = det_trial_wrap_optimizer(
        ctx, det_sgd(n->net, .lr = det_hparam_f64(ctx, "learning_rate"), .momentum = 0.9,
                     .weight_decay = det_hparam_f64(ctx, "weight_decay")));
    det_trial_wrap_lr_scheduler(ctx, det_step_lr(n->sgd, 30, 0.1), DET_STEP_EVERY_EPOCH, 1);
}

static void destroy(void *self, struct det_trial_context *ctx)
{
    struct imagenet *n = self;
    det_dataset_unref(n->train);
}

/* ---- training ---- */

static void train_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                        int64_t epoch_idx, int64_t batch_idx, struct det_metrics *metrics)
{
    struct imagenet *n = self;
    struct det_tensor *out = det_forward(n->net, det_batch_tensor(batch, "image"));
    struct det_tensor *loss =
        det_cross_entropy(det_trial_engine(ctx), out, det_batch_tensor(batch, "label"));
    det_trial_backward(ctx, loss);
    det_trial_step_optimizer(ctx, n->sgd);
    det_metrics_tensor(metrics, "loss", loss);
}

static void evaluate_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                           int64_t batch_idx, struct det_metrics *metrics)
{
    struct imagenet *n = self;
    struct det_engine *e = det_trial_engine(ctx);
    struct det_tensor *label = det_batch_tensor(batch, "label");
    struct det_tensor *out = det_forward(n->net, det_batch_tensor(batch, "image"));
    det_metrics_tensor(metrics, "validation_loss", det_cross_entropy(e, out, label));
    det_metrics_tensor(metrics, "accuracy", det_accuracy(e, out, label));
}

const struct det_trial_type ImageNetTrial = {
    .det_api_version = DET_API_VERSION,
    .self_bytes = sizeof(struct imagenet),
    .create = create,
    .destroy = destroy,
    .build_training_data_loader = training_loader,
    .build_validation_data_loader = validation_loader,
    .train_batch = train_batch,
    .evaluate_batch = evaluate_batch,
};
