/* What a person gets wrong in a trial: each mistake ends the run with an error that names the call,
 * what was wrong and what to do. One table; the trial is y = fc(x) over 12 records in 3 batches. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "fsx.h"
#include "trial_loop.h"
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static char dir[] = "/tmp/det-mistakes-XXXXXX";

struct tiny {
    struct det_module *fc;
    struct det_optim *sgd;
};

struct call {
    struct tiny *t;
    struct det_trial_context *ctx;
    struct det_engine *e;
    const struct det_batch *batch;
    struct det_metrics *m;
    int64_t batch_idx;
};

struct mistake {
    const char *name;
    /* In the place of what a sound trial does there; NULL: it does that. */
    void (*create)(struct call *c);
    void (*train)(struct call *c);
    void (*evaluate)(struct call *c);
    struct det_data_loader *(*loader)(struct call *c);
    void (*callbacks)(struct call *c);
    const char *searcher_metric;
    int64_t aggregation;  /* 0: 1 */
    const char *words[4]; /* all must be in the error */
};
static const struct mistake *now;

/* ---- the sound trial ---- */

static void wrap_both(struct call *c)
{
    c->t->fc = det_trial_wrap_model(c->ctx, det_nn_linear(c->e, 1, 1));
    c->t->sgd = det_trial_wrap_optimizer(c->ctx, det_sgd(c->t->fc, .lr = 0.1));
}

static struct det_tensor *loss_of(struct call *c)
{
    struct det_tensor *y = det_forward(c->t->fc, det_batch_tensor(c->batch, "x"));
    return det_mean(c->e, det_mul(c->e, y, y));
}

static void train_well(struct call *c)
{
    struct det_tensor *loss = loss_of(c);
    det_trial_backward(c->ctx, loss);
    det_trial_step_optimizer(c->ctx, c->t->sgd);
    det_metrics_tensor(c->m, "loss", loss);
}

static void evaluate_well(struct call *c)
{
    det_metrics_f64(c->m, "val_loss", 1);
}

static struct det_data_loader *loader_of(struct det_trial_context *ctx, int64_t records)
{
    float x[12] = {1, 2, 3};
    int64_t one = 1;
    struct det_dataset *ds = det_dataset_create(records, det_trial_err(ctx));
    det_dataset_add(ds, "x", DET_F32, 1, &one, x, det_trial_err(ctx));
    return det_data_loader(ds, det_trial_err(ctx), .batch_size = 4);
}

/* ---- the table's hooks ---- */

static void create(void *self, struct det_trial_context *ctx)
{
    struct call c = {.t = self, .ctx = ctx, .e = det_trial_engine(ctx)};
    (now->create ? now->create : wrap_both)(&c);
}

static struct det_data_loader *loader(void *self, struct det_trial_context *ctx)
{
    struct call c = {.t = self, .ctx = ctx, .e = det_trial_engine(ctx)};
    return now->loader ? now->loader(&c) : loader_of(ctx, 12);
}

static void train_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                        int64_t epoch_idx, int64_t batch_idx, struct det_metrics *m)
{
    struct call c = {self, ctx, det_trial_engine(ctx), batch, m, batch_idx};
    (now->train ? now->train : train_well)(&c);
}

static void evaluate_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                           int64_t batch_idx, struct det_metrics *m)
{
    struct call c = {self, ctx, det_trial_engine(ctx), batch, m, batch_idx};
    (now->evaluate ? now->evaluate : evaluate_well)(&c);
}

static void build_callbacks(void *self, struct det_trial_context *ctx)
{
    struct call c = {.t = self, .ctx = ctx, .e = det_trial_engine(ctx)};
    if (now->callbacks)
        now->callbacks(&c);
}

static const struct det_trial_type tiny = {.det_api_version = DET_API_VERSION,
                                           .self_bytes = sizeof(struct tiny),
                                           .create = create,
                                           .build_training_data_loader = loader,
                                           .build_validation_data_loader = loader,
                                           .train_batch = train_batch,
                                           .evaluate_batch = evaluate_batch,
                                           .build_callbacks = build_callbacks};

/* ---- the mistakes ---- */

static void no_model(struct call *c)
{
    static struct det_module *forgotten;
    forgotten = det_nn_linear(c->e, 1, 1);
    det_trial_wrap_optimizer(c->ctx, det_sgd(forgotten, .lr = 0.1));
    det_module_destroy(forgotten);
}

static void no_optimizer(struct call *c)
{
    det_trial_wrap_model(c->ctx, det_nn_linear(c->e, 1, 1));
}

static void model_of_optimizer(struct call *c)
{
    static struct det_module *other; /* lives as long as the optimizer, which borrows it */
    wrap_both(c);
    other = det_nn_linear(c->e, 2, 1);
    det_trial_wrap_optimizer(c->ctx, det_sgd(other, .lr = 0.1));
}

