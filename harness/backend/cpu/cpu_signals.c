/*
 * No signal's handler runs on a thread that computes. Up to version 3.11 the sgemm that oneDNN
 * compiles for AVX2 and AVX-512 keeps, for long sums, a buffer of the heap in the stack pointer:
 * the frame of a handler is then written over the heap below that buffer. A thread that is started
 * meanwhile, as OpenMP's are, inherits that and takes no signal at any time.
 */
#include <pthread.h>

#include "cpu.h"

static sigset_t held;
static pthread_once_t choose_once = PTHREAD_ONCE_INIT;

/* What a fault raises must come at once: held, it would end the process without a word. */
static void choose_held(void)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigfillset(&held);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(&held, faults[i]);
}

void cpu_hold_signals(sigset_t *ret_before)
{
    pthread_once(&choose_once, choose_held);
    pthread_sigmask(SIG_BLOCK, &held, ret_before);
}

void cpu_release_signals(const sigset_t *before)
{
    pthread_sigmask(SIG_SETMASK, before, NULL);
}
