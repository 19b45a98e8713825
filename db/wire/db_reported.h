/*
 * Which runs of trials have reported, and from which steps on. A run's first report takes back what
 * runs before it reported beyond that (functions/rollback.sql), validations among it, and so may a
 * later one of fewer steps; any other leaves them as they are. Of trials that share a place one is
 * forgotten, and taken for a new one. Private to db/.
 */
#ifndef DB_DB_REPORTED_H
#define DB_DB_REPORTED_H

#include <stdbool.h>
#include <stdint.h>

enum { DB_REPORTED_PLACES = 1024 };
struct db_reported { /* zeroed: none has */
    struct {
        int64_t trial, run, steps;
    } v[DB_REPORTED_PLACES];
};
/* A report of this run at these steps, which is kept now. */
void db_reported_note(struct db_reported *r, int64_t trial, int64_t run, int64_t steps);
/* Whether a report at these steps can take nothing back any more. */
bool db_reported_has(const struct db_reported *r, int64_t trial, int64_t run, int64_t steps);

#endif