static void model_twice(struct call *c)
{
    wrap_both(c);
    det_trial_wrap_model(c->ctx, c->t->fc);
}

static void optimizer_twice(struct call *c)
{
    wrap_both(c);
    det_trial_wrap_optimizer(c->ctx, c->t->sgd);
}

static void lr_first(struct call *c)
{
    struct det_module *m = det_trial_wrap_model(c->ctx, det_nn_linear(c->e, 1, 1));
    struct det_optim *o = det_sgd(m, .lr = 0.1);
    det_trial_wrap_lr_scheduler(c->ctx, det_exponential_lr(o, 0.9), DET_STEP_EVERY_EPOCH, 1);
    det_trial_wrap_optimizer(c->ctx, o);
}

static void plateau(struct call *c)
{
    wrap_both(c);
    det_trial_wrap_lr_scheduler(c->ctx, det_reduce_lr_on_plateau(c->t->sgd, 3),
                                DET_STEP_EVERY_EPOCH, 1);
}

static void hparam(struct call *c)
{
    wrap_both(c);
    det_hparam_f64(c->ctx, "optimizer.lr");
}

static void hparam_deep(struct call *c)
{
    wrap_both(c);
    det_hparam_f64(c->ctx, "sched.warmup.stepps");
}

static void hparam_no_object(struct call *c)
{
    wrap_both(c);
    det_hparam_f64(c->ctx, "width.min");
}

static double sum_up(void *arg, const double *v, size_t n)
{
    return 0;
}

static void reducer_of_nothing(struct call *c)
{
    wrap_both(c);
    det_trial_wrap_reducer(c->ctx, "f1", NULL, NULL, true, true);
}

static void start_anew(void *self)
{
}

static void half_a_reducer(struct call *c)
{
    static const struct det_reducer_type half = {.reset = start_anew};
    wrap_both(c);
    det_trial_wrap_metric_reducer(c->ctx, &half, NULL, true, true);
}

static void too_early(struct call *c)
{
    wrap_both(c);
    det_trial_is_epoch_start(c->ctx);
}

static void callback_too_early(struct call *c)
{
    wrap_both(c);
    det_trial_add_callback(c->ctx, &(struct det_callback){.name = "x"});
}

static void callback_names(struct call *c)
{
    for (int i = 0; i < 2; i++)
        det_trial_add_callback(c->ctx, &(struct det_callback){.name = "x"});
}

static char *broken_json(void *self)
{
    return det_strdup("{\"seen\": 7");
}

static void callback_state(struct call *c)
{
    det_trial_add_callback(c->ctx, &(struct det_callback){.name = "x", .state_dict = broken_json});
}

static char *much_json(void *self)
{
    char *text = det_zalloc((1 << 20) + 2);
    memset(text, '7', (1 << 20) + 1);
    return text;
}

static void much_callback_state(struct call *c)
{
    det_trial_add_callback(c->ctx, &(struct det_callback){.name = "x", .state_dict = much_json});
}

static void late_model(struct call *c)
{
    train_well(c);
    det_trial_wrap_model(c->ctx, det_nn_linear(c->e, 1, 1));
}

static void late_optimizer(struct call *c)
{
    train_well(c);
    det_trial_wrap_optimizer(c->ctx, det_sgd(c->t->fc, .lr = 1));
}

static void late_lr(struct call *c)
{
    train_well(c);
    det_trial_wrap_lr_scheduler(c->ctx, det_exponential_lr(c->t->sgd, 0.9), DET_STEP_EVERY_BATCH,
                                1);
}

static void late_reducer(struct call *c)
{
    train_well(c);
    det_trial_wrap_reducer(c->ctx, "f1", sum_up, NULL, true, true);
}

static void shapes(struct call *c)
{
    struct det_tensor *x = det_reshape(c->e, det_batch_tensor(c->batch, "x"), 2, (int64_t[]){2, 2});
    det_trial_backward(c->ctx, det_forward(c->t->fc, x));
}

static void no_field(struct call *c)
{
    det_trial_backward(c->ctx, det_forward(c->t->fc, det_batch_tensor(c->batch, "image")));
}

static void no_field_metric(struct call *c)
{
    train_well(c);
    det_metrics_tensor(c->m, "x", det_batch_tensor(c->batch, "image"));
}

static void many_losses(struct call *c)
{
    det_trial_backward(c->ctx, det_forward(c->t->fc, det_batch_tensor(c->batch, "x")));
}

static void no_path(struct call *c)
{
    det_trial_backward(c->ctx, det_mean(c->e, det_batch_tensor(c->batch, "x")));
}

static void detached(struct call *c)
{
    det_trial_backward(c->ctx, det_detach(c->e, loss_of(c)));
}

