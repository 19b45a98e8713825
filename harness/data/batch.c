#include "batch.h"

#include "mem.h"
#include "span.h"
#include <stdio.h>
#include <string.h>

struct batch_field {
    char *data;
    struct det_tensor *tensor; /* a view of data, batch->n records long */
};

/* A tensor that the collate function set; it hides a field of its name. */
struct batch_set {
    char *name;
    struct det_tensor *tensor;
};

struct det_batch {
    const struct det_dataset *ds;
    const struct det_dataset *base;
    int (*collate)(void *arg, struct det_batch *b, struct det_err *err);
    void *collate_arg;
    atomic_bool canceled;
    int64_t capacity, n;
    struct det_draws draws;
    struct batch_field fields[DET_FIELDS_MAX];
    struct batch_set sets[DET_FIELDS_MAX];
    size_t n_sets;
    char missing[64]; /* the first field asked for that is not there; "" */
};

static void drop_sets(struct det_batch *b)
{
    for (size_t i = 0; i < b->n_sets; i++) {
        free(b->sets[i].name);
        det_tensor_unref(b->sets[i].tensor);
    }
    b->n_sets = 0;
}

static void drop_tensors(struct det_batch *b)
{
    for (size_t f = 0; f < b->base->n_fields; f++) {
        det_tensor_unref(b->fields[f].tensor);
        b->fields[f].tensor = NULL;
    }
    b->n = 0;
}

static int make_room(struct det_batch *b, int64_t capacity, struct det_err *err)
{
    drop_tensors(b);
    b->capacity = 0; /* should it fail half-way */
    for (size_t f = 0; f < b->base->n_fields; f++) {
        size_t bytes, record = b->base->fields[f].record_bytes;
        free(b->fields[f].data);
        b->fields[f].data = NULL;
        if (__builtin_mul_overflow(record, (size_t)capacity, &bytes) ||
            !(b->fields[f].data = det_try_alloc(bytes)))
            return det_fail(err, DET_ENOMEM, "batch: field \"%s\": %lld records of %zu bytes",
                            b->base->fields[f].name, (long long)capacity, record);
    }
    b->capacity = capacity;
    return 0;
}

struct det_batch *batch_create(const struct det_dataset *ds, int64_t capacity,
                               const struct det_loader_options *options, struct det_err *err)
{
    struct det_batch *b = det_zalloc(sizeof *b);
    b->ds = ds;
    b->base = dataset_base(ds);
    b->collate = options->collate;
    b->collate_arg = options->collate_arg;
    if (make_room(b, capacity, err) < 0) {
        batch_destroy(b);
        return NULL;
    }
    return b;
}

void batch_destroy(struct det_batch *b)
{
    if (!b)
        return;
    drop_sets(b);
    drop_tensors(b);
    for (size_t f = 0; f < b->base->n_fields; f++)
        free(b->fields[f].data);
    free(b);
}

/* Tensors of n records; kept from fill to fill while n stays. */
static int make_tensors(struct det_batch *b, int64_t n, struct det_err *err)
{
    int rc = n > b->capacity ? make_room(b, n, err) : 0;
    drop_tensors(b);
    for (size_t f = 0; rc == 0 && f < b->base->n_fields; f++) {
        const struct dataset_field *field = &b->base->fields[f];
        int64_t dims[DET_DIMS_MAX] = {n};
        memcpy(dims + 1, field->dims, sizeof *dims * (size_t)field->ndim);
        b->fields[f].tensor =
            det_host_tensor_view(field->dtype, field->ndim + 1, dims, b->fields[f].data, err);
        if (!b->fields[f].tensor)
            rc = DET_ENOMEM;
    }
    b->n = rc == 0 ? n : 0;
    return rc;
}

int batch_fill(struct det_batch *b, const struct data_pick *pick, uint64_t seed,
               struct det_err *err)
{
    SPAN(SPAN_DATA, "load_batch");
    void *out[DET_FIELDS_MAX];
    struct data_key key = {.seed = seed, .epoch = pick->epoch};
    drop_sets(b);
    int rc = (int64_t)pick->n == b->n ? 0 : make_tensors(b, (int64_t)pick->n, err);
    for (size_t i = 0; rc == 0 && i < pick->n; i++) {
        for (size_t f = 0; f < b->base->n_fields; f++)
            out[f] = b->fields[f].data + i * b->base->fields[f].record_bytes;
        rc = atomic_load(&b->canceled) ? det_fail(err, DET_ECANCELED, "batch: canceled")
                                       : dataset_read(b->ds, pick->records[i], key, out, err);
    }
    if (rc < 0 || !b->collate)
        return rc;
    b->draws = (struct det_draws){seed, pick->epoch, -1 - pick->records[0], 0};
    rc = b->collate(b->collate_arg, b, err);
    return rc < 0 ? det_wrap(err, rc, "collate") : 0;
}

void batch_cancel(struct det_batch *b)
{
    atomic_store(&b->canceled, true);
}

int det_batch_set(struct det_batch *b, const char *name, struct det_tensor *t, struct det_err *err)
{
    size_t i = 0;
    while (i < b->n_sets && strcmp(b->sets[i].name, name) != 0)
        i++;
    if (!t || i == DET_FIELDS_MAX) {
        det_tensor_unref(t);
        return det_fail(err, DET_EINVAL, "batch: set \"%s\": %s", name,
                        t ? "too many tensors" : "the tensor is NULL");
    }
    if (i == b->n_sets)
        b->sets[b->n_sets++] = (struct batch_set){.name = det_strdup(name)};
    det_tensor_unref(b->sets[i].tensor);
    b->sets[i].tensor = t;
    return 0;
}

struct det_draws det_batch_draws(const struct det_batch *b)
{
    return b->draws;
}

bool batch_missing(const struct det_batch *b, struct buf *out)
{
    if (!b->missing[0])
        return false;
    buf_addf(out, "the batch has no field \"%s\"; it has: ", b->missing);
    for (size_t i = 0; i < b->n_sets; i++)
        buf_addf(out, "%s, ", b->sets[i].name);
    for (size_t f = 0; f < b->base->n_fields; f++)
        buf_addf(out, "%s%s", f ? ", " : "", b->base->fields[f].name);
    return true;
}

struct det_tensor *det_batch_tensor(const struct det_batch *b, const char *name)
{
    for (size_t i = 0; b && i < b->n_sets; i++)
        if (strcmp(b->sets[i].name, name) == 0)
            return b->sets[i].tensor;
    int f = b ? dataset_field(b->ds, name) : -1;
    if (b && f < 0 && !b->missing[0]) { /* a note for the message of what follows from it */
        char *note = ((struct det_batch *)b)->missing;
        snprintf(note, sizeof b->missing, "%s", name);
    }
    return f >= 0 ? b->fields[f].tensor : NULL;
}

int64_t det_batch_length(const struct det_batch *b)
{
    return b ? b->n : 0;
}
