/* What a trial asks of its context, in two processes: its place among the ranks, values from rank
 * to rank, the configuration, a directory of its own, arrays as metrics, groups of parameters. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "det/trainer.h"
#include "fsx.h"
#include "line.h"
#include "mem.h"
#include "ranks.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/det-facts-XXXXXX";
static int failed;
#define CHECK(is_true)                                                                             \
    do {                                                                                           \
        if (!(is_true)) {                                                                          \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #is_true);                  \
            failed = 1;                                                                            \
        }                                                                                          \
    } while (0)

struct facts {
    struct det_trial_context *ctx;
    struct det_module *net;
    struct det_optim *sgd;
    char download[256];
    int workloads, validations;
};

static bool is_bias(void *arg, const char *name, const struct det_tensor *param)
{
    return strcmp(name, arg) == 0 && det_tensor_ndim(param) == 1;
}

static void create(void *self, struct det_trial_context *ctx)
{
    struct facts *t = self;
    struct det_engine *e = det_trial_engine(ctx);
    t->ctx = ctx;
    CHECK(det_trial_seed(ctx) == 4000000000u);
    CHECK(det_trial_global_batch_size(ctx) == 6 && det_trial_per_slot_batch_size(ctx) == 3);
    CHECK(det_data_f64(ctx, "share", 7) == 0.5 && det_data_f64(ctx, "absent", 7) == 7);
    CHECK(det_data_bool(ctx, "on", false) && det_data_bool(ctx, "absent", true));
    CHECK(det_data_i64(ctx, "deep.n", 1) == 3 && det_data_i64(ctx, "deep.absent", 1) == 1);
    CHECK(strcmp(det_data_str(ctx, "deep.word", "-"), "yes") == 0);
    CHECK(strstr(det_trial_experiment_config_json(ctx), "\"name\":\"facts\"") != NULL);
    CHECK(strstr(det_trial_data_config_json(ctx), "\"share\":0.5") != NULL);
    CHECK(det_trial_experiment_id(ctx) == 0 && det_trial_id(ctx) == 0);
    t->net = det_trial_wrap_model(ctx, det_nn_linear(e, 1, 1));
    t->sgd = det_sgd(t->net, .lr = 0.1, .weight_decay = 0.5);
    CHECK(det_optim_add_group_if(t->sgd, NULL, is_bias, "bias", {"lr", 0}) == 1);
    det_trial_wrap_optimizer(ctx, t->sgd);
    det_trial_set_tensorboard_logging(ctx, false);
    CHECK(!det_trial_get_tensorboard_logging(ctx));
}

static struct det_data_loader *loader(void *self, struct det_trial_context *ctx)
{
    return line_loader(ctx, 4, 1);
}

/* Rank r gives r + 1 bytes, and the place of its downloads. */
static void between_ranks(struct facts *t, int rank)
{
    const size_t *bytes;
    char word[] = "ab";
    size_t n = 0;
    const void *const *all = det_trial_allgather(t->ctx, word, (size_t)rank + 1, &bytes);
    CHECK(all && bytes[0] == 1 && bytes[1] == 2 && memcmp(all[1], "ab", 2) == 0);
    const char *got = det_trial_broadcast(t->ctx, rank ? "no" : "chief", rank ? 2 : 5, &n);
    CHECK(got && n == 5 && memcmp(got, "chief", 5) == 0);
    const char *own = det_trial_download_dir(t->ctx);
    CHECK(own && own == det_trial_download_dir(t->ctx) && access(own, W_OK) == 0);
    snprintf(t->download, sizeof t->download, "%s", own ? own : "");
    all = det_trial_allgather(t->ctx, own, strlen(own) + 1, &bytes);
    CHECK(all && strcmp(all[0], all[1]) != 0 && strcmp(all[rank], own) == 0);
    det_trial_barrier(t->ctx);
}

static void train_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                        int64_t epoch_idx, int64_t batch_idx, struct det_metrics *m)
{
    struct facts *t = self;
    int rank = det_trial_rank(ctx);
    if (batch_idx == 0)
        between_ranks(t, rank);
    CHECK(det_trial_initial_batch(ctx) == 0);
    CHECK(!det_trial_get_stop_requested(ctx));
    det_trial_backward(ctx, line_loss(ctx, t->net, batch));
    det_trial_step_optimizer(ctx, t->sgd);
    det_metrics_array(m, "pair", (const double[]){rank, 10}, 2);
    if (batch_idx == 1)
        det_trial_set_stop_requested(ctx, true);
    CHECK(det_trial_get_stop_requested(ctx) == (batch_idx == 1));
}

