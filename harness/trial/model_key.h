/* The name of a compiled model in the cache: everything that its bytes depend on, hashed. */
#ifndef MODEL_KEY_H
#define MODEL_KEY_H

#include "det/err.h"
#include "hash.h"

/* Flags as they go to the compiler, without includes and files; NULL ends. */
extern const char *const model_flags[];

/* `include` as of model_include_dirs(). `compiler` is a path. DET_EIO where a source cannot be
 * read. */
int model_key(const char *c_path, const char *compiler, const char *include, char hex[HASH_HEX_MAX],
              struct det_err *err);

#endif
