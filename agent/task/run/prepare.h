/* What stands in a task's directory before its first process. */
#ifndef PREPARE_H
#define PREPARE_H

#include "taskspec.h"

#define PREPARE_CONTEXT_MAX ((size_t)1 << 30) /* unpacked bytes */

/* Makes work/, info/ and run/ for the task's user, with progress files for its ranks. */
DET_MUST int prepare_dirs(const struct taskspec *s, struct det_err *err);
/* Unpacks the model definition (base64 of a tar.gz; "" is an empty one) into work/. */
DET_MUST int prepare_context(const struct taskspec *s, const char *b64, size_t len,
                             struct det_err *err);

/* What the entrypoint is: argv of each rank, or of the one command. */
struct prepare_plan {
    char **argv;     /* ends in NULL */
    bool per_slot;   /* one process for each slot, with RANK and so on */
    bool is_harness; /* gives signs of life from its start */
};
/* After the context is there. DET_EINVAL tells what is missing. env gives PATH and the like; python
 * is the interpreter of a trial class in Python, NULL: none is here. */
DET_MUST int prepare_plan(const struct taskspec *s, const json_t *env, const char *python,
                          struct prepare_plan *ret, struct det_err *err);
/* The entrypoint is a class, and its module is Python. */
bool prepare_is_python_class(const struct taskspec *s);
void prepare_plan_finish(struct prepare_plan *p);
bool prepare_has_hook(const struct taskspec *s);

#endif
