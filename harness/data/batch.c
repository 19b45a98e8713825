#include "batch.h"

#include "mem.h"
#include <string.h>

struct batch_field {
    char *data;
    struct det_tensor *tensor; /* a view of data, batch->n records long */
};

struct det_batch {
    const struct det_dataset *ds;
    const struct det_dataset *base;
    int64_t capacity, n;
    struct batch_field fields[DET_FIELDS_MAX];
};

struct det_batch *batch_create(const struct det_dataset *ds, int64_t capacity, struct det_err *err)
{
    struct det_batch *b = det_zalloc(sizeof *b);
    b->ds = ds;
    b->base = dataset_base(ds);
    b->capacity = capacity;
    for (size_t f = 0; f < b->base->n_fields; f++) {
        size_t bytes;
        if (__builtin_mul_overflow(b->base->fields[f].record_bytes, (size_t)capacity, &bytes) ||
            !(b->fields[f].data = det_try_alloc(bytes))) {
            det_fail(err, DET_ENOMEM, "batch: field \"%s\": %lld records of %zu bytes",
                     b->base->fields[f].name, (long long)capacity,
                     b->base->fields[f].record_bytes);
            batch_destroy(b);
            return NULL;
        }
    }
    return b;
}

static void drop_tensors(struct det_batch *b)
{
    for (size_t f = 0; f < b->base->n_fields; f++) {
        det_tensor_unref(b->fields[f].tensor);
        b->fields[f].tensor = NULL;
    }
    b->n = 0;
}

void batch_destroy(struct det_batch *b)
{
    if (!b)
        return;
    drop_tensors(b);
    for (size_t f = 0; f < b->base->n_fields; f++)
        free(b->fields[f].data);
    free(b);
}

/* Tensors of n records; kept from fill to fill while n stays. */
static int make_tensors(struct det_batch *b, int64_t n, struct det_err *err)
{
    drop_tensors(b);
    for (size_t f = 0; f < b->base->n_fields; f++) {
        const struct dataset_field *field = &b->base->fields[f];
        int64_t dims[DET_DIMS_MAX] = {n};
        memcpy(dims + 1, field->dims, sizeof *dims * (size_t)field->ndim);
        b->fields[f].tensor = det_host_tensor_view(field->dtype, field->ndim + 1, dims,
                                                   b->fields[f].data, err);
        if (!b->fields[f].tensor)
            return DET_ENOMEM;
    }
    b->n = n;
    return 0;
}

int batch_fill(struct det_batch *b, const int64_t *records, size_t n, struct det_err *err)
{
    void *out[DET_FIELDS_MAX];
    int rc = (int64_t)n == b->n ? 0 : make_tensors(b, (int64_t)n, err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        for (size_t f = 0; f < b->base->n_fields; f++)
            out[f] = b->fields[f].data + i * b->base->fields[f].record_bytes;
        rc = dataset_read(b->ds, records[i], out, err);
    }
    return rc;
}

struct det_tensor *det_batch_tensor(const struct det_batch *b, const char *name)
{
    for (size_t f = 0; b && f < b->base->n_fields; f++)
        if (strcmp(b->base->fields[f].name, name) == 0)
            return b->fields[f].tensor;
    return NULL;
}

int64_t det_batch_length(const struct det_batch *b)
{
    return b ? b->n : 0;
}
