/* Every call of a step that can fail fails once, each in a process of its own: then either the
 * engine says so or the step has what it has otherwise, the next step has it in any case, and
 * nothing is left when the engine is gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "det/functional.h"
#include "device_reads.h"
#include "engine.h"
#include "include/cuda_runtime_api.h"
#include "mem.h"

enum { ENDS_WELL, NOT_REACHED, WRONG };
enum { LARGE = 100000 }; /* by way of the device's ring */

static struct det_tensor *to_device(struct det_engine *e, int64_t n, float value)
{
    struct det_tensor *host = det_host_tensor(DET_F32, 1, &n, NULL);
    float *v = det_tensor_data(host);
    for (int64_t i = 0; i < n; i++)
        v[i] = value + (float)(i % 3);
    struct det_tensor *x = det_to_device(e, host);
    for (int64_t i = 0; i < n; i++)
        v[i] = -1000;
    det_tensor_unref(host);
    return x;
}

/* A checkpoint's copy of t, fetched when t has changed; the sum of what came. */
static double save(struct det_engine *e, struct det_tensor *t)
{
    struct det_err err = {0};
    double ret = 0;
    if (!t)
        return 0;
    size_t n = det_tensor_numel(t);
    det_cleanup(freep) float *host = det_zalloc(n * sizeof *host);
    struct device_reads *r = device_reads_create(e);
    device_reads_add(r, t, host);
    int rc = device_reads_begin(r, &err);
    if (rc == 0)
        rc = det__run(e, &(struct det_call){.kernel = DET_KERNEL_FILL, .out = {t}}, &err);
    if (rc == 0)
        rc = device_reads_fetch(r, &err);
    if (rc < 0)
        det__keep_error(e, &err);
    for (size_t i = 0; i < n; i++)
        ret += host[i];
    device_reads_destroy(r);
    return ret;
}

/* Copies by way of the ring and beside it, kernels, cuBLAS, cuBLASLt and cuDNN, forwards and
 * backwards, what is read back, and what a checkpoint takes. */
static double step(struct det_engine *e)
{
    struct det_tensor *small = to_device(e, 75, 1);
    struct det_tensor *images = det_reshape(e, small, 4, (int64_t[]){1, 3, 5, 5});
    struct det_tensor *w =
        det_requires_grad(e, det_full(e, DET_F32, 4, (int64_t[]){2, 3, 3, 3}, 0.5));
    struct det_tensor *l = det_requires_grad(e, det_full(e, DET_F32, 2, (int64_t[]){8, 18}, 0.25));
    struct det_tensor *b = det_requires_grad(e, det_full(e, DET_F32, 1, (int64_t[]){8}, 1));
    struct det_tensor *y = det_conv2d(e, images, w, NULL, &(const struct det_conv2d_options){0});
    struct det_tensor *z = det_linear(e, det_reshape(e, y, 2, (int64_t[]){1, 18}), l, b);
    struct det_tensor *sums = det_sum(e, to_device(e, LARGE, 1));
    det_backward(e, det_sum(e, det_relu(e, z)));
    double ret = det_item(e, det_sum(e, det_tensor_grad(w)));
    ret += 1e-3 * det_item(e, det_sum(e, det_tensor_grad(l))) + det_item(e, sums);
    ret += save(e, det_tensor_grad(l));
    det_engine_step_end(e);
    return ret;
}

/* Of the module, which is loaded. */
static long *find_counts(const char *name)
{
    det_cleanup(freep) char *path =
        det_asprintf("%s/det_backend_cuda.so", getenv("DET_BACKEND_DIR"));
    void *module = dlopen(path, RTLD_NOW);
    long *ret = module ? dlsym(module, name) : NULL;
    if (!ret)
        _exit(WRONG);
    return ret;
}

static int complain(long n, const char *what, const struct det_err *err)
{
    fprintf(stderr, "call %ld: %s: %d %s\n", n, what, err->code, err->text);
    return WRONG;
}

static bool is_named(const struct det_err *err)
{
    return (err->code == DET_EDEVICE || err->code == DET_ENOMEM) && strstr(err->text, "cu") != NULL;
}

static int compare(struct det_engine *e, long n, double right)
{
    struct det_err err = {0};
    double got = step(e);
    int rc = det_engine_error(e, &err);
    if (rc < 0 && !is_named(&err))
        return complain(n, "in other words", &err);
    if (rc == 0 && got != right)
        return complain(n, "wrong, and nobody says so", &err);
    unsetenv("EMULATED_BREAKS");
    det_engine_clear_error(e);
    got = step(e);
    if (det_engine_error(e, &err) < 0 || got != right)
        return complain(n, "the next step is not right", &err);
    return ENDS_WELL;
}

/* right: NULL for the step's result itself, in *ret. */
static int use_engine(long n, const double *right, double *ret)
{
    struct det_engine *e;
    struct det_err err = {0};
    const struct det_engine_options o = {.device = "cuda", .seed = 1, .threads = 1};
    if (det_engine_create(&o, &e, &err) < 0)
        return is_named(&err) ? ENDS_WELL : complain(n, "not opened, in other words", &err);
    int code = ENDS_WELL;
    if (right)
        code = compare(e, n, *right);
    else
        *ret = step(e);
    det_engine_destroy(e);
    return code;
}

/* In a process of its own. */
static int break_call(long n, double right)
{
    struct det_err err = {0};
    const long *held = find_counts("emulated_held"), *broken = find_counts("emulated_broken");
    char text[24];
    snprintf(text, sizeof text, "%ld", n);
    setenv("EMULATED_BREAKS", text, 1);
    int code = use_engine(n, &right, NULL);
    for (int i = 0; i < EMULATED_THINGS; i++)
        if (held[i] != 0) {
            det_fail(&err, DET_EINVAL, "%ld of kind %d", held[i], i);
            code = complain(n, "not given back", &err);
        }
    return code == ENDS_WELL && *broken == 0 ? NOT_REACHED : code;
}

static void test_each_call_fails_once(void **state)
{
    int code = ENDS_WELL, wrong = 0;
    long n = 0;
    double right = 0;
    assert_int_equal(use_engine(0, NULL, &right), ENDS_WELL);
    while (code != NOT_REACHED && n < 5000) {
        int status;
        pid_t pid = fork();
        n++;
        if (pid == 0)
            _exit(break_call(n, right));
        assert_true(waitpid(pid, &status, 0) == pid);
        code = WIFEXITED(status) ? WEXITSTATUS(status) : WRONG;
        if (!WIFEXITED(status))
            fprintf(stderr, "call %ld: signal %d\n", n, WTERMSIG(status));
        wrong += code == WRONG;
    }
    assert_int_equal(wrong, 0);
    assert_true(n > 100); /* so many there are at the least */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_call_fails_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
