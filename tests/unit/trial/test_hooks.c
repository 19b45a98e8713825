/* The order of every hook of a C trial, against golden_hooks.txt; and what callbacks can do to a
 * checkpoint. DET_GOLDEN_WRITE=1 writes the file anew, for a person to read the difference. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "fsx.h"
#include "trial_checkpoint.h"
#include "trial_loop.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECORDS 12
#define BATCH   4 /* 3 batches an epoch */

static const char *golden_path;
static char dir[] = "/tmp/det-hooks-XXXXXX";
static struct det_err err;
static struct buf trace;
static char *checkpoint;

static void note(const char *what)
{
    buf_addf(&trace, "%s\n", what);
}

static void note_n(const char *what, int64_t n)
{
    buf_addf(&trace, "%s %lld\n", what, (long long)n);
}

/* ---- the trial ---- */

struct tiny {
    struct det_module *fc;
    struct det_optim *sgd;
    struct det_trial_context *ctx;
};
static struct tiny *the_trial;

static double constant(int64_t epoch, void *arg)
{
    note_n("  lr_step, epoch", epoch);
    return 1;
}

static void create(void *self, struct det_trial_context *ctx)
{
    struct tiny *t = the_trial = self;
    note("create");
    t->ctx = ctx;
    t->fc = det_trial_wrap_model(ctx, det_nn_linear(det_trial_engine(ctx), 1, 1));
    t->sgd = det_trial_wrap_optimizer(ctx, det_sgd(t->fc, .lr = 0.01));
    det_trial_wrap_lr_scheduler(ctx, det_lambda_lr(t->sgd, constant, NULL), DET_STEP_EVERY_EPOCH,
                                1);
    assert_ptr_equal(det_trial_model(ctx, 0), t->fc);
    assert_ptr_equal(det_trial_optimizer(ctx, 0), t->sgd);
    assert_null(det_trial_model(ctx, 1));
    assert_null(det_trial_optimizer(ctx, 1));
    assert_non_null(det_trial_lr_scheduler(ctx, 0));
}

static void destroy(void *self, struct det_trial_context *ctx)
{
    note("destroy");
}

static struct det_data_loader *loader(struct det_trial_context *ctx, const char *what)
{
    float x[RECORDS] = {0};
    int64_t one = 1;
    note(what);
    struct det_dataset *ds = det_dataset_create(RECORDS, det_trial_err(ctx));
    det_dataset_add(ds, "x", DET_F32, 1, &one, x, det_trial_err(ctx));
    return det_data_loader(ds, det_trial_err(ctx), .batch_size = BATCH);
}

static struct det_data_loader *training_loader(void *self, struct det_trial_context *ctx)
{
    return loader(ctx, "build_training_data_loader");
}

static struct det_data_loader *validation_loader(void *self, struct det_trial_context *ctx)
{
    return loader(ctx, "build_validation_data_loader");
}

static void train_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                        int64_t epoch_idx, int64_t batch_idx, struct det_metrics *m)
{
    struct tiny *t = self;
    struct det_engine *e = det_trial_engine(ctx);
    note_n("train_batch", batch_idx);
    struct det_tensor *out = det_forward(t->fc, det_batch_tensor(batch, "x"));
    det_trial_backward(ctx, det_mean(e, det_mul(e, out, out)));
    det_trial_step_optimizer(ctx, t->sgd);
    det_metrics_f64(m, "batch", (double)batch_idx);
}

static void evaluate_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                           int64_t batch_idx, struct det_metrics *m)
{
    note_n("evaluate_batch", batch_idx);
    det_metrics_f64(m, "val", 10 + (double)batch_idx);
}

/* ---- a callback with every hook; both say their name, the first one checks what it is given */

static void startup(void *self, int64_t first, const char *uuid)
{
    buf_addf(&trace, "%s: on_trial_startup %lld%s\n", (char *)self, (long long)first,
             uuid ? " uuid" : "");
}