static void twice(struct call *c)
{
    struct det_tensor *loss = loss_of(c);
    det_trial_backward(c->ctx, loss);
    det_trial_backward(c->ctx, loss);
}

static void no_backward(struct call *c)
{
    det_trial_step_optimizer(c->ctx, c->t->sgd);
}

static void foreign_optimizer(struct call *c)
{
    struct det_optim *o = det_sgd(c->t->fc, .lr = 1);
    det_trial_backward(c->ctx, loss_of(c));
    det_trial_step_optimizer(c->ctx, o);
    det_optim_destroy(o);
}

static void kept_grads(struct call *c)
{
    det_trial_backward(c->ctx, loss_of(c));
    det_trial_step_optimizer(c->ctx, c->t->sgd, .keep_grads = true);
}

static void other_names(struct call *c)
{
    train_well(c);
    det_metrics_f64(c->m, c->batch_idx == 2 ? "acc" : "accuracy", 1);
}

static void other_validation_names(struct call *c)
{
    det_metrics_f64(c->m, c->batch_idx == 2 ? "lass" : "loss", 1);
}

static void no_name(struct call *c)
{
    det_metrics_f64(c->m, NULL, 1);
    train_well(c);
}

static void empty_name(struct call *c)
{
    train_well(c);
    det_metrics_none(c->m, "");
}

static void array_metric(struct call *c)
{
    det_metrics_none(c->m, "val_loss");
}

#ifndef __SANITIZE_ADDRESS__ /* its allocator ends the process */
static void no_memory(struct call *c)
{
    det_zeros(c->e, DET_F32, 2, (int64_t[]){1 << 20, 1 << 18});
}
#endif

static void too_large(struct call *c)
{
    det_zeros(c->e, DET_F32, 1, (int64_t[]){10000000000000});
}

static void overflows(struct call *c)
{
    c->t->fc = det_nn_linear(c->e, INT64_C(1) << 40, INT64_C(1) << 40);
}

static void negative(struct call *c)
{
    det_zeros(c->e, DET_F32, 2, (int64_t[]){4, -5});
}

static struct det_data_loader *no_loader(struct call *c)
{
    return NULL;
}

static struct det_data_loader *empty(struct call *c)
{
    return loader_of(c->ctx, 0);
}

static struct det_data_loader *too_small(struct call *c)
{
    struct det_dataset *ds = det_dataset_create(3, det_trial_err(c->ctx));
    return det_data_loader(ds, det_trial_err(c->ctx), .batch_size = 4, .drop_last = true);
}

static struct det_data_loader *no_file(struct call *c)
{
    return det_data_loader(det_dataset_idx(&(struct det_idx_options){.images = "/nowhere/images"},
                                           det_trial_err(c->ctx)),
                           det_trial_err(c->ctx), .batch_size = 4);
}

#define TRAIN(fn, ...)                                                                             \
    {                                                                                              \
        .name = #fn, .train = fn, .words = { "train_batch, batch 0", __VA_ARGS__ }                 \
    }
#define CREATE(fn, ...)                                                                            \
    {                                                                                              \
        .name = #fn, .create = fn, .words = { "create", __VA_ARGS__ }                              \
    }
#define LOADER(fn, ...)                                                                            \
    {                                                                                              \
        .name = #fn, .loader = fn, .words = { "build_training_data_loader", __VA_ARGS__ }          \
    }
