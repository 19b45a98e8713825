/* When model code crashes or exits: which hook it was in, at which batch. */
#ifndef TRIAL_CRASH_H
#define TRIAL_CRASH_H

#include <stdint.h>

/* Of the thread that runs hooks. Handlers for SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT on a
 * stack of their own: one line on stderr, which tells a stack overflow from other invalid accesses,
 * then the signal again with its default action. And one for exit() before the trial is done: the
 * line, and never status 0. */
void trial_crash_install(void);
/* Where the process is now; `hook` must be a literal, NULL: the trial is done. batch < 0: none. */
void trial_crash_mark(const char *hook, int64_t batch);

#endif
