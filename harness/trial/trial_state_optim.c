/* Optimizers {'state': {0: {...}}, 'param_groups': [{..., 'params': [0, 1]}]} and LR schedulers. */
#include "mem.h"
#include "trial_state_impl.h"

#include <string.h>

/* ---- one named value ---- */

static struct pth_value *floats_of(struct pth_doc *doc, struct pth_value *seq, const double *v,
                                   size_t n)
{
    for (size_t i = 0; i < n; i++)
        pth_push(doc, seq, pth_float(doc, v[i]));
    return seq;
}

static struct pth_value *value_of(struct state_writer *w, const struct det_value *v)
{
    switch (v->kind) {
    case DET_VALUE_BOOL: return pth_bool(w->doc, v->i != 0);
    case DET_VALUE_INT: return pth_int(w->doc, v->i);
    case DET_VALUE_FLOAT: return pth_float(w->doc, v->f);
    case DET_VALUE_PAIR: return floats_of(w->doc, pth_tuple(w->doc), v->pair, 2);
    case DET_VALUE_FLOATS: return floats_of(w->doc, pth_list(w->doc), v->floats, v->n);
    case DET_VALUE_TENSOR: return state_of_tensor(w, v->tensor);
    default: return pth_none(w->doc);
    }
}

static bool put_values(struct state_writer *w, struct pth_value *dict, const struct det_value *v,
                       size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct pth_value *x = value_of(w, &v[i]);
        if (!x)
            return false;
        pth_put(w->doc, dict, v[i].name, x);
    }
    return true;
}

/* What a value read from a file needs while it is handed over. */
struct loaded {
    struct det_value v;
    double *floats;
};

static void loaded_finish(struct loaded *l)
{
    if (l->v.kind == DET_VALUE_TENSOR)
        det_tensor_unref(l->v.tensor);
    free(l->floats);
}

static int load_floats(struct loaded *l, const struct pth_value *seq, struct det_err *err)
{
    size_t n = pth_len(seq);
    l->floats = det_alloc((n + 1) * sizeof *l->floats);
    for (size_t i = 0; i < n; i++) {
        enum pth_kind kind = pth_kind(pth_at(seq, i));
        if (kind != PTH_FLOAT && kind != PTH_INT)
            return det_fail(err, DET_EINVAL, "a %s in a list of numbers", pth_kind_name(kind));
        l->floats[i] = pth_as_float(pth_at(seq, i), 0);
    }
    l->v.kind = pth_kind(seq) == PTH_TUPLE && n == 2 ? DET_VALUE_PAIR : DET_VALUE_FLOATS;
    if (l->v.kind == DET_VALUE_PAIR)
        memcpy(l->v.pair, l->floats, sizeof l->v.pair);
    l->v.floats = l->floats;
    l->v.n = n;
    return 0;
}

static int load_value(struct loaded *l, const char *name, const struct pth_value *x,
                      struct det_err *err)
{
    *l = (struct loaded){.v = {.name = name}};
    switch (pth_kind(x)) {
    case PTH_NONE: l->v.kind = DET_VALUE_NONE; return 0;
    case PTH_BOOL: l->v.kind = DET_VALUE_BOOL; l->v.i = pth_as_int(x, 0); return 0;
    case PTH_INT: l->v.kind = DET_VALUE_INT; l->v.i = pth_as_int(x, 0); return 0;
    case PTH_FLOAT: l->v.kind = DET_VALUE_FLOAT; l->v.f = pth_as_float(x, 0); return 0;
    case PTH_LIST:
    case PTH_TUPLE: return load_floats(l, x, err);
    case PTH_TENSOR:
        l->v.tensor = state_tensor(x, pth_tensor_dtype(x) == PTH_I64 ? DET_I64 : DET_F32, err);
        l->v.kind = l->v.tensor ? DET_VALUE_TENSOR : DET_VALUE_NONE;
        return l->v.tensor ? 0 : DET_EINVAL;
    default:
        return det_fail(err, DET_EINVAL, "a %s is not understood", pth_kind_name(pth_kind(x)));
    }
}

/* ---- optimizers ---- */

static struct pth_value *group_of(struct state_writer *w, struct det_optim *o, size_t g)
{
    size_t n, first = 0;
    const struct det_value *values = det_optim_group_values(o, g, &n);
    struct pth_value *dict = pth_dict(w->doc), *params = pth_list(w->doc);
    if (!put_values(w, dict, values, n))
        return NULL;
    size_t count = det_optim_group_params(o, g, &first);
    for (size_t i = 0; i < count; i++)
        pth_push(w->doc, params, pth_int(w->doc, (int64_t)(first + i)));
    pth_put(w->doc, dict, "params", params);
    return dict;
}

