/*
 * The stacks of a Python process, as faulthandler writes them: each thread's head, "Thread 0x7f...
 * (most recent call first):", then its frames, innermost first; the main thread comes last. They
 * are kept until all are there, so that where the user's own code is can be said before them. Pure.
 */
#ifndef PYSTACKS_H
#define PYSTACKS_H

#include "logline.h"

struct pystacks;
struct pystacks *pystacks_create(void);
void pystacks_destroy(struct pystacks *p); /* NULL ok */

/* Whether the line is one of such stacks, and was kept. dir: the task's directory. What a process
 * writes beyond 1 MiB is not kept. */
bool pystacks_line(struct pystacks *p, const char *dir, const struct logline *l);
size_t pystacks_kept(const struct pystacks *p); /* lines */

typedef void pystacks_line_fn(void *arg, const struct logline *l);
/* at is told of each thread that is in the user's own code, the main one first: "model_def.py, line
 * 3, in train_batch"; then line of every line, thread by thread: the main one, those that are in
 * the user's own code, the others. Nothing is kept afterwards. */
void pystacks_end(struct pystacks *p, void (*at)(void *arg, const char *where),
                  pystacks_line_fn *line, void *arg);

#endif
