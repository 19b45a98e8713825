/*
 * A debugger's listing of a process's threads, each in one line, equal ones together: "3 threads:
 * poll (poll.c:29) < wait < main", the innermost function first. Of gdb ("thread apply all bt") and
 * of eu-stack. What has no frames at all is an error of theirs and is given as it is. Pure.
 */
#ifndef STACKFOLD_H
#define STACKFOLD_H

#include <stdbool.h>

struct stackfold;
/* Whether a file, named as its compiler was given it, is one of the user's own; NULL: none is. */
typedef bool stackfold_users_fn(void *arg, const char *file);
struct stackfold *stackfold_create(stackfold_users_fn *is_users, void *arg);
void stackfold_destroy(struct stackfold *f); /* NULL ok */
/* One line, with or without its '\n'. */
void stackfold_add(struct stackfold *f, const char *line);
/* Once all lines are there: the innermost of the user's own lines, of the main thread where that is
 * in such a one: "model_def.c, line 3, in train_batch". Borrowed; NULL: no thread is. */
const char *stackfold_place(struct stackfold *f);
/* All of it, the main thread first as far as that is known; each line ends in '\n' and is borrowed
 * for the call. */
void stackfold_end(struct stackfold *f, void (*fn)(void *arg, const char *line), void *arg);

#endif
