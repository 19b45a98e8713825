/* Named values of optimizers and schedulers as values of a file, and back. */
#include "mem.h"
#include "trial_state_impl.h"

#include <stdlib.h>
#include <string.h>

#define NESTED_MAX 4 /* a sequence's schedulers are one level deep */

/* ---- out ---- */

static struct pth_value *floats_of(struct pth_doc *doc, struct pth_value *seq, const double *v,
                                   size_t n)
{
    for (size_t i = 0; i < n; i++)
        pth_push(doc, seq, pth_float(doc, v[i]));
    return seq;
}

static struct pth_value *ints_of(struct pth_doc *doc, const struct det_value *v)
{
    struct pth_value *list = pth_list(doc);
    for (size_t i = 0; i < v->n; i++)
        pth_push(doc, list, pth_int(doc, (int64_t)v->floats[i]));
    return list;
}

static struct pth_value *nones_of(struct pth_doc *doc, size_t n)
{
    struct pth_value *list = pth_list(doc);
    for (size_t i = 0; i < n; i++)
        pth_push(doc, list, pth_none(doc));
    return list;
}

static struct pth_value *counts_of(struct pth_doc *doc, const struct det_value *v)
{
    struct pth_value *counter = pth_counter(doc);
    for (size_t i = 0, same; i < v->n; i += same) {
        for (same = 1; i + same < v->n && v->floats[i + same] == v->floats[i];)
            same++;
        pth_put_int(doc, counter, (int64_t)v->floats[i], pth_int(doc, (int64_t)same));
    }
    return counter;
}

static struct pth_value *dicts_of(struct state_writer *w, const struct det_value *v)
{
    struct pth_value *list = pth_list(w->doc);
    for (size_t i = 0; i < v->n; i++) {
        struct pth_value *dict = pth_dict(w->doc);
        if (!state_put_values(w, dict, v->dicts[i].v, v->dicts[i].n))
            return NULL;
        pth_push(w->doc, list, dict);
    }
    return list;
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
    case DET_VALUE_STR: return pth_str(w->doc, v->str);
    case DET_VALUE_INTS: return ints_of(w->doc, v);
    case DET_VALUE_NONES: return nones_of(w->doc, v->n);
    case DET_VALUE_COUNTS: return counts_of(w->doc, v);
    case DET_VALUE_DICTS: return dicts_of(w, v);
    case DET_VALUE_NONE: break;
    }
    return pth_none(w->doc);
}

