/*
 * What a device's kernels and copies cost, and whether they are right beyond 2^31 elements.
 *
 * usage: micro KIBIBYTES    a JSON object a line: operation, microseconds of a call, GB/s of the
 *                           bytes that must be read and written at least; of attention and
 *                           convolutions TFLOP/s
 *        micro --large N    tensors of N elements and a little more, and large products
 *
 * DET_DEVICE names the device, else it is the CPU.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "det/nn_seq.h"
#include "det/optim.h"
#include "micro.h"

#define CALLS  8
#define ROUNDS 5
#define WIDTH  1024

static struct det_tensor *add(struct det_engine *e, struct det_tensor *x)
{
    return det_add(e, x, x);
}

static struct det_tensor *to_bf16(struct det_engine *e, struct det_tensor *x)
{
    return det_cast(e, x, DET_BF16);
}

static struct det_tensor *to_f32(struct det_engine *e, struct det_tensor *x)
{
    return det_cast(e, x, DET_F32);
}

static struct det_tensor *layer_norm(struct det_engine *e, struct det_tensor *x)
{
    return det_layer_norm(e, x, 1, NULL, NULL, 0);
}

static struct det_tensor *column_sums(struct det_engine *e, struct det_tensor *x)
{
    return det_sum_over(e, x, det_over(false, 0));
}

static struct det_tensor *dropout(struct det_engine *e, struct det_tensor *x)
{
    return det_dropout(e, x, 0.5, true);
}

static struct det_tensor *turned(struct det_engine *e, struct det_tensor *x)
{
    return det_contiguous(e, det_transpose(e, x, 0, 1));
}

/* Images of 64 x 8 x 8, as many as x has. */
static struct det_tensor *into_nhwc(struct det_engine *e, struct det_tensor *x)
{
    const int64_t dims[] = {-1, 64, 8, 8};
    return det_contiguous(e, det_permute(e, det_reshape(e, x, 4, dims), (const int[]){0, 2, 3, 1}));
}

static struct det_tensor *add_row(struct det_engine *e, struct det_tensor *x)
{
    return det_add(e, x, det_select(e, x, 0, 0));
}

static struct det_tensor *join(struct det_engine *e, struct det_tensor *x)
{
    return det_cat(e, (struct det_tensor *[]){x, x}, 2, 1);
}

static const struct operation f32[] = {
    {"relu f32", det_relu, 2},       {"add f32", add, 2},
    {"gelu f32", det_gelu, 2},       {"to bf16", to_bf16, 1.5},
    {"sum f32", det_sum, 1},         {"column sums f32", column_sums, 1},
    {"softmax f32", det_softmax, 2}, {"layer norm f32", layer_norm, 2},
    {"dropout f32", dropout, 2.25},  {"cat f32", join, 4},
    {"transpose f32", turned, 2},    {"add a row f32", add_row, 2},
};
static const struct operation bf16[] = {
    {"relu bf16", det_relu, 2},       {"add bf16", add, 2},
    {"gelu bf16", det_gelu, 2},       {"dropout bf16", dropout, 2.5},
    {"transpose bf16", turned, 2},    {"add a row bf16", add_row, 2},
    {"into NHWC bf16", into_nhwc, 2}, {"to f32", to_f32, 3},
    {"softmax bf16", det_softmax, 2}, {"layer norm bf16", layer_norm, 2},
};

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

double time_us(struct det_engine *e, const struct operation *o, struct det_tensor *x)
{
    double best = 0;
    for (int r = 0; r <= ROUNDS; r++) {
        det_engine_sync(e);
        double from = now_us();
        for (int i = 0; i < CALLS; i++)
            o->call(e, x);
        det_engine_sync(e);
        double took = (now_us() - from) / CALLS;
        best = r == 1 || (r > 1 && took < best) ? took : best;
        det_engine_step_end(e);
    }
    return best;
}

void report(const char *name, double us, double bytes)
{
    printf("{\"operation\":\"%s\",\"us\":%.2f,\"GB_s\":%.1f}\n", name, us, bytes / us * 1e-3);
    fflush(stdout);
}

static void time_all(struct det_engine *e, const struct operation *o, size_t n,
                     enum det_dtype dtype, size_t bytes)
{
    const int64_t dims[] = {(int64_t)(bytes / det_dtype_size(dtype) / WIDTH), WIDTH};
    struct det_tensor *x = det_tensor_ref(det_full(e, dtype, 2, dims, 0.5));
    for (size_t i = 0; i < n; i++)
        report(o[i].name, time_us(e, &o[i], x), o[i].moved * (double)bytes);
    det_tensor_unref(x);
}

