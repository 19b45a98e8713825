#include "search_impl.h"

#include <assert.h>
#include <math.h>
#include <string.h>

const struct search_method *search_method_of(enum search_kind kind)
{
    static const struct search_method *const methods[SEARCH_KIND_COUNT] = {
        [SEARCH_SINGLE] = &search_single,
        [SEARCH_RANDOM] = &search_random,
        [SEARCH_GRID] = &search_grid,
    };
    return methods[kind];
}

void search_ops_finish(struct search_ops *o)
{
    for (size_t i = 0; i < o->ops.n; i++)
        json_decref(o->ops.v[i].hparams);
    vec_free(&o->ops);
}

void search_destroy(struct search *s)
{
    if (!s)
        return;
    map_destroy(s->index);
    vec_free(&s->trials);
    free(s);
}

int search_create(const struct search_conf *conf, struct search **ret, struct det_err *err)
{
    if (conf->max_length < 1)
        return det_fail(err, DET_EINVAL, "searcher.max_length: %lld; expected at least 1",
                        (long long)conf->max_length);
    struct search *s = det_zalloc(sizeof *s);
    s->conf = *conf;
    s->index = map_create();
    mt19937_seed(&s->rng, conf->seed);
    int rc = search_method_of(conf->kind)->init(s, err);
    if (rc < 0) {
        search_destroy(s);
        return rc;
    }
    *ret = s;
    return 0;
}

struct search_trial *search_trial_find(const struct search *s, const char *request_id)
{
    size_t at = request_id ? (size_t)(uintptr_t)map_get(s->index, request_id) : 0;
    return at ? &s->trials.v[at - 1] : NULL;
}

struct search_trial *search_trial_add(struct search *s, const char *request_id)
{
    struct search_trial t = {0};
    memcpy(t.request_id, request_id, UUID_STR_MAX);
    vec_push(&s->trials, t);
    map_put(s->index, request_id, (void *)(uintptr_t)s->trials.n);
    s->open++;
    return &s->trials.v[s->trials.n - 1];
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

static void push(struct search_ops *out, enum search_op_kind kind, const char *request_id,
                 int64_t length)
{
    struct search_op op = {.kind = kind, .length = length};
    memcpy(op.request_id, request_id, UUID_STR_MAX);
    vec_push(&out->ops, op);
}

static void make_trial(struct search *s, struct search_ops *out)
{
    char id[UUID_STR_MAX];
    json_t *hparams = search_method_of(s->conf.kind)->hparams(s);
    draw_uuid(&s->rng, id);
    push(out, SEARCH_CREATE, id, 0);
    struct search_op *op = &out->ops.v[out->ops.n - 1];
    op->hparams = hparams;
    op->trial_seed = (uint32_t)mt19937_bounded(&s->rng, 0x7fffffff);
    search_trial_add(s, id);
    s->made++;
    push(out, SEARCH_VALIDATE_AFTER, id, s->conf.max_length);
    push(out, SEARCH_CLOSE, id, 0);
}

static void on_initial(struct search *s, struct search_ops *out)
{
    int64_t n = s->conf.max_concurrent;
    if (n == 0 || n > s->wanted)
        n = s->wanted;
    while (s->made < n)
        make_trial(s, out);
}

/* The built-in searchers end when every trial they asked for is closed. */
static void maybe_shut(struct search *s, struct search_ops *out)
{
    int64_t requested = (int64_t)s->trials.n;
    if (s->shut || requested == 0 || s->open > 0)
        return;
    s->shut = true;
    struct search_op op = {.kind = SEARCH_SHUTDOWN,
                           .failure = s->failures >= requested,
                           .cancel = s->cancels >= requested};
    vec_push(&out->ops, op);
}

static void on_exited(struct search *s, struct search_trial *t, enum search_exit why)
{
    if (t->exited || t->closed)
        return;
    t->exited = true;
    s->failures += why == SEARCH_ERRORED;
    s->cancels += why == SEARCH_USER_CANCELED;
    if (why == SEARCH_INVALID_HP || why == SEARCH_INIT_INVALID_HP) {
        t->invalid = true;
        s->units_open -= t->units;
        t->units = 0;
    }
    if (search_method_of(s->conf.kind)->exited)
        search_method_of(s->conf.kind)->exited(s, why);
}

static void on_closed(struct search *s, struct search_trial *t, struct search_ops *out)
{
    if (t->closed)
        return;
    t->closed = true;
    s->closed++;
    s->open--;
    s->units_open -= t->units;
    if (!t->invalid)
        s->units_closed += (double)s->conf.max_length;
    if (s->made < s->wanted)
        make_trial(s, out); /* moves the table: t is gone */
    maybe_shut(s, out);
}

static void on_progress(struct search *s, struct search_trial *t, double units)
{
    if (t->closed || t->invalid || !isfinite(units) || units < 0)
        return;
    if (units > (double)s->conf.max_length)
        units = (double)s->conf.max_length;
    s->units_open += units - t->units;
    t->units = units;
}

void search_step(struct search *s, const struct search_event *ev, struct search_ops *out)
{
    if (ev->kind == SEARCH_EV_INITIAL) {
        on_initial(s, out);
        return;
    }
    struct search_trial *t = search_trial_find(s, ev->request_id);
    if (!t)
        return;
    if (ev->kind == SEARCH_EV_EXITED)
        on_exited(s, t, ev->reason);
    else if (ev->kind == SEARCH_EV_CLOSED)
        on_closed(s, t, out);
    else if (ev->kind == SEARCH_EV_PROGRESS)
        on_progress(s, t, ev->units);
}

double search_progress(const struct search *s)
{
    double all = (double)s->conf.max_length * (double)s->wanted;
    double p = (s->units_open + s->units_closed) / all;
    if (!isfinite(p) || p < 0)
        return 0;
    return p > 1 ? 1 : p;
}
