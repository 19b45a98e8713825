/*
 * A generative adversarial network (Goodfellow et al. 2014) that draws digits: two models and two
 * optimizers in one trial.
 *
 * The discriminator tells real images from drawn ones, the generator learns to be taken for real.
 * Validation draws from the same noise every time: how far the mean of the drawings is from the
 * mean of the real images is the metric, and a row of drawings goes to TensorBoard.
 */
#include <det/trial.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SIDE = 28, PIXELS = SIDE * SIDE, NOISE = 64, SHOWN = 8, BATCH_MAX = 1000 };
enum { DRAWN = 0, REAL = 1 };

struct gan {
    struct det_module *generator, *discriminator;
    struct det_optim *g_adam, *d_adam;
    struct det_trial_context *ctx;
};

static void create(void *self, struct det_trial_context *ctx)
{
    struct gan *g = self;
    struct det_engine *e = det_trial_engine(ctx);
    double lr = det_hparam_f64(ctx, "learning_rate"), beta1 = det_hparam_f64(ctx, "beta1");

    g->ctx = ctx;
    g->generator = det_nn_sequential(e, det_nn_linear(e, NOISE, 128), det_nn_relu(e),
                                     det_nn_linear(e, 128, 256), det_nn_relu(e),
                                     det_nn_linear(e, 256, PIXELS));
    g->discriminator =
        det_nn_sequential(e, det_nn_linear(e, PIXELS, 256), det_nn_relu(e), det_nn_dropout(e, 0.3),
                          det_nn_linear(e, 256, 128), det_nn_relu(e), det_nn_linear(e, 128, 2));
    det_trial_wrap_model(ctx, g->generator);
    det_trial_wrap_model(ctx, g->discriminator);
    g->g_adam = det_trial_wrap_optimizer(ctx, det_adam(g->generator, .lr = lr, .beta1 = beta1));
    g->d_adam = det_trial_wrap_optimizer(ctx, det_adam(g->discriminator, .lr = lr, .beta1 = beta1));
}

/* ---- data: the real images, -1 to 1 ---- */

static const char *find(struct det_trial_context *ctx, const char *name, char path[4096])
{
    const char *dir = det_data_str(ctx, "path", ".");
    snprintf(path, 4096, "%s/%s", dir, name);
    if (access(path, R_OK) != 0)
        snprintf(path, 4096, "%s/%s.gz", dir, name);
    return access(path, R_OK) == 0 ? path : NULL;
}

static struct det_dataset *dataset(struct det_trial_context *ctx)
{
    char images[4096];
    if (!find(ctx, "train-images-idx3-ubyte", images) &&
        !find(ctx, "t10k-images-idx3-ubyte", images)) {
        det_trial_fail(ctx, "data.path %s has no train-images-idx3-ubyte, plain or .gz",
                       det_data_str(ctx, "path", "."));
        return NULL;
    }
    const struct det_idx_options options = {.images = images, .scale = 2.0 / 255, .offset = -1};
    return det_dataset_idx(&options, det_trial_err(ctx));
}

static struct det_data_loader *training_loader(void *self, struct det_trial_context *ctx)
{
    return det_data_loader(dataset(ctx), det_trial_err(ctx), .shuffle = true, .prefetch = 2,
                           .batch_size = det_trial_per_slot_batch_size(ctx), .drop_last = true);
}

static struct det_data_loader *validation_loader(void *self, struct det_trial_context *ctx)
{
    struct det_dataset *all = dataset(ctx);
    struct det_dataset *part = det_dataset_slice(all, 0, BATCH_MAX, det_trial_err(ctx));
    det_dataset_unref(all);
    return det_data_loader(part, det_trial_err(ctx), .batch_size = BATCH_MAX);
}

/* ---- drawing ---- */

static struct det_tensor *draw(struct gan *g, struct det_draws draws, int64_t n)
{
    struct det_engine *e = det_trial_engine(g->ctx);
    float *noise = malloc((size_t)(n * NOISE) * sizeof *noise);
    for (int64_t i = 0; i < n * NOISE; i++)
        noise[i] = (float)det_draw_uniform(&draws, -1, 1);
    struct det_tensor *z = det_from_host(e, DET_F32, 2, (const int64_t[]){n, NOISE}, noise);
    free(noise);
    return det_tanh(e, det_forward(g->generator, z));
}

