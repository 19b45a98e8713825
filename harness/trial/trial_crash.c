#include "trial_crash.h"

#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Written by the one thread that runs hooks, read by a handler that may run in any. */
static const char *volatile now_in = "start-up";
static volatile int64_t at_batch = -1;

void trial_crash_mark(const char *hook, int64_t batch)
{
    now_in = hook;
    at_batch = batch;
}

static void put(const char *s)
{
    ssize_t rc = write(STDERR_FILENO, s, strlen(s));
    (void)rc;
}

static void put_number(int64_t v)
{
    char text[24], *p = text + sizeof text - 1;
    *p = '\0';
    do
        *--p = (char)('0' + v % 10);
    while (v /= 10);
    put(p);
}

static const char *signal_words(int sig)
{
    switch (sig) {
    case SIGSEGV: return "SIGSEGV (invalid memory access)";
    case SIGBUS: return "SIGBUS (memory that is not there)";
    case SIGFPE: return "SIGFPE (arithmetic error)";
    case SIGILL: return "SIGILL (invalid instruction)";
    default: return "SIGABRT (abort)";
    }
}

static void on_crash(int sig)
{
    put("ERROR: det-harness: the trial crashed with ");
    put(signal_words(sig));
    put(" in ");
    put(now_in);
    if (at_batch >= 0) {
        put(", batch ");
        put_number(at_batch);
    }
    put("\n");
    raise(sig); /* SA_RESETHAND: this time the default action */
}

void trial_crash_install(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    static char memory[64 << 10];
    stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    struct sigaction sa = {.sa_handler = on_crash,
                           .sa_flags = (int)(SA_ONSTACK | SA_RESETHAND | SA_NODEFER)};
    sigaltstack(&stack, NULL);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &sa, NULL);
}
