/*
 * Every case of every operation: a backend against the reference (values and gradients), the
 * reference's gradients by central differences in f64, and the same bits at every run. The function
 * that is differentiated is sum(weights * op(inputs)).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hash.h"
#include "mem.h"
#include "op.h"
#include "op_case.h"
#include "op_compare.h"
#include "op_result.h"

#define PROBES 12 /* elements of an input that are differentiated numerically */
#define STEP   1e-6

/* "cpu", or what DET_OPS_DEVICE says: tests/gpu/run says "cuda". */
static const char *device_under_test(void)
{
    const char *wish = getenv("DET_OPS_DEVICE");
    return wish ? wish : "cpu";
}

/* What else is to be said of the device: that its kernels are emulated, say. */
static const char *note(void)
{
    return getenv("DET_OPS_NOTE");
}

static struct det_engine *engine_of(const char *device, int threads)
{
    struct det_engine *e;
    struct det_err err;
    const struct det_engine_options o = {.device = device, .seed = 5, .threads = threads};
    if (det_engine_create(&o, &e, &err) < 0)
        fail_msg("%s", err.text);
    return e;
}

static struct det_engine *engine(const char *device)
{
    return engine_of(device, 2);
}

static void run(struct det_engine *e, const struct op_case *c, struct result *r)
{
    struct det_err err;
    if (result_of(e, c, r, &err) < 0)
        fail_msg("%s", err.text);
}

/* Nothing above the tables falls back on other kernels. */
static void test_the_device_has_all_kernels(void **state)
{
    (void)state;
    struct det_engine *tested = engine(device_under_test());
    for (int k = 0; k < DET_KERNEL_COUNT; k++)
        if (!tested->backend->kernels[k])
            fail_msg("%s: no kernel %s", tested->name, det_kernel_name((enum det_kernel)k));
    for (int k = 0; k < DET_KERNEL_REAL_COUNT; k++)
        if (!tested->backend->kernels_f64[k])
            fail_msg("%s: no %s for f64", tested->name, det_kernel_name((enum det_kernel)k));
    det_engine_destroy(tested);
}

static void test_what_the_device_lacks_is_named(void **state)
{
    (void)state;
    struct det_engine *tested = engine(device_under_test());
    struct det_backend less = *tested->backend;
    struct det_tensor *x = det_zeros(tested, DET_F64, 2, (int64_t[]){2, 3});
    struct det_err err = {0};
    less.kernels_f64[DET_KERNEL_LINEAR] = NULL;
    tested->backend = &less;
    det_linear(tested, x, x, NULL);
    assert_int_equal(det_engine_error(tested, &err), DET_EUNIMPL);
    assert_non_null(strstr(err.text, "has no kernel linear for float64"));
    det_engine_destroy(tested);
}

/* What a device has not enough memory for is said, and the next thing asked of it works. */
static void test_memory_that_is_not_there(void **state)
{
    (void)state;
    if (strcmp(device_under_test(), "cpu") == 0)
        skip(); /* Linux may promise a host's memory, and take it as it is used */
    struct det_engine *one = engine(device_under_test()), *next = engine(device_under_test());
    struct det_err err = {0};
    det_zeros(one, DET_F32, 2, (int64_t[]){1 << 19, 1 << 18}); /* 512 GiB */
    if (det_engine_error(one, &err) != DET_ENOMEM || !strstr(err.text, "memory"))
        fail_msg("%d: %s", err.code, err.text);
    struct det_tensor *x = det_full(next, DET_F32, 1, (int64_t[]){5}, 2);
    double got = det_item(next, det_sum(next, det_relu(next, x)));
    if (det_engine_error(next, &err) < 0)
        fail_msg("%s", err.text);
    assert_true(got == 10);
    det_engine_destroy(one);
    det_engine_destroy(next);
}

static void compare(enum op_compare how, const char *as)
{
    int compared = 0, failed = op_compare_all(how, device_under_test(), &compared);
    if (failed != 0)
        fail_msg("%d of %d cases are not %s", failed, compared, as);
    print_message("%s%s%s: %d cases %s\n", device_under_test(), note() ? ", " : "",
                  note() ? note() : "", compared, as);
}

static void test_device_equals_ref(void **state)
{
    (void)state;
    compare(OP_COMPARE_REF, "as the reference");
}

/* sum(weights * op(inputs)) with one element of one input moved, in f64. */
static double value_at(struct det_engine *e, const struct op_case *c, int which, int64_t where,
                       double nudge)
{
    struct case_run run;
    det_cleanup(result_finish) struct result r = {0};
    double total = 0;
    struct det_err err;
    case_run_nudged(e, c, &run, which, where, nudge);
    if (det_engine_error(e, &err) < 0 || result_take(&r, 0, run.y, &err) < 0 ||
        result_take(&r, 1, run.weights, &err) < 0)
        fail_msg("%s (%s): %s", c->op, c->what, err.text);
    for (size_t i = 0; i < r.n[0]; i++)
        total += result_at(&r, 0, i) * result_at(&r, 1, i);
    det_engine_step_end(e);
    return total;
}

static void check_input(struct det_engine *e, const struct op_case *c, int which,
                        const struct result *r)
{
    double scale = 0.05;
    size_t n = r->n[which + 1];
    for (size_t i = 0; i < n; i++)
        scale = fmax(scale, fabs(result_at(r, which + 1, i)));
    int compared = 0, tried = 0;
    for (size_t p = 0; p < PROBES && p < n; p++, tried++) {
        size_t where = (p * 7919 + 3) % n;
        double here = value_at(e, c, which, (int64_t)where, 0);
        double up = (value_at(e, c, which, (int64_t)where, STEP) - here) / STEP;
        double down = (here - value_at(e, c, which, (int64_t)where, -STEP)) / STEP;
        if (fabs(up - down) > 1e-2 * scale)
            continue; /* a kink of a ReLU or a maximum lies between: no gradient to compare with */
        compared++;
        if (fabs((up + down) / 2 - result_at(r, which + 1, where)) > 1e-5 * scale)
            fail_msg("%s (%s), input %d, element %zu: gradient %g, by differences %g", c->op,
                     c->what, which + 1, where, result_at(r, which + 1, where), (up + down) / 2);
    }
    if (tried >= 4 && 2 * compared < tried)
        fail_msg("%s (%s), input %d: only %d of %d elements are smooth", c->op, c->what, which + 1,
                 compared, tried);
}

