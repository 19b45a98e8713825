#include "cuda_profile.h"

#include <stdio.h>
#include <string.h>

#include "map.h"
#include "mem.h"

#define PENDING_MAX 1024 /* calls whose events are not read yet */
#define FIRST_CALLS 3    /* of a row, that are not counted */
#define ROWS_MAX    80   /* that are printed */

/* A kernel, all shapes together or one. */
struct row {
    char name[200];
    long seen, calls;
    double us, least_us;
};

struct pending {
    struct row *kernel, *shapes;
    cudaEvent_t from, to;
    bool counts;
};

static const struct det_backend *plain;
static struct map *kernels, *shapes; /* name -> struct row, owned; NULL: none yet */
static struct pending pending[PENDING_MAX];
static int pending_n;
static double gaps_us; /* from one call's end to the next one's begin */

static struct row *row_of(struct map **m, const char *name)
{
    if (!*m)
        *m = map_create();
    struct row *r = map_get(*m, name);
    if (r)
        return r;
    r = det_zalloc(sizeof *r);
    snprintf(r->name, sizeof r->name, "%s", name);
    (void)map_put(*m, name, r);
    return r;
}

/* "bf16[64,3]" */
static size_t add_tensor(char *out, size_t n, const struct det_tensor *t)
{
    size_t at = (size_t)snprintf(out, n, " %s[", det_dtype_name(t->dtype));
    for (int i = 0; i < t->ndim && at < n; i++)
        at += (size_t)snprintf(out + at, n - at, "%s%lld", i ? "," : "", (long long)t->dims[i]);
    return at < n ? at + (size_t)snprintf(out + at, n - at, "]") : at;
}

/* The kernel's name and function, the first two inputs, the first output. */
static void text_of(const struct det_call *c, char *out, size_t n)
{
    const struct det_tensor *shown[] = {c->in[0], c->in[1], c->out[0]};
    size_t at = (size_t)snprintf(out, n, "%s", cuda_kernel_name(c->kernel));
    if (c->a.fn)
        at += (size_t)snprintf(out + at, n - at, "/%d", c->a.fn);
    for (int i = 0; i < 3 && at < n; i++) {
        if (i == 2 && at + 4 < n)
            at += (size_t)snprintf(out + at, n - at, " ->");
        if (shown[i] && at < n)
            at += add_tensor(out + at, n - at, shown[i]);
    }
}

static void count_call(struct row *r, double us)
{
    r->least_us = r->calls == 0 || us < r->least_us ? us : r->least_us;
    r->us += us;
    r->calls++;
}

static double passed_us(cudaEvent_t from, cudaEvent_t to)
{
    float ms = 0;
    return cudaEventElapsedTime(&ms, from, to) == cudaSuccess ? (double)ms * 1e3 : 0;
}

/* Reads the events of what is pending; waits for the last one. */
static void settle_pending(void)
{
    if (pending_n == 0)
        return;
    cudaEventSynchronize(pending[pending_n - 1].to);
    for (int i = 0; i < pending_n; i++) {
        struct pending *p = &pending[i];
        double us = passed_us(p->from, p->to);
        if (p->counts) {
            count_call(p->kernel, us);
            count_call(p->shapes, us);
            gaps_us += i > 0 ? passed_us(pending[i - 1].to, p->from) : 0;
        }
    }
    pending_n = 0;
    (void)cudaGetLastError();
}

/* Another device's stream takes no events of the first one's: its calls are not timed, and must not
 * fail by it. */
static void record_event(cudaEvent_t event, struct det_stream *s)
{
    if (cudaEventRecord(event, s->native) != cudaSuccess)
        (void)cudaGetLastError();
}

