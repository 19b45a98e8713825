#include "trial_crash.h"
#include "trial_context.h"

#include "counted.h"
#include "hash.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

/* A call may touch the stack so far below its end, more than a red zone and a page of probes. */
#define BELOW_STACK (64 << 10)

#define FLUSH_SECONDS 2

/* Written by the one thread that runs hooks, read by a handler that may run in any. NULL: none of
 * the trial's code has to run any more. */
static const char *volatile now_in = "start-up";
static volatile int64_t at_batch = -1;
static struct det_trial_context *volatile watched;
static pid_t owner;         /* a child that the model's code forked may exit */
static pid_t thread;        /* that runs hooks */
static uintptr_t stack_low; /* where the stack of the thread that runs hooks cannot grow any more */
static size_t stack_bytes;

void trial_crash_mark(const char *hook, int64_t batch)
{
    now_in = hook;
    at_batch = batch;
}

void trial_crash_watch(struct det_trial_context *ctx)
{
    watched = ctx;
}

static void put_text(const char *s)
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
    put_text(p);
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

/* 0: not known here. */
static uintptr_t stack_pointer(const ucontext_t *c)
{
#if defined(__x86_64__)
    return (uintptr_t)c->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
    return (uintptr_t)c->uc_mcontext.sp;
#else
    (void)c;
    return 0;
#endif
}

/* Beyond the end of the stack of the thread that runs hooks, from just below the stack pointer
 * on: a frame that has no room. */
static bool is_stack_overflow(const siginfo_t *info, const ucontext_t *c)
{
    uintptr_t at = (uintptr_t)info->si_addr, sp = stack_pointer(c);
    bool is_fault = (info->si_signo == SIGSEGV || info->si_signo == SIGBUS) && info->si_code > 0;
    return is_fault && gettid() == thread && sp && at < stack_low && at + BELOW_STACK >= sp;
}

static void put_stack_overflow(void)
{
    put_text("a stack overflow (of ");
    put_number((int64_t)(stack_bytes >> 10));
    put_text(
        " KiB: local arrays that are too large, which belong on the heap, or a recursion without "
        "end; `ulimit -s` sets the size)");
}

static void put_place(void)
{
    put_text(" in ");
    put_text(now_in ? now_in : "its end");
    if (at_batch >= 0) {
        put_text(", batch ");
        put_number(at_batch);
    }
}

static volatile sig_atomic_t early_status;

static void on_flush_stuck(int sig)
{
    (void)sig;
    counted_write();
    _exit(early_status);
}

/* A thread that waits for input in fgets() or getchar() holds its stream's lock, which the flush of
 * all streams waits for: the process ends all the same. */
static void flush_bounded(int status)
{
    struct sigaction sa = {.sa_handler = on_flush_stuck};
    sigset_t alarms;
    early_status = status;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    sigaction(SIGALRM, &sa, NULL);
    pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
    alarm(FLUSH_SECONDS);
    fflush(stdout); /* first: what the trial said goes out whatever another stream waits for */
    fflush(NULL);
}

/* Without a word the run would look as if it had failed for no reason, or as if it were done. And
 * the process ends here: what is destroyed after this may be in use by the thread that writes a
 * checkpoint. */
static void on_early_exit(int status, void *arg)
{
    (void)arg;
    if (!now_in || getpid() != owner)
        return;
    put_text("ERROR: det-harness: the trial called exit(");
    put_number(status);
    put_text(")");
    put_place();
    put_text(": return from there instead; det_trial_fail() ends the run as an error, "
             "det_trial_set_stop_requested() with a checkpoint\n");
    status = (status & 0xff) == 0 ? 1 : status; /* a parent sees the last byte only */
    flush_bounded(status);
    counted_write();
    _exit(status);
}

static void put_failure(void)
{
    static struct det_err err;
    struct det_trial_context *ctx = watched;
    watched = NULL; /* should this crash too */
    if (!ctx || !ctx->engine || trial_check(ctx, &err) == 0)
        return;
    put_text("; it had failed before that: ");
    put_text(err.text);
}

static void on_crash(int sig, siginfo_t *info, void *context)
{
    put_text("ERROR: det-harness: the trial crashed with ");
    if (is_stack_overflow(info, context))
        put_stack_overflow();
    else
        put_text(signal_words(sig));
    put_place();
    put_failure();
    put_text("\n");
    counted_write();
    raise(sig); /* SA_RESETHAND: this time the default action */
}

static void find_stack(void)
{
    pthread_attr_t a;
    void *low;
    if (pthread_getattr_np(pthread_self(), &a) != 0)
        return;
    if (pthread_attr_getstack(&a, &low, &stack_bytes) == 0)
        stack_low = (uintptr_t)low;
    pthread_attr_destroy(&a);
}

void trial_crash_install(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    static char memory[64 << 10];
    stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    struct sigaction sa = {.sa_sigaction = on_crash,
                           .sa_flags = (int)(SA_SIGINFO | SA_ONSTACK | SA_RESETHAND | SA_NODEFER)};
    char hex[HASH_HEX_MAX];
    owner = getpid();
    thread = gettid();
    find_stack();
    hash_bytes(HASH_SHA256, "", 0, hex); /* OpenSSL asks for its end: after ours */
    on_exit(on_early_exit, NULL);
    sigaltstack(&stack, NULL);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &sa, NULL);
}
