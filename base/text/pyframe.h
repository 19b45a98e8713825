/* The lines of a Python traceback that say where. Pure. */
#ifndef BASE_PYFRAME_H
#define BASE_PYFRAME_H

#include <stdbool.h>
#include <stddef.h>

struct pyframe {
    char path[256], function[128]; /* function "": a SyntaxError's own place */
    int line;
};
/* text: '  File "x.py", line 3, in f', or without the function; false: another line. */
bool pyframe_read(const char *text, struct pyframe *ret);

/* "x.py, line 3, in f", cut at size; file: the path as it is to be shown. */
void pyframe_write(const struct pyframe *f, const char *file, char *ret, size_t size);

/* Whether the traceback of a DataLoader's worker begins here, behind the exception that tells of
 * it: what ends this one is what happened. */
bool pyframe_is_workers(const char *text);

#endif
