/*
 * The rows of a batch of effects, as statements of one transaction: of each kind as few as may be,
 * and of a row that changed several times the last state only. Experiments come before their
 * trials, these before their allocations.
 */
#ifndef SHELL_DRIVER_ROWS_H
#define SHELL_DRIVER_ROWS_H

#include "core.h"

struct db_tx;
/* Which statements belong to which effect. */
struct driver_rows {
    size_t *effects; /* [i]: how many there are after effect i */
    size_t n, first; /* first: those before any effect's */
};
/* Log lines too: who reads "killed because" finds the state it tells of. singly, zeroed: every row
 * in a statement of its own, each state of it, in order; NULL: as few as may be. */
void driver_rows_save(struct db_tx *tx, const struct core_effects *f, struct driver_rows *singly);
/* The effect that the unit's statement is of; n: none. */
size_t driver_rows_find(const struct driver_rows *r, size_t stmt);
void driver_rows_finish(struct driver_rows *r);

#endif
