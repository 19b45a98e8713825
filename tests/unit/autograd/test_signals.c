/* A signal's handler never runs while a kernel computes: oneDNN's products keep a buffer of the
 * heap in the stack pointer, over which the handler's frame would be written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <dnnl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include "det/functional.h"

static char *stack_low, *stack_high; /* of the main thread */
static volatile sig_atomic_t handled, misplaced;

/* On a stack of its own, so that what it looks for does no harm here. */
static void on_alarm(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)info;
#if defined(__x86_64__)
    const ucontext_t *interrupted = context;
    char *sp = (char *)interrupted->uc_mcontext.gregs[REG_RSP];
    if (sp < stack_low || sp > stack_high)
        misplaced = misplaced + 1;
#else
    (void)context;
#endif
    handled = handled + 1;
}

static void find_stack(void)
{
    pthread_attr_t a;
    void *low;
    size_t n;
    assert_int_equal(pthread_getattr_np(pthread_self(), &a), 0);
    assert_int_equal(pthread_attr_getstack(&a, &low, &n), 0);
    pthread_attr_destroy(&a);
    stack_low = low;
    stack_high = stack_low + n;
}

static void every_us(suseconds_t us)
{
    const struct itimerval t = {.it_interval.tv_usec = us, .it_value.tv_usec = us};
    assert_int_equal(setitimer(ITIMER_REAL, &t, NULL), 0);
}

/* The calls into oneDNN, as this program is linked: whatever it compiles for this processor, they
 * are made with the signals held. */
static int calls, open_calls;

dnnl_status_t __real_dnnl_sgemm(char ta, char tb, dnnl_dim_t m, dnnl_dim_t n, dnnl_dim_t k,
                                float alpha, const float *a, dnnl_dim_t lda, const float *b,
                                dnnl_dim_t ldb, float beta, float *c, dnnl_dim_t ldc);
dnnl_status_t __wrap_dnnl_sgemm(char ta, char tb, dnnl_dim_t m, dnnl_dim_t n, dnnl_dim_t k,
                                float alpha, const float *a, dnnl_dim_t lda, const float *b,
                                dnnl_dim_t ldb, float beta, float *c, dnnl_dim_t ldc);
dnnl_status_t __real_dnnl_primitive_execute(const_dnnl_primitive_t p, dnnl_stream_t s, int n,
                                            const dnnl_exec_arg_t *args);
dnnl_status_t __wrap_dnnl_primitive_execute(const_dnnl_primitive_t p, dnnl_stream_t s, int n,
                                            const dnnl_exec_arg_t *args);

static bool held(int sig)
{
    sigset_t now;
    pthread_sigmask(SIG_BLOCK, NULL, &now);
    return sigismember(&now, sig) != 0;
}

static void count_call(void)
{
    calls++;
    open_calls += !held(SIGALRM) || !held(SIGINT) || held(SIGSEGV);
}

dnnl_status_t __wrap_dnnl_sgemm(char ta, char tb, dnnl_dim_t m, dnnl_dim_t n, dnnl_dim_t k,
                                float alpha, const float *a, dnnl_dim_t lda, const float *b,
                                dnnl_dim_t ldb, float beta, float *c, dnnl_dim_t ldc)
{
    count_call();
    return __real_dnnl_sgemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

dnnl_status_t __wrap_dnnl_primitive_execute(const_dnnl_primitive_t p, dnnl_stream_t s, int n,
                                            const dnnl_exec_arg_t *args)
{
    count_call();
    return __real_dnnl_primitive_execute(p, s, n, args);
}

/* Sums long enough for oneDNN to take its buffer from the heap; of so many rows a linear layer is a
 * primitive, a matmul is its sgemm. */
#define ROWS 128
#define SUM  (1 << 14)

static void products(struct det_engine *e, struct det_tensor *a, struct det_tensor *b)
{
    struct det_tensor *y = det_matmul(e, a, det_transpose(e, b, 0, 1));
    struct det_tensor *z = det_linear(e, a, b, NULL);
    assert_non_null(y);
    assert_non_null(z);
    det_engine_step_end(e);
}

static void test_handler_waits(void **state)
{
    (void)state;
    static char memory[256 << 10];
    const stack_t own = {.ss_sp = memory, .ss_size = sizeof memory};
    struct sigaction sa = {.sa_sigaction = on_alarm,
                           .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    stack_t before;
    struct det_engine *e;
    find_stack();
    assert_int_equal(det_engine_create(&(struct det_engine_options){.threads = 1}, &e, NULL), 0);
    struct det_tensor *a = det_zeros(e, DET_F32, 2, (int64_t[]){ROWS, SUM});
    struct det_tensor *b = det_zeros(e, DET_F32, 2, (int64_t[]){ROWS, SUM});
    det_tensor_ref(a);
    det_tensor_ref(b);
    sigaltstack(&own, &before);
    sigaction(SIGALRM, &sa, NULL);
    every_us(500);
    while (handled < 200) {
        products(e, a, b);
        assert_false(held(SIGALRM));
    }
    every_us(0);
    assert_true(calls > 0);
    assert_int_equal(open_calls, 0);
    sigaltstack(&before, NULL);
    assert_int_equal(misplaced, 0);
    det_tensor_unref(a);
    det_tensor_unref(b);
    det_engine_destroy(e);
}

/* How many other threads this process has, and how many of them would take an interrupt. */
static int other_threads(int *ret_open)
{
    char path[300], line[200];
    struct dirent *d;
    DIR *tasks = opendir("/proc/self/task");
    int n = 0;
    assert_non_null(tasks);
    *ret_open = 0;
    while ((d = readdir(tasks))) {
        if (d->d_name[0] == '.' || strtol(d->d_name, NULL, 10) == getpid())
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", d->d_name);
        FILE *f = fopen(path, "r");
        unsigned long long blocked = 0;
        while (f && fgets(line, sizeof line, f))
            if (sscanf(line, "SigBlk: %llx", &blocked) == 1)
                break;
        if (!f) /* it ended meanwhile */
            continue;
        fclose(f);
        n++;
        *ret_open += !(blocked >> (SIGINT - 1) & 1);
    }
    closedir(tasks);
    return n;
}

static void elements(struct det_engine *e, int64_t n)
{
    struct det_tensor *x = det_zeros(e, DET_F32, 1, &n);
    assert_non_null(det_exp(e, x));
    det_engine_step_end(e);
}

/* Nor do the threads that help: not those of the start, nor those that a loop over more parts than
 * the one before it starts. */
static void test_helpers_take_none(void **state)
{
#ifdef __SANITIZE_THREAD__
    skip(); /* one thread does all there: cpu_parallel.c */
#endif
    (void)state;
    struct det_engine *e;
    int open = 0;
    assert_int_equal(det_engine_create(&(struct det_engine_options){.threads = 4}, &e, NULL), 0);
    assert_true(other_threads(&open) >= 3);
    assert_int_equal(open, 0);
    for (int i = 0; i < 3; i++) {
        elements(e, 2 << 14);
        elements(e, 4 << 14);
        assert_true(other_threads(&open) >= 3);
        assert_int_equal(open, 0);
    }
    assert_false(held(SIGINT));
    det_engine_destroy(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handler_waits),
        cmocka_unit_test(test_helpers_take_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
