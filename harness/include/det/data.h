/*
 * Data of a trial: datasets, loaders and batches (what torch.utils.data and determined.pytorch's
 * DataLoader are in Python).
 *
 * A dataset is a number of records; a record has one value for each of a few named FIELDS ("image",
 * "label"), each of a fixed type and shape. A batch holds, per field, one tensor whose first
 * dimension is the record. A loader says how records become batches; it has no order of its own:
 * the training loop decides which batch comes next (shuffle, repeat, the share of each rank, the
 * place to resume at), so a loader is the same object on every rank and after every restart.
 *
 * Errors. Functions that make something take `struct det_err *err` last and return NULL on failure;
 * given a NULL dataset they return NULL and leave *err alone, so calls chain and the first text
 * stays. In a trial pass det_trial_err(ctx). Files are outside bytes: wrong magic, a size that does
 * not fit, a row cut short or a non-number is DET_EINVAL or DET_ECORRUPT naming file and line.
 *
 * Threads: a dataset is immutable once it is in a loader; with .prefetch the loader's own thread
 * calls a callback dataset's get(). Datasets of files are in det/data_files.h, images in
 * det/image.h.
 */
#ifndef DET_DATA_H
#define DET_DATA_H

#include "det/err.h"
#include "det/sampler.h"
#include "det/tensor.h"
#include <stdbool.h>
#include <stdint.h>

#define DET_FIELDS_MAX 16

struct det_dataset;
struct det_data_loader;
struct det_batch;

/* ---- Datasets -------------------------------------------------------------------------------- */

/* An empty dataset of `records` records (>= 0); add fields next. The caller owns it. */
struct det_dataset *det_dataset_create(int64_t records, struct det_err *err);
/* One field, held in memory: `data` is records x (product of dims) elements, C order, copied.
 * `dims` is the shape of ONE record: ndim 0 for a label, {3, 32, 32} for an image. Names are
 * unique. */
int det_dataset_add(struct det_dataset *ds, const char *name, enum det_dtype dtype, int ndim,
                    const int64_t *dims, const void *data, struct det_err *err);

/* One field of a callback dataset. */
struct det_field {
    const char *name; /* copied */
    enum det_dtype dtype;
    int ndim; /* of one record */
    int64_t dims[DET_DIMS_MAX];
};
/* Random numbers of one record in one epoch: a function of (trial seed, epoch, record, how many
 * were drawn before), so that neither a resume nor the number of workers changes them. */
struct det_draws {
    uint64_t seed;
    int64_t epoch, record;
    uint32_t count;
};
double det_draw_uniform(struct det_draws *d, double from, double to); /* [from, to) */
int64_t det_draw_int(struct det_draws *d, int64_t n);                 /* 0 .. n - 1; n >= 1 */

/* Records that are made on demand: decoded, augmented, read from elsewhere. */
struct det_dataset_type {
    /* Writes record `index` into out[f], one buffer per field, each exactly one record long. Must
     * be a pure function of (self, index) for runs to repeat. 0 or a negative code with *err. */
    int (*get)(void *self, int64_t index, void *const *out, struct det_err *err);
    void (*destroy)(void *self); /* may be NULL */
    /* In place of get, where a record is made by chance: a pure function of (self, index,
     * draws). */
    int (*get_random)(void *self, int64_t index, struct det_draws *draws, void *const *out,
                      struct det_err *err);
};
/* Takes `self`, also on failure. `type` is borrowed for the dataset's life. */
struct det_dataset *det_dataset_callback(const struct det_dataset_type *type, void *self,
                                         int64_t records, const struct det_field *fields,
                                         size_t n_fields, struct det_err *err);

int64_t det_dataset_length(const struct det_dataset *ds); /* 0 for NULL */
/* The records for which keep(arg, index) is true, in order. A view: holds a reference to ds, copies
 * nothing; so one dataset can be cut into a training and a validation part. */
struct det_dataset *det_dataset_filter(struct det_dataset *ds, bool (*keep)(void *arg, int64_t i),
                                       void *arg, struct det_err *err);
