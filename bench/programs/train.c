/*
 * Whole training steps of a few networks, the batch already in memory: ours of bench/train.py.
 *
 * usage: bench-train FIGURE [THREADS [STEPS]]
 *
 * BENCH_DEVICE names the device, else it is the CPU; with BENCH_DTYPE=bf16 autocast is on;
 * BENCH_BATCH=N makes batches N times as large, since small ones measure a GPU's host. Losses are
 * read after every step, with BENCH_LOSSES=last only a turn's last. Prints the first STEPS losses,
 * the growth of resident memory at its peak and the items of a step, as one JSON object; then, for
 * each number of seconds on standard input, the items per second of steps for about that long.
 * Weights and batches are the function `noise` of their place, in peer_train.py too.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "train.h"

#define FIRST_STEPS 5

/* The hash of the PCG family (O'Neill 2014) as a number in -1..1. */
static double noise(uint64_t i, uint64_t salt)
{
    uint32_t v = (uint32_t)(i + salt * 1000003) * 747796405u + 2891336453u;
    v = ((v >> ((v >> 28) + 4)) ^ v) * 277803737u;
    return (double)((v >> 22) ^ v) / 2147483648.0 - 1;
}

int64_t batch(int64_t n)
{
    const char *factor = getenv("BENCH_BATCH");
    return factor ? n * strtol(factor, NULL, 10) : n;
}

static struct det_tensor *images(int64_t n, int64_t channels, int64_t size)
{
    struct det_tensor *x = det_host_tensor(DET_F32, 4, (int64_t[]){n, channels, size, size}, NULL);
    float *v = det_tensor_data(x);
    for (size_t i = 0; i < det_tensor_numel(x); i++)
        v[i] = (float)(1.7 * noise(i, 999));
    return x;
}

struct det_tensor *labels(int64_t n, int64_t classes)
{
    struct det_tensor *y = det_host_tensor(DET_I64, 1, &n, NULL);
    int64_t *v = det_tensor_data(y);
    for (int64_t i = 0; i < n; i++)
        v[i] = i * 7 % classes;
    return y;
}

static struct det_tensor *classify(struct run *r)
{
    return det_cross_entropy(r->e, det_forward(r->net, r->x), r->y);
}

static void make_mnist_cnn(struct run *r)
{
    struct det_engine *e = r->e;
    r->net =
        det_nn_sequential(e, det_nn_conv2d(e, 1, 32, 3), det_nn_batch_norm2d(e, 32), det_nn_relu(e),
                          det_nn_conv2d(e, 32, 64, 3), det_nn_batch_norm2d(e, 64), det_nn_relu(e),
                          det_nn_max_pool2d(e, 2, 2, 0), det_nn_flatten(e),
                          det_nn_linear(e, 9216, 128), det_nn_relu(e), det_nn_linear(e, 128, 10));
    r->items = batch(64);
    r->x = images(r->items, 1, 28);
    r->y = labels(r->items, 10);
}

static void make_mnist_dropout(struct run *r)
{
    struct det_engine *e = r->e;
    r->net = det_nn_sequential(
        e, det_nn_conv2d(e, 1, 32, 3), det_nn_relu(e), det_nn_conv2d(e, 32, 64, 3), det_nn_relu(e),
        det_nn_max_pool2d(e, 2, 2, 0), det_nn_dropout(e, 0.25), det_nn_flatten(e),
        det_nn_linear(e, 9216, 128), det_nn_relu(e), det_nn_linear(e, 128, 10));
    r->items = batch(64);
    r->x = images(r->items, 1, 28);
    r->y = labels(r->items, 10);
}

static void make_resnet18_32(struct run *r)
{
    r->net = det_nn_resnet(r->e, 18, .classes = 10, .small_images = true);
    r->items = batch(64);
    r->x = images(r->items, 3, 32);
    r->y = labels(r->items, 10);
}

static void make_resnet18_224(struct run *r)
{
    r->net = det_nn_resnet(r->e, 18);
    r->items = batch(8);
    r->x = images(r->items, 3, 224);
    r->y = labels(r->items, 1000);
}

static void make_resnet50_224(struct run *r)
{
    r->net = det_nn_resnet(r->e, 50);
    r->items = batch(8);
    r->x = images(r->items, 3, 224);
    r->y = labels(r->items, 1000);
}

static const struct figure mnist_cnn = {
    .name = "mnist_cnn", .make = make_mnist_cnn, .loss = classify};
static const struct figure mnist_dropout = {
    .name = "mnist_dropout", .make = make_mnist_dropout, .loss = classify, .draws = true};
static const struct figure resnet18_32 = {
    .name = "resnet18_32", .make = make_resnet18_32, .loss = classify};
static const struct figure resnet18_224 = {
    .name = "resnet18_224", .make = make_resnet18_224, .loss = classify};
static const struct figure resnet50_224 = {
    .name = "resnet50_224", .make = make_resnet50_224, .loss = classify};

static const struct figure *const figures[] = {&mnist_cnn,         &mnist_dropout,   &resnet18_32,
                                               &resnet18_224,      &resnet50_224,    &figure_lstm,
                                               &figure_gpt2_small, &figure_gpt2_1024};