static const struct mistake mistakes[] = {
    CREATE(no_model, "wrapped no model", "det_trial_wrap_model"),
    CREATE(no_optimizer, "wrapped no optimizer", "det_trial_wrap_optimizer"),
    CREATE(model_of_optimizer, "model of optimizer 1 was not wrapped", "det_trial_wrap_model"),
    CREATE(model_twice, "det_trial_wrap_model", "already"),
    CREATE(optimizer_twice, "det_trial_wrap_optimizer", "already"),
    CREATE(lr_first, "det_trial_wrap_lr_scheduler", "optimizer first"),
    CREATE(plateau, "ReduceLROnPlateau", "DET_MANUAL_STEP", "det_lr_step_metric"),
    CREATE(hparam, "hyperparameters.optimizer.lr is not", "hyperparameters has: width, sched"),
    CREATE(hparam_deep, "sched.warmup.stepps is not", "sched.warmup has: steps, from; ",
           "did you mean \"steps\"?"),
    CREATE(hparam_no_object, "width.min is not", "hyperparameters.width is a whole number"),
    CREATE(reducer_of_nothing, "det_trial_wrap_reducer(\"f1\")", "NULL"),
    CREATE(half_a_reducer, "det_trial_wrap_metric_reducer", "per_slot_reduce"),
    CREATE(too_early, "det_trial_is_epoch_start()", "before training has started"),
    CREATE(callback_too_early, "det_trial_add_callback", "build_callbacks"),
    {.name = "callback_names", .callbacks = callback_names, .words = {"two callbacks", "\"x\""}},
    {.name = "callback_state",
     .callbacks = callback_state,
     .words = {"state_dict of callback \"x\"", "JSON", "line 1"}},
    {.name = "much_callback_state",
     .callbacks = much_callback_state,
     .words = {"callback \"x\"", "1048577 bytes", "det_checkpoint_put_tensor()"}},
    TRAIN(late_model, "det_trial_wrap_model", "too late", "in create"),
    TRAIN(late_optimizer, "det_trial_wrap_optimizer", "too late", "in create"),
    TRAIN(late_lr, "det_trial_wrap_lr_scheduler", "too late", "in create"),
    TRAIN(late_reducer, "det_trial_wrap_reducer", "too late", "in create"),
    TRAIN(shapes, "linear(float32[2, 2], float32[1, 1]"),
    TRAIN(no_field, "the batch has no field \"image\"; it has: x", "linear", "NULL"),
    TRAIN(no_field_metric, "metric \"x\"", "det_batch_tensor()"),
    TRAIN(many_losses, "backward(float32[4, 1])", "one element", "det_mean()"),
    TRAIN(no_path, "backward(float32[])", "does not depend on any parameter"),
    TRAIN(detached, "backward(float32[])", "without gradients"),
    TRAIN(twice, "backward(float32[])", "already", "compute the loss again"),
    TRAIN(no_backward, "det_trial_step_optimizer", "no parameter", "det_trial_backward()"),
    TRAIN(foreign_optimizer, "det_trial_step_optimizer", "not wrapped", "in create"),
    {.name = "kept_grads",
     .train = kept_grads,
     .aggregation = 2,
     .words = {"step_optimizer", "zeroed at each step", "aggregation_frequency"}},
#ifndef __SANITIZE_ADDRESS__
    TRAIN(no_memory, "zeros(float32[1048576, 262144])", "1099511627776 bytes",
          "smaller batch or model"),
#endif
    TRAIN(too_large, "zeros(float32[10000000000000])", "more than the 1099511627776 bytes"),
    CREATE(overflows, "zeros(float32[1099511627776, 1099511627776])", "more than"),
    TRAIN(negative, "zeros(float32[4, -5])", "dimension 1 is negative"),
    {.name = "other_names",
     .train = other_names,
     .words = {"inconsistent training metrics", "accuracy"}},
    {.name = "other_validation_names",
     .evaluate = other_validation_names,
     .words = {"Validation metric names must match", "\"loss\" is missing"}},
    TRAIN(no_name, "det_metrics_f64: a metric needs a name"),
    TRAIN(empty_name, "det_metrics_none: a metric needs a name"),
    {.name = "none", .evaluate = array_metric, .words = {"metric \"val_loss\"", "not a number"}},
    {.name = "searcher_metric",
     .searcher_metric = "accuracy",
     .words = {"searcher's metric \"accuracy\"", "validation metrics: \"val_loss\""}},
    LOADER(no_loader, "no data loader"),
    LOADER(empty, "no records"),
    LOADER(too_small, "3 records make no batch of 4", ".drop_last"),
    LOADER(no_file, "/nowhere/images"),
};

static int run(const struct mistake *x, struct det_err *err)
{
    struct det_loop_config c = LOOP_CONFIG_INIT;
    now = x;
    c.max_length = 3;
    c.aggregation_frequency = x->aggregation ? x->aggregation : 1;
    c.hparams = json_make("{s:i, s:{s:{s:i, s:f}}}", "width", 1, "sched", "warmup", "steps", 2,
                          "from", 0.1);
    c.searcher_metric = det_strdup(x->searcher_metric);
    c.checkpoint_dir = det_strdup(dir);
    struct trial_run *r = trial_run_create(&tiny);
    struct det_loop_trial client = trial_run_client(r);
    int rc = loop_run(&c, &client, err);
    trial_run_destroy(r);
    loop_config_finish(&c);
    return rc;
}

static void each_is_named(void **state)
{
    static const struct mistake none = {.name = "none"};
    struct det_err err = {0};
    if (run(&none, &err) < 0)
        fail_msg("a sound trial: %s", err.text);
    for (size_t i = 0; i < DET_ARRAY_LEN(mistakes); i++) {
        const struct mistake *x = &mistakes[i];
        memset(&err, 0, sizeof err);
        if (run(x, &err) >= 0)
            fail_msg("%s: no error", x->name);
        for (size_t w = 0; w < DET_ARRAY_LEN(x->words) && x->words[w]; w++)
            if (!strstr(err.text, x->words[w]))
                fail_msg("%s: \"%s\" is not in \"%s\"", x->name, x->words[w], err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_is_named)};
    if (!mkdtemp(dir))
        return 1;
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    det_ignore(fsx_remove_tree(AT_FDCWD, dir, NULL), "the test is over");
    return rc;
}
