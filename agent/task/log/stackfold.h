/*
 * A debugger's listing of a process's threads, each in one line, equal ones together: "3 threads:
 * poll (poll.c:29) < wait < main", the innermost function first. Of gdb ("thread apply all bt") and
 * of eu-stack. What has no frames at all is an error of theirs and is given as it is. Pure.
 */
#ifndef STACKFOLD_H
#define STACKFOLD_H

struct stackfold;
struct stackfold *stackfold_create(void);
void stackfold_destroy(struct stackfold *f); /* NULL ok */
/* One line, with or without its '\n'. */
void stackfold_add(struct stackfold *f, const char *line);
/* All of it, the main thread first as far as that is known; each line ends in '\n' and is borrowed
 * for the call. */
void stackfold_end(struct stackfold *f, void (*fn)(void *arg, const char *line), void *arg);

#endif
