/* IDX files, the format of MNIST (http://yann.lecun.com/exdb/mnist/): two zero bytes, a type byte,
 * the number of dimensions, each dimension as a big-endian u32, then the elements. */
#include "data_file.h"
#include "dataset.h"
#include "mem.h"
#include <string.h>

#define IDX_U8 0x08

struct idx {
    struct buf bytes;
    uint32_t dims[3];
    const uint8_t *data;
};

static void idx_finish(struct idx *x)
{
    buf_finish(&x->bytes);
}

static uint32_t read_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int idx_read(struct idx *x, const char *path, int ndim, struct det_err *err)
{
    int rc = data_file_read(path, &x->bytes, err);
    if (rc < 0)
        return rc;
    const uint8_t *p = (const uint8_t *)buf_str(&x->bytes);
    size_t head = 4 + 4 * (size_t)ndim, want = 1;
    if (x->bytes.len < head || p[0] != 0 || p[1] != 0 || p[2] != IDX_U8 || p[3] != ndim)
        return det_fail(err, DET_ECORRUPT, "%s: not an IDX file of unsigned bytes in %d dimensions",
                        path, ndim);
    for (int i = 0; i < ndim; i++) {
        x->dims[i] = read_be32(p + 4 + 4 * i);
        if (x->dims[i] == 0 || __builtin_mul_overflow(want, (size_t)x->dims[i], &want))
            return det_fail(err, DET_ECORRUPT, "%s: dimension %d is %u", path, i, x->dims[i]);
    }
    if (x->bytes.len - head != want)
        return det_fail(err, DET_ECORRUPT, "%s: %zu bytes of data, its header says %zu", path,
                        x->bytes.len - head, want);
    x->data = p + head;
    return 0;
}

static int add_images(struct det_dataset *ds, const struct idx *x, const struct det_idx_options *o,
                      struct det_err *err)
{
    struct det_field f = {.name = o->image_name ? o->image_name : "image",
                          .dtype = DET_F32,
                          .ndim = 3,
                          .dims = {1, x->dims[1], x->dims[2]}};
    char *to = NULL;
    int rc = dataset_add_zeros(ds, &f, &to, err);
    if (rc < 0)
        return rc;
    float table[256];
    double scale = o->scale == 0 ? 1.0 / 255 : o->scale;
    for (int i = 0; i < 256; i++)
        table[i] = (float)(i * scale + o->offset);
    size_t n = (size_t)x->dims[0] * x->dims[1] * x->dims[2];
    for (size_t i = 0; i < n; i++)
        memcpy(to + i * sizeof(float), &table[x->data[i]], sizeof(float));
    return 0;
}

static int add_labels(struct det_dataset *ds, const struct det_idx_options *o, struct det_err *err)
{
    det_cleanup(idx_finish) struct idx x = {0};
    int rc = idx_read(&x, o->labels, 1, err);
    if (rc < 0)
        return rc;
    if (x.dims[0] != ds->records)
        return det_fail(err, DET_ECORRUPT, "%s has %u labels, but %s has %lld images", o->labels,
                        x.dims[0], o->images, (long long)ds->records);
    struct det_field f = {.name = o->label_name ? o->label_name : "label", .dtype = DET_I64};
    char *to = NULL;
    if ((rc = dataset_add_zeros(ds, &f, &to, err)) < 0)
        return rc;
    for (uint32_t i = 0; i < x.dims[0]; i++) {
        int64_t label = x.data[i];
        memcpy(to + i * sizeof label, &label, sizeof label);
    }
    return 0;
}

DET_DEFINE_CLEANUP(struct det_dataset *, det_dataset_unref)

/* In the shape of MNIST. */
static struct det_dataset *fake(const struct det_idx_options *o, struct det_err *err)
{
    struct det_field image = {.name = o->image_name ? o->image_name : "image",
                              .dtype = DET_F32,
                              .ndim = 3,
                              .dims = {1, 28, 28}};
    struct det_field label = {.name = o->label_name ? o->label_name : "label", .dtype = DET_I64};
    char *zeros;
    if (err)
        *err = (struct det_err){0};
    det_cleanup(det_dataset_unrefp) struct det_dataset *ds =
        det_dataset_create(DATASET_FAKE_RECORDS, err);
    int rc = dataset_add_zeros(ds, &image, &zeros, err);
    if (rc == 0 && o->labels)
        rc = dataset_add_zeros(ds, &label, &zeros, err);
    return rc < 0 ? NULL : det_take(ds);
}

struct det_dataset *det_dataset_idx(const struct det_idx_options *options, struct det_err *err)
{
    det_cleanup(idx_finish) struct idx x = {0};
    int rc = idx_read(&x, options->images, 3, err);
    if (rc == DET_ENOENT && data_fake_wanted())
        return fake(options, err);
    if (rc < 0)
        return NULL;
    det_cleanup(det_dataset_unrefp) struct det_dataset *ds = det_dataset_create(x.dims[0], err);
    if (add_images(ds, &x, options, err) < 0)
        return NULL;
    if (options->labels && add_labels(ds, options, err) < 0)
        return NULL;
    return det_take(ds);
}
