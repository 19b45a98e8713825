/* The trials of a search, and operations about them: what all methods use. */
#include "search_impl.h"

#include <string.h>

size_t search_trial_find(const struct search *s, const char *request_id)
{
    size_t at = request_id ? (size_t)(uintptr_t)map_get(s->index, request_id) : 0;
    return at ? at - 1 : SEARCH_NO_TRIAL;
}

size_t search_trial_add(struct search *s, const char *request_id)
{
    struct search_trial t = {0};
    memcpy(t.request_id, request_id, UUID_STR_MAX);
    vec_push(&s->trials, t);
    map_put(s->index, request_id, (void *)(uintptr_t)s->trials.n);
    s->open++;
    return s->trials.n - 1;
}

/* 16 bytes of four draws, little-endian; version and variant are forced. */
static void draw_uuid(struct mt19937 *rng, char out[UUID_STR_MAX])
{
    uint8_t b[16];
    for (int i = 0; i < 4; i++) {
        uint32_t v = mt19937_u32(rng);
        for (int k = 0; k < 4; k++)
            b[4 * i + k] = (uint8_t)(v >> (8 * k));
    }
    uuid_from_bytes(b, out);
}

struct search_op *search_push(struct search *s, struct search_ops *out, enum search_op_kind kind,
                              size_t trial)
{
    struct search_op op = {.kind = kind};
    if (trial != SEARCH_NO_TRIAL)
        memcpy(op.request_id, s->trials.v[trial].request_id, UUID_STR_MAX);
    vec_push(&out->ops, op);
    return &out->ops.v[out->ops.n - 1];
}

size_t search_make(struct search *s, json_t *hparams, struct search_ops *out)
{
    char id[UUID_STR_MAX];
    draw_uuid(&s->rng, id);
    size_t k = search_trial_add(s, id);
    struct search_op *op = search_push(s, out, SEARCH_CREATE, k);
    op->hparams = hparams;
    op->trial_seed = (uint32_t)mt19937_bounded(&s->rng, 0x7fffffff);
    return k;
}

void search_validate_after(struct search *s, struct search_ops *out, size_t trial, int64_t length)
{
    search_push(s, out, SEARCH_VALIDATE_AFTER, trial)->length = length;
}

struct search_op *search_close(struct search *s, struct search_ops *out, size_t trial)
{
    s->trials.v[trial].done = true;
    return search_push(s, out, SEARCH_CLOSE, trial);
}
