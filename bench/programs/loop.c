/*
 * What the training loop costs: microseconds per batch of a C trial with a 1x1 linear model beyond
 * the same functions and the same loader in a bare C loop. The trial is a managed one: it reports
 * every 100 batches, through the spool, to a master that answers at once; so all of the loop's work
 * is in it.
 *
 * usage: bench-loop [ROUNDS [BATCHES]]   (25, 20,000)   one line a round: "<loop us> <bare us>"
 * DET_DEVICE names another device than the CPU.
 */
#include "clk.h"
#include "fsx.h"
#include "mem.h"
#include "trial_context.h"
#include "trial_loop.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORDS 256
#define BATCH   4

static int64_t batches = 20000;
static int64_t started_us, ended_us;

/* ---- The functions that both loops call ------------------------------------------------------ */

struct model {
    struct det_engine *e;
    struct det_module *net;
    struct det_optim *sgd;
};

static void model_init(struct model *m, struct det_engine *e)
{
    m->e = e;
    m->net = det_nn_linear(e, 1, 1);
    m->sgd = det_sgd(m->net, .lr = 1e-3);
}

static struct det_tensor *model_loss(struct model *m, const struct det_batch *b)
{
    struct det_tensor *y = det_forward(m->net, det_batch_tensor(b, "x"));
    return det_mse_loss(m->e, y, det_batch_tensor(b, "y"));
}

static struct det_data_loader *loader(struct det_err *err)
{
    float x[RECORDS], y[RECORDS];
    int64_t one = 1;
    for (int i = 0; i < RECORDS; i++) {
        x[i] = (float)i / RECORDS;
        y[i] = 3 * x[i] + 1;
    }
    struct det_dataset *ds = det_dataset_create(RECORDS, err);
    det_dataset_add(ds, "x", DET_F32, 1, &one, x, err);
    det_dataset_add(ds, "y", DET_F32, 1, &one, y, err);
    return det_data_loader(ds, err, .batch_size = BATCH);
}

static void tick(int64_t b)
{
    if (b == 0)
        started_us = clk_mono_us();
    if (b == batches - 1)
        ended_us = clk_mono_us();
}

/* ---- As a trial ------------------------------------------------------------------------------ */

static void create(void *self, struct det_trial_context *ctx)
{
    struct model *m = self;
    model_init(m, det_trial_engine(ctx));
    det_trial_wrap_model(ctx, m->net);
    det_trial_wrap_optimizer(ctx, m->sgd);
}

static struct det_data_loader *build_loader(void *self, struct det_trial_context *ctx)
{
    return loader(det_trial_err(ctx));
}

static void train_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                        int64_t epoch_idx, int64_t batch_idx, struct det_metrics *metrics)
{
    struct model *m = self;
    struct det_tensor *loss = model_loss(m, batch);
    det_trial_backward(ctx, loss);
    det_trial_step_optimizer(ctx, m->sgd);
    det_metrics_f64(metrics, "loss", det_item(m->e, loss));
    tick(batch_idx);
}

static void evaluate_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                           int64_t batch_idx, struct det_metrics *metrics)
{
    struct model *m = self;
    det_metrics_f64(metrics, "loss", det_item(m->e, model_loss(m, batch)));
}

static const struct det_trial_type LinearTrial = {.det_api_version = DET_API_VERSION,
                                                  .self_bytes = sizeof(struct model),
                                                  .create = create,
                                                  .build_training_data_loader = build_loader,
                                                  .build_validation_data_loader = build_loader,
                                                  .train_batch = train_batch,
                                                  .evaluate_batch = evaluate_batch};

static bool completed;

