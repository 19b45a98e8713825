/* The cache of primitives: a hash table with chains, as large as a model has shapes. */
#include "dnnl_prim.h"

#include <string.h>

#include "mem.h"
#include "ref.h"

#define BUCKETS 256

struct prim_arg {
    int arg;
    bool output;
    dnnl_memory_t user, own; /* own: oneDNN's order, NULL where it is the user's */
    size_t own_bytes;
    dnnl_primitive_t reorder; /* user -> own, or own -> user for an output */
};

/* What lies in oneDNN's order, and what it works in, lives for one call only, so all primitives
 * share the memory: one piece for each place among their tensors, and one to work in. */
struct scratch {
    void *data;
    size_t bytes;
    const void *of;  /* the caller's bytes that the last run put in order here, or NULL */
    seam_md_t order; /* that order; of a primitive, and these live as long as the cache */
};

struct prim {
    struct prim_key key;
    struct prim *next;
    dnnl_primitive_t primitive;
    dnnl_memory_t scratchpad; /* NULL where it needs none, or has its own */
    size_t scratchpad_bytes;
    int n;
    struct prim_arg args[PRIM_ARGS_MAX];
};

struct prim_cache {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    struct prim *buckets[BUCKETS];
    struct scratch scratch[PRIM_ARGS_MAX], scratchpad;
};

int prim_check(dnnl_status_t status, const char *what, struct det_err *err)
{
    switch ((int)status) {
    case dnnl_success: return 0;
    case dnnl_out_of_memory: return det_fail(err, DET_ENOMEM, "oneDNN: %s: out of memory", what);
    case dnnl_unimplemented:
        return det_fail(err, DET_EUNIMPL, "oneDNN: %s: not supported for this shape", what);
    default: return det_fail(err, DET_EDEVICE, "oneDNN: %s: status %d", what, (int)status);
    }
}

static void prim_destroy(struct prim *p)
{
    if (!p)
        return;
    for (int i = 0; i < p->n; i++) {
        dnnl_primitive_destroy(p->args[i].reorder);
        dnnl_memory_destroy(p->args[i].user);
        dnnl_memory_destroy(p->args[i].own);
    }
    dnnl_memory_destroy(p->scratchpad);
    dnnl_primitive_destroy(p->primitive);
    free(p);
}
DET_DEFINE_CLEANUP(struct prim *, prim_destroy)

static void scratch_free(struct scratch *s)
{
    ref_mem_free(NULL, s->data, s->bytes);
}

void prim_cache_destroy(struct prim_cache *cache)
{
    if (!cache)
        return;
    for (int i = 0; i < BUCKETS; i++)
        for (struct prim *p = cache->buckets[i], *next; p; p = next) {
            next = p->next;
            prim_destroy(p);
        }
    for (int i = 0; i < PRIM_ARGS_MAX; i++)
        scratch_free(&cache->scratch[i]);
    scratch_free(&cache->scratchpad);
    dnnl_stream_destroy(cache->stream);
    dnnl_engine_destroy(cache->engine);
    free(cache);
}
DET_DEFINE_CLEANUP(struct prim_cache *, prim_cache_destroy)

int prim_cache_create(struct prim_cache **ret, struct det_err *err)
{
    det_cleanup(prim_cache_destroyp) struct prim_cache *c = det_zalloc(sizeof *c);
    int rc = prim_check(dnnl_engine_create(&c->engine, dnnl_cpu, 0), "create the engine", err);
    if (rc == 0)
        rc = prim_check(dnnl_stream_create(&c->stream, c->engine, dnnl_stream_in_order),
                        "create the stream", err);
    if (rc < 0)
        return rc;
    *ret = det_take(c);
    return 0;
}

dnnl_status_t prim_attr(dnnl_primitive_attr_t *ret)
{
    dnnl_status_t st = dnnl_primitive_attr_create(ret);
    if (st == dnnl_success)
        st = dnnl_primitive_attr_set_scratchpad_mode(*ret, dnnl_scratchpad_mode_user);
    return st;
}

dnnl_engine_t prim_cache_engine(struct prim_cache *cache)
{
    return cache->engine;
}