/* An event before what comes now, in the row of a call and its text. */
static struct pending *begin_timing(struct det_stream *s, const struct det_call *c,
                                    const char *text)
{
    if (pending_n == PENDING_MAX)
        settle_pending();
    struct pending *p = &pending[pending_n++];
    p->shapes = row_of(&shapes, text);
    p->kernel = row_of(&kernels, cuda_kernel_name(c->kernel));
    p->counts = p->shapes->seen++ >= FIRST_CALLS;
    if (!p->from) {
        cudaEventCreateWithFlags(&p->from, cudaEventDefault);
        cudaEventCreateWithFlags(&p->to, cudaEventDefault);
    }
    record_event(p->from, s);
    return p;
}

static int end_timing(struct det_stream *s, struct pending *p, int rc)
{
    record_event(p->to, s);
    return rc;
}

static int run_timed(struct det_stream *s, const struct det_call *c, det_kernel_fn *fn,
                     struct det_err *err)
{
    char text[200];
    text_of(c, text, sizeof text);
    struct pending *p = begin_timing(s, c, text);
    return end_timing(s, p, fn(s, c, err));
}

static int timed_steps(struct det_stream *s, const struct det_call *c, size_t n,
                       struct det_err *err)
{
    char text[64];
    snprintf(text, sizeof text, "%s of %zu parameters", cuda_kernel_name(c->kernel), n);
    struct pending *p = begin_timing(s, c, text);
    return end_timing(s, p, plain->steps(s, c, n, err));
}

static int timed_kernel(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    return run_timed(s, c, plain->kernels[c->kernel], err);
}

static int timed_kernel_f64(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    return run_timed(s, c, plain->kernels_f64[c->kernel], err);
}

const struct det_backend *cuda_profile_table(const struct det_backend *b)
{
    static struct det_backend told;
    const char *wanted = getenv("DET_CUDA_PROFILE");
    if (!wanted || strcmp(wanted, "1") != 0)
        return b;
    plain = b;
    told = *b;
    told.steps = b->steps ? timed_steps : NULL;
    for (int i = 0; i < DET_KERNEL_COUNT; i++)
        told.kernels[i] = b->kernels[i] ? timed_kernel : NULL;
    for (int i = 0; i < DET_KERNEL_REAL_COUNT; i++)
        told.kernels_f64[i] = b->kernels_f64[i] ? timed_kernel_f64 : NULL;
    return &told;
}

/* ---- the table ---- */

static int by_time(const void *a, const void *b)
{
    const struct row *x = *(struct row *const *)a, *y = *(struct row *const *)b;
    return x->us < y->us ? 1 : x->us > y->us ? -1 : 0;
}

/* The slowest rows first; gives back what the map owns. */
static void print_table(struct map **m, const char *title)
{
    size_t n = 0, it = 0;
    const char *key;
    void *value;
    double all = 0;
    struct row **sorted = det_zalloc((map_size(*m) + 1) * sizeof *sorted);
    while (map_next(*m, &it, &key, &value)) {
        sorted[n++] = value;
        all += sorted[n - 1]->us;
    }
    qsort(sorted, n, sizeof *sorted, by_time);
    fprintf(stderr, "%10s %8s %10s %10s %6s  %s\n", "us", "calls", "us/call", "least", "%", title);
    for (size_t i = 0; i < n; i++) {
        struct row *r = sorted[i];
        if (i < ROWS_MAX && r->calls > 0)
            fprintf(stderr, "%10.0f %8ld %10.2f %10.2f %6.2f  %s\n", r->us, r->calls,
                    r->us / (double)r->calls, r->least_us, all > 0 ? 100 * r->us / all : 0,
                    r->name);
        free(r);
    }
    fprintf(stderr, "%10.0f in all\n", all);
    free(sorted);
    map_destroy(*m);
    *m = NULL;
}

void cuda_profile_finish(void)
{
    if (!kernels)
        return;
    settle_pending();
    print_table(&shapes, "kernel and shapes");
    print_table(&kernels, "kernel");
    fprintf(stderr, "%10.0f between them: copies, and waits for the host\n", gaps_us);
    gaps_us = 0;
    for (int i = 0; i < PENDING_MAX && pending[i].from; i++) {
        cudaEventDestroy(pending[i].from);
        cudaEventDestroy(pending[i].to);
        pending[i] = (struct pending){0};
    }
}
