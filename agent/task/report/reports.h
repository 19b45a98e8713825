/* What dead ranks left in their report spools (client/spool.h) goes to the master before the exit
 * does: with the exit the run ends, and later reports of it are refused.
 *
 * Where a limit is reached, a spool is given up from its oldest unsent report on. Nothing that the
 * master acknowledged is lost by it: checkpoints stand in the spool behind the reports before them,
 * so the next run begins before what is missing and reports it anew; and the loop ends an operation
 * only when all of its reports are sent. */
#ifndef REPORTS_H
#define REPORTS_H

#include "client_uv.h"
#include "taskspec.h"

/* Whether there is anything to send. */
bool reports_are_left(const struct taskspec *s);
struct reports;
struct reports_limits {
    int64_t retry_ms; /* a master that gives no answer is asked again for so long */
    int64_t all_ms;   /* what was not sent by then is left; 0: no limit while reports arrive */
};
struct reports_tally {
    size_t sent, refused;   /* reports; what is refused is not sent again */
    size_t left;            /* ranks with something unsent */
    struct det_err refusal; /* the first one's words */
};
/* Sends everything, oldest first, rank by rank; done comes once, from the loop, when nothing is
 * left or a limit is reached. All but limits are borrowed until then. */
struct reports *reports_start(uv_loop_t *loop, struct client_uv *http, const struct taskspec *spec,
                              struct reports_limits limits,
                              void (*done)(void *arg, const struct reports_tally *n), void *arg);
/* From now on there is no more time than this. Before done. */
void reports_hurry(struct reports *r, int64_t all_ms);

#endif
