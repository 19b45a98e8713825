/*
 * Images per second of whole training steps of the MNIST CNN (conv 32, conv 64, max pool, dropout,
 * fc 128, dropout, fc 10; cross entropy; SGD), the batch already in memory.
 *
 * usage: bench-cnn [THREADS [BATCH [SECONDS]]]    prints one number
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "det/optim.h"

struct net {
    struct det_engine *e;
    struct det_module *root, *conv1, *conv2, *fc1, *fc2;
};

static void net_init(struct net *n)
{
    struct det_engine *e = n->e;
    n->root = det_nn_module(e);
    n->conv1 = det_module_add(n->root, "conv1", det_nn_conv2d(e, 1, 32, 3, .relu = true));
    n->conv2 = det_module_add(n->root, "conv2", det_nn_conv2d(e, 32, 64, 3, .relu = true));
    n->fc1 = det_module_add(n->root, "fc1", det_nn_linear(e, 9216, 128));
    n->fc2 = det_module_add(n->root, "fc2", det_nn_linear(e, 128, 10));
}

static struct det_tensor *net_forward(struct net *n, struct det_tensor *x)
{
    x = det_forward(n->conv2, det_forward(n->conv1, x));
    x = det_dropout(n->e, det_max_pool2d(n->e, x, 2, 2, 0), 0.25, true);
    x = det_relu(n->e, det_forward(n->fc1, det_flatten(n->e, x, 1)));
    return det_forward(n->fc2, det_dropout(n->e, x, 0.5, true));
}

static double step(struct net *n, struct det_optim *sgd, struct det_tensor *x, struct det_tensor *y)
{
    det_optim_zero_grad(sgd);
    struct det_tensor *loss = det_cross_entropy(n->e, net_forward(n, x), y);
    det_backward(n->e, loss);
    det_optim_step(sgd);
    double value = det_item(n->e, loss);
    det_engine_step_end(n->e);
    return value;
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void fill(struct det_tensor *x, struct det_tensor *y)
{
    float *pixels = det_tensor_data(x);
    int64_t *labels = det_tensor_data(y);
    for (size_t i = 0; i < det_tensor_numel(x); i++)
        pixels[i] = (float)sin((double)i * 0.37);
    for (size_t i = 0; i < det_tensor_numel(y); i++)
        labels[i] = (int64_t)(i * 7 % 10);
}

/* Steps for about `seconds` after some to warm up; images per second. */
static double measure(struct net *n, struct det_optim *sgd, int64_t batch, double seconds)
{
    struct det_tensor *x = det_host_tensor(DET_F32, 4, (int64_t[]){batch, 1, 28, 28}, NULL);
    struct det_tensor *y = det_host_tensor(DET_I64, 1, &batch, NULL);
    int64_t steps = 0;
    fill(x, y);
    for (int i = 0; i < 5; i++)
        step(n, sgd, x, y);
    double from = now_s(), to = from;
    for (; to - from < seconds; to = now_s(), steps++)
        step(n, sgd, x, y);
    det_tensor_unref(x);
    det_tensor_unref(y);
    return (double)(steps * batch) / (to - from);
}

int main(int argc, char **argv)
{
    struct det_engine_options o = {.device = getenv("BENCH_DEVICE"),
                                   .seed = 1,
                                   .threads = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 2};
    int64_t batch = argc > 2 ? strtol(argv[2], NULL, 10) : 64;
    double seconds = argc > 3 ? strtod(argv[3], NULL) : 3;
    struct net n = {0};
    struct det_err err;
    if (det_engine_create(&o, &n.e, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    net_init(&n);
    struct det_optim *sgd = det_sgd(n.root, .lr = 0.01);
    double rate = measure(&n, sgd, batch, seconds);
    int rc = det_engine_error(n.e, &err);
    if (rc < 0)
        fprintf(stderr, "%s\n", err.text);
    else
        printf("%.1f\n", rate);
    det_optim_destroy(sgd);
    det_module_destroy(n.root);
    det_engine_destroy(n.e);
    return rc < 0;
}
