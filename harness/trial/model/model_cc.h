/*
 * The C compiler, in two steps: what it reads, and what it makes of that.
 *
 * The text after the preprocessor holds every header and file that was included, wherever it was
 * found, and every macro, the compiler's own version and target among them. So its hash, with the
 * compiler's identity and the flags, is the key of the object; and the object is made of that very
 * text, so that a file which changes meanwhile cannot come in under the key of its former content.
 */
#ifndef MODEL_CC_H
#define MODEL_CC_H

#include "det/err.h"
#include "hash.h"
#include <stdbool.h>

struct model_cc {
    char *path;    /* of the compiler */
    char *include; /* as of model_include_dirs() */
    int text;      /* the preprocessed source, nowhere in the file system; -1: none yet */
    bool quiet;    /* another rank prints what the compiler says */
};

/* DET_ENOENT without a compiler (DET_CC, else cc) or the API's headers. */
DET_MUST int model_cc_init(struct model_cc *cc, bool quiet, struct det_err *err);
void model_cc_finish(struct model_cc *cc);

/* Reads the source and writes the key of its object. DET_EINVAL: it does not compile. */
DET_MUST int model_cc_read(struct model_cc *cc, const char *c_path, char key[HASH_HEX_MAX],
                           struct det_err *err);
/* Makes the object `out` of what was read. */
DET_MUST int model_cc_make(struct model_cc *cc, const char *c_path, const char *out,
                           struct det_err *err);

#endif
