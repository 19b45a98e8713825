/* A data file as a stream of bytes, plain or gzip by its content; never read past a stated
 * limit. */
#ifndef DATA_FILE_H
#define DATA_FILE_H

#include "buf.h"
#include "det/err.h"

#define DATA_FILE_MAX ((size_t)2 << 30)

/* Appends the unpacked bytes of the file to out. DET_ENOENT, DET_EIO, DET_EINVAL (not a regular
 * file), DET_ECORRUPT (gzip cut short or damaged), DET_ETOOBIG above DATA_FILE_MAX; the text names
 * the path. */
DET_MUST int data_file_read(const char *path, struct buf *out, struct det_err *err);

#endif