/* Several datasets of equal length side by side, as one record: part "left" with field "image"
 * gives field "left.image". Records made by chance draw the same numbers in all parts, so that the
 * same steps cut an image and its mask alike. TAKES the datasets, also on failure. */
struct det_dataset_part {
    const char *name;
    struct det_dataset *ds;
};
struct det_dataset *det_dataset_zip(const struct det_dataset_part *parts, size_t n,
                                    struct det_err *err);
/* One after another (ConcatDataset): all must have the same fields. TAKES them, also on failure. */
struct det_dataset *det_dataset_concat(struct det_dataset *const *parts, size_t n,
                                       struct det_err *err);
/* Records first .. first + n - 1, as a view. */
struct det_dataset *det_dataset_slice(struct det_dataset *ds, int64_t first, int64_t n,
                                      struct det_err *err);
struct det_dataset *det_dataset_ref(struct det_dataset *ds); /* NULL ok */
void det_dataset_unref(struct det_dataset *ds);              /* NULL ok */

/* ---- Loaders --------------------------------------------------------------------------------- */

struct det_loader_options {
    int64_t batch_size; /* per slot; 0: 1. det_trial_per_slot_batch_size(ctx) as a rule */
    bool shuffle;       /* a new order every epoch: DataLoader(shuffle=True)'s under the trial
                         * seed */
    bool drop_last;     /* leave out a last, smaller batch */
    /* Threads that prepare batches, and how many batches they may be ahead. 0 workers: one if
     * prefetch is given, else the loop itself; prefetch 0: two for each worker. The order is the
     * same with any number; several workers call a callback dataset at the same time. */
    int workers, prefetch;
    /* An order of one's own (det/sampler.h), TAKEN also on failure: of records, which batch_size
     * and drop_last cut, or of batches (then neither is given). No shuffle with either. */
    struct det_sampler *sampler, *batch_sampler;
    /* Called with each filled batch, in the thread that filled it: changes its tensors' contents,
     * or sets others by det_batch_set(). 0 or a negative code with *err. */
    int (*collate)(void *arg, struct det_batch *b, struct det_err *err);
    void *collate_arg;
};
/* The loader of `ds`, which it TAKES (one reference), also on failure. A negative batch size or an
 * empty dataset is DET_EINVAL. In a trial, the loop takes what build_*_data_loader returns. */
#define det_data_loader(ds, error, ...)                                                            \
    det_data_loader_create(ds, &(const struct det_loader_options){__VA_ARGS__}, error)
struct det_data_loader *det_data_loader_create(struct det_dataset *ds,
                                               const struct det_loader_options *options,
                                               struct det_err *err);
void det_data_loader_destroy(struct det_data_loader *l); /* NULL ok */

/* Batches in one epoch, over all ranks. */
int64_t det_data_loader_length(const struct det_data_loader *l);
int64_t det_data_loader_records(const struct det_data_loader *l);
const struct det_loader_options *det_data_loader_get_options(const struct det_data_loader *l);

/* For evaluate_full_dataset: batch i (0-based) in sequential order, or that of the first time
 * through the loader's sampler. The batch is the loader's and
 * is overwritten by the next call. NULL on failure. */
const struct det_batch *det_data_loader_get(struct det_data_loader *l, int64_t i,
                                            struct det_err *err);

/* ---- Batches: borrowed until the hook that got them returns ---------------------------------- */

/* The tensor of a field, on the host: (records, dims...). NULL if there is no such field (say so
 * with the engine's sticky error: the functions of det/tensor.h take NULL quietly). Borrowed. */
struct det_tensor *det_batch_tensor(const struct det_batch *b, const char *name);
int64_t det_batch_length(const struct det_batch *b); /* records */

/* For collate: the batch has tensor t, which it TAKES, under this name until it is filled again, a
 * field's in its place or a new one; of any shape. */
int det_batch_set(struct det_batch *b, const char *name, struct det_tensor *t, struct det_err *err);
/* Random numbers of this batch, as a record has them: a function of (trial seed, epoch, its first
 * record). */
struct det_draws det_batch_draws(const struct det_batch *b);

#endif
