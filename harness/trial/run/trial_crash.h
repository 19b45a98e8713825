/* When model code crashes or exits: which hook it was in, at which batch. */
#ifndef TRIAL_CRASH_H
#define TRIAL_CRASH_H

#include <stdint.h>

struct det_trial_context;

/* Of the thread that runs hooks. Handlers for SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT on a
 * stack of their own: one line on stderr, which tells a stack overflow from other invalid accesses,
 * then the signal again with its default action. And one for exit() before the trial is done: the
 * line, and never status 0. */
void trial_crash_install(void);
/* Whose first failure, if there was one, is told with a crash: code that uses what a failed call
 * returned as if it were there is where many crash. Borrowed; NULL: nobody's. */
void trial_crash_watch(struct det_trial_context *ctx);
/* Where the process is now; `hook` must be a literal, NULL: the trial is done. batch < 0: none. */
void trial_crash_mark(const char *hook, int64_t batch);

#endif
