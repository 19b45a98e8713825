/* Datasets inside: what the readers and the loader share; users see only det/data.h. */
#ifndef DATASET_H
#define DATASET_H

#include "det/data_files.h"

struct dataset_field {
    char *name;
    enum det_dtype dtype;
    int ndim; /* of one record */
    int64_t dims[DET_DIMS_MAX];
    size_t record_bytes;
    char *data; /* records x record_bytes; NULL in a callback dataset */
};

struct det_dataset {
    int refs;
    int64_t records;
    size_t n_fields;
    struct dataset_field fields[DET_FIELDS_MAX];
    /* A callback dataset. */
    const struct det_dataset_type *type;
    void *self;
    /* A view: base is never a view itself; index maps records, or is NULL for first + i. */
    struct det_dataset *base;
    int64_t *index;
    int64_t first;
};

/* What records made by chance depend on, besides themselves. */
struct data_key {
    uint64_t seed;
    int64_t epoch;
};

/* The dataset that has the fields: ds or the base of a view. */
const struct det_dataset *dataset_base(const struct det_dataset *ds);
/* The field's number in the base of ds; -1: there is none. */
int dataset_field(const struct det_dataset *ds, const char *name);
/* Its fields as one would give them to det_dataset_callback(), names borrowed; returns how many. */
size_t dataset_fields(const struct det_dataset *ds, struct det_field ret[DET_FIELDS_MAX]);
/* Writes record i (0 <= i < records) of every field into out[f]. Any thread. */
DET_MUST int dataset_read(const struct det_dataset *ds, int64_t i, struct data_key key,
                          void *const *out, struct det_err *err);
/* Adds a field whose memory the caller fills: *ret_data is records x record bytes, zeros. */
DET_MUST int dataset_add_zeros(struct det_dataset *ds, const struct det_field *f, char **ret_data,
                               struct det_err *err);

/* A process-wide switch: loaders then give made-up records (det-harness run --fake-data). */
void data_fake(bool on);
bool data_fake_wanted(void);
/* As many records with the same fields, a function of their numbers alone: uniform over the range
 * of a sample of the real values, so that classes stay classes; over 0 to 1 where there are none to
 * read. TAKES `like`. */
struct det_dataset *dataset_fake(struct det_dataset *like, struct det_err *err);
/* Records, zeros, that a reader gives where its file is missing, while data_fake_wanted(). */
#define DATASET_FAKE_RECORDS 1024

#endif
