/* Layers one after the other; a ReLU is left to the kernel of the layer before it where that can.
 */
#include "module.h"

static bool is_fused(const struct det_module *m, size_t i)
{
    return m->children.v[i].module->type->fuses_relu && i + 1 < m->children.n &&
           m->children.v[i + 1].module->type == &module_relu_type;
}

/* Between layers of ours nobody sees the tensors, so each is dropped when the next one is there; a
 * function of the user's may keep what it makes until the step's end. */
static struct det_tensor *forward_children(struct det_module *m, struct det_tensor *x, bool relu)
{
    (void)relu;
    size_t mark = det__step_mark(m->engine);
    bool hidden = !module_is_users(m);
    for (size_t i = 0; x && i < m->children.n; i++) {
        struct det_module *child = m->children.v[i].module;
        if (is_fused(m, i)) {
            x = child->type->forward(child, x, true);
            i++;
        } else {
            x = det_forward(child, x);
        }
        if (hidden)
            det__step_drop(m->engine, mark, x);
    }
    return x;
}

struct det_module *det_nn_sequential_create(struct det_engine *e, struct det_module **children,
                                            size_t n)
{
    static const struct module_type type = {"sequential", forward_children, false};
    bool whole = true;
    struct det_module *m = module_new(e, &type);
    for (size_t i = 0; i < n; i++)
        whole = det_module_append(m, children[i]) != NULL && whole;
    if (whole)
        return m;
    det_module_destroy(m);
    return NULL;
}
