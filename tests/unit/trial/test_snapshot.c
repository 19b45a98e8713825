/* Snapshots of a state that is worth memory of its own: each checkpoint has the weights of its
 * batch, whatever training writes into them while it is stored. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "det/trainer.h"
#include "fsx.h"
#include "json.h"
#include "mem.h"
#include "pth.h"
#include "storage.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 1536, COLUMNS = 1536, NUMEL = ROWS * COLUMNS };

static char dir[] = "/tmp/det-snapshot-XXXXXX";
static struct det_err err;

struct large {
    struct det_tensor *weight;
    float *next;
};

static float value(int64_t batch, int64_t i)
{
    return (float)(batch * 31 + i % 8191);
}

static void create(void *self, struct det_trial_context *ctx)
{
    struct large *l = self;
    struct det_module *fc = det_nn_linear(det_trial_engine(ctx), COLUMNS, ROWS, .no_bias = true);
    det_trial_wrap_model(ctx, fc);
    det_trial_wrap_optimizer(ctx, det_sgd(fc, .lr = 1));
    l->weight = det_module_tensor(fc, "weight");
    l->next = det_alloc(NUMEL * sizeof *l->next);
}

static void destroy(void *self, struct det_trial_context *ctx)
{
    free(((struct large *)self)->next);
}

static struct det_data_loader *loader(void *self, struct det_trial_context *ctx)
{
    static const float x[8];
    struct det_dataset *ds = det_dataset_create(8, det_trial_err(ctx));
    det_dataset_add(ds, "x", DET_F32, 0, NULL, x, det_trial_err(ctx));
    return det_data_loader(ds, det_trial_err(ctx), .batch_size = 1);
}

static void train_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                        int64_t epoch_idx, int64_t batch_idx, struct det_metrics *metrics)
{
    struct large *l = self;
    for (int64_t i = 0; i < NUMEL; i++)
        l->next[i] = value(batch_idx, i);
    det_tensor_write(l->weight, l->next, NUMEL * sizeof *l->next, det_trial_err(ctx));
}

static void evaluate_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                           int64_t batch_idx, struct det_metrics *metrics)
{
    det_metrics_f64(metrics, "loss", 0);
}

static const struct det_trial_type large = {.det_api_version = DET_API_VERSION,
                                            .self_bytes = sizeof(struct large),
                                            .create = create,
                                            .destroy = destroy,
                                            .build_training_data_loader = loader,
                                            .build_validation_data_loader = loader,
                                            .train_batch = train_batch,
                                            .evaluate_batch = evaluate_batch};

static void check_weights(const char *path, int64_t steps)
{
    struct pth_doc *doc = pth_doc_create();
    const struct pth_value *root = NULL;
    det_cleanup(freep) char *file = det_asprintf("%s/state_dict.pth", path);
    det_cleanup(freep) float *got = det_alloc(NUMEL * sizeof *got);
    assert_int_equal(pth_load(file, doc, &root, &err), 0);
    const struct pth_value *v = pth_get(pth_at(pth_get(root, "models_state_dict"), 0), "weight");
    assert_int_equal(pth_tensor_read(v, DET_F32, got, NUMEL * sizeof *got, &err), 0);
    for (int64_t i = 0; i < NUMEL; i++)
        if (got[i] != value(steps - 1, i))
            fail_msg("after %d batches element %d is %g", (int)steps, (int)i, got[i]);
    pth_doc_destroy(doc);
}

static void check_checkpoint(const char *name)
{
    struct buf text = BUF_INIT;
    det_cleanup(freep) char *path = det_asprintf("%s/%s", dir, name);
    det_cleanup(freep) char *metadata = det_asprintf("%s/metadata.json", path);
    assert_int_equal(fsx_read_file(AT_FDCWD, metadata, 1 << 20, &text, &err), 0);
    JSON_OWN j = json_parse(text.p, text.len, &err);
    assert_non_null(j);
    assert_int_equal(storage_verify_dir(path, j, &err), 0);
    check_weights(path, json_integer_value(json_object_get(j, "steps_completed")));
    buf_finish(&text);
}

static void train_and_check(int64_t batches, int64_t period, int checkpoints)
{
    struct det_trainer *t = NULL;
    struct det_trainer_options o = {.checkpoint_dir = dir};
    assert_non_null(mkdtemp(dir));
    assert_int_equal(det_trainer_create(&large, &o, &t, &err), 0);
    assert_int_equal(det_trainer_fit(t, &err, .max_length = DET_BATCHES(batches),
                                     .checkpoint_period = DET_BATCHES(period), .quiet = true),
                     0);
    det_trainer_destroy(t);
    DIR *d = opendir(dir);
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.') {
            check_checkpoint(e->d_name);
            checkpoints--;
        }
    closedir(d);
    assert_int_equal(checkpoints, 0);
    assert_int_equal(fsx_remove_tree(AT_FDCWD, dir, &err), 0);
    memcpy(dir + sizeof dir - 7, "XXXXXX", 6);
}

/* The first snapshot comes before any memory was got ready for it. */
static void at_every_batch(void **state)
{
    train_and_check(3, 1, 3);
}

/* By then a thread has done so. */
static void after_some_batches(void **state)
{
    train_and_check(3, 3, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_every_batch),
        cmocka_unit_test(after_some_batches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
