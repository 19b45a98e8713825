#include "search_impl.h"

#include "hash.h"
#include <assert.h>
#include <math.h>
#include <string.h>

static const struct search_method *const methods[SEARCH_KIND_COUNT] = {
    [SEARCH_SINGLE] = &search_single,
    [SEARCH_RANDOM] = &search_random,
    [SEARCH_GRID] = &search_grid,
    [SEARCH_ASYNC_HALVING] = &search_async_halving,
    [SEARCH_ADAPTIVE_ASHA] = &search_adaptive_asha,
    [SEARCH_CUSTOM] = &search_custom,
};

const struct search_method *search_method_of(enum search_kind kind)
{
    return methods[kind];
}

bool search_kind_parse(const char *name, enum search_kind *ret)
{
    for (int i = 0; i < SEARCH_KIND_COUNT; i++)
        if (strcmp(methods[i]->name, name) == 0) {
            *ret = (enum search_kind)i;
            return true;
        }
    return false;
}

bool search_mode_parse(const char *name, enum search_mode *ret)
{
    static const char *const names[SEARCH_MODE_COUNT] = {"aggressive", "standard", "conservative"};
    for (int i = 0; i < SEARCH_MODE_COUNT; i++)
        if (strcmp(names[i], name) == 0) {
            *ret = (enum search_mode)i;
            return true;
        }
    return false;
}

void search_op_finish(struct search_op *op)
{
    json_decref(op->hparams);
    json_decref(op->reason);
    op->hparams = op->reason = NULL;
}

void search_ops_finish(struct search_ops *o)
{
    for (size_t i = 0; i < o->ops.n; i++)
        search_op_finish(&o->ops.v[i]);
    vec_free(&o->ops);
}

uint64_t search_ops_digest(const struct search_ops *o)
{
    struct buf b = BUF_INIT;
    for (size_t i = 0; i < o->ops.n; i++) {
        const struct search_op *op = &o->ops.v[i];
        buf_addf(&b, "%d %s %u %lld %d%d\n", (int)op->kind, op->request_id,
                 (unsigned)op->trial_seed, (long long)op->length, op->failure, op->cancel);
    }
    uint64_t h = hash_fnv64(buf_str(&b), strlen(buf_str(&b)));
    buf_finish(&b);
    return h;
}

void search_digest_text(uint64_t digest, char out[17])
{
    for (int i = 0; i < 16; i++)
        out[i] = "0123456789abcdef"[digest >> (60 - 4 * i) & 15];
    out[16] = '\0';
}

void search_destroy(struct search *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->brackets.n; i++)
        asha_finish(&s->brackets.v[i]);
    vec_free(&s->brackets);
    json_decref(s->queue);
    map_destroy(s->index);
    vec_free(&s->trials);
    free(s);
}

static int check_conf(const struct search_conf *c, struct det_err *err)
{
    if (c->kind == SEARCH_CUSTOM)
        return 0;
    if (c->max_length < 1)
        return det_fail(err, DET_EINVAL, "searcher.max_length: %lld; expected at least 1",
                        (long long)c->max_length);
    if (c->kind != SEARCH_GRID && c->kind != SEARCH_SINGLE && c->max_trials < 1)
        return det_fail(err, DET_EINVAL, "searcher.max_trials: %lld; expected at least 1",
                        (long long)c->max_trials);
    bool halves = c->kind == SEARCH_ASYNC_HALVING || c->kind == SEARCH_ADAPTIVE_ASHA;
    if (halves && !(c->divisor > 1))
        return det_fail(err, DET_EINVAL, "searcher.divisor: %g; expected a number above 1",
                        c->divisor);
    if (c->kind == SEARCH_ADAPTIVE_ASHA && c->max_rungs < 1)
        return det_fail(err, DET_EINVAL, "searcher.max_rungs: %lld; expected at least 1",
                        (long long)c->max_rungs);
    int64_t at_once = c->max_concurrent ? c->max_concurrent : c->max_trials;
    if (c->kind == SEARCH_RANDOM && at_once > SEARCH_BURST_MAX && c->max_trials > SEARCH_BURST_MAX)
        return det_fail(err, DET_EINVAL,
                        "searcher.max_concurrent_trials: %lld trials would start at once; write "
                        "%d or less",
                        (long long)at_once, SEARCH_BURST_MAX);
    return 0;
}

