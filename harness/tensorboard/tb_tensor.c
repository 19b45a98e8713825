/* Histograms and images of tensors. */
#include "dtype.h"
#include "tb.h"

#define ELEMENTS_MAX ((size_t)1 << 26)

double *tb_values(struct det_tensorboard *w, const char *tag, const struct det_tensor *t)
{
    size_t n = t ? det_tensor_numel(t) : 0, bytes = t ? det_tensor_bytes(t) : 0;
    if (n < 1 || n > ELEMENTS_MAX) {
        tb_fail(w, DET_EINVAL, "TensorBoard, \"%s\": %s has %zu elements, not 1 to %zu", tag,
                t ? "the tensor" : "no tensor: it", n, ELEMENTS_MAX);
        return NULL;
    }
    det_cleanup(freep) void *raw = det_try_alloc(bytes);
    double *values = det_try_alloc(n * sizeof *values);
    if (!raw || !values)
        tb_fail(w, DET_ENOMEM, "TensorBoard, \"%s\": %zu elements", tag, n);
    else
        det_ignore(det_tensor_read(t, raw, bytes, &w->err), "w->err is looked at");
    for (size_t i = 0; w->err.code == 0 && i < n; i++)
        values[i] = det__load_f64(det_tensor_dtype(t),
                                  (const char *)raw + i * det_dtype_size(det_tensor_dtype(t)));
    if (w->err.code != 0)
        free(det_take(values));
    return values;
}

void det_tensorboard_add_histogram(struct det_tensorboard *w, const char *tag,
                                   const struct det_tensor *values, int64_t step)
{
    struct tfevents_value v;
    if (!tb_wanted(w, "", tag, step, &v))
        return;
    det_cleanup(freep) double *x = tb_values(w, tag, values);
    if (x)
        tb_add_histogram(w, tag, x, det_tensor_numel(values), step);
}

static bool describe_pixels(const struct det_tensor *t, enum det_image_order order,
                            struct tb_pixels *p)
{
    static const int at[][3] = {
        [DET_IMAGE_CHW] = {1, 2, 0}, [DET_IMAGE_HWC] = {0, 1, 2}, [DET_IMAGE_HW] = {0, 1, -1}};
    if ((unsigned)order >= DET_ARRAY_LEN(at) || !t ||
        det_tensor_ndim(t) != (order == DET_IMAGE_HW ? 2 : 3))
        return false;
    const int *i = at[order];
    *p = (struct tb_pixels){.h = det_tensor_dim(t, i[0]),
                            .w = det_tensor_dim(t, i[1]),
                            .c = i[2] < 0 ? 1 : det_tensor_dim(t, i[2])};
    bool planes = order == DET_IMAGE_CHW;
    p->column = planes ? 1 : p->c;
    p->row = p->w * p->column;
    p->channel = planes ? p->h * p->w : 1;
    return tb_pixels_fit(p);
}

void det_tensorboard_add_image(struct det_tensorboard *w, const char *tag,
                               const struct det_tensor *image, enum det_image_order order,
                               int64_t step)
{
    struct tfevents_value v;
    struct tb_pixels p;
    if (!tb_wanted(w, "", tag, step, &v))
        return;
    if (!describe_pixels(image, order, &p)) {
        tb_fail(w, DET_EINVAL,
                "TensorBoard, \"%s\": an image has the dimensions of its order, 1 to 4 channels "
                "and sides below 65536",
                tag);
        return;
    }
    det_cleanup(freep) double *x = tb_values(w, tag, image);
    if (x)
        tb_add_image(w, tag, x, &p, det_tensor_dtype(image) == DET_U8 ? 1 : 255, step);
}