static struct det_tensor *upload(struct det_engine *e, struct det_tensor *x)
{
    return det_from_host(e, DET_F32, det_tensor_ndim(x), det_tensor_dims(x), det_tensor_data(x));
}

static void time_copies(struct det_engine *e, size_t bytes)
{
    const int64_t dims[] = {(int64_t)(bytes / 4 / WIDTH), WIDTH};
    struct det_tensor *host = det_host_tensor(DET_F32, 2, dims, NULL);
    memset(det_tensor_data(host), 0, bytes);
    report("copy to the device", time_us(e, &(const struct operation){"", upload, 1}, host),
           (double)bytes);
    det_tensor_unref(host);
    struct det_tensor *one = det_tensor_ref(det_full(e, DET_F32, 1, (int64_t[]){1}, 1));
    report("launch", time_us(e, &(const struct operation){"", det_relu, 2}, one), 8);
    det_tensor_unref(one);
}

#define LAYERS 74 /* of a weight and a bias: as many tensors as a small GPT-2 has */

/* The gradients are those of the layers' sum, again and again. */
static void time_adamw(struct det_engine *e, size_t bytes)
{
    struct det_module *net[LAYERS], *all;
    struct det_tensor *x = det_full(e, DET_F32, 2, (int64_t[]){1, 64}, 0.5), *sum = NULL;
    for (int i = 0; i < LAYERS; i++)
        net[i] = det_nn_linear(e, 64, (int64_t)(bytes / 4 / 64 / LAYERS + 1));
    all = det_nn_sequential_create(e, net, LAYERS);
    for (int i = 0; i < LAYERS; i++) {
        struct det_tensor *y = det_sum(e, det_forward(net[i], x));
        sum = sum ? det_add(e, sum, y) : y;
    }
    det_backward(e, sum);
    det_engine_step_end(e);
    struct det_optim *o = det_adamw(all);
    double best = 0;
    for (int r = 0; r <= ROUNDS; r++) {
        det_engine_sync(e);
        double from = now_us();
        det_optim_step(o);
        det_engine_sync(e);
        double took = now_us() - from;
        best = r == 1 || (r > 1 && took < best) ? took : best;
    }
    report("adamw of 148 tensors", best, 7 * (double)bytes);
    det_optim_destroy(o);
    det_module_destroy(all);
}

#define TOKENS   8192
#define EMBEDDED 768

/* Rows of a table, their sum, and the gradient of the table: all of its bytes are written. */
static void time_embedding(struct det_engine *e, size_t bytes)
{
    int64_t rows = (int64_t)(bytes / 4 / EMBEDDED) + 1, n = rows < TOKENS ? rows : TOKENS;
    struct det_module *m = det_nn_embedding(e, rows, EMBEDDED);
    struct det_tensor *x = det_host_tensor(DET_I64, 1, &n, NULL);
    for (int64_t i = 0; i < n; i++)
        ((int64_t *)det_tensor_data(x))[i] = i * (int64_t)2654435761 % rows;
    double best = 0;
    for (int r = 0; r <= ROUNDS; r++) {
        det_module_zero_grad(m);
        det_engine_sync(e);
        double from = now_us();
        det_backward(e, det_sum(e, det_forward(m, x)));
        det_engine_sync(e);
        double took = now_us() - from;
        best = r == 1 || (r > 1 && took < best) ? took : best;
        det_engine_step_end(e);
    }
    report("embedding, sum and gradient", best, (double)bytes + 7.0 * 4 * EMBEDDED * (double)n);
    det_tensor_unref(x);
    det_module_destroy(m);
}

/* ---- beyond 2^31 elements ---- */

static bool is_number(const char *what, double is, double should_be)
{
    printf("%-40s %s: %.17g\n", what, is == should_be ? "ok" : "WRONG", is);
    fflush(stdout);
    return is == should_be;
}

/* The sums are multiples of 256: an f32 holds them. */
static bool elements_are_all_met(struct det_engine *e, int64_t n)
{
    struct det_tensor *y = det_relu(e, det_full(e, DET_BF16, 1, &n, 1));
    bool ok = is_number("relu, the last elements",
                        det_item(e, det_sum(e, det_narrow(e, y, 0, n - 256, 256))), 256);
    ok = is_number("sum", det_item(e, det_sum(e, det_cast(e, y, DET_F32))), (double)n) && ok;
    det_engine_step_end(e);
    return ok;
}

static bool rows_are_joined(struct det_engine *e, int64_t n)
{
    struct det_tensor *a = det_full(e, DET_U8, 1, &n, 1), *b = det_full(e, DET_U8, 1, &n, 2);
    struct det_tensor *y = det_cat(e, (struct det_tensor *[]){a, b}, 2, 0);
    struct det_tensor *seam = det_cast(e, det_narrow(e, y, 0, n - 1, 2), DET_F32);
    bool ok = is_number("cat, its seam", det_item(e, det_sum(e, seam)), 3);
    struct det_tensor *end = det_cast(e, det_narrow(e, y, 0, 2 * n - 1, 1), DET_F32);
    ok = is_number("cat, its end", det_item(e, end), 2) && ok;
    det_engine_step_end(e);
    return ok;
}

