/*
 * The trial of examples/digits with a pause of $PACE_MS milliseconds in every batch: it lasts
 * through many faults and leaves the processor to others. The pause changes none of its figures.
 * A batch waits for as long as its number is the name of a file in $PACE_HOLD.
 * Each start is a line in the file $PACE_STARTS: the allocation and the process.
 * tests/lib/paced.py puts the example beside this file, as digits.c.
 */
#include "digits.c"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void paced_create(void *self, struct det_trial_context *ctx)
{
    const char *starts = getenv("PACE_STARTS"), *alloc = getenv("DET_ALLOCATION_ID");
    int fd = starts ? open(starts, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
    if (fd >= 0) {
        dprintf(fd, "%s %d\n", alloc ? alloc : "-", (int)getpid());
        close(fd);
    }
    create(self, ctx);
}

static void nap(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static void wait_while_held(int64_t batch_idx)
{
    const char *folder = getenv("PACE_HOLD");
    char name[4096];
    snprintf(name, sizeof name, "%s/%lld", folder ? folder : "/nowhere", (long long)batch_idx);
    while (access(name, F_OK) == 0)
        nap(5);
}

static void paced_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                        int64_t epoch_idx, int64_t batch_idx, struct det_metrics *metrics)
{
    const char *ms = getenv("PACE_MS");
    wait_while_held(batch_idx);
    nap(ms ? strtol(ms, NULL, 10) : 0);
    train_batch(self, ctx, batch, epoch_idx, batch_idx, metrics);
}

const struct det_trial_type PacedTrial = {
    .det_api_version = DET_API_VERSION,
    .self_bytes = sizeof(struct digits),
    .create = paced_create,
    .build_training_data_loader = training_loader,
    .build_validation_data_loader = validation_loader,
    .train_batch = paced_batch,
    .evaluate_batch = evaluate_batch,
};