/* Weights of two and more dimensions; vectors keep what they start with, but biases start at 0. */
static void set_weights(struct run *r)
{
    size_t n;
    const struct det_named_tensor *p = det_module_params(r->net, &n);
    for (size_t k = 0; k < n; k++) {
        struct det_tensor *t = p[k].tensor;
        size_t numel = det_tensor_numel(t);
        bool bias = strstr(p[k].name, "bias") != NULL;
        if (det_tensor_ndim(t) < 2 && !bias)
            continue;
        float *v = calloc(numel, sizeof *v);
        double bound = 1 / sqrt((double)numel / (double)det_tensor_dim(t, 0));
        for (size_t i = 0; !bias && i < numel; i++)
            v[i] = (float)(bound * noise(i, k));
        det_tensor_write(t, v, numel * sizeof *v, NULL);
        free(v);
    }
}

static struct det_tensor *forward(const struct figure *f, struct run *r)
{
    const char *dtype = getenv("BENCH_DTYPE");
    bool is_half = dtype && strcmp(dtype, "bf16") == 0;
    if (is_half)
        det_autocast_begin(r->e, DET_BF16);
    struct det_tensor *loss = f->loss(r);
    if (is_half)
        det_autocast_end(r->e);
    return loss;
}

/* The loss, where it is read. */
static double step(const struct figure *f, struct run *r, bool is_read)
{
    det_optim_zero_grad(r->optim);
    struct det_tensor *loss = forward(f, r);
    det_backward(r->e, loss);
    if (f->clip_norm > 0)
        det_clip_grad_norm(r->net, f->clip_norm);
    det_optim_step(r->optim);
    double value = is_read ? det_item(r->e, loss) : 0;
    det_engine_step_end(r->e);
    return value;
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A line of /proc/self/status in megabytes. */
static double status_mb(const char *key)
{
    char line[256];
    double kb = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, key, strlen(key)) == 0)
            kb = strtod(line + strlen(key), NULL);
    if (f)
        fclose(f);
    return kb / 1024;
}

/* The batch stays on the device, as PyTorch's does; takes `host`. */
static struct det_tensor *place(struct run *r, struct det_tensor *host)
{
    struct det_tensor *t = det_tensor_ref(det_to_device(r->e, host));
    det_tensor_unref(host);
    return t;
}

static void measure(const struct figure *f, struct run *r, long steps)
{
    double before = status_mb("VmRSS:");
    f->make(r);
    r->x = place(r, r->x);
    r->y = place(r, r->y);
    set_weights(r);
    r->optim = f->optim ? f->optim(r) : det_sgd(r->net, .lr = 0.01, .momentum = 0.9);
    printf("{\"losses\":[");
    det_module_train(r->net, !f->draws);
    for (long i = 0; i < steps; i++)
        printf("%s%.7g", i ? "," : "", step(f, r, true));
    det_module_train(r->net, true);
    printf("],\"peak_mb\":%.1f,\"items\":%lld}\n", status_mb("VmHWM:") - before,
           (long long)r->items);
    fflush(stdout);
}

/* Items per second of steps for about so long, the last one's end included. */
static double turn(const struct figure *f, struct run *r, double seconds)
{
    const char *losses = getenv("BENCH_LOSSES");
    bool reads_all = !losses || strcmp(losses, "last") != 0;
    double from = now_s();
    int64_t steps = 1;
    for (; now_s() - from < seconds; steps++)
        step(f, r, reads_all);
    step(f, r, true);
    return (double)(steps * r->items) / (now_s() - from);
}

static void answer(const struct figure *f, struct run *r)
{
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        printf("%.2f\n", turn(f, r, strtod(line, NULL)));
        fflush(stdout);
    }
}

static const struct figure *figure_of(const char *name)
{
    for (size_t i = 0; name && i < sizeof figures / sizeof *figures; i++)
        if (strcmp(figures[i]->name, name) == 0)
            return figures[i];
    fprintf(stderr, "bench-train: no figure '%s'\n", name ? name : "");
    return NULL;
}

int main(int argc, char **argv)
{
    const struct figure *f = figure_of(argc > 1 ? argv[1] : NULL);
    struct det_engine_options o = {.device = getenv("BENCH_DEVICE"),
                                   .seed = 1,
                                   .threads = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 2};
    struct run r = {0};
    struct det_err err = {0};
    if (!f)
        return 2;
    if (det_engine_create(&o, &r.e, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    measure(f, &r, argc > 3 ? strtol(argv[3], NULL, 10) : FIRST_STEPS);
    if (det_engine_error(r.e, &err) == 0)
        answer(f, &r);
    if (det_engine_error(r.e, &err) < 0)
        fprintf(stderr, "%s\n", err.text);
    det_tensor_unref(r.x);
    det_tensor_unref(r.y);
    det_optim_destroy(r.optim);
    det_module_destroy(r.net);
    det_engine_destroy(r.e);
    free(r.parts);
    return err.code < 0;
}
