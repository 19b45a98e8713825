/*
 * Event files of TensorBoard: the bytes. A file is a row of records
 *
 *     u64 length | masked crc32c of it | data | masked crc32c of the data        (little-endian)
 *
 * whose data are protobuf messages `Event`; the first one is the version "brain.Event:2". The
 * messages are written by hand: ten kinds of fields, all appended to a buffer. Format: TensorFlow's
 * lib/io/record_writer and the event, summary, tensor and histogram .proto files.
 */
#ifndef TFEVENTS_H
#define TFEVENTS_H

#include "buf.h"
#include "det/err.h"
#include <stdint.h>

/* One summary value on its way into a file. */
struct tfevents_value {
    double wall_s; /* seconds since 1970 */
    int64_t step;
    const char *tag;
};

struct tfevents_histogram {
    double min, max, num, sum, sum_squares;
    const double *limits, *counts; /* n each: the upper edge of a bucket, and what is in it */
    size_t n;
};

struct tfevents_image {
    int32_t height, width, channels; /* 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA */
    const void *png;
    size_t bytes;
};

/* Each appends one whole record. */
void tfevents_version(struct buf *out, double wall_s);
void tfevents_scalar(struct buf *out, const struct tfevents_value *v, double value);
void tfevents_histogram(struct buf *out, const struct tfevents_value *v,
                        const struct tfevents_histogram *h);
void tfevents_image(struct buf *out, const struct tfevents_value *v,
                    const struct tfevents_image *image);
/* The text plugin's: the tag gets "/text_summary" behind it, as torch's writer does. */
void tfevents_text(struct buf *out, const struct tfevents_value *v, const char *text);

/* Calls fn for every tag of every whole record of `data` (outside bytes). A record cut short at the
 * end is what a crash leaves: not an error. DET_ECORRUPT: a wrong checksum or message, with its
 * offset. */
DET_MUST int tfevents_read(const void *data, size_t bytes,
                           void (*fn)(void *arg, const char *tag, size_t tag_bytes, int64_t step),
                           void *arg, struct det_err *err);

/* crc32c, rotated and shifted as the format wants it. */
uint32_t tfevents_masked_crc(const void *p, size_t n);

#endif
