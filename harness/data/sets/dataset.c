#include "dataset.h"

#include "mem.h"
#include <string.h>

struct det_dataset *det_dataset_create(int64_t records, struct det_err *err)
{
    if (records < 0) {
        det_fail(err, DET_EINVAL, "dataset: %lld records", (long long)records);
        return NULL;
    }
    struct det_dataset *ds = det_zalloc(sizeof *ds);
    ds->refs = 1;
    ds->records = records;
    return ds;
}

/* ---- fields ---- */

static int check_new_name(const struct det_dataset *ds, const char *name, struct det_err *err)
{
    if (!name || !*name)
        return det_fail(err, DET_EINVAL, "dataset: a field needs a name");
    if (ds->n_fields == DET_FIELDS_MAX)
        return det_fail(err, DET_EINVAL, "dataset: field \"%s\": at most %d fields", name,
                        DET_FIELDS_MAX);
    for (size_t i = 0; i < ds->n_fields; i++)
        if (strcmp(ds->fields[i].name, name) == 0)
            return det_fail(err, DET_EINVAL, "dataset: field \"%s\" is there twice", name);
    return 0;
}

static int record_bytes(const struct det_field *f, size_t *ret, struct det_err *err)
{
    if ((unsigned)f->dtype >= DET_DTYPE_COUNT)
        return det_fail(err, DET_EINVAL, "dataset: field \"%s\": unknown type %d", f->name,
                        (int)f->dtype);
    if (f->ndim < 0 || f->ndim >= DET_DIMS_MAX)
        return det_fail(err, DET_EINVAL, "dataset: field \"%s\": %d dimensions, at most %d",
                        f->name, f->ndim, DET_DIMS_MAX - 1);
    size_t bytes = det_dtype_size(f->dtype);
    for (int i = 0; i < f->ndim; i++)
        if (f->dims[i] <= 0 || __builtin_mul_overflow(bytes, (size_t)f->dims[i], &bytes))
            return det_fail(err, DET_EINVAL, "dataset: field \"%s\": dimension %d is %lld", f->name,
                            i, (long long)f->dims[i]);
    *ret = bytes;
    return 0;
}

static int add_field(struct det_dataset *ds, const struct det_field *f, struct det_err *err)
{
    struct dataset_field *to = &ds->fields[ds->n_fields];
    size_t bytes = 0;
    int rc = check_new_name(ds, f->name, err);
    if (rc < 0 || (rc = record_bytes(f, &bytes, err)) < 0)
        return rc;
    *to = (struct dataset_field){
        .name = det_strdup(f->name), .dtype = f->dtype, .ndim = f->ndim, .record_bytes = bytes};
    memcpy(to->dims, f->dims, sizeof to->dims);
    ds->n_fields++;
    return 0;
}

int dataset_add_zeros(struct det_dataset *ds, const struct det_field *f, char **ret_data,
                      struct det_err *err)
{
    size_t bytes;
    int rc = add_field(ds, f, err);
    if (rc < 0)
        return rc;
    struct dataset_field *field = &ds->fields[ds->n_fields - 1];
    if (__builtin_mul_overflow(field->record_bytes, (size_t)ds->records, &bytes) ||
        !(field->data = det_try_alloc(bytes ? bytes : 1)))
        return det_fail(err, DET_ENOMEM, "dataset: field \"%s\": %lld records of %zu bytes",
                        f->name, (long long)ds->records, field->record_bytes);
    memset(field->data, 0, bytes);
    *ret_data = field->data;
    return 0;
}

int det_dataset_add(struct det_dataset *ds, const char *name, enum det_dtype dtype, int ndim,
                    const int64_t *dims, const void *data, struct det_err *err)
{
    char *to = NULL;
    struct det_field f = {.name = name, .dtype = dtype, .ndim = ndim};
    if (!ds)
        return DET_EINVAL;
    if (ds->base || ds->type)
        return det_fail(err, DET_ESTATE, "dataset: only one in memory takes a new field");
    for (int i = 0; ndim < DET_DIMS_MAX && i < ndim; i++)
        f.dims[i] = dims[i];
    int rc = dataset_add_zeros(ds, &f, &to, err);
    if (rc == 0)
        memcpy(to, data, ds->fields[ds->n_fields - 1].record_bytes * (size_t)ds->records);
    return rc;
}

struct det_dataset *det_dataset_callback(const struct det_dataset_type *type, void *self,
                                         int64_t records, const struct det_field *fields,
                                         size_t n_fields, struct det_err *err)
{
    struct det_dataset *ds = det_dataset_create(records, err);
    if (!ds) {
        if (type->destroy)
            type->destroy(self);
        return NULL;
    }
    ds->type = type;
    ds->self = self;
    for (size_t i = 0; i < n_fields; i++) {
        if (add_field(ds, &fields[i], err) < 0) {
            det_dataset_unref(ds);
            return NULL;
        }
    }
    return ds;
}