struct pth_value *state_of_optim(struct state_writer *w, struct det_optim *o)
{
    struct pth_value *root = pth_dict(w->doc), *state = pth_dict(w->doc);
    struct pth_value *groups = pth_list(w->doc);
    for (size_t p = 0; p < det_optim_param_count(o); p++) {
        size_t n;
        const struct det_value *values = det_optim_param_state(o, p, &n);
        struct pth_value *dict = pth_dict(w->doc);
        if (!put_values(w, dict, values, n))
            return NULL;
        if (n)
            pth_put_int(w->doc, state, (int64_t)p, dict);
    }
    for (size_t g = 0; g < det_optim_groups(o); g++) {
        struct pth_value *v = group_of(w, o, g);
        if (!v)
            return NULL;
        pth_push(w->doc, groups, v);
    }
    pth_put(w->doc, root, "state", state);
    pth_put(w->doc, root, "param_groups", groups);
    return root;
}

static int load_param(struct det_optim *o, int64_t param, const struct pth_value *dict,
                      struct det_err *err)
{
    const struct pth_value *key, *x;
    if (param < 0 || (size_t)param >= det_optim_param_count(o))
        return det_fail(err, DET_EINVAL, "there is no parameter %lld", (long long)param);
    for (size_t i = 0; (x = pth_item(dict, i, &key)) != NULL; i++) {
        struct loaded l;
        int rc = load_value(&l, pth_as_str(key, ""), x, err);
        if (rc == 0)
            rc = det_optim_load_param_state(o, (size_t)param, &l.v, err);
        loaded_finish(&l);
        if (rc < 0)
            return det_wrap(err, rc, "state of parameter %lld: %s", (long long)param,
                            pth_as_str(key, ""));
    }
    return 0;
}

static int load_group(struct det_optim *o, size_t g, const struct pth_value *dict,
                      struct det_err *err)
{
    size_t first;
    const struct pth_value *key, *x;
    if (pth_len(pth_get(dict, "params")) != det_optim_group_params(o, g, &first))
        return det_fail(err, DET_EINVAL, "param_groups[%zu] has another number of parameters", g);
    for (size_t i = 0; (x = pth_item(dict, i, &key)) != NULL; i++) {
        struct loaded l;
        const char *name = pth_as_str(key, "");
        if (strcmp(name, "params") == 0)
            continue;
        int rc = load_value(&l, name, x, err);
        if (rc == 0)
            rc = det_optim_load_group_value(o, g, &l.v, err);
        loaded_finish(&l);
        if (rc < 0)
            return det_wrap(err, rc, "param_groups[%zu]: %s", g, name);
    }
    return 0;
}

int state_to_optim(const struct pth_value *state, struct det_optim *o, struct det_err *err)
{
    const struct pth_value *groups = pth_get(state, "param_groups");
    const struct pth_value *params = pth_get(state, "state"), *key, *x;
    int rc = 0;
    if (pth_len(groups) != det_optim_groups(o))
        return det_fail(err, DET_EINVAL, "it has %zu parameter groups, the optimizer %zu",
                        pth_len(groups), det_optim_groups(o));
    for (size_t g = 0; rc == 0 && g < det_optim_groups(o); g++)
        rc = load_group(o, g, pth_at(groups, g), err);
    for (size_t i = 0; rc == 0 && (x = pth_item(params, i, &key)) != NULL; i++)
        rc = load_param(o, pth_as_int(key, -1), x, err);
    return rc;
}

/* ---- schedulers ---- */

struct pth_value *state_of_lr(struct state_writer *w, struct det_lr *lr)
{
    size_t n;
    const struct det_value *values = det_lr_state(lr, &n);
    struct pth_value *dict = pth_dict(w->doc);
    return put_values(w, dict, values, n) ? dict : NULL;
}

int state_to_lr(const struct pth_value *state, struct det_lr *lr, struct det_err *err)
{
    const struct pth_value *key, *x;
    size_t n = 0;
    int rc = 0;
    struct loaded *l = det_zalloc((pth_len(state) + 1) * sizeof *l);
    struct det_value *values = det_zalloc((pth_len(state) + 1) * sizeof *values);
    for (size_t i = 0; rc == 0 && (x = pth_item(state, i, &key)) != NULL; i++) {
        rc = load_value(&l[n], pth_as_str(key, ""), x, err);
        if (rc < 0)
            det_wrap(err, rc, "%s", pth_as_str(key, ""));
        values[n] = l[n].v;
        n++;
    }
    if (rc == 0)
        rc = det_lr_load_state(lr, values, n, err);
    for (size_t i = 0; i < n; i++)
        loaded_finish(&l[i]);
    free(l);
    free(values);
    return rc;
}
