/* Checkpoint collection: when an experiment ends, finds what its policy does not keep and has an
 * agent delete it. */
#ifndef SHELL_GC_H
#define SHELL_GC_H

#include <stdint.h>

struct shell;
void gc_wanted(struct shell *sh, int64_t exp_id);
/* At start: a master that died between an experiment's end and its collection left that undone.
 * Looks at the finished experiments one after the other. */
void gc_rescan(struct shell *sh);

#endif
