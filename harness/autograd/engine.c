/* The engine's life: device, stream, step, random state. */
#include "engine.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>

#include "autocast.h"
#include "mem.h"
#include "tape.h"

#define THREADS_MAX 1024

/* A whole number of the environment; 0 where it is not set. */
static int number_from(const char *name, uint64_t most, uint64_t *ret, struct det_err *err)
{
    const char *s = getenv(name);
    char *end;
    *ret = 0;
    if (!s || !*s)
        return 0;
    errno = 0;
    uint64_t n = strtoull(s, &end, 10);
    if (*s < '0' || *s > '9' || *end || errno || n > most)
        return det_fail(err, DET_EINVAL,
                        "%s is \"%s\"; write a whole number from 0 to %" PRIu64 ", without a unit",
                        name, s, most);
    *ret = n;
    return 0;
}

/* OMP_NUM_THREADS is OpenMP's, which takes lists too: its first number. */
static int threads_of_openmp(void)
{
    const char *s = getenv("OMP_NUM_THREADS");
    long n = s ? strtol(s, NULL, 10) : 0;
    return n > 0 && n <= THREADS_MAX ? (int)n : 0;
}

static int choose_threads(int asked, int *ret, struct det_err *err)
{
    cpu_set_t set;
    uint64_t wish;
    int rc = number_from("DET_THREADS_PER_SLOT", INT_MAX, &wish, err);
    int n = asked > 0 ? asked : wish > 0 ? (int)wish : threads_of_openmp();
    if (n == 0 && sched_getaffinity(0, sizeof set, &set) == 0)
        n = CPU_COUNT(&set);
    *ret = n < 1 ? 1 : n > THREADS_MAX ? THREADS_MAX : n;
    return rc;
}

static int open_device(struct det_engine *e, const char *name, size_t limit, struct det_err *err)
{
    int index;
    uint64_t wish;
    struct det_device_options o = {.threads = e->threads};
    int rc = number_from("DET_MEM_LIMIT", SIZE_MAX, &wish, err);
    if (rc < 0)
        return rc;
    rc = det_backend_find(name, &e->backend, &index, err);
    if (rc == 0)
        rc = e->backend->device_open(index, &o, &e->device, err);
    if (rc < 0)
        return det_wrap(err, rc, "device %s", name);
    e->pool = mem_pool_create(e->backend, e->device, limit ? limit : (size_t)wish);
    e->name = e->backend->host_memory ? det_strdup(e->backend->name)
                                      : det_asprintf("%s:%d", e->backend->name, index);
    return e->backend->stream_create(e->device, &e->stream, err);
}
DET_DEFINE_CLEANUP(struct det_engine *, det_engine_destroy)

int det_engine_create(const struct det_engine_options *options, struct det_engine **ret,
                      struct det_err *err)
{
    det_cleanup(det_engine_destroyp) struct det_engine *e = det_zalloc(sizeof *e);
    e->rng.seed = options->seed;
    e->tape = tape_create();
    int rc = choose_threads(options->threads, &e->threads, err);
    if (rc == 0)
        rc = open_device(e, options->device ? options->device : "cpu", options->mem_limit_bytes,
                         err);
    if (rc < 0)
        return rc;
    *ret = det_take(e);
    return 0;
}

static void free_dead(struct det_engine *e)
{
    for (size_t i = 0; i < e->dead.n; i++)
        free(e->dead.v[i]);
    e->dead.n = 0;
}

void det_engine_destroy(struct det_engine *e)
{
    if (!e)
        return;
    if (e->stream)
        e->backend->stream_sync(e->stream, NULL);
    det_engine_step_end(e);
    autocast_forget(e);
    free_dead(e);
    vec_free(&e->step);
    vec_free(&e->dead);
    vec_free(&e->casts);
    vec_free(&e->cast_before);
    vec_free(&e->autocast);
    tape_destroy(e->tape);
    if (e->stream)
        e->backend->stream_destroy(e->stream);
    mem_pool_destroy(e->pool);
    free(e->name);
    free(e);
}

void det_engine_step_end(struct det_engine *e)
{
    autocast_clear(e);
    tape_clear(e->tape);
    free_dead(e);
    for (size_t i = 0; i < e->step.n; i++)
        if (det__tensor_end(e->step.v[i]))
            vec_push(&e->dead, e->step.v[i]);
    e->step.n = 0;
    autocast_prune(e);
}

struct det_tensor *det__keep(struct det_engine *e, struct det_tensor *t)
{
    vec_push(&e->step, t);
    return t;
}

size_t det__step_mark(const struct det_engine *e)
{
    return e->step.n;
}

void det__step_drop(struct det_engine *e, size_t mark, const struct det_tensor *t)
{
    size_t kept = mark;
    for (size_t i = mark; i < e->step.n; i++) {
        struct det_tensor *one = e->step.v[i];
        if (one == t)
            e->step.v[kept++] = one;
        else
            det_tensor_unref(one);
    }
    e->step.n = kept;
}

int det_engine_sync(struct det_engine *e)
{
    struct det_err err;
    if (e->backend->stream_sync(e->stream, &err) < 0)
        return det__keep_error(e, &err);
    return 0;
}

const char *det_engine_device(const struct det_engine *e)
{
    return e->name;
}

int det_engine_threads(const struct det_engine *e)
{
    return e->threads;
}

size_t det_engine_mem_bytes(const struct det_engine *e)
{
    return mem_pool_bytes(e->pool);
}

size_t det_engine_mem_peak_bytes(const struct det_engine *e)
{
    return mem_pool_peak_bytes(e->pool);
}

struct det_rng_state det_engine_rng_state(const struct det_engine *e)
{
    return e->rng;
}

void det_engine_set_rng_state(struct det_engine *e, struct det_rng_state state)
{
    e->rng = state;
}

void det__draw(struct det_engine *e, struct det_attrs *a)
{
    a->seed = e->rng.seed;
    a->call = e->rng.calls++;
}

void det_no_grad_begin(struct det_engine *e)
{
    e->no_grad++;
}

void det_no_grad_end(struct det_engine *e)
{
    if (e->no_grad > 0)
        e->no_grad--;
}

bool det_grad_enabled(const struct det_engine *e)
{
    return e->no_grad == 0;
}