/* As many images of 64 x 16 x 16 as have n elements. */
static bool images_are_folded(struct det_engine *e, int64_t n)
{
    int64_t images = n / (64 * 256);
    struct det_tensor *x = det_full(e, DET_BF16, 4, (int64_t[]){images, 64, 16, 16}, 1);
    struct det_tensor *w = det_full(e, DET_BF16, 4, (int64_t[]){1, 64, 1, 1}, 1);
    struct det_tensor *y = det_conv2d(e, x, w, NULL, &(const struct det_conv2d_options){0});
    double sum = det_item(e, det_sum(e, det_cast(e, y, DET_F32)));
    bool ok = is_number("convolution", sum, (double)(images * 64 * 256));
    det_engine_step_end(e);
    return ok;
}

/* What a layer's weight and bias get as gradients from rows of x. */
static void gradients(struct det_engine *e, struct det_tensor *x, struct det_tensor *ret[2])
{
    int64_t wide = det_tensor_dim(x, 1), out = 4 * wide;
    ret[0] = det_full(e, DET_BF16, 2, (int64_t[]){out, wide}, 0.5);
    ret[1] = det_full(e, DET_BF16, 1, &out, 0.5);
    for (int i = 0; i < 2; i++)
        det_requires_grad(e, ret[i]);
    struct det_tensor *y = det_linear(e, x, ret[0], ret[1]);
    det_backward(e, det_sum(e, det_cast(e, det_mul(e, y, y), DET_F32)));
    for (int i = 0; i < 2; i++)
        ret[i] = det_tensor_grad(ret[i]);
}

/* Products of this size are cut in parts, which are to be added in one order. */
static bool gradients_are_the_same_twice(struct det_engine *e, int64_t rows, int64_t wide)
{
    struct det_tensor *x = det_cast(e, det_randn(e, 2, (int64_t[]){rows, wide}), DET_BF16);
    struct det_tensor *first[2], *then[2];
    gradients(e, x, first);
    bool ok = true;
    for (int run = 0; run < 8; run++) {
        gradients(e, x, then);
        for (int i = 0; i < 2; i++) {
            struct det_tensor *off = det_cast(e, det_sub(e, first[i], then[i]), DET_F32);
            double sum = det_item(e, det_sum(e, det_mul(e, off, off)));
            ok = is_number(i ? "a bias's gradient, again" : "a weight's gradient, again", sum, 0) &&
                 ok;
        }
    }
    det_engine_step_end(e);
    return ok;
}

static int look_at_large(struct det_engine *e, int64_t n)
{
    int64_t wide = n >= 1 << 20 ? 768 : 16;
    bool ok = gradients_are_the_same_twice(e, 10 * wide, wide);
    n += 64 * 256;
    ok = elements_are_all_met(e, n) && ok;
    ok = rows_are_joined(e, n) && ok;
    return images_are_folded(e, n) && ok ? 0 : 1;
}

int main(int argc, char **argv)
{
    bool large = argc == 3 && strcmp(argv[1], "--large") == 0;
    long n = argc > 1 ? strtol(argv[argc - 1], NULL, 10) : 0;
    const struct det_engine_options o = {.device = getenv("DET_DEVICE"), .seed = 1, .threads = 1};
    struct det_engine *e;
    struct det_err err;
    if (n <= 0 || (argc != 2 && !large)) {
        fprintf(stderr, "usage: micro KIBIBYTES | micro --large N\n");
        return 2;
    }
    if (det_engine_create(&o, &e, &err) < 0) {
        fprintf(stderr, "micro: %s\n", err.text);
        return 1;
    }
    int rc = large ? look_at_large(e, n) : 0;
    if (!large) {
        time_all(e, f32, sizeof f32 / sizeof *f32, DET_F32, (size_t)n << 10);
        time_all(e, bf16, sizeof bf16 / sizeof *bf16, DET_BF16, (size_t)n << 10);
        time_adamw(e, (size_t)n << 10);
        time_embedding(e, (size_t)n << 10);
        time_copies(e, (size_t)n << 10);
        time_attention(e, n >= 65536);
        time_norms(e, n >= 65536);
        time_convolutions(e, n >= 65536);
    }
    if (det_engine_error(e, &err) < 0) {
        fprintf(stderr, "micro: %s\n", err.text);
        rc = 1;
    }
    det_engine_destroy(e);
    return rc;
}
