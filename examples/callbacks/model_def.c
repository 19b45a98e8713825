/*
 * Callbacks, every hook: a noisy sine is learned by a small network until it stops getting better.
 *
 * Two callbacks, called in the order in which they were added. `patience` stops the trial early;
 * what it knows is kept in the checkpoint, so a paused trial goes on waiting where it was. `diary`
 * shows when every other hook runs.
 */
#include <det/trial.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct patience {
    struct det_trial_context *ctx;
    int64_t limit;
    double best;
    int64_t waited; /* validations since the best */
};

struct sine {
    struct det_module *net;
    struct det_optim *sgd;
    struct patience patience;
    int64_t epochs; /* the diary's */
};

/* ---- patience ---- */

static void compare(void *self, const struct det_metrics *metrics)
{
    struct patience *p = self;
    double loss = det_metrics_get(metrics, "validation_loss");
    p->waited = loss < p->best ? 0 : p->waited + 1;
    p->best = loss < p->best ? loss : p->best;
    if (p->waited < p->limit)
        return;
    printf("no better for %" PRId64 " validations: stopping\n", p->waited);
    det_trial_set_stop_requested(p->ctx, true);
}

/* The text of any JSON value; the loop frees it. */
static char *save_patience(void *self)
{
    struct patience *p = self;
    char *text = malloc(100);
    snprintf(text, 100, "[%.17g, %" PRId64 "]", p->best, p->waited);
    return text;
}

static void load_patience(void *self, const char *json)
{
    struct patience *p = self;
    if (sscanf(json, "[%lf, %" SCNd64 "]", &p->best, &p->waited) != 2)
        det_trial_fail(p->ctx, "the checkpoint's patience is %.50s, not two numbers", json);
}

/* ---- diary ---- */

static void startup(void *self, int64_t first_batch_idx, const char *checkpoint_uuid)
{
    printf("startup at batch %" PRId64 " from %s\n", first_batch_idx,
           checkpoint_uuid ? checkpoint_uuid : "nothing");
}

static void training_start(void *self)
{
    printf("training starts\n");
}

static void epoch_start(void *self, int64_t epoch_idx)
{
    if (epoch_idx % 10 == 0)
        printf("epoch %" PRId64 " starts\n", epoch_idx);
}

static void epoch_end(void *self, int64_t epoch_idx)
{
    ((struct sine *)self)->epochs = epoch_idx + 1;
}

static void workload_end(void *self, const struct det_metrics *avg,
                         const struct det_metrics *const *batches, size_t n)
{
    double worst = 0;
    for (size_t i = 0; i < n; i++)
        worst = fmax(worst, det_metrics_get(batches[i], "loss"));
    printf("%zu batches: loss %.4f, at worst %.4f\n", n, det_metrics_get(avg, "loss"), worst);
}

static void validation_start(void *self)
{
    printf("validation starts\n");
}

static void validation_epoch_start(void *self)
{
    printf("validation's batches start\n");
}

static void validation_epoch_end(void *self, const struct det_metrics *const *outputs, size_t n)
{
    printf("%zu batches were validated\n", n);
}

/* The whole state may be added to here, and looked at or mended below, before it is restored. */
static void save_start(void *self, struct det_checkpoint *checkpoint)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, ((struct sine *)self)->epochs);
    det_checkpoint_put_json(checkpoint, "diary_epochs", text);
}

static void load_start(void *self, struct det_checkpoint *checkpoint)
{
    const char *epochs = det_checkpoint_get_json(checkpoint, "diary_epochs");
    if (epochs)
        ((struct sine *)self)->epochs = strtoll(epochs, NULL, 10);
}

/* A file of the trial's own in the checkpoint. */
static void write_end(void *self, const char *dir)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/diary.txt", dir);
    FILE *f = fopen(path, "w");
    if (!f)
        return;
    fprintf(f, "%" PRId64 " epochs\n", ((struct sine *)self)->epochs);
    fclose(f);
}

static void upload_end(void *self, const char *uuid)
{
    printf("checkpoint %s is safe\n", uuid);
}

static void shutdown(void *self)
{
    printf("shutdown after %" PRId64 " epochs\n", ((struct sine *)self)->epochs);
}

