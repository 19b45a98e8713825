/* Datasets of datasets: side by side, and one after another. */
#include "dataset.h"
#include "mem.h"
#include <string.h>

struct join {
    size_t n;
    struct det_dataset **parts; /* referenced */
    int64_t *ends;              /* of a concatenation: records up to part i's end */
};

static void destroy_join(void *self)
{
    struct join *j = self;
    for (size_t i = 0; i < j->n; i++)
        det_dataset_unref(j->parts[i]);
    free(j->parts);
    free(j->ends);
    free(j);
}

static struct join *join_create(size_t n)
{
    struct join *j = det_zalloc(sizeof *j);
    j->n = n;
    j->parts = det_zalloc(sizeof *j->parts * (n ? n : 1));
    j->ends = det_zalloc(sizeof *j->ends * (n ? n : 1));
    return j;
}

/* Some part could not be made: its text stands already. */
static bool has_null(const struct join *j)
{
    for (size_t i = 0; i < j->n; i++)
        if (!j->parts[i])
            return true;
    return false;
}

static int read_part(const struct join *j, size_t part, int64_t index,
                     const struct det_draws *draws, void *const *out, struct det_err *err)
{
    return dataset_read(j->parts[part], index, (struct data_key){draws->seed, draws->epoch}, out,
                        err);
}

/* ---- side by side ---- */

static int zip_get(void *self, int64_t index, struct det_draws *draws, void *const *out,
                   struct det_err *err)
{
    const struct join *j = self;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < j->n; i++) {
        rc = read_part(j, i, index, draws, out, err);
        out += dataset_base(j->parts[i])->n_fields;
    }
    return rc;
}

static const struct det_dataset_type zip_type = {.get_random = zip_get, .destroy = destroy_join};

/* The part's fields behind its name and a dot; the new names are the caller's to free. */
static int add_fields(const struct det_dataset_part *part, struct det_field *all, size_t *n,
                      struct det_err *err)
{
    struct det_field fields[DET_FIELDS_MAX];
    size_t more = dataset_fields(part->ds, fields);
    if (*n + more > DET_FIELDS_MAX)
        return det_fail(err, DET_EINVAL, "zip of datasets: more than %d fields", DET_FIELDS_MAX);
    for (size_t f = 0; f < more; f++) {
        all[*n] = fields[f];
        all[(*n)++].name = det_asprintf("%s.%s", part->name, fields[f].name);
    }
    return 0;
}

static int check_zip(const struct det_dataset_part *parts, size_t n, struct det_err *err)
{
    for (size_t i = 0; i < n; i++)
        if (parts[i].ds->records != parts[0].ds->records)
            return det_fail(err, DET_EINVAL,
                            "zip of datasets: \"%s\" has %lld records, \"%s\" %lld", parts[0].name,
                            (long long)parts[0].ds->records, parts[i].name,
                            (long long)parts[i].ds->records);
    return n ? 0 : det_fail(err, DET_EINVAL, "zip of datasets: there are none");
}

struct det_dataset *det_dataset_zip(const struct det_dataset_part *parts, size_t n,
                                    struct det_err *err)
{
    struct det_field fields[DET_FIELDS_MAX];
    size_t n_fields = 0;
    struct det_dataset *ds = NULL;
    struct join *j = join_create(n);
    for (size_t i = 0; i < n; i++)
        j->parts[i] = parts[i].ds;
    int rc = has_null(j) ? DET_EINVAL : check_zip(parts, n, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = add_fields(&parts[i], fields, &n_fields, err);
    if (rc == 0)
        ds = det_dataset_callback(&zip_type, j, parts[0].ds->records, fields, n_fields, err);
    else
        destroy_join(j);
    for (size_t f = 0; f < n_fields; f++)
        free((void *)(uintptr_t)fields[f].name);
    return ds;
}

/* ---- one after another ---- */

static int concat_get(void *self, int64_t index, struct det_draws *draws, void *const *out,
                      struct det_err *err)
{
    const struct join *j = self;
    size_t i = 0;
    while (index >= j->ends[i])
        i++;
    return read_part(j, i, index - (i ? j->ends[i - 1] : 0), draws, out, err);
}

static const struct det_dataset_type concat_type = {.get_random = concat_get,
                                                    .destroy = destroy_join};

static bool same_field(const struct det_field *a, const struct det_field *b)
{
    return strcmp(a->name, b->name) == 0 && a->dtype == b->dtype && a->ndim == b->ndim &&
           memcmp(a->dims, b->dims, sizeof *a->dims * (size_t)a->ndim) == 0;
}

static int check_concat(const struct join *j, struct det_field *fields, size_t *ret_n,
                        struct det_err *err)
{
    struct det_field other[DET_FIELDS_MAX];
    if (j->n == 0)
        return det_fail(err, DET_EINVAL, "concatenation of datasets: there are none");
    *ret_n = dataset_fields(j->parts[0], fields);
    for (size_t i = 1; i < j->n; i++) {
        bool same = dataset_fields(j->parts[i], other) == *ret_n;
        for (size_t f = 0; same && f < *ret_n; f++)
            same = same_field(&fields[f], &other[f]);
        if (!same)
            return det_fail(err, DET_EINVAL,
                            "concatenation of datasets: the fields of number %zu are not those of "
                            "the first, in name, type and shape",
                            i + 1);
    }
    return 0;
}

struct det_dataset *det_dataset_concat(struct det_dataset *const *parts, size_t n,
                                       struct det_err *err)
{
    struct det_field fields[DET_FIELDS_MAX];
    size_t n_fields = 0;
    int64_t records = 0;
    struct join *j = join_create(n);
    if (n)
        memcpy(j->parts, parts, sizeof *parts * n);
    if (has_null(j) || check_concat(j, fields, &n_fields, err) < 0) {
        destroy_join(j);
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        j->ends[i] = records += parts[i]->records;
    return det_dataset_callback(&concat_type, j, records, fields, n_fields, err);
}
