/* What dead ranks left in their report spools (client/spool.h) goes to the master before the exit
 * does: with the exit the run ends, and later reports of it are refused. */
#ifndef REPORTS_H
#define REPORTS_H

#include "client_uv.h"
#include "taskspec.h"

/* Whether there is anything to send. */
bool reports_are_left(const struct taskspec *s);
struct reports;
/* Sends everything, oldest first, rank by rank; done comes once, from the loop, when nothing is
 * left or budget_ms is over (retries within it). All are borrowed until then. */
struct reports *reports_start(uv_loop_t *loop, struct client_uv *http, const struct taskspec *spec,
                              int64_t budget_ms, void (*done)(void *arg, size_t sent, size_t left),
                              void *arg);

#endif