static void build_callbacks(void *self, struct det_trial_context *ctx)
{
    struct sine *s = self;
    s->patience = (struct patience){ctx, det_hparam_i64(ctx, "patience"), INFINITY, 0};
    det_trial_add_callback(ctx, &(const struct det_callback){
                                    .name = "patience",
                                    .self = &s->patience,
                                    .on_validation_end = compare,
                                    .state_dict = save_patience,
                                    .load_state_dict = load_patience,
                                });
    det_trial_add_callback(ctx, &(const struct det_callback){
                                    .name = "diary",
                                    .self = s,
                                    .on_trial_startup = startup,
                                    .on_checkpoint_load_start = load_start,
                                    .on_training_start = training_start,
                                    .on_training_epoch_start = epoch_start,
                                    .on_training_epoch_end = epoch_end,
                                    .on_training_workload_end = workload_end,
                                    .on_validation_start = validation_start,
                                    .on_validation_epoch_start = validation_epoch_start,
                                    .on_validation_epoch_end = validation_epoch_end,
                                    .on_checkpoint_save_start = save_start,
                                    .on_checkpoint_write_end = write_end,
                                    .on_checkpoint_upload_end = upload_end,
                                    .on_trial_shutdown = shutdown,
                                });
}

/* ---- the model, the data, the training ---- */

static void create(void *self, struct det_trial_context *ctx)
{
    struct sine *s = self;
    struct det_engine *e = det_trial_engine(ctx);
    s->net = det_nn_sequential(e, det_nn_linear(e, 1, 64), det_nn_relu(e), det_nn_linear(e, 64, 1));
    det_trial_wrap_model(ctx, s->net);
    s->sgd = det_sgd(s->net, .lr = det_hparam_f64(ctx, "learning_rate"), .momentum = 0.9);
    det_trial_wrap_optimizer(ctx, s->sgd);
}

static struct det_data_loader *loader(struct det_trial_context *ctx, uint64_t seed, int64_t batch)
{
    enum { RECORDS = 400 };
    static float x[RECORDS], y[RECORDS];
    for (int i = 0; i < RECORDS; i++) {
        struct det_draws d = {.seed = seed, .record = i};
        x[i] = (float)det_draw_uniform(&d, -3, 3);
        y[i] = (float)(sin(x[i]) + det_draw_uniform(&d, -0.2, 0.2));
    }
    struct det_dataset *ds = det_dataset_create(RECORDS, det_trial_err(ctx));
    det_dataset_add(ds, "x", DET_F32, 1, (const int64_t[]){1}, x, det_trial_err(ctx));
    det_dataset_add(ds, "y", DET_F32, 1, (const int64_t[]){1}, y, det_trial_err(ctx));
    return det_data_loader(ds, det_trial_err(ctx), .batch_size = batch, .shuffle = seed == 1);
}

static struct det_data_loader *training_loader(void *self, struct det_trial_context *ctx)
{
    return loader(ctx, 1, det_trial_per_slot_batch_size(ctx));
}

static struct det_data_loader *validation_loader(void *self, struct det_trial_context *ctx)
{
    return loader(ctx, 2, 100);
}

static struct det_tensor *loss_of(struct sine *s, struct det_trial_context *ctx,
                                  const struct det_batch *b)
{
    struct det_tensor *out = det_forward(s->net, det_batch_tensor(b, "x"));
    return det_mse_loss(det_trial_engine(ctx), out, det_batch_tensor(b, "y"));
}

static void train_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                        int64_t epoch_idx, int64_t batch_idx, struct det_metrics *metrics)
{
    struct sine *s = self;
    struct det_tensor *loss = loss_of(s, ctx, batch);
    det_trial_backward(ctx, loss);
    det_trial_step_optimizer(ctx, s->sgd);
    det_metrics_tensor(metrics, "loss", loss);
}

static void evaluate_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                           int64_t batch_idx, struct det_metrics *metrics)
{
    det_metrics_tensor(metrics, "validation_loss", loss_of(self, ctx, batch));
}

const struct det_trial_type SineTrial = {
    .det_api_version = DET_API_VERSION,
    .self_bytes = sizeof(struct sine),
    .create = create,
    .build_training_data_loader = training_loader,
    .build_validation_data_loader = validation_loader,
    .train_batch = train_batch,
    .evaluate_batch = evaluate_batch,
    .build_callbacks = build_callbacks,
};
