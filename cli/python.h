/* Running Python: what det hands over to it, det does not read. */
#ifndef CLI_PYTHON_H
#define CLI_PYTHON_H

#include "det/err.h"

/* Becomes an interpreter with these arguments (argv ends with NULL, argv[0] is overwritten), in
 * which `import determined` works: DET_PYTHON_EXECUTABLE, else the first python3 on PATH and
 * /usr/bin that has torch, else the first. Returns only an exit code, with the message in *err. */
DET_MUST int python_become(char **argv, struct det_err *err);

#endif
