/*
 * The rows of a batch of effects, as statements of one transaction: of each kind as few as may be,
 * and of a row that changed several times the last state only. Experiments come before their
 * trials, these before their allocations.
 */
#ifndef SHELL_DRIVER_ROWS_H
#define SHELL_DRIVER_ROWS_H

#include "core.h"

struct db_tx;
/* Log lines too: who reads "killed because" finds the state it tells of. */
void driver_rows_save(struct db_tx *tx, const struct core_effects *f);

#endif
