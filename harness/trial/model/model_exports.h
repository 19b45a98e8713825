/* The trials that a compiled model offers. */
#ifndef MODEL_EXPORTS_H
#define MODEL_EXPORTS_H

#include "buf.h"
#include "det/err.h"
#include <stddef.h>

/* Names of the exported objects of a det_trial_type's size in the shared object `path`, as "A, B"
 * appended to *ret; *ret_n counts them. DET_EIO, DET_ECORRUPT: the file is no such ELF file. */
DET_MUST int model_exports(const char *path, struct buf *ret, size_t *ret_n, struct det_err *err);

#endif
