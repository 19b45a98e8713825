/* The trial API on the real loop and engine: a 1x1 linear model y = wx, in local mode. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "fsx.h"
#include "json.h"
#include "trial_loop.h"
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RECORDS 12
#define BATCH   3

static char dir[] = "/tmp/det-trial-XXXXXX";
static struct det_err err;
static struct buf trace;               /* what was called, in order */
static struct loop_metrics validation; /* the last one */
static struct loop_metrics training;
static char *checkpoint;
static int64_t checkpoint_steps;

/* What a test asks of the trial. */
static struct {
    void (*in_create)(struct det_trial_context *ctx);
    void (*in_train)(struct det_trial_context *ctx, int64_t batch_idx);
    void (*in_evaluate)(struct det_trial_context *ctx, struct det_metrics *m, int64_t batch_idx);
    struct det_step_options step;
    bool no_field;
    double lr;
} want;

struct tiny {
    struct det_module *fc;
    struct det_optim *sgd;
    struct det_custom_reducer *sum;
};

static void create(void *self, struct det_trial_context *ctx)
{
    struct tiny *t = self;
    struct det_engine *e = det_trial_engine(ctx);
    t->fc = det_trial_wrap_model(ctx, det_nn_linear(e, 1, 1, .no_bias = true));
    float one = 1;
    size_t n;
    const struct det_named_tensor *p = det_module_params(t->fc, &n);
    assert_int_equal(det_tensor_write(p[0].tensor, &one, sizeof one, &err), 0);
    t->sgd = det_trial_wrap_optimizer(ctx, det_sgd(t->fc, .lr = want.lr));
    if (want.in_create)
        want.in_create(ctx);
}

static struct det_data_loader *loader(void *self, struct det_trial_context *ctx)
{
    float x[RECORDS], y[RECORDS];
    int64_t one = 1;
    for (int i = 0; i < RECORDS; i++) {
        x[i] = 1;
        y[i] = (float)(2 + i / BATCH); /* batch k wants w = 2 + k */
    }
    struct det_dataset *ds = det_dataset_create(RECORDS, det_trial_err(ctx));
    det_dataset_add(ds, want.no_field ? "z" : "x", DET_F32, 1, &one, x, det_trial_err(ctx));
    det_dataset_add(ds, "y", DET_F32, 1, &one, y, det_trial_err(ctx));
    return det_data_loader(ds, det_trial_err(ctx), .batch_size = BATCH);
}

static void train_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                        int64_t epoch_idx, int64_t batch_idx, struct det_metrics *metrics)
{
    struct tiny *t = self;
    struct det_tensor *out = det_forward(t->fc, det_batch_tensor(batch, "x"));
    struct det_tensor *loss =
        det_mse_loss(det_trial_engine(ctx), out, det_batch_tensor(batch, "y"));
    buf_addf(&trace, "b%d ", (int)batch_idx);
    det_trial_backward(ctx, loss);
    det_trial_step_optimizer_opt(ctx, t->sgd, &want.step);
    det_metrics_tensor(metrics, "loss", loss);
    if (want.in_train)
        want.in_train(ctx, batch_idx);
}

static void evaluate_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                           int64_t batch_idx, struct det_metrics *metrics)
{
    struct tiny *t = self;
    det_metrics_tensor(
        metrics, "w",
        det_mean(det_trial_engine(ctx), det_forward(t->fc, det_batch_tensor(batch, "x"))));
    det_metrics_f64(metrics, "idx", (double)batch_idx);
    if (want.in_evaluate)
        want.in_evaluate(ctx, metrics, batch_idx);
}

static const struct det_trial_type tiny = {
    .det_api_version = DET_API_VERSION,
    .self_bytes = sizeof(struct tiny),
    .create = create,
    .build_training_data_loader = loader,
    .build_validation_data_loader = loader,
    .train_batch = train_batch,
    .evaluate_batch = evaluate_batch,
};

/* ---- running ---- */

static void on_training(void *self, int64_t steps, const struct loop_metrics *avg)
{
    loop_metrics_merge(&training, avg);
}

static void on_validation(void *self, int64_t steps, const struct loop_metrics *metrics)
{
    loop_metrics_merge(&validation, metrics);
}

static void on_checkpoint(void *self, int64_t steps, const char *uuid)
{
    free(checkpoint);
    checkpoint = det_strdup(uuid);
    checkpoint_steps = steps;
}

