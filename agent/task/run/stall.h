/* Watches the signs of life of the ranks (proto/progress.h): a rank whose file does not change for
 * longer than the timeout is stuck. The files are read, not mapped: a task may cut its own short.
 */
#ifndef STALL_H
#define STALL_H

#include "taskspec.h"

/* A rank that has given no sign of life for a while. */
struct stall_found {
    int local;
    uint64_t batches;  /* that it has finished */
    const char *phase; /* in which it is; constant */
    int64_t silent_ms;
};
struct stall;
/* timeout_ms > 0. local ranks 0..n-1; from_start: the time counts from now on, else from the first
 * sign of life (a command that knows nothing of progress files never stalls). spec is borrowed. */
struct stall *stall_create(const struct taskspec *spec, int n, bool from_start, int64_t now_ms);
void stall_destroy(struct stall *s); /* NULL ok */
/* Looks. Whether a rank is stuck; of several the one that has been silent for longest. */
bool stall_check(struct stall *s, int64_t now_ms, struct stall_found *ret);
/* Whether that look had something to tell of a rank that is not stuck yet: silent for a tenth of
 * the timeout (1 s to 10 s), or for another tenth since it was told last; local -1: none is any
 * more. */
bool stall_news(struct stall *s, struct stall_found *ret);
/* A time that no rank is to blame for. */
void stall_forgive(struct stall *s, int64_t ms);
/* How often to check. */
uint64_t stall_period_ms(const struct stall *s);

#endif