static unsigned bucket_of(const struct prim_key *key)
{
    const unsigned char *bytes = (const unsigned char *)key;
    uint32_t h = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < sizeof *key; i++)
        h = (h ^ bytes[i]) * 16777619u;
    return (h ^ (h >> 16)) % BUCKETS;
}

int prim_get(struct prim_cache *cache, const struct prim_key *key, prim_make_fn *make,
             struct prim **ret, struct det_err *err)
{
    struct prim **bucket = &cache->buckets[bucket_of(key)];
    for (struct prim *p = *bucket; p; p = p->next)
        if (memcmp(&p->key, key, sizeof *key) == 0) {
            *ret = p;
            return 0;
        }
    det_cleanup(prim_destroyp) struct prim *p = det_zalloc(sizeof *p);
    p->key = *key;
    int rc = make(cache, key, p, err);
    if (rc < 0)
        return rc;
    p->next = *bucket;
    *bucket = p;
    *ret = det_take(p);
    return 0;
}

static int make_reorder(struct prim_cache *cache, struct prim_arg *a, seam_md_t user, seam_md_t own,
                        struct det_err *err)
{
    dnnl_primitive_desc_t pd = NULL;
    a->own_bytes = dnnl_memory_desc_get_size(own);
    int rc = prim_check(dnnl_memory_create(&a->own, own, cache->engine, DNNL_MEMORY_NONE),
                        "describe a reordered tensor", err);
    if (rc < 0)
        return rc;
    rc = prim_check(dnnl_reorder_primitive_desc_create(&pd, a->output ? own : user, cache->engine,
                                                       a->output ? user : own, cache->engine, NULL),
                    "describe a reorder", err);
    if (rc == 0)
        rc = prim_check(dnnl_primitive_create(&a->reorder, pd), "create a reorder", err);
    dnnl_primitive_desc_destroy(pd);
    return rc;
}

static seam_md_t order_of(const_dnnl_memory_t memory)
{
    seam_md_t md = NULL;
    dnnl_memory_get_memory_desc(memory, &md);
    return md;
}

static int make_arg(struct prim_cache *cache, struct prim_arg *a, const_dnnl_primitive_desc_t pd,
                    const struct prim_arg_spec *spec, struct det_err *err)
{
    seam_md_t own = dnnl_primitive_desc_query_md(pd, spec->query, 0);
    if (spec->query == dnnl_query_exec_arg_md)
        own = dnnl_primitive_desc_query_md(pd, spec->query, spec->arg);
    a->arg = spec->arg;
    a->output = spec->output;
    int rc =
        prim_check(seam_memory(&a->user, cache->engine, &spec->user), "describe a tensor", err);
    if (rc < 0 || dnnl_memory_desc_equal(own, order_of(a->user)))
        return rc;
    return make_reorder(cache, a, order_of(a->user), own, err);
}

static int make_scratchpad(struct prim_cache *cache, struct prim *p, const_dnnl_primitive_desc_t pd,
                           struct det_err *err)
{
    seam_md_t md = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    p->scratchpad_bytes = md ? dnnl_memory_desc_get_size(md) : 0;
    if (p->scratchpad_bytes == 0)
        return 0;
    return prim_check(dnnl_memory_create(&p->scratchpad, md, cache->engine, DNNL_MEMORY_NONE),
                      "describe a scratchpad", err);
}

int prim_build(struct prim_cache *cache, struct prim *p, const_dnnl_primitive_desc_t pd,
               const struct prim_arg_spec *specs, int n, struct det_err *err)
{
    int rc = prim_check(dnnl_primitive_create(&p->primitive, pd), "create a primitive", err);
    if (rc == 0)
        rc = make_scratchpad(cache, p, pd, err);
    for (int i = 0; rc == 0 && i < n; i++) {
        p->n = i + 1;
        rc = make_arg(cache, &p->args[i], pd, &specs[i], err);
    }
    return rc;
}

static int run_reorder(struct prim_cache *cache, struct prim_arg *a, struct det_err *err)
{
    dnnl_exec_arg_t args[2] = {{DNNL_ARG_FROM, a->output ? a->own : a->user},
                               {DNNL_ARG_TO, a->output ? a->user : a->own}};
    return prim_check(dnnl_primitive_execute(a->reorder, cache->stream, 2, args), "reorder", err);
}

