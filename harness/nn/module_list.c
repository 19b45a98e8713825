/* The named tensors beneath a module, listed when somebody asks and kept until the tree changes. */
#include <stdlib.h>

#include "mem.h"
#include "module.h"

static void list_finish(named_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free((char *)l->v[i].name);
    vec_free(l);
}

void module_lists_finish(struct det_module *m)
{
    list_finish(&m->state);
    list_finish(&m->own_params);
    list_finish(&m->own_buffers);
    m->listed = false;
}

void module_lists_forget(struct det_module *m)
{
    for (; m; m = m->parent)
        m->listed = false;
}

static void push_entry(named_list *l, const char *prefix, const struct module_entry *e)
{
    vec_push(l, (struct det_named_tensor){det_asprintf("%s%s", prefix, e->name), e->tensor});
}

/* A shared parameter counts once, under its first name. */
static bool has_tensor(const named_list *l, const struct det_tensor *t)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].tensor == t)
            return true;
    return false;
}

/* Appends what is beneath `m` to the lists of `top`. */
static void collect_beneath(struct det_module *top, struct det_module *m, const char *prefix)
{
    for (size_t i = 0; i < m->params.n; i++) {
        push_entry(&top->state, prefix, &m->params.v[i]);
        if (!has_tensor(&top->own_params, m->params.v[i].tensor))
            push_entry(&top->own_params, prefix, &m->params.v[i]);
    }
    for (size_t i = 0; i < m->buffers.n; i++) {
        push_entry(&top->state, prefix, &m->buffers.v[i]);
        push_entry(&top->own_buffers, prefix, &m->buffers.v[i]);
    }
    for (size_t i = 0; i < m->children.n; i++) {
        det_cleanup(freep) char *inner = det_asprintf("%s%s.", prefix, m->children.v[i].name);
        collect_beneath(top, m->children.v[i].module, inner);
    }
}

static void refresh_lists(struct det_module *m)
{
    if (m->listed)
        return;
    module_lists_finish(m);
    collect_beneath(m, m, "");
    m->listed = true;
}

static const struct det_named_tensor *items_of_list(const named_list *l, size_t *ret_n)
{
    *ret_n = l->n;
    return l->v;
}

const struct det_named_tensor *det_module_state(struct det_module *m, size_t *ret_n)
{
    *ret_n = 0;
    if (!m)
        return NULL;
    refresh_lists(m);
    return items_of_list(&m->state, ret_n);
}

const struct det_named_tensor *det_module_params(struct det_module *m, size_t *ret_n)
{
    *ret_n = 0;
    if (!m)
        return NULL;
    refresh_lists(m);
    return items_of_list(&m->own_params, ret_n);
}

const struct det_named_tensor *det_module_buffers(struct det_module *m, size_t *ret_n)
{
    *ret_n = 0;
    if (!m)
        return NULL;
    refresh_lists(m);
    return items_of_list(&m->own_buffers, ret_n);
}

struct det_tensor *det_module_tensor(struct det_module *m, const char *name)
{
    size_t n;
    const struct det_named_tensor *state = det_module_state(m, &n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(state[i].name, name) == 0)
            return state[i].tensor;
    if (m)
        det_engine_fail(m->engine, DET_ENOENT, "module: it has no parameter or buffer \"%s\"",
                        name);
    return NULL;
}
