#include "effects.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The first chunk; each next one is twice as large. Many small ones, freed, would be holes between
 * what the step made to stay. */
#define CHUNK_BYTES     ((size_t)4096)
#define CHUNK_BYTES_MAX ((size_t)512 << 10)

struct core_chunk {
    struct core_chunk *next;
    size_t used, size;
    _Alignas(16) char data[];
};

static struct core_chunk *chunk_add(struct core_effects *out, size_t bytes)
{
    const struct core_chunk *last = out->chunks;
    size_t size = last ? last->size * 2 : CHUNK_BYTES;
    if (size > CHUNK_BYTES_MAX)
        size = CHUNK_BYTES_MAX;
    if (size < bytes)
        size = bytes;
    struct core_chunk *k = det_alloc(sizeof *k + size);
    *k = (struct core_chunk){.next = out->chunks, .size = size};
    return out->chunks = k;
}

void *fx_mem(struct core_effects *out, size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    struct core_chunk *k = out->chunks;
    if (!k || k->size - k->used < bytes)
        k = chunk_add(out, bytes);
    void *p = k->data + k->used;
    k->used += bytes;
    return memset(p, 0, bytes);
}

void core_effects_finish(struct core_effects *e)
{
    for (struct core_chunk *k = e->chunks, *next; k; k = next) {
        next = k->next;
        free(k);
    }
    free(e->v);
    *e = (struct core_effects)CORE_EFFECTS_INIT;
}

struct core_effect *fx_add(struct core_effects *out, enum core_effect_kind kind)
{
    vec_push(out, (struct core_effect){.kind = kind});
    return &out->v[out->n - 1];
}

const char *fx_str(struct core_effects *out, const char *s)
{
    if (!s)
        return NULL;
    size_t n = strlen(s) + 1;
    return memcpy(fx_mem(out, n), s, n);
}

const char *fx_json(struct core_effects *out, const json_t *j)
{
    struct buf b = BUF_INIT;
    json_write(&b, j);
    const char *s = fx_str(out, buf_str(&b));
    buf_finish(&b);
    return s;
}

static const char *fx_format(struct core_effects *out, const char *fmt, va_list ap)
{
    struct buf b = BUF_INIT;
    buf_vaddf(&b, fmt, ap);
    const char *s = fx_str(out, buf_str(&b));
    buf_finish(&b);
    return s;
}

void fx_reply(struct core_effects *out, uint64_t request, int code, const char *fmt, ...)
{
    if (!request)
        return;
    va_list ap;
    va_start(ap, fmt);
    const char *text = code ? fx_format(out, fmt, ap) : NULL;
    va_end(ap);
    struct core_effect *e = fx_add(out, CORE_REPLY);
    e->reply = (struct core_reply){.request = request, .code = code, .text = text};
}

void fx_log(struct core *c, const struct alloc *a, int level, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *text = fx_format(c->out, fmt, ap);
    va_end(ap);
    struct core_log log = {.task_id = fx_str(c->out, a->task_id),
                           .alloc_id = fx_str(c->out, a->id),
                           .text = text,
                           .level = level,
                           .now_us = c->now_us};
    fx_add(c->out, CORE_TASK_LOG)->log = log;
}

void fx_timeline(struct core *c, const struct alloc *a, const char *kind, const char *fmt, ...)
{
    if (!a->trial || a->parked)
        return;
    va_list ap;
    va_start(ap, fmt);
    const char *detail = fx_format(c->out, fmt, ap);
    va_end(ap);
    fx_add(c->out, CORE_SAVE_TIMELINE)->timeline = (struct row_timeline){.trial_id = a->trial->id,
                                                                         .run_id = a->run_id,
                                                                         .experiment_id = a->exp_id,
                                                                         .node = -1,
                                                                         .kind = kind,
                                                                         .at_us = c->now_us,
                                                                         .detail = detail};
}

int64_t fx_end_us(const struct core *c, int64_t begin_us)
{
    return c->now_us > begin_us ? c->now_us : begin_us;
}

void fx_mark(struct core *c, const struct alloc *a, int node, const struct core_mark *m)
{
    if (!a->trial || a->parked)
        return;
    struct row_timeline r = {.trial_id = a->trial->id,
                             .run_id = a->run_id,
                             .experiment_id = a->exp_id,
                             .node = node,
                             .kind = fx_str(c->out, m->kind),
                             .at_us = m->at_us,
                             .duration_us = m->duration_us,
                             .detail = fx_str(c->out, m->detail ? m->detail : "")};
    fx_add(c->out, CORE_SAVE_TIMELINE)->timeline = r;
}
