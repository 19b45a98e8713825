/* Optimizers {'state': {0: {...}}, 'param_groups': [{..., 'params': [0, 1]}]} and LR schedulers. */
#include "trial_state_impl.h"

#include <string.h>

/* ---- optimizers ---- */

static struct pth_value *group_of(struct state_writer *w, struct det_optim *o, size_t g)
{
    size_t n, first = 0;
    const struct det_value *values = det_optim_group_values(o, g, &n);
    struct pth_value *dict = pth_dict(w->doc), *params = pth_list(w->doc);
    if (!state_put_values(w, dict, values, n))
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
        if (!state_put_values(w, dict, values, n))
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
        int rc = state_load_value(&l, pth_as_str(key, ""), x, err);
        if (rc == 0)
            rc = det_optim_load_param_state(o, (size_t)param, &l.v, err);
        state_loaded_finish(&l);
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
        int rc = state_load_value(&l, name, x, err);
        if (rc == 0)
            rc = det_optim_load_group_value(o, g, &l.v, err);
        state_loaded_finish(&l);
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
    return state_put_values(w, dict, values, n) ? dict : NULL;
}

int state_to_lr(const struct pth_value *state, struct det_lr *lr, struct det_err *err)
{
    struct loaded l;
    int rc = state_load_dict(&l, state, err);
    if (rc == 0)
        rc = det_lr_load_state(lr, l.dict.v, l.dict.n, err);
    state_loaded_finish(&l);
    return rc;
}
