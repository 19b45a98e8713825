/*
 * Datasets of files. Files are outside bytes: wrong magic, a size that does not fit, a row cut
 * short or a non-number is DET_EINVAL or DET_ECORRUPT, and the text names the file and the place in
 * it. All return a new dataset, which the caller owns, or NULL with *err.
 */
#ifndef DET_DATA_FILES_H
#define DET_DATA_FILES_H

#include "det/data.h"
#include "det/image.h"

/* One field of a CSV file: `columns` columns from `first` on. value = number * scale + offset;
 * scale 0 means 1. An i64 field takes whole numbers only. */
struct det_csv_field {
    const char *name; /* NULL ends the table */
    int first, columns;
    enum det_dtype dtype;
    int ndim; /* of one record; 0 with several columns: a vector of them */
    int64_t dims[DET_DIMS_MAX];
    double scale, offset;
};
struct det_csv_options {
    const struct det_csv_field *fields;
    char separator; /* 0: ',' */
    bool header;    /* the first line is names, skipped */
};
/* A file of numbers, one record a line, plain or gzip (recognised by its content). Every line must
 * have the same number of columns, at least those the fields name. Up to 2 GiB unpacked. */
struct det_dataset *det_dataset_csv(const char *path, const struct det_csv_options *options,
                                    struct det_err *err);

/* IDX files (the format of MNIST), plain or gzip, of unsigned bytes. */
struct det_idx_options {
    const char *images, *labels;         /* paths; the labels may be NULL */
    double scale, offset;                /* pixel * scale + offset; scale 0: 1/255 */
    const char *image_name, *label_name; /* NULL: "image", "label" */
};
/* Fields image f32 (1, rows, columns) and label i64 (). The two files must agree in count. */
struct det_dataset *det_dataset_idx(const struct det_idx_options *options, struct det_err *err);

/* CIFAR-10 and CIFAR-100, the "binary version" (https://www.cs.toronto.edu/~kriz/cifar.html): plain
 * or gzip. */
struct det_cifar_options {
    const char *const *files;           /* paths, NULL ends them: the records in this order */
    bool cifar100;                      /* two labels a record: field coarse_label too */
    const struct det_image_step *steps; /* NULL: none, x / 255 */
};
/* Fields image f32 (3, height, width), 32 x 32 without steps, and label i64 (). */
struct det_dataset *det_dataset_cifar(const struct det_cifar_options *options, struct det_err *err);

/* A directory with one subdirectory per class, of JPEG and PNG files at any depth, as torchvision's
 * ImageFolder takes it: class i is the i-th subdirectory by name; the records are in the order of
 * classes, then of directories, then of file names. What a file is, its content says. */
struct det_image_folder_options {
    const char *path;
    const struct det_image_step *steps; /* must make images that differ in size equal */
    int64_t pixels_max; /* a larger image is refused; 0: 89,478,485, Pillow's limit */
};
/* Fields image f32 (3, height, width) and label i64 (). Files are listed now and read when their
 * record is; a file that is damaged then fails the batch it is in, by name. */
struct det_dataset *det_dataset_image_folder(const struct det_image_folder_options *options,
                                             struct det_err *err);
/* The name of class i, borrowed; NULL past the last one or if ds is no image folder. A view's are
 * its whole's. */
const char *det_dataset_class_name(const struct det_dataset *ds, int64_t i);

enum det_token_type { DET_TOKENS_U16, DET_TOKENS_U32, DET_TOKENS_I64 };
/* A file of tokens, little-endian, nothing else, mapped into memory: it must not be cut while the
 * trial runs. */
struct det_token_options {
    const char *path;
    enum det_token_type type;
    int64_t sequence;   /* tokens of a record, >= 1 */
    int64_t stride;     /* from record to record; 0: sequence */
    int64_t vocabulary; /* > 0: a token outside 0 .. vocabulary - 1 is DET_ECORRUPT */
};
/* Fields input and target, i64 (sequence): record i holds tokens i * stride on, its target those
 * one further. Records = (tokens - 1 - sequence) / stride + 1. */
struct det_dataset *det_dataset_tokens(const struct det_token_options *options,
                                       struct det_err *err);

#endif
