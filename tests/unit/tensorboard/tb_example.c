/* usage: tb_example DIR: one value of every kind. test_events.py knows what is in it. */
#include "det/tensorboard.h"

#include <stdio.h>

#define N 1000

static struct det_err err;

static struct det_tensor *host(enum det_dtype dtype, int ndim, const int64_t *dims, void *data)
{
    return det_host_tensor_view(dtype, ndim, dims, data, &err);
}

static void images(struct det_tensorboard *w)
{
    float chw[3 * 2 * 4];
    uint8_t hwc[2 * 4 * 3];
    float grey[2 * 4] = {-1, 0, 0.25f, 0.5f, 0.75f, 1, 2, 0};
    for (int i = 0; i < 24; i++) {
        chw[i] = (float)i / 24;
        hwc[i] = (uint8_t)(10 * i);
    }
    struct det_tensor *a = host(DET_F32, 3, (const int64_t[]){3, 2, 4}, chw);
    struct det_tensor *b = host(DET_U8, 3, (const int64_t[]){2, 4, 3}, hwc);
    struct det_tensor *c = host(DET_F32, 2, (const int64_t[]){2, 4}, grey);
    det_tensorboard_add_image(w, "chw", a, DET_IMAGE_CHW, 1);
    det_tensorboard_add_image(w, "hwc", b, DET_IMAGE_HWC, 2);
    det_tensorboard_add_image(w, "grey", c, DET_IMAGE_HW, 3);
    det_tensor_unref(a);
    det_tensor_unref(b);
    det_tensor_unref(c);
}

static void histograms(struct det_tensorboard *w)
{
    float v[N];
    for (int i = 0; i < N; i++)
        v[i] = (float)(i - 300) / 7;
    struct det_tensor *all = host(DET_F32, 1, (const int64_t[]){N}, v);
    struct det_tensor *zero = host(DET_F32, 0, NULL, &(float){0});
    det_tensorboard_add_histogram(w, "weights", all, 5);
    det_tensorboard_add_histogram(w, "zero", zero, 6);
    det_tensor_unref(all);
    det_tensor_unref(zero);
}

int main(int argc, char **argv)
{
    struct det_tensorboard *w = det_tensorboard_create(argc > 1 ? argv[1] : NULL, &err);
    if (!w) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    for (int i = 0; i < 100; i++)
        det_tensorboard_add_scalar(w, "loss", 1.0 / (i + 1), i);
    det_tensorboard_add_scalars(
        w, "run/lr", (const struct det_tensorboard_named[]){{"a", 0.5}, {"b/c", 2}}, 2, 7);
    images(w);
    histograms(w);
    det_tensorboard_add_text(w, "note", "**hello**\xc3\xa9", 9);
    int rc = det_tensorboard_error(w, &err);
    if (rc < 0)
        fprintf(stderr, "%s\n", err.text);
    det_tensorboard_destroy(w);
    return rc < 0;
}
