/* Models: OrderedDict of name to tensor. */
#include "device_reads.h"
#include "engine.h"
#include "mem.h"
#include "trial_state_impl.h"

#include <stdlib.h>
#include <string.h>

/* Now or, where that can be, with all the others. */
static bool copy_of_tensor(struct state_writer *w, const struct det_tensor *t, void *copy,
                           size_t bytes)
{
    const void *host = w->copies ? det__host_bytes(t) : NULL;
    if (host)
        state_copies_add(w->copies, copy, host, bytes);
    else if (w->reads && device_reads_takes(w->reads, t))
        device_reads_add(w->reads, t, copy);
    else
        return det_tensor_read(t, copy, bytes, w->err) == 0;
    return true;
}

struct pth_value *state_of_tensor(struct state_writer *w, const struct det_tensor *t)
{
    size_t bytes = det_tensor_bytes(t);
    void *copy = state_staging_take(w->staging, bytes);
    if (w->measures)
        return pth_none(w->doc);
    if (!copy)
        copy = pth_doc_try_alloc(w->doc, bytes + 1);
    if (!copy) {
        det_fail(w->err, DET_ENOMEM, "a copy of %zu bytes of state", bytes);
        return NULL;
    }
    if (!copy_of_tensor(w, t, copy, bytes))
        return NULL;
    return pth_tensor(w->doc, pth_of_dtype(det_tensor_dtype(t)), det_tensor_ndim(t),
                      det_tensor_dims(t), copy);
}

struct pth_value *state_of_model(struct state_writer *w, struct det_module *m)
{
    size_t n;
    const struct det_named_tensor *state = det_module_state(m, &n);
    struct pth_value *dict = pth_ordered_dict(w->doc);
    for (size_t i = 0; i < n; i++) {
        struct pth_value *v = state_of_tensor(w, state[i].tensor);
        if (!v)
            return NULL;
        pth_put(w->doc, dict, state[i].name, v);
    }
    return dict;
}

struct det_tensor *state_tensor(const struct pth_value *v, enum det_dtype dtype,
                                struct det_err *err)
{
    if (pth_kind(v) != PTH_TENSOR) {
        det_fail(err, DET_EINVAL, "it is a %s, not a tensor", pth_kind_name(pth_kind(v)));
        return NULL;
    }
    struct det_tensor *t = det_host_tensor(dtype, pth_tensor_ndim(v), pth_tensor_dims(v), err);
    if (t && pth_tensor_read(v, dtype, det_tensor_data(t), det_tensor_bytes(t), err) < 0) {
        det_tensor_unref(t);
        return NULL;
    }
    return t;
}

/* A model saved under DistributedDataParallel has "module." before every name. */
static const char *plain_name(const char *name, bool ddp)
{
    return ddp ? name + strlen("module.") : name;
}

static bool is_ddp(const struct pth_value *state)
{
    const struct pth_value *key;
    for (size_t i = 0; pth_item(state, i, &key); i++)
        if (strncmp(pth_as_str(key, ""), "module.", 7) != 0)
            return false;
    return pth_len(state) > 0;
}

/* The type of the model's tensor of that name, else the file's own. */
static enum det_dtype dtype_in(const struct det_named_tensor *state, size_t n, const char *name,
                               const struct pth_value *v)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(state[i].name, name) == 0)
            return det_tensor_dtype(state[i].tensor);
    return pth_kind(v) == PTH_TENSOR ? pth_to_dtype(pth_tensor_dtype(v)) : DET_F32;
}

/* The name in the model of a name in the file; NULL: it is left out. */
static const char *name_in_model(const struct det_weights_options *o, const char *name)
{
    size_t prefix = o->prefix ? strlen(o->prefix) : 0;
    if (prefix && strncmp(name, o->prefix, prefix) != 0)
        return NULL;
    return o->map ? o->map(o->map_arg, name + prefix) : name + prefix;
}

/* Fills list[0..*n) from the file; what was made is in the list also on failure. */
static int read_tensors(const struct pth_value *state, struct det_module *m,
                        const struct det_weights_options *o, struct det_named_tensor *list,
                        size_t *n, struct det_err *err)
{
    size_t known_n;
    const struct pth_value *key, *v;
    const struct det_named_tensor *known = det_module_state(m, &known_n);
    bool ddp = is_ddp(state);
    for (size_t i = 0; (v = pth_item(state, i, &key)) != NULL; i++) {
        const char *name = pth_as_str(key, NULL);
        if (!name)
            return det_fail(err, DET_EINVAL, "a key that is not a string");
        name = name_in_model(o, plain_name(name, ddp));
        if (!name)
            continue;
        list[*n].name = name;
        list[*n].tensor = state_tensor(v, dtype_in(known, known_n, name, v), err);
        if (!list[*n].tensor)
            return det_wrap(err, DET_EINVAL, "%s", name);
        ++*n;
    }
    return 0;
}

int state_to_model(const struct pth_value *state, struct det_module *m,
                   const struct det_weights_options *o, struct det_err *err)
{
    size_t n = 0;
    if (pth_kind(state) != PTH_DICT)
        return det_fail(err, DET_EINVAL, "a dict is needed, not a %s",
                        pth_kind_name(pth_kind(state)));
    struct det_named_tensor *list = det_zalloc((pth_len(state) + 1) * sizeof *list);
    int rc = read_tensors(state, m, o, list, &n, err);
    if (rc == 0)
        rc = det_module_load_state(m, list, n, !o->partial, err);
    for (size_t i = 0; i < n; i++)
        det_tensor_unref(list[i].tensor);
    free(list);
    return rc;
}
