/*
 * Samples per second of a loader with 2 workers, batch 64, shuffled.
 *
 * usage: bench-data mnist DIRECTORY | jpeg DIRECTORY
 * Loads when told to: a line with seconds on standard input gives a line with samples/s.
 */
#include "data_loader.h"
#include "det/data_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCH 64

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static struct det_dataset *mnist(const char *dir, struct det_err *err)
{
    char images[4096], labels[4096];
    snprintf(images, sizeof images, "%s/t10k-images-idx3-ubyte.gz", dir);
    snprintf(labels, sizeof labels, "%s/t10k-labels-idx1-ubyte.gz", dir);
    const struct det_idx_options o = {.images = images,
                                      .labels = labels,
                                      .scale = 1 / (255 * 0.3081),
                                      .offset = -0.1307 / 0.3081};
    return det_dataset_idx(&o, err);
}

static struct det_dataset *jpeg(const char *dir, struct det_err *err)
{
    static const struct det_image_step steps[] = {
        {DET_RANDOM_RESIZED_CROP, .size = 224},
        {.op = DET_RANDOM_HORIZONTAL_FLIP},
        {DET_NORMALIZE, .mean = DET_IMAGENET_MEAN, .std = DET_IMAGENET_STD},
        {0},
    };
    const struct det_image_folder_options o = {.path = dir, .steps = steps};
    return det_dataset_image_folder(&o, err);
}

/* The loader's sampler, epoch after epoch. */
static int pick(void *arg, int64_t k, struct data_pick *ret, struct det_err *err)
{
    int64_t n = det_data_loader_length(arg);
    return data_loader_pick(arg, k / n, k % n, ret, err);
}

static int turn(struct det_data_loader *l, double seconds, struct det_err *err)
{
    const struct det_batch *b = NULL;
    double start = now(), end = start;
    int64_t samples = 0;
    int rc = 0;
    for (; rc == 0 && end < start + seconds; end = now())
        if ((rc = data_loader_next(l, &b, err)) == 0)
            samples += det_batch_length(b);
    printf("%.1f\n", (double)samples / (end - start));
    fflush(stdout);
    return rc;
}

int main(int argc, char **argv)
{
    struct det_err err = {0};
    char line[64];
    if (argc != 3)
        return 2;
    struct det_dataset *ds =
        strcmp(argv[1], "mnist") == 0 ? mnist(argv[2], &err) : jpeg(argv[2], &err);
    struct det_data_loader *l =
        det_data_loader(ds, &err, .batch_size = BATCH, .workers = 2,
                        .sampler = det_sampler_random(det_dataset_length(ds), 1, &err));
    int rc = l ? data_loader_start(l, (struct data_order){pick, l, 1}, &err) : DET_EINVAL;
    while (rc == 0 && fgets(line, sizeof line, stdin))
        rc = turn(l, strtod(line, NULL), &err);
    if (rc < 0)
        fprintf(stderr, "bench-data: %s\n", err.text);
    det_data_loader_destroy(l);
    return rc < 0;
}