static void evaluate_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                           int64_t batch_idx, struct det_metrics *m)
{
    struct facts *t = self;
    det_metrics_tensor(m, "val_loss", line_loss(ctx, t->net, batch));
    det_metrics_array(m, "triple", (const double[]){1, 2, 3}, 3);
}

static void workload_end(void *self, const struct det_metrics *avg,
                         const struct det_metrics *const *batches, size_t n)
{
    struct facts *t = self;
    CHECK(n == 1 && strcmp(det_metrics_name(batches[0], 0), "pair") == 0);
    CHECK(det_metrics_get(batches[0], "pair") == 5.25); /* over ranks an array is one number */
    CHECK(det_metrics_get(avg, "pair") == 5.25);
    t->workloads++;
}

static void validated(void *self, const struct det_metrics *const *outputs, size_t n)
{
    struct facts *t = self;
    size_t size = 0;
    const double *triple = det_metrics_get_array(outputs[1], "triple", &size);
    CHECK(n == 2 && triple && size == 3 && triple[2] == 3); /* this rank's own, as given */
    CHECK(det_metrics_get_array(outputs[1], "absent", &size) == NULL);
    t->validations++;
}

static void build_callbacks(void *self, struct det_trial_context *ctx)
{
    const struct det_callback cb = {.name = "watch",
                                    .self = self,
                                    .on_training_workload_end = workload_end,
                                    .on_validation_epoch_end = validated};
    det_trial_add_callback(ctx, &cb);
}

static const struct det_trial_type facts = {.det_api_version = DET_API_VERSION,
                                            .self_bytes = sizeof(struct facts),
                                            .create = create,
                                            .build_training_data_loader = loader,
                                            .build_validation_data_loader = loader,
                                            .train_batch = train_batch,
                                            .evaluate_batch = evaluate_batch,
                                            .build_callbacks = build_callbacks};

static void check_trial(struct det_trainer *t, int rank, const char *board)
{
    struct det_trial_context *ctx = det_trainer_context(t);
    struct facts *self = det_trainer_trial(t);
    CHECK(det_trial_rank(ctx) == rank && det_trial_size(ctx) == 2);
    CHECK(det_trial_local_rank(ctx) == rank && det_trial_local_size(ctx) == 2);
    CHECK(det_trial_cross_rank(ctx) == 0 && det_trial_cross_size(ctx) == 1);
    CHECK(self->validations == 1 && self->workloads == 2); /* it stopped itself in the second */
    CHECK(det_optim_get(self->sgd, 0, "weight_decay") == 0.5 && det_optim_lr(self->sgd, 1) == 0);
    CHECK(access(board, F_OK) != 0); /* nothing was written for TensorBoard */
}

static int rank_main(int rank, int size, int port, void *arg)
{
    struct det_err err = {0};
    struct det_trainer *t = NULL;
    det_cleanup(freep) char *board = det_asprintf("%s/board%d", dir, rank);
    const struct det_distributed d = {
        .rank = rank, .size = size, .local_rank = rank, .local_size = size, .port = port};
    const struct det_trainer_options o = {
        .hparams = "{\"global_batch_size\": 7}",
        .seed = 4000000000u,
        .distributed = &d,
        .exp_conf = "{\"name\": \"facts\", \"data\": {\"share\": 0.5, \"on\": true, "
                    "\"deep\": {\"n\": 3, \"word\": \"yes\"}}}",
        .checkpoint_dir = dir,
        .tensorboard_dir = board};
    int rc = det_trainer_create(&facts, &o, &t, &err);
    if (rc == 0)
        rc = det_trainer_fit(t, &err, .max_length = DET_BATCHES(4), .quiet = true,
                             .step_zero_validation = true, .reporting_period = DET_BATCHES(1),
                             .checkpoint_policy = "none");
    if (rc < 0) {
        fprintf(stderr, "rank %d: %s\n", rank, err.text);
        return 1;
    }
    check_trial(t, rank, board);
    const struct facts *self = det_trainer_trial(t);
    det_cleanup(freep) char *download = det_strdup(self->download);
    det_trainer_destroy(t);
    CHECK(*download && access(download, F_OK) != 0);
    return failed;
}

static void two_ranks_know_their_facts(void **state)
{
    ranks_pass(2, rank_main, NULL, 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(two_ranks_know_their_facts)};
    if (!mkdtemp(dir) || chdir(dir) < 0)
        return 1;
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    det_ignore(fsx_remove_tree(AT_FDCWD, dir, NULL), "the test is over");
    return rc;
}
