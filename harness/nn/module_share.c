/* One parameter under two names: an embedding that is the output layer too. */
#include <string.h>

#include "mem.h"
#include "module.h"

static struct module_entry *find_entry(struct det_module *m, const char *name)
{
    for (size_t i = 0; i < m->params.n; i++)
        if (strcmp(m->params.v[i].name, name) == 0)
            return &m->params.v[i];
    return NULL;
}

struct det_tensor *det_module_share_param(struct det_module *m, const char *name,
                                          struct det_module *owner, const char *owner_name)
{
    char text[2][160];
    if (!m || !owner || m->engine->err.code < 0)
        return NULL;
    struct module_entry *to = find_entry(m, name), *from = find_entry(owner, owner_name);
    if (!to || !from || to->tensor->dtype != from->tensor->dtype ||
        !det__same_shape(to->tensor, from->tensor)) {
        det_engine_fail(m->engine, DET_EINVAL,
                        "share_param: \"%s\" is %s, \"%s\" is %s: both must be parameters of one "
                        "shape",
                        name, det__tensor_text(to ? to->tensor : NULL, text[0], sizeof text[0]),
                        owner_name,
                        det__tensor_text(from ? from->tensor : NULL, text[1], sizeof text[1]));
        return NULL;
    }
    struct det_tensor *old = to->tensor;
    to->tensor = det_tensor_ref(from->tensor);
    det_tensor_unref(old);
    module_lists_forget(m);
    module_lists_forget(owner);
    return to->tensor;
}