static void test_gradients_by_differences(void **state)
{
    (void)state;
    const struct op_case *c;
    if (strcmp(device_under_test(), "cpu") != 0)
        skip(); /* it is the reference that is differentiated: once is enough */
    struct det_engine *ref = engine("ref");
    for (int i = 0; (c = op_case_at(i)); i++) {
        det_cleanup(result_finish) struct result r = {0};
        if (strstr(c->what, "large"))
            continue; /* the small ones say the same */
        run(ref, c, &r);
        for (int k = 0; k < CASE_INPUTS_MAX; k++)
            if (r.v[k + 1] && r.dtype[k + 1] == DET_F64 && r.dtype[0] == DET_F64)
                check_input(ref, c, k, &r);
    }
    det_engine_destroy(ref);
}

static void test_every_operation_has_a_case(void **state)
{
    (void)state;
    for (int i = 0; i < OP_COUNT; i++) {
        bool found = false;
        for (int k = 0; op_case_at(k); k++)
            found = found || strcmp(op_case_at(k)->op, op_table[i].name) == 0;
        if (!found)
            fail_msg("operation %s has no case in tests/ops/cases_*.c", op_table[i].name);
    }
}

static void test_same_bits_twice(void **state)
{
    (void)state;
    compare(OP_COMPARE_TWICE, "the same twice");
}

/* All cases of doubles, with an engine of so many threads; the caller owns the results. */
static struct result *f64_results(int threads, int *ret_n)
{
    struct result *all = NULL;
    struct det_engine *e = engine_of("cpu", threads);
    *ret_n = 0;
    for (int i = 0; op_case_at(i); i++) {
        if (strncmp(op_case_at(i)->what, "f64", 3) != 0)
            continue;
        all = det_reallocarray(all, (size_t)(*ret_n + 1), sizeof *all);
        all[*ret_n] = (struct result){0};
        run(e, op_case_at(i), &all[(*ret_n)++]);
    }
    det_engine_destroy(e);
    return all;
}

/* oneDNN divides its work as it likes; what is ours, and all of f64, has the bits of one thread. */
static void test_f64_has_the_bits_of_one_thread(void **state)
{
    (void)state;
    int n, m;
    if (strcmp(device_under_test(), "cpu") != 0)
        skip();
    struct result *one = f64_results(1, &n), *three = f64_results(3, &m);
    assert_int_equal(n, m);
    assert_true(n > 0);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k <= CASE_INPUTS_MAX; k++)
            if (one[i].v[k])
                assert_memory_equal(one[i].v[k], three[i].v[k], result_bytes(&one[i], k));
        result_finish(&one[i]);
        result_finish(&three[i]);
    }
    free(one);
    free(three);
}

/* One hash of everything that all cases gave. */
static void all_results(char hex[HASH_HEX_MAX])
{
    struct det_engine *tested = engine(device_under_test());
    struct hash *h = hash_create(HASH_SHA256);
    for (int i = 0; op_case_at(i); i++) {
        det_cleanup(result_finish) struct result r = {0};
        run(tested, op_case_at(i), &r);
        for (int k = 0; k <= CASE_INPUTS_MAX; k++)
            hash_add(h, r.v[k] ? r.v[k] : "", result_bytes(&r, k));
    }
    hash_end(h, hex);
    det_engine_destroy(tested);
}

/* What this program prints when it is run with --hash. */
static void ask_another_process(char hex[HASH_HEX_MAX])
{
    int pipe_fds[2], status;
    char *argv[] = {(char[]){"test_ops"}, (char[]){"--hash"}, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    assert_int_equal(pipe(pipe_fds), 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], 1);
    assert_int_equal(posix_spawn(&pid, "/proc/self/exe", &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(pipe_fds[1]);
    ssize_t n = read(pipe_fds[0], hex, HASH_HEX_MAX - 1);
    hex[n > 0 ? n : 0] = '\0';
    close(pipe_fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void test_same_bits_in_two_processes(void **state)
{
    (void)state;
    char a[HASH_HEX_MAX], b[HASH_HEX_MAX];
    all_results(a);
    ask_another_process(b);
    assert_string_equal(a, b);
}

int main(int argc, char **argv)
{
    if (op_compare_main(argc, argv))
        return 0;
    if (getenv("DET_OPS_LONG") && (!getenv("DET_TEST_LONG") || getenv("DET_SANITIZED")))
        return 77; /* minutes */
    if (argc == 2 && strcmp(argv[1], "--hash") == 0) {
        char hex[HASH_HEX_MAX];
        all_results(hex);
        return write(1, hex, strlen(hex)) < 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_operation_has_a_case),
        cmocka_unit_test(test_device_equals_ref),
        cmocka_unit_test(test_gradients_by_differences),
        cmocka_unit_test(test_same_bits_twice),
        cmocka_unit_test(test_f64_has_the_bits_of_one_thread),
        cmocka_unit_test(test_same_bits_in_two_processes),
        cmocka_unit_test(test_the_device_has_all_kernels),
        cmocka_unit_test(test_what_the_device_lacks_is_named),
        cmocka_unit_test(test_memory_that_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
