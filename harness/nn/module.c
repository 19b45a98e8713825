/* Modules: life, children, own tensors, mode. */
#include "module.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "autocast.h"
#include "mem.h"

struct det_module *module_new(struct det_engine *e, const struct module_type *type)
{
    if (e->err.code < 0)
        return NULL;
    struct det_module *m = det_zalloc(sizeof *m);
    m->engine = e;
    m->type = type;
    m->training = true;
    return m;
}

static struct det_tensor *container_forward(struct det_module *m, struct det_tensor *x, bool relu)
{
    (void)relu;
    if (m->forward)
        return m->forward(m, x, m->forward_arg);
    det_engine_fail(
        m->engine, DET_ESTATE,
        "forward of a container: call its layers one by one, or give it a function with "
        "det_module_set_forward()");
    return NULL;
}

static const struct module_type container_type = {"module", container_forward, false};

bool module_is_users(const struct det_module *m)
{
    bool found = m->type == &container_type;
    for (size_t i = 0; !found && i < m->children.n; i++)
        found = module_is_users(m->children.v[i].module);
    return found;
}

struct det_module *det_nn_module(struct det_engine *e)
{
    return module_new(e, &container_type);
}

void det_module_set_forward(struct det_module *m,
                            struct det_tensor *(*fn)(struct det_module *m, struct det_tensor *x,
                                                     void *arg),
                            void *arg)
{
    if (!m)
        return;
    m->forward = fn;
    m->forward_arg = arg;
}

struct det_tensor *det_forward(struct det_module *m, struct det_tensor *x)
{
    if (!m || !x || m->engine->err.code < 0) {
        if (m && m->engine->err.code == 0)
            det_engine_fail(m->engine, DET_EINVAL, "forward of %s: the input is NULL",
                            m->type->name);
        return NULL;
    }
    return m->type->forward(m, x, false);
}

static bool name_used(const struct det_module *m, const char *name)
{
    for (size_t i = 0; i < m->children.n; i++)
        if (strcmp(m->children.v[i].name, name) == 0)
            return true;
    for (size_t i = 0; i < m->params.n; i++)
        if (strcmp(m->params.v[i].name, name) == 0)
            return true;
    for (size_t i = 0; i < m->buffers.n; i++)
        if (strcmp(m->buffers.v[i].name, name) == 0)
            return true;
    return false;
}

static int check_name(const struct det_module *m, const char *name)
{
    if (!name || !*name || strchr(name, '.') || strlen(name) > 255)
        return det_engine_fail(m->engine, DET_EINVAL,
                               "module: \"%s\" is no name: 1 to 255 characters, no dot",
                               name ? name : "");
    if (name_used(m, name))
        return det_engine_fail(m->engine, DET_EEXIST, "module: the name \"%s\" is used already",
                               name);
    return 0;
}

struct det_module *det_module_add(struct det_module *parent, const char *name,
                                  struct det_module *child)
{
    if (!parent || !child) {
        det_module_destroy(child);
        return NULL;
    }
    if (child->parent || child == parent) {
        det_engine_fail(parent->engine, DET_EINVAL, "module: \"%s\" has a parent already", name);
        return NULL;
    }
    if (check_name(parent, name) < 0) {
        det_module_destroy(child);
        return NULL;
    }
    child->parent = parent;
    vec_push(&parent->children, (struct module_child){det_strdup(name), child});
    module_lists_forget(parent);
    return child;
}

struct det_module *det_module_append(struct det_module *parent, struct det_module *child)
{
    char name[24];
    snprintf(name, sizeof name, "%zu", parent ? parent->children.n : 0);
    return det_module_add(parent, name, child);
}

/* A copy of `value` on the device, owned by the caller; NULL with the error set. */
static struct det_tensor *owned_copy(struct det_engine *e, struct det_tensor *value)
{
    TENSOR_OWN t = NULL;
    struct det_err err;
    int rc = det__tensor_new(e, value->dtype, DET_LAYOUT_PLAIN, value->ndim, value->dims, &t, &err);
    if (rc == 0)
        rc = det__copy(e, value, t, &err);
    if (rc < 0) {
        det__keep_error(e, &err);
        return NULL;
    }
    return det_take(t);
}

/* What a module will keep of value under name; NULL if it may not. */
static struct det_tensor *new_entry(struct det_module *m, const char *name,
                                    struct det_tensor *value)
{
    if (!m || !value || m->engine->err.code < 0 || check_name(m, name) < 0)
        return NULL;
    return owned_copy(m->engine, value);
}

struct det_tensor *det_module_add_param(struct det_module *m, const char *name,
                                        struct det_tensor *value)
{
    struct det_tensor *t = new_entry(m, name, value);
    if (!t)
        return NULL;
    if (!det_requires_grad(m->engine, t)) {
        det_tensor_unref(t);
        return NULL;
    }
    vec_push(&m->params, (struct module_entry){det_strdup(name), t});
    module_lists_forget(m);
    return t;
}

struct det_tensor *det_module_add_buffer(struct det_module *m, const char *name,
                                         struct det_tensor *value)
{
    struct det_tensor *t = new_entry(m, name, value);
    if (!t)
        return NULL;
    vec_push(&m->buffers, (struct module_entry){det_strdup(name), t});
    module_lists_forget(m);
    return t;
}

struct det_tensor *module_param(struct det_module *m, const char *name)
{
    for (size_t i = 0; i < m->params.n; i++)
        if (strcmp(m->params.v[i].name, name) == 0)
            return m->params.v[i].tensor;
    return NULL;
}

struct det_tensor *module_buffer(struct det_module *m, const char *name)
{
    for (size_t i = 0; i < m->buffers.n; i++)
        if (strcmp(m->buffers.v[i].name, name) == 0)
            return m->buffers.v[i].tensor;
    return NULL;
}

static void entry_finish(struct module_entry *e)
{
    free(e->name);
    det_tensor_unref(e->tensor);
}

void det_module_destroy(struct det_module *m)
{
    if (!m)
        return;
    assert(!m->parent);
    for (size_t i = 0; i < m->children.n; i++) {
        m->children.v[i].module->parent = NULL;
        det_module_destroy(m->children.v[i].module);
        free(m->children.v[i].name);
    }
    for (size_t i = 0; i < m->params.n; i++)
        entry_finish(&m->params.v[i]);
    for (size_t i = 0; i < m->buffers.n; i++)
        entry_finish(&m->buffers.v[i]);
    vec_free(&m->children);
    vec_free(&m->params);
    vec_free(&m->buffers);
    module_lists_finish(m);
    det_tensor_unref(m->grads);
    det_tensor_unref(m->grads_marked);
    autocast_prune(m->engine);
    free(m);
}

struct det_engine *det_module_engine(const struct det_module *m)
{
    return m ? m->engine : NULL;
}

void det_module_train(struct det_module *m, bool on)
{
    if (!m)
        return;
    m->training = on;
    for (size_t i = 0; i < m->children.n; i++)
        det_module_train(m->children.v[i].module, on);
}

bool det_module_training(const struct det_module *m)
{
    return m && m->training;
}
