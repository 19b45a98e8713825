/*
 * TensorBoard: a writer of event files (torch.utils.tensorboard.SummaryWriter).
 *
 * In a trial, det_trial_tensorboard(ctx) (det/trial.h) gives the trial's own writer, whose files
 * the loop keeps beside the checkpoints; det_tensorboard_create() is for everything else.
 *
 * Every call writes one value under a tag at a step. A file is appended to, whole records only, so
 * what was flushed before a crash can be read after it. The files of a directory that were there
 * before count: what they hold under a tag at a step is not written a second time, so a trial that
 * repeats some batches after a restart leaves one value for each.
 *
 * Errors are sticky: the first one (a full disk, say) is kept, and later calls do nothing;
 * det_tensorboard_error() tells. A NULL writer is allowed everywhere and does nothing. Tensors are
 * read and borrowed; a device is waited for. Threads: one at a time.
 */
#ifndef DET_TENSORBOARD_H
#define DET_TENSORBOARD_H

#include "det/err.h"
#include "det/tensor.h"
#include <stdint.h>

struct det_tensorboard;

/* A writer into `dir`, made with its parents on the first write. NULL on failure. */
struct det_tensorboard *det_tensorboard_create(const char *dir, struct det_err *err);
void det_tensorboard_destroy(struct det_tensorboard *w); /* flushes; NULL ok */

/* A number; stored as float32, as the format has it. */
void det_tensorboard_add_scalar(struct det_tensorboard *w, const char *tag, double value,
                                int64_t step);
/* Several numbers in one chart: each in a directory "<main_tag>_<name>" of its own, '/' in it
 * becoming '_', as torch's writer does. */
struct det_tensorboard_named {
    const char *name;
    double value;
};
void det_tensorboard_add_scalars(struct det_tensorboard *w, const char *main_tag,
                                 const struct det_tensorboard_named *values, size_t n,
                                 int64_t step);
/* The distribution of the tensor's finite elements (at least one), in TensorFlow's default buckets:
 * 1e-12 * 1.1^k up to 1e20, the same below zero, and zero. */
void det_tensorboard_add_histogram(struct det_tensorboard *w, const char *tag,
                                   const struct det_tensor *values, int64_t step);

enum det_image_order { /* dataformats */
                       DET_IMAGE_CHW,
                       DET_IMAGE_HWC,
                       DET_IMAGE_HW /* grey */
};
/* 1 (grey), 2 (grey, alpha), 3 (RGB) or 4 (RGBA) channels; at most 2^26 elements. uint8 0..255,
 * other types 0..1, cut to that. */
void det_tensorboard_add_image(struct det_tensorboard *w, const char *tag,
                               const struct det_tensor *image, enum det_image_order order,
                               int64_t step);
/* Markdown, up to 16 MiB. */
void det_tensorboard_add_text(struct det_tensorboard *w, const char *tag, const char *text,
                              int64_t step);

/* To the files; a writer flushes by itself now and then, and the loop does at every boundary. */
void det_tensorboard_flush(struct det_tensorboard *w);
/* Flushes and closes the files: a later write opens new ones (SummaryWriter.close()). */
void det_tensorboard_close(struct det_tensorboard *w);
/* The directory; borrowed. NULL for NULL. */
const char *det_tensorboard_dir(const struct det_tensorboard *w);
/* 0, or the first failure with its text in *err. */
int det_tensorboard_error(const struct det_tensorboard *w, struct det_err *err);

#endif
