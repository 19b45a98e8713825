/*
 * The last uncaught-looking exception of a Python program, out of what it prints: the lines from
 * "Traceback (most recent call last):" to the first that is not indented, which names it. Of
 * several the last counts: Python prints the cause first, and where that is named as the cause
 * ("raise ... from ..."), its place counts if the last has none of the user's own; so it is with
 * the one that a DataLoader's worker had, which is printed behind the exception that tells of it.
 * Of several ranks the first that begins one: the others fail of its end. Pure.
 */
#ifndef TRACEBACK_H
#define TRACEBACK_H

#include "agentlink.h"
#include "logline.h"

struct traceback {
    char exception[LINK_EXCEPTION_MAX + 1]; /* "KeyError: 'lr'", or "": none was printed */
    char at[LINK_EXCEPTION_MAX + 1]; /* innermost of the user's own: "f.py, line 3, in g", or "" */
    char next_at[LINK_EXCEPTION_MAX + 1]; /* of the one whose lines are coming */
    bool is_inside;
    bool has_cause; /* the one that comes was raised from the one before */
    int rank;       /* whose they are */
};
/* A line of this rank (RANK_NO_RANK of a command); dir: the task's directory. */
void traceback_line(struct traceback *t, const char *dir, int rank, const struct logline *l);

/* "model_def.py", borrowed from path, or NULL: a library's. */
const char *traceback_users_file(const char *path, const char *dir);

#endif
