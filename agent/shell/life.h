/*
 * Which life of which cluster this agent serves, kept in life.json of its work directory: what it
 * heard last of the master's leadership and its rows. It is told at each connection, so that a
 * master whose database is older, or a copy that went another way, notices; and a master of another
 * cluster is refused while tasks of this one are here.
 */
#ifndef LIFE_H
#define LIFE_H

#include "agentlink.h"

struct life;

/* DET_ECORRUPT names the file. *ret is the caller's to close. */
DET_MUST int life_open(const char *work_dir, struct life **ret, struct det_err *err);
/* Writes what is new since, and frees. NULL ok. */
void life_close(struct life *l);
/* For host_set_seen(); NULL: none yet. A new reference. */
json_t *life_seen(const struct life *l);
/* What an answer says. A leadership that is new here is on disk when this returns 0. DET_ESTATE: it
 * is not to be served; the text says why, and what to do. */
DET_MUST int life_take(struct life *l, const struct link_ack *a, bool has_tasks,
                       struct det_err *err);
/* Now and then: the numbers that rise. */
void life_sync(struct life *l);

#endif