bool state_put_values(struct state_writer *w, struct pth_value *dict, const struct det_value *v,
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

/* ---- in ---- */

void state_loaded_finish(struct loaded *l)
{
    if (l->v.kind == DET_VALUE_TENSOR)
        det_tensor_unref(l->v.tensor);
    for (size_t i = 0; i < l->parts_n; i++)
        state_loaded_finish(&l->parts[i]);
    free(l->parts);
    free(l->dicts);
    free(l->values);
    free(l->floats);
    *l = (struct loaded){0};
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

static int load_list(struct loaded *l, const struct pth_value *seq, int depth, struct det_err *err);

/* {5: 2, 9: 1} as 5, 5, 9. */
static int load_counts(struct loaded *l, const struct pth_value *dict, struct det_err *err)
{
    const struct pth_value *key, *x;
    size_t n = 0, at = 0;
    for (size_t i = 0; (x = pth_item(dict, i, &key)) != NULL; i++) {
        int64_t times = pth_as_int(x, -1);
        if (pth_kind(key) != PTH_INT || times < 0 || times > 1 << 20 || n > 1 << 20)
            return det_fail(err, DET_EINVAL, "a dict that does not count integers");
        n += (size_t)times;
    }
    l->floats = det_alloc((n + 1) * sizeof *l->floats);
    for (size_t i = 0; (x = pth_item(dict, i, &key)) != NULL; i++)
        for (int64_t k = 0; k < pth_as_int(x, 0); k++)
            l->floats[at++] = (double)pth_as_int(key, 0);
    l->v.kind = DET_VALUE_COUNTS;
    l->v.floats = l->floats;
    l->v.n = n;
    return 0;
}

/* Of a number or a vector that an optimizer keeps. */
static enum det_dtype dtype_of(const struct pth_value *x)
{
    return pth_tensor_dtype(x) == PTH_I64   ? DET_I64
           : pth_tensor_dtype(x) == PTH_F64 ? DET_F64
                                            : DET_F32;
}

static int load_value(struct loaded *l, const char *name, const struct pth_value *x, int depth,
                      struct det_err *err)
{
    *l = (struct loaded){.v = {.name = name}};
    switch (pth_kind(x)) {
    case PTH_NONE: l->v.kind = DET_VALUE_NONE; return 0;
    case PTH_BOOL:
        l->v.kind = DET_VALUE_BOOL;
        l->v.i = pth_as_int(x, 0);
        return 0;
    case PTH_INT:
        l->v.kind = DET_VALUE_INT;
        l->v.i = pth_as_int(x, 0);
        return 0;
    case PTH_FLOAT:
        l->v.kind = DET_VALUE_FLOAT;
        l->v.f = pth_as_float(x, 0);
        return 0;
    case PTH_STR:
        l->v.kind = DET_VALUE_STR;
        l->v.str = pth_as_str(x, "");
        return 0;
    case PTH_LIST:
    case PTH_TUPLE: return load_list(l, x, depth, err);
    case PTH_DICT: return load_counts(l, x, err);
    case PTH_TENSOR:
        l->v.tensor = state_tensor(x, dtype_of(x), err);
        l->v.kind = l->v.tensor ? DET_VALUE_TENSOR : DET_VALUE_NONE;
        return l->v.tensor ? 0 : DET_EINVAL;
    case PTH_BYTES:
    case PTH_OPAQUE:
    case PTH_KIND_COUNT: break;
    }
    return det_fail(err, DET_EINVAL, "a %s is not understood", pth_kind_name(pth_kind(x)));
}

int state_load_value(struct loaded *l, const char *name, const struct pth_value *x,
                     struct det_err *err)
{
    return load_value(l, name, x, 0, err);
}

static int load_dict(struct loaded *l, const struct pth_value *dict, int depth, struct det_err *err)
{
    const struct pth_value *key, *x;
    int rc = 0;
    *l = (struct loaded){0};
    if (pth_kind(dict) != PTH_DICT || depth > NESTED_MAX)
        return det_fail(err, DET_EINVAL, "a dict is needed, not a %s",
                        pth_kind_name(pth_kind(dict)));
    l->parts = det_zalloc((pth_len(dict) + 1) * sizeof *l->parts);
    l->values = det_zalloc((pth_len(dict) + 1) * sizeof *l->values);
    for (size_t i = 0; rc == 0 && (x = pth_item(dict, i, &key)) != NULL; i++) {
        rc = load_value(&l->parts[l->parts_n++], pth_as_str(key, ""), x, depth + 1, err);
        if (rc < 0)
            det_wrap(err, rc, "%s", pth_as_str(key, ""));
        l->values[i] = l->parts[i].v;
    }
    l->dict = (struct det_values){l->values, l->parts_n};
    return rc;
}

int state_load_dict(struct loaded *l, const struct pth_value *dict, struct det_err *err)
{
    return load_dict(l, dict, 0, err);
}

static int load_list(struct loaded *l, const struct pth_value *seq, int depth, struct det_err *err)
{
    size_t n = pth_len(seq);
    enum pth_kind first = n ? pth_kind(pth_at(seq, 0)) : PTH_FLOAT;
    int rc = 0;
    if (first == PTH_NONE) {
        l->v.kind = DET_VALUE_NONES;
        l->v.n = n;
        return 0;
    }
    if (first != PTH_DICT)
        return load_floats(l, seq, err);
    l->parts = det_zalloc(n * sizeof *l->parts);
    l->dicts = det_zalloc(n * sizeof *l->dicts);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        rc = load_dict(&l->parts[l->parts_n++], pth_at(seq, i), depth + 1, err);
        l->dicts[i] = l->parts[i].dict;
    }
    l->v.kind = DET_VALUE_DICTS;
    l->v.dicts = l->dicts;
    l->v.n = n;
    return rc;
}