/* A master that answers at once. */
static int call(void *self, const struct loop_http_request *q, struct loop_http_response *ret,
                struct det_err *err)
{
    ret->status = 200;
    if (strstr(q->path, "completed_operation"))
        completed = true;
    if (strstr(q->path, "searcher/operation"))
        buf_addf(&ret->body, "{\"op\":{\"validateAfter\":{\"length\":\"%lld\"}},\"completed\":%s}",
                 (long long)batches, completed ? "true" : "false");
    else
        buf_add_str(&ret->body, "{\"trial\":{},\"preempt\":false}");
    return 0;
}

static int as_trial(const char *dir, double *ret_us, struct det_err *err)
{
    struct det_loop_config c = LOOP_CONFIG_INIT;
    struct trial_run *run = trial_run_create(&LinearTrial);
    struct det_loop_trial t = trial_run_client(run);
    c.managed = true;
    c.trial_id = c.experiment_id = c.run_id = 1;
    c.task_id = det_strdup("1.x");
    c.allocation_id = det_strdup("1.x.1");
    c.searcher_metric = det_strdup("loss");
    c.spool_path = det_asprintf("%s/spool", dir);
    c.checkpoint_storage = json_make("{s:s, s:s}", "type", "shared_fs", "host_path", dir);
    c.http = (struct loop_http){.call = call};
    completed = false;
    int rc = loop_run(&c, &t, err);
    *ret_us = (double)(ended_us - started_us) / (double)(batches - 1);
    trial_run_destroy(run);
    loop_config_finish(&c);
    return rc;
}

/* ---- As a bare loop -------------------------------------------------------------------------- */

static int pick(void *arg, int64_t k, struct data_pick *ret, struct det_err *err)
{
    static int64_t records[BATCH];
    for (int64_t i = 0; i < BATCH; i++)
        records[i] = (k * BATCH + i) % RECORDS;
    *ret = (struct data_pick){records, BATCH, 0};
    return 0;
}

static int bare(double *ret_us, struct det_err *err)
{
    struct det_engine *e = NULL;
    struct det_engine_options o = {.device = getenv("DET_DEVICE"), .seed = 1};
    struct model m;
    double sum = 0;
    int rc = det_engine_create(&o, &e, err);
    if (rc < 0)
        return rc;
    model_init(&m, e);
    struct det_data_loader *l = loader(err);
    rc = data_loader_start(l, (struct data_order){pick, NULL, 0}, err);
    for (int64_t b = 0; rc == 0 && b < batches; b++) {
        const struct det_batch *batch = NULL;
        rc = data_loader_next(l, &batch, err);
        struct det_tensor *loss = model_loss(&m, batch);
        det_backward(e, loss);
        det_optim_step(m.sgd);
        det_optim_zero_grad(m.sgd);
        sum += det_item(e, loss);
        det_engine_step_end(e);
        tick(b);
    }
    *ret_us = (double)(ended_us - started_us) / (double)(batches - 1);
    det_data_loader_destroy(l);
    det_optim_destroy(m.sgd);
    det_module_destroy(m.net);
    det_engine_destroy(e);
    return rc < 0 ? rc : sum >= 0 ? 0 : det_fail(err, DET_EINVAL, "the loss is not a number");
}

int main(int argc, char **argv)
{
    char dir[] = "/tmp/det-bench-XXXXXX";
    struct det_err err = {0};
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 25;
    if (argc > 2)
        batches = strtol(argv[2], NULL, 10);
    if (!mkdtemp(dir))
        return 1;
    int rc = 0;
    for (long i = 0; rc == 0 && i < rounds; i++) { /* in turn, so that both see the same machine */
        double loop_us = 0, bare_us = 0;
        rc = as_trial(dir, &loop_us, &err);
        if (rc == 0)
            rc = bare(&bare_us, &err);
        if (rc == 0)
            printf("%.4f %.4f\n", loop_us, bare_us);
    }
    det_ignore(fsx_remove_tree(AT_FDCWD, dir, NULL), "the run is over");
    if (rc < 0)
        fprintf(stderr, "bench-loop: %s\n", err.text);
    return rc < 0;
}