static int run_from(const struct det_trial_type *type, const char *hparams, int64_t batches,
                    const char *uuid, int64_t steps, int64_t aggregation)
{
    struct det_loop_config c = LOOP_CONFIG_INIT;
    c.observer = (struct loop_observer){
        .training = on_training, .validation = on_validation, .checkpoint = on_checkpoint};
    c.max_length = batches;
    c.hparams = json_parse(hparams, strlen(hparams), &err);
    c.experiment_config = json_make("{s:{s:s,s:i}}", "data", "path", "/x", "n", 3);
    c.checkpoint_dir = det_strdup(dir);
    c.policy = LOOP_POLICY_NONE;
    c.latest_checkpoint = det_strdup(uuid);
    c.steps_completed = steps;
    c.aggregation_frequency = aggregation;
    struct trial_run *r = trial_run_create(type);
    struct det_loop_trial client = trial_run_client(r);
    int rc = loop_run(&c, &client, &err);
    trial_run_destroy(r);
    loop_config_finish(&c);
    return rc;
}

static int run(const struct det_trial_type *type, const char *hparams, int64_t batches)
{
    return run_from(type, hparams, batches, NULL, 0, 1);
}

static double metric(const struct loop_metrics *m, const char *name)
{
    double v = NAN;
    const struct loop_metric *x = loop_metrics_find(m, name);
    return x && loop_metric_scalar(x, &v) ? v : NAN;
}

