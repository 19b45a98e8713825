/*
 * Checkpoints of a state of MIB mebibytes: what a save adds to a training step, and when it is
 * safely stored; beside a memcpy of that size and `dd conv=fsync` of that size, in turns.
 *
 * usage: bench-checkpoint DIR MIB ROUNDS      a line a round: stall_s write_s memcpy_s dd_s
 *
 * The trial's batches do nothing but wait: batch k waits until the checkpoint after batch k-1 has
 * appeared in the store, then times the peers. stall_s is from the end of a batch to the start of
 * the next one, with a checkpoint between them.
 */
#include "clk.h"
#include "det/trainer.h"
#include "mem.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static const char *dir;
static int64_t mib;

struct saver {
    struct det_optim *sgd;
    struct det_tensor *weight;
    char *copy;
    int64_t ended_us; /* of the last batch; 0: none yet */
};

static void create(void *self, struct det_trial_context *ctx)
{
    struct saver *s = self;
    struct det_module *net = det_nn_linear(det_trial_engine(ctx), 256, mib * 1024, .no_bias = true);
    det_trial_wrap_model(ctx, net);
    s->sgd = det_trial_wrap_optimizer(ctx, det_sgd(net, .lr = 0.1));
    s->weight = det_module_tensor(net, "weight");
    s->copy = det_zalloc((size_t)mib << 20);
}

static void destroy(void *self, struct det_trial_context *ctx)
{
    free(((struct saver *)self)->copy);
}

static struct det_data_loader *loader(void *self, struct det_trial_context *ctx)
{
    static const float x[8];
    struct det_dataset *ds = det_dataset_create(8, det_trial_err(ctx));
    det_dataset_add(ds, "x", DET_F32, 0, NULL, x, det_trial_err(ctx));
    return det_data_loader(ds, det_trial_err(ctx), .batch_size = 1);
}

static int64_t stored(void)
{
    int64_t n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static double seconds_since(int64_t us)
{
    return (double)(clk_mono_us() - us) * 1e-6;
}

static double time_dd(void)
{
    det_cleanup(freep) char *of = det_asprintf("of=%s/.dd", dir);
    det_cleanup(freep) char *count = det_asprintf("count=%lld", (long long)mib);
    char *const argv[] = {"dd", "if=/dev/zero", of, "bs=1M", count, "conv=fsync", "status=none",
                          NULL};
    int64_t start = clk_mono_us();
    pid_t pid;
    if (posix_spawnp(&pid, "dd", NULL, NULL, argv, environ) != 0)
        return 0;
    waitpid(pid, NULL, 0);
    double s = seconds_since(start);
    unlink(of + strlen("of="));
    return s;
}

static double time_memcpy(struct saver *s)
{
    const void *from = det_tensor_data(s->weight);
    int64_t start = clk_mono_us();
    memcpy(s->copy, from, (size_t)mib << 20);
    return seconds_since(start);
}

static void train_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                        int64_t epoch_idx, int64_t batch_idx, struct det_metrics *metrics)
{
    struct saver *s = self;
    double stall = s->ended_us ? seconds_since(s->ended_us) : 0;
    while (s->ended_us && stored() < batch_idx)
        poll(NULL, 0, 1);
    double write = s->ended_us ? seconds_since(s->ended_us) : 0;
    double copy = time_memcpy(s), dd = time_dd();
    if (batch_idx > 1) /* the first save makes room for the later ones */
        printf("%.6f %.6f %.6f %.6f\n", stall, write, copy, dd);
    s->ended_us = clk_mono_us();
}

static void evaluate_batch(void *self, struct det_trial_context *ctx,
                           const struct det_batch *batch, int64_t batch_idx,
                           struct det_metrics *metrics)
{
    det_metrics_f64(metrics, "loss", 0);
}

static const struct det_trial_type saver_trial = {.det_api_version = DET_API_VERSION,
                                                  .self_bytes = sizeof(struct saver),
                                                  .create = create,
                                                  .destroy = destroy,
                                                  .build_training_data_loader = loader,
                                                  .build_validation_data_loader = loader,
                                                  .train_batch = train_batch,
                                                  .evaluate_batch = evaluate_batch};

int main(int argc, char **argv)
{
    struct det_err err = {0};
    struct det_trainer *t = NULL;
    if (argc != 4 || (mib = strtoll(argv[2], NULL, 10)) < 1) {
        fprintf(stderr, "usage: bench-checkpoint DIR MIB ROUNDS\n");
        return 2;
    }
    dir = argv[1];
    int rc = det_trainer_create(&saver_trial, &(struct det_trainer_options){.checkpoint_dir = dir},
                                &t, &err);
    if (rc == 0)
        rc = det_trainer_fit(t, &err, .max_length = DET_BATCHES(strtoll(argv[3], NULL, 10) + 2),
                             .checkpoint_period = DET_BATCHES(1), .quiet = true);
    if (rc < 0)
        fprintf(stderr, "%s\n", err.text);
    det_trainer_destroy(t);
    return rc < 0;
}
