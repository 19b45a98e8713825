/*
 * Metrics that no average gives: points of three spirals, of which the third is rare, classified by
 * a small network.
 *
 * Accuracy hardly notices a class that is never found. F1 does, but it is no mean over batches: it
 * needs the counts of the whole validation, of all ranks. So there are two reducers: a
 * MetricReducer with a confusion matrix, for validation, and a function over every batch's loss,
 * for training.
 */
#include <det/trial.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CLASSES 3

/* counts[actual][predicted] */
struct confusion {
    double counts[CLASSES][CLASSES];
};

struct spirals {
    struct det_module *net;
    struct det_optim *adam;
    struct confusion confusion;
    struct det_custom_reducer *losses;
};

/* ---- reducers ---- */

static void reset(void *self)
{
    memset(self, 0, sizeof(struct confusion));
}

/* This rank's value: bytes of its own, sent to all ranks. */
static void *per_slot_reduce(void *self, size_t *ret_bytes)
{
    struct confusion *copy = malloc(sizeof *copy);
    memcpy(copy, self, sizeof *copy);
    *ret_bytes = sizeof *copy;
    return copy;
}

static double f1(const struct confusion *c, int class)
{
    double actual = 0, predicted = 0;
    for (int i = 0; i < CLASSES; i++) {
        actual += c->counts[class][i];
        predicted += c->counts[i][class];
    }
    return actual + predicted > 0 ? 2 * c->counts[class][class] / (actual + predicted) : 0;
}

/* Every rank's value, in rank order, on every rank. */
static void cross_slot_reduce(void *self, const void *const *values, const size_t *bytes, size_t n,
                              struct det_metrics *out)
{
    static const char *const names[CLASSES] = {"f1_common", "f1_seldom", "f1_rare"};
    struct confusion all = {0};
    double mean = 0;
    for (size_t rank = 0; rank < n; rank++)
        for (int i = 0; i < CLASSES * CLASSES; i++)
            (&all.counts[0][0])[i] += (&((const struct confusion *)values[rank])->counts[0][0])[i];
    for (int i = 0; i < CLASSES; i++) {
        det_metrics_f64(out, names[i], f1(&all, i));
        mean += f1(&all, i) / CLASSES;
    }
    det_metrics_f64(out, "f1_mean", mean);
}

static const struct det_reducer_type confusion_reducer = {reset, per_slot_reduce,
                                                          cross_slot_reduce};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The median over all batches of all ranks: a function is enough where there is no state. */
static double median(void *arg, const double *v, size_t n)
{
    double *sorted = malloc(n * sizeof *v + 1);
    if (n == 0 || !sorted)
        return NAN;
    memcpy(sorted, v, n * sizeof *v);
    qsort(sorted, n, sizeof *sorted, by_value);
    double middle = sorted[n / 2];
    free(sorted);
    return middle;
}

static void create(void *self, struct det_trial_context *ctx)
{
    struct spirals *s = self;
    struct det_engine *e = det_trial_engine(ctx);
    int64_t width = det_hparam_i64(ctx, "width");
    s->net = det_nn_sequential(e, det_nn_linear(e, 2, width), det_nn_relu(e),
                               det_nn_linear(e, width, width), det_nn_relu(e),
                               det_nn_linear(e, width, CLASSES));
    det_trial_wrap_model(ctx, s->net);
    s->adam = det_adam(s->net, .lr = det_hparam_f64(ctx, "learning_rate"));
    det_trial_wrap_optimizer(ctx, s->adam);
    det_trial_wrap_metric_reducer(ctx, &confusion_reducer, &s->confusion, false, true);
    s->losses = det_trial_wrap_reducer(ctx, "median_loss", median, NULL, true, false);
}

/* ---- data: points along spirals, with noise ---- */

static struct det_dataset *points(struct det_trial_context *ctx, int each, uint64_t seed)
{
    const int counts[CLASSES] = {10 * each, 3 * each, each};
    int64_t n = 0, total = 14 * (int64_t)each;
    float *xy = malloc((size_t)total * 2 * sizeof *xy);
    int64_t *label = malloc((size_t)total * sizeof *label);
    for (int class = 0; class < CLASSES; class ++)
        for (int i = 0; i < counts[class]; i++, n++) {
            struct det_draws d = {.seed = seed, .record = n};
            double r = det_draw_uniform(&d, 0.1, 1);
            double angle = 4 * r + class * 2 * M_PI / CLASSES + det_draw_uniform(&d, -0.2, 0.2);
            xy[2 * n] = (float)(r * cos(angle));
            xy[2 * n + 1] = (float)(r * sin(angle));
            label[n] = class;
        }
    struct det_dataset *ds = det_dataset_create(total, det_trial_err(ctx));
    det_dataset_add(ds, "point", DET_F32, 1, (const int64_t[]){2}, xy, det_trial_err(ctx));
    det_dataset_add(ds, "label", DET_I64, 0, NULL, label, det_trial_err(ctx));
    free(xy);
    free(label);
    return ds;
}

static struct det_data_loader *training_loader(void *self, struct det_trial_context *ctx)
{
    return det_data_loader(points(ctx, 60, 1), det_trial_err(ctx), .shuffle = true,
                           .batch_size = det_trial_per_slot_batch_size(ctx));
}

static struct det_data_loader *validation_loader(void *self, struct det_trial_context *ctx)
{
    return det_data_loader(points(ctx, 20, 2), det_trial_err(ctx), .batch_size = 50);
}

/* ---- training ---- */

static void train_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                        int64_t epoch_idx, int64_t batch_idx, struct det_metrics *metrics)
{
    struct spirals *s = self;
    struct det_engine *e = det_trial_engine(ctx);
    struct det_tensor *out = det_forward(s->net, det_batch_tensor(batch, "point"));
    struct det_tensor *loss = det_cross_entropy(e, out, det_batch_tensor(batch, "label"));
    det_trial_backward(ctx, loss);
    det_trial_step_optimizer(ctx, s->adam);
    det_reducer_update(s->losses, det_item(e, loss));
    det_metrics_tensor(metrics, "loss", loss);
}

static void evaluate_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                           int64_t batch_idx, struct det_metrics *metrics)
{
    struct spirals *s = self;
    struct det_engine *e = det_trial_engine(ctx);
    struct det_tensor *label = det_batch_tensor(batch, "label");
    struct det_tensor *out = det_forward(s->net, det_batch_tensor(batch, "point"));
    int64_t n = det_batch_length(batch), actual[50], predicted[50];
    size_t bytes = (size_t)n * sizeof *actual;
    det_tensor_read(label, actual, bytes, det_trial_err(ctx));
    det_tensor_read(det_argmax(e, out), predicted, bytes, det_trial_err(ctx));
    for (int64_t i = 0; i < n; i++)
        s->confusion.counts[actual[i]][predicted[i]]++;
    det_metrics_tensor(metrics, "accuracy", det_accuracy(e, out, label));
}

const struct det_trial_type SpiralsTrial = {
    .det_api_version = DET_API_VERSION,
    .self_bytes = sizeof(struct spirals),
    .create = create,
    .build_training_data_loader = training_loader,
    .build_validation_data_loader = validation_loader,
    .train_batch = train_batch,
    .evaluate_batch = evaluate_batch,
};
