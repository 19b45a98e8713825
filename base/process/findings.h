/*
 * What a daemon's `doctor` finds: one line a check, and for what is wrong what to do. Also the
 * checks that every daemon has in common: directories, clock, limits.
 */
#ifndef BASE_FINDINGS_H
#define BASE_FINDINGS_H

#include "buf.h"
#include <stdbool.h>

enum finding { FINDING_OK, FINDING_WARN, FINDING_FAIL };
struct findings {
    struct buf text; /* "ok    clock        synchronised\n", ... */
    int failed, warned;
};
/* Prints all, then `good`, or `bad` where something failed, and releases it. Returns the status to
 * exit with. */
int findings_print(struct findings *f, const char *good, const char *bad);
/* What is checked, what was found, and (NULL when all is well) what to do about it. */
void findings_add(struct findings *f, enum finding how, const char *what, const char *advice,
                  const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* The directory is there, can be written to and has room. */
void findings_dir(struct findings *f, const char *what, const char *path);
/* The same of the directory that a file is to be written in. */
void findings_dir_of(struct findings *f, const char *what, const char *file);
/* The clock ticks, and whether it is synchronised. */
void findings_clock(struct findings *f);
/* At least `wanted` open files are allowed, once openfiles_raise() has been called: what a shell
 * has as its soft limit says nothing of the daemon. */
void findings_files(struct findings *f, long wanted);

#endif
