#include "grads_overlap.h"

struct part {
    size_t from, to;    /* elements of the vector */
    size_t first, last; /* the parameters first..last-1 */
    size_t missing;     /* so many of them are not complete yet */
};

struct grads_overlap {
    struct det_module *m;
    struct grads_overlap_options o;
    struct det_stream *side;
    struct det_event *event;
    struct grad_watch watch;
    VEC(struct part) parts;   /* in the order in which they go */
    size_t sent;              /* of the parts */
    bool is_open, is_counted; /* counted: what is missing */
};

static size_t place_of(const struct det_module *m, const struct det_tensor *param)
{
    return (size_t)(param->grad->data - m->grads->data) / sizeof(float);
}

static void cut_parts(struct grads_overlap *g)
{
    size_t n, to = g->m->grads->numel, last;
    const struct det_named_tensor *p = det_module_params(g->m, &n);
    g->parts.n = 0;
    last = n;
    for (size_t i = n; i-- > 0;) {
        size_t from = place_of(g->m, p[i].tensor);
        if (i > 0 && (to - from) * sizeof(float) < g->o.part_bytes)
            continue;
        vec_push(&g->parts, (struct part){from, to, i, last, 0});
        to = from;
        last = i;
    }
}

static int place_parts(struct grads_overlap *g, struct det_err *err)
{
    int rc = module_grads_place(g->m, err);
    if (rc == 0 && g->m->grads->dtype != DET_F32)
        return det_fail(err, DET_EUNAVAIL, "collectives on a device are of float32");
    if (rc == 0)
        cut_parts(g);
    return rc;
}

/* Where the pass does not come to a parameter at all, nothing is missing. */
static void count_missing(struct grads_overlap *g)
{
    size_t n;
    const struct det_named_tensor *p = det_module_params(g->m, &n);
    for (size_t k = 0; k < g->parts.n; k++) {
        struct part *part = &g->parts.v[k];
        part->missing = 0;
        for (size_t i = part->first; i < part->last; i++)
            part->missing += p[i].tensor->numel > 0 && p[i].tensor->grad_uses > 0;
    }
    g->is_counted = true;
}

/* After all that the engine was asked for so far. */
static int send_mean(struct grads_overlap *g, size_t from, size_t n, struct det_err *err)
{
    struct det_engine *e = g->m->engine;
    int rc = e->backend->event_record(g->event, e->stream, err);
    if (rc == 0)
        rc = e->backend->event_wait(g->side, g->event, err);
    float *v = (float *)(void *)g->m->grads->data;
    return rc < 0 ? rc : g->o.mean(g->o.arg, v + from, n, g->side, err);
}

static int send_next(struct grads_overlap *g, struct det_err *err)
{
    const struct part *part = &g->parts.v[g->sent++];
    int rc = module_grads_fill(g->m, part->first, part->last, err);
    return rc < 0 ? rc : send_mean(g, part->from, part->to - part->from, err);
}

/* NULL: of another module, or without elements: it would have the place of the next. */
static struct part *find_part(struct grads_overlap *g, const struct det_tensor *leaf)
{
    const struct det_tensor *all = g->m->grads;
    if (!leaf->grad || leaf->grad->storage != all->storage || leaf->numel == 0)
        return NULL;
    size_t at = place_of(g->m, leaf);
    for (size_t k = 0; k < g->parts.n; k++)
        if (at >= g->parts.v[k].from)
            return &g->parts.v[k];
    return NULL;
}

static int on_complete(void *arg, struct det_tensor *leaf, struct det_err *err)
{
    struct grads_overlap *g = arg;
    int rc = 0;
    if (!g->is_counted)
        count_missing(g);
    struct part *part = find_part(g, leaf);
    if (part)
        part->missing--;
    while (rc == 0 && g->sent < g->parts.n && g->parts.v[g->sent].missing == 0)
        rc = send_next(g, err);
    return rc;
}

int grads_overlap_create(struct det_module *m, const struct grads_overlap_options *o,
                         struct grads_overlap **ret, struct det_err *err)
{
    struct grads_overlap *g = det_zalloc(sizeof *g);
    const struct det_backend *b = m->engine->backend;
    *g = (struct grads_overlap){.m = m, .o = *o, .watch = {on_complete, g}};
    int rc = place_parts(g, err);
    if (rc == 0)
        rc = b->stream_create(m->engine->device, &g->side, err);
    if (rc == 0)
        rc = b->event_create(m->engine->device, &g->event, err);
    if (rc < 0)
        grads_overlap_destroy(g);
    else
        *ret = g;
    return rc;
}

int grads_overlap_begin(struct grads_overlap *g, struct det_err *err)
{
    if (g->is_open)
        return det_fail(err, DET_ESTATE,
                        "a second backward pass before the step, while the gradients of the first "
                        "are averaged over the ranks (DET_OVERLAP_MIB): add the losses, or leave "
                        "the variable away");
    int rc = place_parts(g, err);
    if (rc < 0)
        return rc;
    g->is_open = true;
    g->is_counted = false;
    g->m->engine->grad_watch = &g->watch;
    g->m->engine->grads_leave = g->m->grads->storage;
    return 0;
}

static void close_pass(struct grads_overlap *g)
{
    struct det_engine *e = g->m->engine;
    if (e->grad_watch == &g->watch)
        e->grad_watch = NULL;
    e->grads_leave = NULL;
    g->is_open = false;
    g->sent = 0;
}

/* The marks lie behind the vector. */
static int send_rest(struct grads_overlap *g, struct det_err *err)
{
    struct det_module *m = g->m;
    int rc = 0;
    while (rc == 0 && g->sent < g->parts.n)
        rc = send_next(g, err);
    if (rc == 0)
        rc = module_grads_mark(m, err);
    return rc < 0 ? rc
                  : send_mean(g, m->grads->numel, m->grads_marked->numel - m->grads->numel, err);
}

int grads_overlap_finish(struct grads_overlap *g, struct det_stream **ret, struct det_err *err)
{
    struct det_engine *e = g->m->engine;
    int rc = g->is_open ? 0 : place_parts(g, err);
    if (rc == 0)
        rc = send_rest(g, err);
    if (rc == 0)
        rc = e->backend->event_record(g->event, g->side, err);
    if (rc == 0)
        rc = e->backend->event_wait(e->stream, g->event, err);
    close_pass(g);
    *ret = g->side;
    return rc;
}

bool grads_overlap_is_open(const struct grads_overlap *g)
{
    return g->is_open;
}

void grads_overlap_destroy(struct grads_overlap *g)
{
    if (!g)
        return;
    const struct det_backend *b = g->m->engine->backend;
    close_pass(g);
    if (g->side)
        b->stream_destroy(g->side);
    if (g->event)
        b->event_destroy(g->event);
    vec_free(&g->parts);
    free(g);
}
