/* Data made up in the shapes of real data: to try a trial where its data is not, or is slow. */
#include "dataset.h"
#include "dtype.h"
#include "mem.h"

#include <math.h>
#include <string.h>

#define SAMPLES 64 /* records of the real data that are looked at for the range of their values */

static bool wanted;

void data_fake(bool on)
{
    wanted = on;
}

bool data_fake_wanted(void)
{
    return wanted;
}

struct fake_field {
    enum det_dtype dtype;
    size_t elements;
    double low, high;
};

struct fake {
    size_t n;
    struct fake_field fields[DET_FIELDS_MAX];
};

/* ---- what the real data looks like ---- */

static void widen_range(struct fake_field *f, const void *bytes, bool first)
{
    det_cleanup(freep) double *v = det_alloc(f->elements * sizeof *v + 1);
    det__convert(f->dtype, bytes, 1, DET_F64, v, 1, (int64_t)f->elements);
    for (size_t i = 0; i < f->elements; i++) {
        if (!isfinite(v[i]))
            continue;
        f->low = first && i == 0 ? v[i] : fmin(f->low, v[i]);
        f->high = first && i == 0 ? v[i] : fmax(f->high, v[i]);
    }
}

/* Records spread over the whole; a dataset that cannot be read keeps the range 0 to 1. */
static void sample_ranges(struct fake *k, const struct det_dataset *like)
{
    void *out[DET_FIELDS_MAX] = {0};
    int64_t n = det_dataset_length(like), step = n > SAMPLES ? n / SAMPLES : 1;
    for (size_t f = 0; f < k->n; f++)
        out[f] = det_alloc(k->fields[f].elements * det_dtype_size(k->fields[f].dtype) + 1);
    for (int64_t i = 0; i < n; i += step) {
        struct det_err err;
        if (dataset_read(like, i, (struct data_key){0}, out, &err) < 0)
            break;
        for (size_t f = 0; f < k->n; f++)
            widen_range(&k->fields[f], out[f], i == 0);
    }
    for (size_t f = 0; f < k->n; f++) {
        struct fake_field *x = &k->fields[f];
        if (x->low == x->high && det__is_float(x->dtype)) /* zeros, as for a file that is missing */
            x->high = x->low + 1;
        free(out[f]);
    }
}

/* ---- making it up ---- */

/* splitmix64 (Steele, Lea, Flood 2014): a number of 0 <= u < 1 from record, field and element. */
static double draw_uniform(uint64_t record, uint64_t field, uint64_t element)
{
    uint64_t z = record * 0x9e3779b97f4a7c15u + field * 0xd1b54a32d192ed03u + element + 1;
    z *= 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static int get_record(void *self, int64_t index, void *const *out, struct det_err *err)
{
    const struct fake *k = self;
    for (size_t i = 0; i < k->n; i++) {
        const struct fake_field *f = &k->fields[i];
        det_cleanup(freep) double *v = det_alloc(f->elements * sizeof *v + 1);
        for (size_t e = 0; e < f->elements; e++) {
            double u = draw_uniform((uint64_t)index, i, e);
            v[e] = det__is_float(f->dtype) ? f->low + u * (f->high - f->low)
                                           : f->low + floor(u * (f->high - f->low + 1));
        }
        det__convert(DET_F64, v, 1, f->dtype, out[i], 1, (int64_t)f->elements);
    }
    return 0;
}

static void destroy_fake(void *self)
{
    free(self);
}

static const struct det_dataset_type fake_type = {.get = get_record, .destroy = destroy_fake};

struct det_dataset *dataset_fake(struct det_dataset *like, struct det_err *err)
{
    struct det_field fields[DET_FIELDS_MAX];
    struct fake *k = det_zalloc(sizeof *k);
    k->n = dataset_fields(like, fields);
    for (size_t f = 0; f < k->n; f++) {
        k->fields[f] = (struct fake_field){.dtype = fields[f].dtype, .elements = 1, .high = 1};
        for (int i = 0; i < fields[f].ndim; i++)
            k->fields[f].elements *= (size_t)fields[f].dims[i];
    }
    sample_ranges(k, like);
    struct det_dataset *ds =
        det_dataset_callback(&fake_type, k, det_dataset_length(like), fields, k->n, err);
    det_dataset_unref(like);
    return ds;
}
