#include "db_reported.h"

static bool is_of(const struct db_reported *r, int64_t trial, int64_t run)
{
    uint64_t i = (uint64_t)trial % DB_REPORTED_PLACES;
    return r->v[i].trial == trial && r->v[i].run == run;
}

void db_reported_note(struct db_reported *r, int64_t trial, int64_t run, int64_t steps)
{
    uint64_t i = (uint64_t)trial % DB_REPORTED_PLACES;
    if (is_of(r, trial, run) && r->v[i].steps <= steps)
        return;
    r->v[i].trial = trial;
    r->v[i].run = run;
    r->v[i].steps = steps;
}

bool db_reported_has(const struct db_reported *r, int64_t trial, int64_t run, int64_t steps)
{
    uint64_t i = (uint64_t)trial % DB_REPORTED_PLACES;
    return is_of(r, trial, run) && r->v[i].steps <= steps;
}
