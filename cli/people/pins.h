/* certs.json: whom to take for a master, kept since the first login: {URL: "PEM"}. A file that
 * cannot be read is not an empty one, as that of tokens is: a master that was known must not become
 * a new one. */
#ifndef CLI_PINS_H
#define CLI_PINS_H

#include "det/err.h"

/* The certificate kept for this master; *ret NULL: none. DET_ECORRUPT names the file. Caller
 * frees. */
DET_MUST int pins_get(const char *master, char **ret, struct det_err *err);
DET_MUST int pins_put(const char *master, const char *pem, struct det_err *err);
/* Where it is kept, for people; NULL without a home. Caller frees. */
char *pins_path(void);

#endif
