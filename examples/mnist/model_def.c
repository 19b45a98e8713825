/*
 * MNIST with the network of PyTorch's own example: two 3x3 convolutions, max pooling, dropout, two
 * linear layers, Adam with a falling learning rate.
 *
 * data.path names a directory of IDX files, plain or .gz. Where train-* and t10k-* are both there
 * they are the training and the validation set; of a lone t10k-* the first 8,000 images train and
 * the last 2,000 validate.
 */
#include <det/trial.h>

#include <stdio.h>
#include <unistd.h>

struct mnist {
    struct det_module *net;
    struct det_optim *adam;
};

static void create(void *self, struct det_trial_context *ctx)
{
    struct mnist *m = self;
    struct det_engine *e = det_trial_engine(ctx);
    int64_t n1 = det_hparam_i64(ctx, "n_filters1"), n2 = det_hparam_i64(ctx, "n_filters2");

    m->net = det_nn_sequential(
        e, det_nn_conv2d(e, 1, n1, 3), det_nn_relu(e), det_nn_conv2d(e, n1, n2, 3), det_nn_relu(e),
        det_nn_max_pool2d(e, 2, 2, 0), det_nn_dropout(e, det_hparam_f64(ctx, "dropout1")),
        det_nn_flatten(e), det_nn_linear(e, n2 * 12 * 12, 128), det_nn_relu(e),
        det_nn_dropout(e, det_hparam_f64(ctx, "dropout2")), det_nn_linear(e, 128, 10),
        det_nn_log_softmax(e));
    det_trial_wrap_model(ctx, m->net);
    m->adam =
        det_trial_wrap_optimizer(ctx, det_adam(m->net, .lr = det_hparam_f64(ctx, "learning_rate")));
    det_trial_wrap_lr_scheduler(ctx, det_step_lr(m->adam, 1, 0.7), DET_STEP_EVERY_EPOCH, 1);
}

/* ---- data ---- */

static const char *find(struct det_trial_context *ctx, const char *name, char path[4096])
{
    const char *dir = det_data_str(ctx, "path", ".");
    snprintf(path, 4096, "%s/%s", dir, name);
    if (access(path, R_OK) != 0)
        snprintf(path, 4096, "%s/%s.gz", dir, name);
    return access(path, R_OK) == 0 ? path : NULL;
}

static struct det_dataset *read_set(struct det_trial_context *ctx, const char *set)
{
    char name[64], images[4096], labels[4096];
    snprintf(name, sizeof name, "%s-images-idx3-ubyte", set);
    bool found = find(ctx, name, images);
    snprintf(name, sizeof name, "%s-labels-idx1-ubyte", set);
    if (!find(ctx, name, labels) || !found) {
        det_trial_fail(ctx, "data.path %s has no %s-images-idx3-ubyte and labels, plain or .gz",
                       det_data_str(ctx, "path", "."), set);
        return NULL;
    }
    /* (pixel / 255 - 0.1307) / 0.3081, the usual normalisation of MNIST */
    const struct det_idx_options options = {.images = images,
                                            .labels = labels,
                                            .scale = 1 / (255 * 0.3081),
                                            .offset = -0.1307 / 0.3081};
    return det_dataset_idx(&options, det_trial_err(ctx));
}

static struct det_dataset *dataset(struct det_trial_context *ctx, bool training)
{
    char path[4096];
    if (find(ctx, "train-images-idx3-ubyte", path))
        return read_set(ctx, training ? "train" : "t10k");
    struct det_dataset *all = read_set(ctx, "t10k");
    int64_t n = det_dataset_length(all), split = n * 4 / 5;
    struct det_dataset *part = training
                                   ? det_dataset_slice(all, 0, split, det_trial_err(ctx))
                                   : det_dataset_slice(all, split, n - split, det_trial_err(ctx));
    det_dataset_unref(all);
    return part;
}

static struct det_data_loader *training_loader(void *self, struct det_trial_context *ctx)
{
    return det_data_loader(dataset(ctx, true), det_trial_err(ctx), .shuffle = true, .prefetch = 2,
                           .batch_size = det_trial_per_slot_batch_size(ctx));
}

static struct det_data_loader *validation_loader(void *self, struct det_trial_context *ctx)
{
    return det_data_loader(dataset(ctx, false), det_trial_err(ctx), .batch_size = 100);
}

/* ---- training ---- */

static void train_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                        int64_t epoch_idx, int64_t batch_idx, struct det_metrics *metrics)
{
    struct mnist *m = self;
    struct det_tensor *out = det_forward(m->net, det_batch_tensor(batch, "image"));
    struct det_tensor *loss =
        det_nll_loss(det_trial_engine(ctx), out, det_batch_tensor(batch, "label"));
    det_trial_backward(ctx, loss);
    det_trial_step_optimizer(ctx, m->adam);
    det_metrics_tensor(metrics, "loss", loss);
}

static void evaluate_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                           int64_t batch_idx, struct det_metrics *metrics)
{
    struct mnist *m = self;
    struct det_engine *e = det_trial_engine(ctx);
    struct det_tensor *label = det_batch_tensor(batch, "label");
    struct det_tensor *out = det_forward(m->net, det_batch_tensor(batch, "image"));
    det_metrics_tensor(metrics, "validation_loss", det_nll_loss(e, out, label));
    det_metrics_tensor(metrics, "accuracy", det_accuracy(e, out, label));
}

const struct det_trial_type MNistTrial = {
    .det_api_version = DET_API_VERSION,
    .self_bytes = sizeof(struct mnist),
    .create = create,
    .build_training_data_loader = training_loader,
    .build_validation_data_loader = validation_loader,
    .train_batch = train_batch,
    .evaluate_batch = evaluate_batch,
};