#define PLAIN(hook, params)                                                                        \
    static void hook params                                                                        \
    {                                                                                              \
        buf_addf(&trace, "%s: " #hook "\n", (char *)self);                                         \
    }
PLAIN(on_training_start, (void *self))
PLAIN(on_validation_start, (void *self))
PLAIN(on_validation_epoch_start, (void *self))
PLAIN(on_checkpoint_write_end, (void *self, const char *d))
PLAIN(on_checkpoint_upload_end, (void *self, const char *uuid))
PLAIN(on_trial_shutdown, (void *self))

static void epoch_start(void *self, int64_t epoch)
{
    buf_addf(&trace, "%s: on_training_epoch_start %lld\n", (char *)self, (long long)epoch);
}

static void epoch_end(void *self, int64_t epoch)
{
    buf_addf(&trace, "%s: on_training_epoch_end %lld\n", (char *)self, (long long)epoch);
}

static void workload_end(void *self, const struct det_metrics *avg,
                         const struct det_metrics *const *batches, size_t n)
{
    double sum = 0;
    buf_addf(&trace, "%s: on_training_workload_end, %zu batches\n", (char *)self, n);
    for (size_t i = 0; i < n; i++)
        sum += det_metrics_get(batches[i], "batch");
    assert_true(det_metrics_get(avg, "batch") == sum / (double)n);
    assert_string_equal(det_metrics_name(avg, 0), "batch");
    assert_null(det_metrics_name(avg, 1));
}

static void validation_epoch_end(void *self, const struct det_metrics *const *outputs, size_t n)
{
    buf_addf(&trace, "%s: on_validation_epoch_end, %zu batches\n", (char *)self, n);
    for (size_t i = 0; i < n; i++)
        assert_true(det_metrics_get(outputs[i], "val") == 10 + (double)i);
}

static void validation_end(void *self, const struct det_metrics *m)
{
    buf_addf(&trace, "%s: on_validation_end\n", (char *)self);
    assert_true(det_metrics_get(m, "val") == 11);
}

static void save_start(void *self, struct det_checkpoint *c)
{
    float ones[3] = {1, 2, 3};
    int64_t three = 3;
    buf_addf(&trace, "%s: on_checkpoint_save_start\n", (char *)self);
    assert_true(det_checkpoint_has(c, "models_state_dict"));
    det_checkpoint_put_json(c, "mine", "{\"list\": [1, 2.5, \"x\", null], \"yes\": true}");
    det_checkpoint_put_json(c, "gone", "1");
    det_checkpoint_remove(c, "gone");
    struct pth_value *torn = pth_dict(c->doc);
    pth_put(c->doc, torn, "k\xff", pth_str(c->doc, "v\xfe"));
    pth_set(c->doc, c->root, "torn", torn);
    struct det_tensor *t = det_host_tensor_view(DET_F32, 1, &three, ones, &err);
    det_checkpoint_put_tensor(c, "tensor", t);
    det_tensor_unref(t);
    assert_true(det_checkpoint_rename_weight(c, 0, "weight", "old_name"));
}

static void load_start(void *self, struct det_checkpoint *c)
{
    buf_addf(&trace, "%s: on_checkpoint_load_start\n", (char *)self);
    if (*(char *)self == 'b')
        return;
    assert_string_equal(det_checkpoint_get_json(c, "mine"),
                        "{\"list\":[1,2.5,\"x\",null],\"yes\":true}");
    assert_null(det_checkpoint_get_json(c, "gone"));
    assert_string_equal(det_checkpoint_get_json(c, "torn"), "{\"k\uFFFD\":\"v\uFFFD\"}");
    assert_true(((float *)det_tensor_data(det_checkpoint_get_tensor(c, "tensor")))[2] == 3);
    assert_null(det_checkpoint_get_tensor(c, "mine"));
    assert_int_equal(det_tensor_numel(det_checkpoint_weight(c, 0, "old_name")), 1);
    assert_false(det_checkpoint_rename_weight(c, 0, "nothing", "weight"));
    assert_false(det_checkpoint_rename_weight(c, 1, "old_name", "weight"));
    assert_true(det_checkpoint_rename_weight(c, 0, "old_name", "weight"));
}

static char *state_dict(void *self)
{
    buf_addf(&trace, "%s: state_dict\n", (char *)self);
    return det_asprintf("{\"of\": \"%s\"}", (char *)self);
}

static void load_state_dict(void *self, const char *json)
{
    buf_addf(&trace, "%s: load_state_dict %s\n", (char *)self, json);
}

static void build_callbacks(void *self, struct det_trial_context *ctx)
{
    static const char *names[] = {"a", "b"};
    struct det_callback cb = {.on_trial_startup = startup,
                              .on_checkpoint_load_start = load_start,
                              .on_training_start = on_training_start,
                              .on_training_epoch_start = epoch_start,
                              .on_training_epoch_end = epoch_end,
                              .on_training_workload_end = workload_end,
                              .on_validation_start = on_validation_start,
                              .on_validation_epoch_start = on_validation_epoch_start,
                              .on_validation_epoch_end = validation_epoch_end,
                              .on_validation_end = validation_end,
                              .on_checkpoint_save_start = save_start,
                              .on_checkpoint_write_end = on_checkpoint_write_end,
                              .on_checkpoint_upload_end = on_checkpoint_upload_end,
                              .on_trial_shutdown = on_trial_shutdown,
                              .state_dict = state_dict,
                              .load_state_dict = load_state_dict};
    note("build_callbacks");
    for (size_t i = 0; i < 2; i++) {
        cb.name = names[i];
        cb.self = (void *)names[i];
        if (i == 1)
            cb.on_checkpoint_save_start = NULL; /* what one callback renamed is renamed */
        det_trial_add_callback(ctx, &cb);
    }
    det_trial_set_metadata(ctx, "author", "{\"name\": \"me\"}");
    det_trial_set_metadata(ctx, "format", "\"mine\""); /* the loop's stays */
    det_trial_set_metadata(ctx, "dropped", "1");
    det_trial_set_metadata(ctx, "dropped", NULL);
}

static const struct det_trial_type tiny = {.det_api_version = DET_API_VERSION,
                                           .self_bytes = sizeof(struct tiny),
                                           .create = create,
                                           .destroy = destroy,
                                           .build_training_data_loader = training_loader,
                                           .build_validation_data_loader = validation_loader,
                                           .train_batch = train_batch,
                                           .evaluate_batch = evaluate_batch,
                                           .build_callbacks = build_callbacks};

/* ---- running ---- */

static void on_report(void *self, int64_t steps, const struct loop_metrics *avg)
{
    note_n("report", steps);
}

static void on_validation(void *self, int64_t steps, const struct loop_metrics *m)
{
    note_n("report validation", steps);
}

static void on_checkpoint(void *self, int64_t steps, const char *uuid)
{
    note_n("report checkpoint", steps);
    free(checkpoint);
    checkpoint = det_strdup(uuid);
}

static void run(int64_t epochs, const char *uuid)
{
    struct det_loop_config c = LOOP_CONFIG_INIT;
    c.observer = (struct loop_observer){
        .training = on_report, .validation = on_validation, .checkpoint = on_checkpoint};
    c.length_unit = LOOP_LEN_EPOCHS;
    c.max_length = epochs;
    c.validation_period = (struct loop_unit){.n = 4};
    c.checkpoint_period = (struct loop_unit){.kind = LOOP_EPOCHS, .n = 1};
    c.reporting_period.n = 2;
    c.step_zero_validation = true;
    c.policy = LOOP_POLICY_NONE;
    c.checkpoint_dir = det_strdup(dir);
    c.latest_checkpoint = det_strdup(uuid);
    struct trial_run *r = trial_run_create(&tiny);
    struct det_loop_trial client = trial_run_client(r);
    int rc = loop_run(&c, &client, &err);
    if (rc < 0)
        fail_msg("%s", err.text);
    trial_run_destroy(r);
    loop_config_finish(&c);
}

static void check_golden(const char *text)
{
    det_cleanup(buf_finish) struct buf golden = BUF_INIT;
    if (getenv("DET_GOLDEN_WRITE")) {
        assert_int_equal(fsx_write_atomic(AT_FDCWD, golden_path, text, strlen(text), 0644, &err),
                         0);
        return;
    }
    assert_int_equal(fsx_read_file(AT_FDCWD, golden_path, 1 << 20, &golden, &err), 0);
    assert_string_equal(buf_str(&golden), text);
}

static void check_metadata(void)
{
    det_cleanup(buf_finish) struct buf text = BUF_INIT;
    det_cleanup(freep) char *path = det_asprintf("%s/%s/metadata.json", dir, checkpoint);
    assert_int_equal(fsx_read_file(AT_FDCWD, path, 1 << 20, &text, &err), 0);
    JSON_OWN j = json_parse(buf_str(&text), text.len, &err);
    assert_string_equal(json_str(json_obj(j, "author"), "name", ""), "me");
    assert_string_equal(json_str(j, "format", ""), "pickle");
    assert_null(json_object_get(j, "dropped"));
}

/* The contract's example: 2 epochs of 3 batches, validation every 4, checkpoint every epoch, report
 * every 2, policy none, step-zero validation; then one more epoch from the last checkpoint. */
static void every_hook_in_order(void **state)
{
    note("---- two epochs");
    run(2, NULL);
    check_metadata();
    det_cleanup(freep) char *uuid = det_strdup(checkpoint);
    note("---- one more, from the checkpoint");
    run(3, uuid);
    check_golden(buf_str(&trace));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_hook_in_order)};
    golden_path = argc > 1 ? argv[1] : "golden_hooks.txt";
    if (!mkdtemp(dir))
        return 1;
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    det_ignore(fsx_remove_tree(AT_FDCWD, dir, NULL), "the test is over");
    buf_finish(&trace);
    free(checkpoint);
    return rc;
}