int search_create(const struct search_conf *conf, struct search **ret, struct det_err *err)
{
    int rc = check_conf(conf, err);
    if (rc < 0)
        return rc;
    struct search *s = det_zalloc(sizeof *s);
    s->conf = *conf;
    s->index = map_create();
    mt19937_seed(&s->rng, conf->seed);
    rc = methods[conf->kind]->init(s, err);
    if (rc < 0) {
        search_destroy(s);
        return rc;
    }
    *ret = s;
    return 0;
}

/* The built-in searchers end when every trial they asked for is closed. */
static void maybe_shut(struct search *s, struct search_ops *out)
{
    int64_t requested = (int64_t)s->trials.n;
    if (s->shut || requested == 0 || s->open > 0)
        return;
    s->shut = true;
    struct search_op *op = search_push(s, out, SEARCH_SHUTDOWN, SEARCH_NO_TRIAL);
    op->failure = s->failures >= requested;
    op->cancel = s->cancels >= requested;
}

static void on_exited(struct search *s, size_t k, enum search_exit why, struct search_ops *out)
{
    struct search_trial *t = &s->trials.v[k];
    if (t->exited || t->closed)
        return;
    t->exited = true;
    s->failures += why == SEARCH_ERRORED;
    s->cancels += why == SEARCH_USER_CANCELED;
    if (search_is_invalid(why)) {
        t->invalid = true;
        s->units_open -= t->units;
        t->units = 0;
    }
    if (methods[s->conf.kind]->exited)
        methods[s->conf.kind]->exited(s, k, why, out);
}

static void on_closed(struct search *s, size_t k, struct search_ops *out)
{
    struct search_trial *t = &s->trials.v[k];
    if (t->closed)
        return;
    t->closed = true;
    s->open--;
    s->units_open -= t->units;
    if (!t->invalid)
        s->units_closed += (double)s->conf.max_length;
    methods[s->conf.kind]->closed(s, k, out);
    if (!methods[s->conf.kind]->is_custom)
        maybe_shut(s, out);
}

/* An end that is taken back; one that the search was not told of changes nothing here. */
static void take_back(struct search *s, struct search_trial *t, enum search_exit why)
{
    if (!t->closed)
        return;
    s->open++;
    if (!t->invalid)
        s->units_closed -= (double)s->conf.max_length;
    s->failures -= t->exited && why == SEARCH_ERRORED;
    s->cancels -= t->exited && why == SEARCH_USER_CANCELED;
    t->closed = t->exited = t->invalid = false;
    t->units = 0;
    s->shut = false;
    t->waits = true;
    s->waiting++;
}

static void on_reopened(struct search *s, size_t k, const struct search_event *ev,
                        struct search_ops *out)
{
    take_back(s, &s->trials.v[k], ev->reason);
    methods[s->conf.kind]->reopened(s, k, ev->length, out);
}

bool search_may_reopen(enum search_kind kind)
{
    return methods[kind]->reopened != NULL;
}

static void on_progress(struct search *s, size_t k, double units)
{
    struct search_trial *t = &s->trials.v[k];
    if (t->closed || t->invalid || !isfinite(units) || units < 0)
        return;
    if (units > (double)s->conf.max_length)
        units = (double)s->conf.max_length;
    s->units_open += units - t->units;
    t->units = units;
}

void search_step(struct search *s, const struct search_event *ev, struct search_ops *out)
{
    const struct search_method *m = methods[s->conf.kind];
    size_t k = search_trial_find(s, ev->request_id);
    if (ev->kind == SEARCH_EV_INITIAL)
        m->initial(s, out);
    else if (ev->kind == SEARCH_EV_OPERATIONS && m->client)
        m->client(s, ev, out);
    if (k == SEARCH_NO_TRIAL)
        return;
    if (ev->kind == SEARCH_EV_VALIDATED && m->validated)
        m->validated(s, k, ev, out);
    else if (ev->kind == SEARCH_EV_EXITED)
        on_exited(s, k, ev->reason, out);
    else if (ev->kind == SEARCH_EV_CLOSED)
        on_closed(s, k, out);
    else if (ev->kind == SEARCH_EV_REOPENED && m->reopened)
        on_reopened(s, k, ev, out);
    else if (ev->kind == SEARCH_EV_PROGRESS && m->client)
        m->client(s, ev, out);
    else if (ev->kind == SEARCH_EV_PROGRESS)
        on_progress(s, k, ev->units);
}

double search_progress(const struct search *s)
{
    double p = methods[s->conf.kind]->progress(s);
    if (!isfinite(p) || p < 0)
        return 0;
    return p > 1 ? 1 : p;
}
