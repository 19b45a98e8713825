/* The inside of a TensorBoard writer: for the files of this folder, for the trial, and for
 * Python. */
#ifndef TB_H
#define TB_H

#include "buf.h"
#include "det/tensorboard.h"
#include "map.h"
#include "tfevents.h"
#include "vec.h"

/* One event file; dir is beneath the writer's, "" for itself. */
struct tb_file {
    char *dir;
    char *path; /* NULL: not opened yet */
    int fd;
    int64_t bytes; /* written, whole records */
    struct buf out;
};

struct det_tensorboard {
    char *dir;
    struct det_err err; /* code 0: none */
    VEC(struct tb_file *) files;
    struct imap *written; /* tb_key() of what earlier files hold; NULL: not read yet */
};

/* Remembers what the event files beneath `dir` hold, so that it is not written again; an absent
 * directory holds nothing, and a damaged file counts up to the damage. */
DET_MUST int tb_remember(struct det_tensorboard *w, const char *dir, struct det_err *err);
/* True where a value under this tag at this step is to be written: *ret_v is filled. */
bool tb_wanted(struct det_tensorboard *w, const char *dir, const char *tag, int64_t step,
               struct tfevents_value *ret_v);
/* The file of a directory beneath the writer's, opened. NULL after a failure. */
struct tb_file *tb_file(struct det_tensorboard *w, const char *dir);
/* Writes what has gathered where that is worth a system call. */
void tb_wrote(struct det_tensorboard *w, struct tb_file *f);
/* Keeps *err as the writer's error where it is the first. */
void tb_fail(struct det_tensorboard *w, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Plain numbers in the place of tensors; n at least 1, *p such that it fits. */
void tb_add_histogram(struct det_tensorboard *w, const char *tag, const double *x, size_t n,
                      int64_t step);
struct tb_pixels {
    int64_t h, w, c;
    int64_t row, column, channel; /* strides, in elements */
};
bool tb_pixels_fit(const struct tb_pixels *p);
/* Elements times scale are 0 to 255. */
void tb_add_image(struct det_tensorboard *w, const char *tag, const double *x,
                  const struct tb_pixels *p, double scale, int64_t step);

/* All elements of t as numbers; caller frees. NULL and the writer's error on failure. */
double *tb_values(struct det_tensorboard *w, const char *tag, const struct det_tensor *t);

#endif
