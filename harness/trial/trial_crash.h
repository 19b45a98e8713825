/* When model code crashes: which hook it was in, at which batch, before the process dies of it. */
#ifndef TRIAL_CRASH_H
#define TRIAL_CRASH_H

#include <stdint.h>

/* Handlers for SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT on a stack of their own: one line on
 * stderr, then the signal again with its default action. */
void trial_crash_install(void);
/* Where the process is now; `hook` must be a literal. batch < 0: none. */
void trial_crash_mark(const char *hook, int64_t batch);

#endif