#define ABOUT(a, b)                                                                                \
    do {                                                                                           \
        double a_ = (a), b_ = (b);                                                                 \
        if (!(fabs(a_ - b_) < 1e-5))                                                               \
            fail_msg("%s is %g, not %g", #a, a_, b_);                                              \
    } while (0)

static int setup(void **state)
{
    memset(&want, 0, sizeof want);
    want.lr = 0.25;
    err.text[0] = '\0';
    buf_clear(&trace);
    loop_metrics_clear(&validation);
    loop_metrics_clear(&training);
    memcpy(dir + sizeof dir - 7, "XXXXXX", 6);
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    free(checkpoint);
    checkpoint = NULL;
    buf_finish(&trace);
    loop_metrics_finish(&validation);
    loop_metrics_finish(&training);
    return fsx_remove_tree(AT_FDCWD, dir, &err);
}

/* ---- the tests ---- */

/* loss = (w - (2 + k))^2, dw = 2 (w - (2 + k)), lr 1/4: w goes half way each time. */
static void steps_are_those_of_sgd(void **state)
{
    assert_int_equal(run(&tiny, "{}", 4), 0);
    assert_string_equal(buf_str(&trace), "b0 b1 b2 b3 ");
    ABOUT(metric(&validation, "w"), 4.0625); /* 1 1.5 2.25 3.125 4.0625 */
    ABOUT(metric(&training, "loss"), (1 + 2.25 + 3.0625 + 3.515625) / 4);
}

static void aggregation_averages_gradients(void **state)
{
    assert_int_equal(run_from(&tiny, "{}", 4, NULL, 0, 2), 0);
    /* at w = 1: mean of 2(1-2), 2(1-3) = -3 -> 1.75; then 2(1.75-4), 2(1.75-5) -> -5.5 -> 3.125 */
    ABOUT(metric(&validation, "w"), 3.125);
}

static void clipping_bounds_the_step(void **state)
{
    want.step.clip_norm = 1;
    assert_int_equal(run(&tiny, "{}", 4), 0);
    ABOUT(metric(&validation, "w"), 2.0);
    want.step = (struct det_step_options){.clip_value = 0.4};
    assert_int_equal(run(&tiny, "{}", 4), 0);
    ABOUT(metric(&validation, "w"), 1.4);
}

static void ask_hparams(struct det_trial_context *ctx)
{
    assert_true(det_hparam_f64(ctx, "a.b") == 0.5);
    assert_int_equal(det_hparam_i64(ctx, "n"), 3);
    assert_int_equal(det_hparam_i64(ctx, "whole"), 4);
    assert_string_equal(det_hparam_str(ctx, "s"), "text");
    assert_true(det_hparam_bool(ctx, "t"));
    assert_true(det_hparam_has(ctx, "a.b") && !det_hparam_has(ctx, "a.c"));
    assert_string_equal(det_data_str(ctx, "path", "?"), "/x");
    assert_string_equal(det_data_str(ctx, "other", "?"), "?");
    assert_int_equal(det_data_i64(ctx, "n", 0), 3);
    assert_non_null(strstr(det_hparams_json(ctx), "\"whole\""));
    assert_non_null(strstr(det_trial_data_config_json(ctx), "\"/x\""));
    assert_int_equal(det_trial_per_slot_batch_size(ctx), 8);
    assert_int_equal(det_trial_size(ctx), 1);
    assert_false(det_trial_failed(ctx));
}

/* A second model and optimizer, stepped before the first one's gradients are used: clipping and
 * averaging must leave those alone. */
static struct det_module *second;
static struct det_optim *second_sgd;

static void add_second(struct det_trial_context *ctx)
{
    second = det_trial_wrap_model(ctx, det_nn_linear(det_trial_engine(ctx), 1, 1));
    second_sgd = det_trial_wrap_optimizer(ctx, det_sgd(second, .lr = 0.1));
}

static void step_second(void *arg, struct det_module *m)
{
    assert_ptr_equal(m, second);
    *(int *)arg += 1;
}

static int clipped;

static void train_second(struct det_trial_context *ctx, int64_t batch_idx)
{
    struct det_engine *e = det_trial_engine(ctx);
    struct det_tensor *x = det_full(e, DET_F32, 2, (int64_t[]){1, 1}, 1);
    det_trial_backward(ctx, det_mean(e, det_forward(second, x)));
    det_trial_step_optimizer(ctx, second_sgd, .clip_norm = 1e-9, .clip_grads = step_second,
                             .clip_arg = &clipped);
}

static void optimizers_keep_to_their_models(void **state)
{
    clipped = 0;
    want.in_create = add_second;
    want.in_train = train_second;
    want.step.keep_grads = true; /* gradients add up: the second step must not touch them */
    assert_int_equal(run(&tiny, "{}", 2), 0);
    assert_int_equal(clipped, 2);
    /* 1 -> 1.5 by -2; then -2 + 2(1.5 - 3) = -5 -> 2.75 */
    ABOUT(metric(&validation, "w"), 2.75);
}

#define HPARAMS                                                                                    \
    "{\"a\":{\"b\":0.5},\"n\":3,\"whole\":4.0,\"s\":\"text\",\"t\":true,\"global_batch_size\":8}"

static void configuration_is_read(void **state)
{
    want.in_create = ask_hparams;
    assert_int_equal(run(&tiny, HPARAMS, 1), 0);
}

static void ask_missing(struct det_trial_context *ctx)
{
    assert_true(det_hparam_f64(ctx, "lr") == 0);
    assert_null(det_hparam_str(ctx, "other")); /* the first failure stays */
}

static void ask_wrong_type(struct det_trial_context *ctx)
{
    det_hparam_f64(ctx, "s");
}

/* The section has a path "/x" and a number n. */
static void ask_wrong_data(struct det_trial_context *ctx)
{
    assert_int_equal(det_data_i64(ctx, "path", 7), 7);
    assert_string_equal(det_data_str(ctx, "n", "?"), "?");
}

static void say_invalid(struct det_trial_context *ctx)
{
    det_trial_invalid_hp(ctx, "lr %d is too much", 7);
}

static void failures_name_the_remedy(void **state)
{
    want.in_create = ask_missing;
    assert_int_equal(run(&tiny, HPARAMS, 1), DET_EINVAL);
    assert_non_null(strstr(err.text, "hyperparameters.lr is not in the configuration; "
                                     "hyperparameters has: a"));
    want.in_create = ask_wrong_type;
    assert_int_equal(run(&tiny, HPARAMS, 1), DET_EINVAL);
    assert_non_null(strstr(err.text, "hyperparameters.s is a string; the trial asks for a number"));
    want.in_create = ask_wrong_data;
    assert_int_equal(run(&tiny, HPARAMS, 1), DET_EINVAL);
    assert_non_null(strstr(err.text, "data.path is a string; the trial asks for a whole number"));
    want.in_create = say_invalid;
    assert_int_equal(run(&tiny, HPARAMS, 1), 0); /* an outcome, not a crash */
    assert_non_null(strstr(err.text, "lr 7 is too much"));
    want.in_create = NULL;
    want.no_field = true;
    assert_int_equal(run(&tiny, HPARAMS, 1), DET_EINVAL);
    assert_non_null(strstr(err.text, "train_batch, batch 0"));
}

static void invalid_in_batch_2(struct det_trial_context *ctx, int64_t batch_idx)
{
    if (batch_idx == 2)
        det_trial_invalid_hp(ctx, "w is %g", 7.5);
}

static void engine_fails_too(struct det_trial_context *ctx, int64_t batch_idx)
{
    invalid_in_batch_2(ctx, batch_idx);
    if (batch_idx == 2)
        assert_null(det_zeros(det_trial_engine(ctx), DET_F32, 2, (int64_t[]){-1, -1}));
}

/* What was trained is kept, though a failure stays and nothing of a trial works after it. */
static void invalid_ones_are_saved(void **state)
{
    void (*const hooks[])(struct det_trial_context *, int64_t) = {invalid_in_batch_2,
                                                                  engine_fails_too};
    for (size_t i = 0; i < 2; i++) {
        want.in_train = hooks[i];
        assert_int_equal(run(&tiny, "{}", 1000), 0);
        assert_non_null(strstr(err.text, "w is 7.5"));
        assert_non_null(checkpoint);
        assert_int_equal(checkpoint_steps, 2);
        free(checkpoint);
        checkpoint = NULL;
    }
}

static void stop_at_five(struct det_trial_context *ctx, int64_t batch_idx)
{
    if (batch_idx == 1)
        det_trial_set_stop_requested(ctx, true);
    assert_int_equal(det_trial_current_train_epoch(ctx), batch_idx / 4);
    assert_true(det_trial_is_epoch_start(ctx) == (batch_idx % 4 == 0));
    assert_true(det_trial_is_epoch_end(ctx) == (batch_idx % 4 == 3));
}

static void a_trial_can_stop_itself(void **state)
{
    want.in_train = stop_at_five;
    assert_int_equal(run(&tiny, "{}", 1000), 0);
    assert_non_null(checkpoint);
    assert_int_equal(checkpoint_steps, 100); /* the boundary after batch 1: a report is due */
}

static enum det_reducer reducer(void *self, struct det_trial_context *ctx, const char *name)
{
    return strcmp(name, "idx") == 0 ? DET_REDUCER_MAX : DET_REDUCER_AVG;
}

static double spread(void *arg, const double *v, size_t n)
{
    assert_int_equal(n, 4);
    return v[3] - v[0];
}

static struct det_custom_reducer *custom;
static double seen;

static void add_reducers(struct det_trial_context *ctx)
{
    custom = det_trial_wrap_reducer(ctx, "spread", spread, NULL, false, true);
}

static void update_reducer(struct det_trial_context *ctx, struct det_metrics *m, int64_t batch_idx)
{
    det_reducer_update(custom, 10.0 * (double)batch_idx);
}

static void reducers_reduce(void **state)
{
    struct det_trial_type t = tiny;
    t.evaluation_reducer = reducer;
    want.in_create = add_reducers;
    want.in_evaluate = update_reducer;
    assert_int_equal(run(&t, "{}", 4), 0);
    ABOUT(metric(&validation, "idx"), 3);
    ABOUT(metric(&validation, "spread"), 30);
}

/* ---- callbacks ---- */

static void cb_startup(void *self, int64_t first, const char *uuid)
{
    buf_addf(&trace, "startup%d ", (int)first);
}
static void cb_epoch_start(void *self, int64_t epoch)
{
    buf_addf(&trace, "e%d( ", (int)epoch);
}
static void cb_epoch_end(void *self, int64_t epoch)
{
    buf_addf(&trace, ")e%d ", (int)epoch);
}
static void cb_validated(void *self, const struct det_metrics *m)
{
    seen = det_metrics_get(m, "w");
    assert_true(isnan(det_metrics_get(m, "absent")));
    buf_add_str(&trace, "validated ");
}
static void cb_shutdown(void *self)
{
    buf_addf(&trace, "shutdown%s ", (const char *)self);
}
static char *cb_state(void *self)
{
    return det_strdup("{\"k\": 5}");
}
static void cb_load(void *self, const char *json)
{
    buf_addf(&trace, "load%s ", json);
}

static void build_callbacks(void *self, struct det_trial_context *ctx)
{
    struct det_callback a = {.name = "a",
                             .self = "A",
                             .on_trial_startup = cb_startup,
                             .on_training_epoch_start = cb_epoch_start,
                             .on_training_epoch_end = cb_epoch_end,
                             .on_validation_end = cb_validated,
                             .on_trial_shutdown = cb_shutdown,
                             .state_dict = cb_state,
                             .load_state_dict = cb_load};
    struct det_callback b = {.name = "b", .self = "B", .on_trial_shutdown = cb_shutdown};
    det_trial_add_callback(ctx, &a);
    det_trial_add_callback(ctx, &b);
}

static void callbacks_are_called_in_order(void **state)
{
    struct det_trial_type t = tiny;
    t.build_callbacks = build_callbacks;
    assert_int_equal(run(&t, "{}", 4), 0);
    assert_string_equal(buf_str(&trace),
                        "startup0 e0( b0 b1 b2 b3 )e0 validated shutdownB shutdownA ");
    ABOUT(seen, 4.0625);
    buf_clear(&trace);
    det_cleanup(freep) char *uuid = det_strdup(checkpoint);
    assert_int_equal(run_from(&t, "{}", 5, uuid, 4, 1), 0);
    assert_string_equal(buf_str(&trace),
                        "startup4 load{\"k\": 5} e1( b4 validated shutdownB shutdownA ");
}

static void evaluate_all(void *self, struct det_trial_context *ctx, struct det_data_loader *l,
                         struct det_metrics *m)
{
    int64_t n = 0;
    for (int64_t i = 0; i < det_data_loader_length(l); i++)
        n += det_batch_length(det_data_loader_get(l, i, det_trial_err(ctx)));
    det_metrics_f64(m, "records", (double)n);
}

static void the_whole_set_can_be_evaluated(void **state)
{
    struct det_trial_type t = tiny;
    t.evaluate_batch = NULL;
    t.evaluate_full_dataset = evaluate_all;
    assert_int_equal(run(&t, "{}", 4), 0);
    ABOUT(metric(&validation, "records"), RECORDS);
}

static void wrong_tables_are_refused(void **state)
{
    struct det_trial_type t = tiny;
    assert_int_equal(trial_type_check(&tiny, "T", &err), 0);
    t.det_api_version = 0;
    assert_int_equal(trial_type_check(&t, "T", &err), DET_EINVAL);
    t = tiny;
    t.train_batch = NULL;
    assert_int_equal(trial_type_check(&t, "T", &err), DET_EINVAL);
    assert_string_equal(err.text, "T has no train_batch");
    t = tiny;
    t.evaluate_full_dataset = evaluate_all;
    assert_int_equal(trial_type_check(&t, "T", &err), DET_EINVAL);
}

static void create_wider(void *self, struct det_trial_context *ctx)
{
    struct tiny *t = self;
    t->fc = det_trial_wrap_model(ctx, det_nn_linear(det_trial_engine(ctx), 1, 2, .no_bias = true));
    t->sgd = det_trial_wrap_optimizer(ctx, det_sgd(t->fc, .lr = want.lr));
}

static void create_two(void *self, struct det_trial_context *ctx)
{
    create(self, ctx);
    add_second(ctx);
}

/* That of no trial, of another shape, of another number of models, and one without its file. */
static void a_foreign_checkpoint_is_refused(void **state)
{
    assert_int_equal(run(&tiny, "{}", 4), 0);
    det_cleanup(freep) char *uuid = det_strdup(checkpoint);
    struct det_trial_type t = tiny;
    const char *none = "00000000-0000-4000-8000-000000000000";
    assert_true(run_from(&t, "{}", 4, none, 4, 1) < 0);
    assert_non_null(strstr(err.text, none));
    t.create = create_wider;
    assert_true(run_from(&t, "{}", 5, uuid, 4, 1) < 0);
    assert_non_null(strstr(err.text, "weight"));
    t.create = create_two;
    assert_true(run_from(&t, "{}", 5, uuid, 4, 1) < 0);
    assert_non_null(strstr(err.text, "models"));
    t.create = create;
    det_cleanup(freep) char *file = det_asprintf("%s/%s/state_dict.pth", dir, uuid);
    assert_int_equal(unlink(file), 0);
    assert_true(run_from(&t, "{}", 5, uuid, 4, 1) < 0);
    assert_non_null(strstr(err.text, "state_dict.pth"));
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(steps_are_those_of_sgd),
        T(aggregation_averages_gradients),
        T(clipping_bounds_the_step),
        T(optimizers_keep_to_their_models),
        T(configuration_is_read),
        T(invalid_ones_are_saved),
        T(failures_name_the_remedy),
        T(a_trial_can_stop_itself),
        T(reducers_reduce),
        T(callbacks_are_called_in_order),
        T(the_whole_set_can_be_evaluated),
        T(wrong_tables_are_refused),
        T(a_foreign_checkpoint_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
