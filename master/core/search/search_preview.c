#include "search_preview.h"

#include "conf.h"
#include "map.h"
#include "rng.h"
#include <string.h>

struct shown {
    char id[UUID_STR_MAX];
    json_t *lengths;
    int64_t length; /* of the operation to do, 0: none */
    bool closing;
};
struct preview {
    struct search *s;
    struct mt19937 rng; /* of the metrics */
    VEC(struct shown) trials;
    struct map *index; /* request id -> position + 1 */
    VEC(size_t) queue; /* trials with something to do, in order; from `at` on */
    size_t at;
};

static void on_op(struct preview *p, const struct search_op *op)
{
    size_t k = (size_t)(uintptr_t)map_get(p->index, op->request_id);
    if (op->kind == SEARCH_CREATE) {
        struct shown t = {.lengths = json_array()};
        memcpy(t.id, op->request_id, UUID_STR_MAX);
        vec_push(&p->trials, t);
        map_put(p->index, op->request_id, (void *)(uintptr_t)p->trials.n);
    } else if (op->kind == SEARCH_VALIDATE_AFTER && k) {
        json_array_append_new(p->trials.v[k - 1].lengths, json_integer(op->length));
        p->trials.v[k - 1].length = op->length;
        vec_push(&p->queue, k - 1);
    } else if (op->kind == SEARCH_CLOSE && k) {
        p->trials.v[k - 1].closing = true;
        vec_push(&p->queue, k - 1);
    }
}

static void tell_event(struct preview *p, struct search_event ev)
{
    struct search_ops out = {0};
    search_step(p->s, &ev, &out);
    for (size_t i = 0; i < out.ops.n; i++)
        on_op(p, &out.ops.v[i]);
    search_ops_finish(&out);
}

static void run_trial(struct preview *p, size_t k)
{
    struct shown *t = &p->trials.v[k];
    char id[UUID_STR_MAX];
    memcpy(id, t->id, UUID_STR_MAX);
    if (t->length) {
        struct search_event ev = {.kind = SEARCH_EV_VALIDATED,
                                  .request_id = id,
                                  .length = t->length,
                                  .metric = mt19937_double(&p->rng)};
        t->length = 0;
        tell_event(p, ev);
        t = &p->trials.v[k];
    }
    if (!t->closing || t->length)
        return;
    t->closing = false;
    tell_event(p, (struct search_event){.kind = SEARCH_EV_CLOSED, .request_id = id});
}

struct kind {
    const json_t *lengths;
    int64_t trials, top;
    size_t first; /* breaks ties */
};

static int longest_first(const void *a, const void *b)
{
    const struct kind *x = a, *y = b;
    size_t nx = json_array_size(x->lengths), ny = json_array_size(y->lengths);
    if (nx != ny)
        return nx > ny ? -1 : 1;
    if (x->top != y->top)
        return x->top > y->top ? -1 : 1;
    return x->first < y->first ? -1 : 1;
}

static json_t *count_kinds(const struct preview *p)
{
    VEC(struct kind) kinds = {0};
    struct map *seen = map_create();
    for (size_t i = 0; i < p->trials.n; i++) {
        const json_t *lengths = p->trials.v[i].lengths;
        det_cleanup(freep) char *key = json_text(lengths);
        size_t at = (size_t)(uintptr_t)map_get(seen, key);
        if (!at) {
            size_t n = json_array_size(lengths);
            int64_t top = json_integer_value(json_array_get(lengths, n ? n - 1 : 0));
            vec_push(&kinds, (struct kind){.lengths = lengths, .top = top, .first = i});
            map_put(seen, key, (void *)(uintptr_t)kinds.n);
            at = kinds.n;
        }
        kinds.v[at - 1].trials++;
    }
    qsort(kinds.v, kinds.n, sizeof *kinds.v, longest_first);
    json_t *all = json_array();
    for (size_t i = 0; i < kinds.n; i++)
        json_array_append_new(all, json_make("{s:O, s:I}", "lengths", kinds.v[i].lengths, "trials",
                                             (json_int_t)kinds.v[i].trials));
    map_destroy(seen);
    vec_free(&kinds);
    return all;
}

static int check_conf(const struct search_conf *c, struct det_err *err)
{
    if (c->kind == SEARCH_CUSTOM)
        return det_fail(err, DET_EINVAL,
                        "searcher.name: what a custom searcher trains is decided by its client");
    if (c->max_trials > SEARCH_BURST_MAX)
        return det_fail(err, DET_EINVAL, "searcher.max_trials: at most %d are previewed",
                        SEARCH_BURST_MAX);
    return 0;
}

int search_preview(const json_t *config, uint32_t seed, json_t **ret, struct det_err *err)
{
    struct conf conf;
    struct preview p = {.index = NULL};
    int rc = conf_read(config, &conf, err);
    if (rc == 0)
        rc = check_conf(&conf.search, err);
    conf.search.seed = seed;
    if (rc == 0)
        rc = search_create(&conf.search, &p.s, err);
    if (rc < 0)
        return rc;
    p.index = map_create();
    mt19937_seed(&p.rng, seed);
    tell_event(&p, (struct search_event){.kind = SEARCH_EV_INITIAL});
    while (p.at < p.queue.n)
        run_trial(&p, p.queue.v[p.at++]);
    *ret = count_kinds(&p);
    for (size_t i = 0; i < p.trials.n; i++)
        json_decref(p.trials.v[i].lengths);
    vec_free(&p.trials);
    vec_free(&p.queue);
    map_destroy(p.index);
    search_destroy(p.s);
    return 0;
}