/* ---- reading ---- */

const struct det_dataset *dataset_base(const struct det_dataset *ds)
{
    return ds->base ? ds->base : ds;
}

static int64_t base_index(const struct det_dataset *ds, int64_t i)
{
    if (!ds->base)
        return i;
    return ds->index ? ds->index[i] : ds->first + i;
}

int dataset_field(const struct det_dataset *ds, const char *name)
{
    const struct det_dataset *base = dataset_base(ds);
    for (size_t f = 0; f < base->n_fields; f++)
        if (strcmp(base->fields[f].name, name) == 0)
            return (int)f;
    return -1;
}

size_t dataset_fields(const struct det_dataset *ds, struct det_field ret[DET_FIELDS_MAX])
{
    const struct det_dataset *base = dataset_base(ds);
    for (size_t f = 0; f < base->n_fields; f++) {
        const struct dataset_field *field = &base->fields[f];
        ret[f] =
            (struct det_field){.name = field->name, .dtype = field->dtype, .ndim = field->ndim};
        memcpy(ret[f].dims, field->dims, sizeof ret[f].dims);
    }
    return base->n_fields;
}

static int call_get(const struct det_dataset *ds, int64_t at, struct data_key key, void *const *out,
                    struct det_err *err)
{
    if (!ds->type->get_random)
        return ds->type->get(ds->self, at, out, err);
    struct det_draws draws = {.seed = key.seed, .epoch = key.epoch, .record = at};
    return ds->type->get_random(ds->self, at, &draws, out, err);
}

int dataset_read(const struct det_dataset *ds, int64_t i, struct data_key key, void *const *out,
                 struct det_err *err)
{
    const struct det_dataset *base = dataset_base(ds);
    int64_t at = base_index(ds, i);
    if (base->type) {
        int rc = call_get(base, at, key, out, err);
        return rc < 0 ? det_wrap(err, rc, "record %lld", (long long)at) : 0;
    }
    for (size_t f = 0; f < base->n_fields; f++) {
        const struct dataset_field *field = &base->fields[f];
        memcpy(out[f], field->data + (size_t)at * field->record_bytes, field->record_bytes);
    }
    return 0;
}

int64_t det_dataset_length(const struct det_dataset *ds)
{
    return ds ? ds->records : 0;
}

/* ---- views ---- */

static struct det_dataset *view_of(struct det_dataset *ds, int64_t records)
{
    struct det_dataset *view = det_zalloc(sizeof *view);
    view->refs = 1;
    view->records = records;
    view->base = det_dataset_ref(ds->base ? ds->base : ds);
    return view;
}

struct det_dataset *det_dataset_filter(struct det_dataset *ds, bool (*keep)(void *arg, int64_t i),
                                       void *arg, struct det_err *err)
{
    if (!ds)
        return NULL;
    int64_t n = 0;
    int64_t *index = det_try_alloc(sizeof *index * (size_t)(ds->records ? ds->records : 1));
    if (!index) {
        det_fail(err, DET_ENOMEM, "dataset: an index of %lld records", (long long)ds->records);
        return NULL;
    }
    for (int64_t i = 0; i < ds->records; i++)
        if (keep(arg, i))
            index[n++] = base_index(ds, i);
    struct det_dataset *view = view_of(ds, n);
    view->index = index;
    return view;
}

static bool in_slice(void *arg, int64_t i)
{
    const int64_t *range = arg;
    return i >= range[0] && i < range[1];
}

struct det_dataset *det_dataset_slice(struct det_dataset *ds, int64_t first, int64_t n,
                                      struct det_err *err)
{
    if (!ds)
        return NULL;
    if (first < 0 || n < 0 || first > ds->records || n > ds->records - first) {
        det_fail(err, DET_EINVAL, "dataset: a slice of %lld from %lld on, of %lld records",
                 (long long)n, (long long)first, (long long)ds->records);
        return NULL;
    }
    if (ds->index)
        return det_dataset_filter(ds, in_slice, (int64_t[]){first, first + n}, err);
    struct det_dataset *view = view_of(ds, n);
    view->first = ds->first + first;
    return view;
}

/* ---- life ---- */

struct det_dataset *det_dataset_ref(struct det_dataset *ds)
{
    if (ds)
        ds->refs++;
    return ds;
}

void det_dataset_unref(struct det_dataset *ds)
{
    if (!ds || --ds->refs > 0)
        return;
    if (ds->type && ds->type->destroy)
        ds->type->destroy(ds->self);
    for (size_t f = 0; f < ds->n_fields; f++) {
        free(ds->fields[f].name);
        free(ds->fields[f].data);
    }
    det_dataset_unref(ds->base);
    free(ds->index);
    free(ds);
}
