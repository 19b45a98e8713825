/* CIFAR's binary files: records of one label byte (CIFAR-100: a coarse one before it), then the
 * 32 x 32 pixels as three planes, red, green and blue. */
#include "data_file.h"
#include "dataset.h"
#include "mem.h"
#include <string.h>

#define PIXELS (3 * 32 * 32)

DET_DEFINE_CLEANUP(struct det_dataset *, det_dataset_unref)

/* Records of black images for a file that is missing, of every class in turn. */
static void add_fake(const struct det_cifar_options *o, size_t record, struct buf *all)
{
    det_cleanup(freep) uint8_t *one = det_zalloc(record);
    for (int i = 0; i < DATASET_FAKE_RECORDS; i++) {
        one[0] = (uint8_t)(i % (o->cifar100 ? 20 : 10));
        if (o->cifar100)
            one[1] = (uint8_t)(i % 100);
        buf_add(all, one, record);
    }
}

/* The bytes of all files, each of which must hold whole records. */
static int read_files(const struct det_cifar_options *o, size_t record, struct buf *all,
                      struct det_err *err)
{
    for (size_t i = 0; o->files[i]; i++) {
        size_t before = all->len;
        int rc = data_file_read(o->files[i], all, err);
        if (rc == DET_ENOENT && data_fake_wanted()) {
            if (err)
                *err = (struct det_err){0};
            add_fake(o, record, all);
        } else if (rc < 0) {
            return rc;
        }
        if (all->len == before || (all->len - before) % record != 0)
            return det_fail(err, DET_ECORRUPT,
                            "%s: %zu bytes are not a number of CIFAR-%s records of %zu bytes",
                            o->files[i], all->len - before, o->cifar100 ? "100" : "10", record);
    }
    if (all->len == 0)
        return det_fail(err, DET_EINVAL, "CIFAR: no files");
    return 0;
}

static int add_label(struct det_dataset *ds, const char *name, const uint8_t *p, size_t record,
                     int classes, struct det_err *err)
{
    const struct det_field f = {.name = name, .dtype = DET_I64};
    char *to = NULL;
    int rc = dataset_add_zeros(ds, &f, &to, err);
    for (int64_t i = 0; rc == 0 && i < ds->records; i++, p += record) {
        int64_t label = *p;
        if (label >= classes)
            return det_fail(err, DET_ECORRUPT, "CIFAR: record %lld: %s is %lld of %d classes",
                            (long long)i, name, (long long)label, classes);
        memcpy(to + (size_t)i * sizeof label, &label, sizeof label);
    }
    return rc;
}

static int add_images(struct det_dataset *ds, const uint8_t *p, size_t record, struct det_err *err)
{
    const struct det_field f = {.name = "image", .dtype = DET_U8, .ndim = 3, .dims = {3, 32, 32}};
    char *to = NULL;
    int rc = dataset_add_zeros(ds, &f, &to, err);
    for (int64_t i = 0; rc == 0 && i < ds->records; i++, p += record)
        memcpy(to + (size_t)i * PIXELS, p, PIXELS);
    return rc;
}

struct det_dataset *det_dataset_cifar(const struct det_cifar_options *o, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf all = BUF_INIT;
    size_t labels = o->cifar100 ? 2 : 1, record = labels + PIXELS;
    if (read_files(o, record, &all, err) < 0)
        return NULL;
    const uint8_t *p = (const uint8_t *)all.p;
    det_cleanup(det_dataset_unrefp) struct det_dataset *ds =
        det_dataset_create((int64_t)(all.len / record), err);
    if (add_images(ds, p + labels, record, err) < 0 ||
        add_label(ds, "label", p + labels - 1, record, o->cifar100 ? 100 : 10, err) < 0 ||
        (o->cifar100 && add_label(ds, "coarse_label", p, record, 20, err) < 0))
        return NULL;
    return det_dataset_images(det_take(ds), "image", o->steps, err);
}