/* Tensors' memory: oneDNN's own would lie on small pages, which costs a tenth of its speed. */
static int lend_memory(struct scratch *s, size_t bytes, dnnl_memory_t to, struct det_err *err)
{
    if (s->bytes < bytes) {
        scratch_free(s);
        *s = (struct scratch){0};
        int rc = ref_mem_alloc(NULL, bytes, &s->data, err);
        if (rc < 0)
            return det_wrap(err, rc, "what oneDNN puts in order, or works in");
        s->bytes = bytes;
    }
    return prim_check(dnnl_memory_set_data_handle(to, s->data), "set a tensor's bytes", err);
}

/* Brings a tensor into oneDNN's order before the primitive runs: `data`, unless it is `same` and
 * lies there already. */
static int lend_own(struct prim_cache *cache, struct prim_arg *a, struct scratch *s,
                    const void *data, const void *same, struct det_err *err)
{
    bool there =
        same && data == same && s->of == same && dnnl_memory_desc_equal(s->order, order_of(a->own));
    int rc = lend_memory(s, a->own_bytes, a->own, err);
    s->of = NULL;
    if (rc == 0 && a->reorder && !a->output && !there)
        rc = run_reorder(cache, a, err);
    if (rc == 0 && a->reorder && !a->output) {
        s->of = data;
        s->order = order_of(a->own);
    }
    return rc;
}

static int prepare_args(struct prim_cache *cache, struct prim *p, void *const *data,
                        const void *same, struct det_err *err)
{
    int rc = p->scratchpad
                 ? lend_memory(&cache->scratchpad, p->scratchpad_bytes, p->scratchpad, err)
                 : 0;
    for (int i = 0; rc == 0 && i < PRIM_ARGS_MAX; i++) {
        struct prim_arg *a = &p->args[i];
        if (i < p->n)
            rc = prim_check(dnnl_memory_set_data_handle(a->user, data[i]), "set a tensor's bytes",
                            err);
        if (rc == 0 && a->own)
            rc = lend_own(cache, a, &cache->scratch[i], data[i], same, err);
        else
            cache->scratch[i].of = NULL;
    }
    return rc;
}

static int execute_prim(struct prim_cache *cache, struct prim *p, void *const *data,
                        const void *same, struct det_err *err)
{
    dnnl_exec_arg_t args[PRIM_ARGS_MAX + 1];
    int n = p->n;
    for (int i = 0; i < p->n; i++)
        args[i] =
            (dnnl_exec_arg_t){p->args[i].arg, p->args[i].own ? p->args[i].own : p->args[i].user};
    if (p->scratchpad)
        args[n++] = (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, p->scratchpad};
    int rc = prepare_args(cache, p, data, same, err);
    if (rc == 0)
        rc = prim_check(dnnl_primitive_execute(p->primitive, cache->stream, n, args), "execute",
                        err);
    for (int i = 0; rc == 0 && i < p->n; i++)
        if (p->args[i].reorder && p->args[i].output)
            rc = run_reorder(cache, &p->args[i], err);
    if (rc == 0)
        rc = prim_check(dnnl_stream_wait(cache->stream), "wait", err);
    return rc;
}

int prim_run_same(struct prim_cache *cache, struct prim *p, void *const *data, const void *same,
                  struct det_err *err)
{
    sigset_t signals;
    cpu_hold_signals(&signals);
    int rc = execute_prim(cache, p, data, same, err);
    cpu_release_signals(&signals);
    return rc;
}

int prim_run(struct prim_cache *cache, struct prim *p, void *const *data, struct det_err *err)
{
    return prim_run_same(cache, p, data, NULL, err);
}

dnnl_status_t prim_sgemm(char trans_a, char trans_b, int64_t m, int64_t n, int64_t k, float alpha,
                         const float *a, int64_t lda, const float *b, int64_t ldb, float beta,
                         float *y, int64_t ldy)
{
    sigset_t signals;
    cpu_hold_signals(&signals);
    dnnl_status_t rc = dnnl_sgemm(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, y, ldy);
    cpu_release_signals(&signals);
    return rc;
}
