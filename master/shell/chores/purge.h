/*
 * Experiments that are being deleted: what may be many rows of them (db_rows.h) goes in
 * portions, those of several experiments in turn, with a rest as long as each took, so that what
 * others write waits for one portion at most. While PostgreSQL is away, or somebody holds a row, it
 * waits. What fails otherwise, or takes longer than a statement may, is tried again with fewer
 * rows; after five failures in a row, within a minute, the experiment is DELETE_FAILED, and the
 * next deletion goes on with what is left. A master that comes in between begins with what is left,
 * too. The end is told to the core (CORE_EV_EXP_PURGED).
 */
#ifndef SHELL_PURGE_H
#define SHELL_PURGE_H

#include <stdint.h>

struct shell;
struct purge;

struct purge *purge_create(struct shell *sh);
/* While the loop still runs. NULL ok. */
void purge_destroy(struct purge *p);
/* p NULL: the master stops, and the next one does it. */
void purge_wanted(struct purge *p, int64_t exp_id);

#endif
