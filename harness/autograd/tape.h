/* The tape: the calls of a step in order, so that gradients can go back along it. */
#ifndef TAPE_H
#define TAPE_H

#include "op.h"

struct tape *tape_create(void);
void tape_destroy(struct tape *t); /* NULL is allowed */
/* Forgets all nodes and their references. */
void tape_clear(struct tape *t);
/* Appends a node for a finished call, with references to its tensors, and marks out[0] as made by
 * it. */
void tape_record(struct tape *t, const struct op_call *c);

#endif