/* How well the discriminator's verdict on the images is `what`. */
static struct det_tensor *loss_of(struct gan *g, struct det_tensor *images, int64_t what)
{
    struct det_engine *e = det_trial_engine(g->ctx);
    int64_t n = det_tensor_dim(images, 0);
    struct det_tensor *target = det_full(e, DET_I64, 1, &n, (double)what);
    return det_cross_entropy(e, det_forward(g->discriminator, images), target);
}

/* ---- training ---- */

static void train_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                        int64_t epoch_idx, int64_t batch_idx, struct det_metrics *metrics)
{
    struct gan *g = self;
    struct det_engine *e = det_trial_engine(ctx);
    struct det_tensor *real = det_flatten(e, det_batch_tensor(batch, "image"), 1);
    struct det_tensor *drawn = draw(g, det_batch_draws(batch), det_batch_length(batch));

    struct det_tensor *g_loss = loss_of(g, drawn, REAL);
    det_trial_backward(ctx, g_loss);
    det_trial_step_optimizer(ctx, g->g_adam);

    det_module_zero_grad(g->discriminator); /* what the generator's loss left there */
    struct det_tensor *d_loss =
        det_add(e, loss_of(g, real, REAL), loss_of(g, det_detach(e, drawn), DRAWN));
    det_trial_backward(ctx, d_loss);
    det_trial_step_optimizer(ctx, g->d_adam);

    det_metrics_tensor(metrics, "g_loss", g_loss);
    det_metrics_tensor(metrics, "d_loss", d_loss);
}

/* ---- validation ---- */

/* A row of drawings, side by side. */
static void show(struct gan *g, const float *drawn)
{
    static float row[SIDE * SHOWN * SIDE];
    for (int i = 0; i < SHOWN; i++)
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++)
                row[(y * SHOWN + i) * SIDE + x] = (drawn[i * PIXELS + y * SIDE + x] + 1) / 2;
    struct det_tensor *image = det_host_tensor_view(
        DET_F32, 2, (const int64_t[]){SIDE, SHOWN * SIDE}, row, det_trial_err(g->ctx));
    det_tensorboard_add_image(det_trial_tensorboard(g->ctx), "drawings", image, DET_IMAGE_HW,
                              det_trial_current_train_batch(g->ctx) + 1);
    det_tensor_unref(image);
}

static void evaluate_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                           int64_t batch_idx, struct det_metrics *metrics)
{
    struct gan *g = self;
    int64_t n = det_batch_length(batch);
    size_t bytes = (size_t)(n * PIXELS) * sizeof(float);
    float *real = malloc(bytes), *drawn = malloc(bytes);
    struct det_tensor *drawings = draw(g, (struct det_draws){.seed = 1}, n);
    double error = 0;

    if (!drawings ||
        det_tensor_read(det_batch_tensor(batch, "image"), real, bytes, det_trial_err(ctx)) < 0 ||
        det_tensor_read(drawings, drawn, bytes, det_trial_err(ctx)) < 0)
        goto out;
    for (int p = 0; p < PIXELS; p++) {
        double difference = 0;
        for (int64_t i = 0; i < n; i++)
            difference += (drawn[i * PIXELS + p] - real[i * PIXELS + p]) / (double)n;
        error += difference * difference / PIXELS;
    }
    det_metrics_f64(metrics, "mean_image_error", error);
    if (batch_idx == 0 && n >= SHOWN)
        show(g, drawn);
out:
    free(real);
    free(drawn);
}

const struct det_trial_type GanTrial = {
    .det_api_version = DET_API_VERSION,
    .self_bytes = sizeof(struct gan),
    .create = create,
    .build_training_data_loader = training_loader,
    .build_validation_data_loader = validation_loader,
    .train_batch = train_batch,
    .evaluate_batch = evaluate_batch,
};
