/* Values as a pickle of protocol 2, as torch.save writes it (but without its memo: no value is
 * referred to twice). Opcodes: Python's pickletools. */
#include "mem.h"
#include "pth_impl.h"
#include <stdio.h>
#include <string.h>

struct pickler {
    struct buf *out;
    struct pth_tensor_list *tensors;
    struct det_err *err;
};

static int put_value(struct pickler *p, const struct pth_value *v, int depth);

static void put_u32(struct buf *out, uint32_t v)
{
    const char b[4] = {(char)v, (char)(v >> 8), (char)(v >> 16), (char)(v >> 24)};
    buf_add(out, b, 4);
}

static void put_int(struct buf *out, int64_t v)
{
    if (v >= INT32_MIN && v <= INT32_MAX) {
        buf_add_ch(out, 'J'); /* BININT */
        put_u32(out, (uint32_t)(int32_t)v);
        return;
    }
    buf_add(out, "\x8a\x08", 2); /* LONG1 of 8 bytes */
    put_u32(out, (uint32_t)v);
    put_u32(out, (uint32_t)((uint64_t)v >> 32));
}

static void put_float(struct buf *out, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    buf_add_ch(out, 'G'); /* BINFLOAT, big-endian */
    for (int i = 7; i >= 0; i--)
        buf_add_ch(out, (char)(bits >> (8 * i)));
}

static void put_str(struct buf *out, const char *s, size_t n)
{
    buf_add_ch(out, 'X'); /* BINUNICODE */
    put_u32(out, (uint32_t)n);
    buf_add(out, s, n);
}

static void put_global(struct buf *out, const char *module, const char *name)
{
    buf_addf(out, "c%s\n%s\n", module, name);
}

static void put_dims(struct buf *out, int n, const int64_t *v)
{
    buf_add_ch(out, '(');
    for (int i = 0; i < n; i++)
        put_int(out, v[i]);
    buf_add_ch(out, 't');
}

/* torch._utils._rebuild_tensor_v2(storage, 0, size, stride, False, OrderedDict()) */
static int put_tensor(struct pickler *p, const struct pth_tensor_view *t)
{
    char key[24];
    struct pth_tensor_list *list = p->tensors;
    if (!list)
        return det_fail(p->err, DET_EINVAL, "a tensor cannot be in a bare pickle");
    if (!pth_view_contiguous(t))
        return det_fail(p->err, DET_EINVAL,
                        "a tensor with strides of its own cannot be saved: "
                        "save a copy of its elements");
    if (list->n == list->cap) {
        list->cap = list->cap ? 2 * list->cap : 64;
        list->v = det_reallocarray(list->v, list->cap, sizeof *list->v);
    }
    int n = snprintf(key, sizeof key, "%zu", list->n);
    list->v[list->n++] = t;
    put_global(p->out, "torch._utils", "_rebuild_tensor_v2");
    buf_add_str(p->out, "((");
    put_str(p->out, "storage", 7);
    put_global(p->out, "torch", pth_dtype_storage(t->dtype));
    put_str(p->out, key, (size_t)n);
    put_str(p->out, "cpu", 3);
    put_int(p->out, pth_view_numel(t));
    buf_add_str(p->out, "tQ"); /* TUPLE, BINPERSID */
    put_int(p->out, 0);
    put_dims(p->out, t->ndim, t->dims);
    put_dims(p->out, t->ndim, t->strides);
    buf_add_ch(p->out, '\x89'); /* NEWFALSE */
    put_global(p->out, "collections", "OrderedDict");
    buf_add_str(p->out, ")RtR");
    return 0;
}

static int put_items(struct pickler *p, const struct pth_value *v, const char *end, int depth)
{
    buf_add_ch(p->out, '(');
    for (size_t i = 0; i < v->seq.n; i++) {
        int rc = put_value(p, v->seq.v[i], depth + 1);
        if (rc < 0)
            return rc;
    }
    buf_add_str(p->out, end);
    return 0;
}

/* Counter({...}) */
static int put_counter(struct pickler *p, const struct pth_value *v, int depth)
{
    put_global(p->out, "collections", "Counter");
    buf_add_ch(p->out, '}');
    int rc = put_items(p, v, "u", depth);
    buf_add_str(p->out, "\x85R"); /* TUPLE1, REDUCE */
    return rc;
}

static int put_dict(struct pickler *p, const struct pth_value *v, int depth)
{
    if (v->counter)
        return put_counter(p, v, depth);
    if (v->ordered) {
        put_global(p->out, "collections", "OrderedDict");
        buf_add_str(p->out, ")R");
    } else {
        buf_add_ch(p->out, '}');
    }
    return put_items(p, v, "u", depth);
}

static int put_value(struct pickler *p, const struct pth_value *v, int depth)
{
    if (depth > PTH_DEPTH_MAX)
        return det_fail(p->err, DET_EINVAL, "values are nested more than %d deep", PTH_DEPTH_MAX);
    switch (v->kind) {
    case PTH_NONE: buf_add_ch(p->out, 'N'); return 0;
    case PTH_BOOL: buf_add_ch(p->out, v->i ? '\x88' : '\x89'); return 0;
    case PTH_INT: put_int(p->out, v->i); return 0;
    case PTH_FLOAT: put_float(p->out, v->f); return 0;
    case PTH_STR: put_str(p->out, v->str.p, v->str.n); return 0;
    case PTH_LIST: buf_add_ch(p->out, ']'); return put_items(p, v, "e", depth);
    case PTH_TUPLE: return put_items(p, v, "t", depth);
    case PTH_DICT: return put_dict(p, v, depth);
    case PTH_TENSOR: return put_tensor(p, v->tensor);
    default: return det_fail(p->err, DET_EINVAL, "a %s cannot be pickled", pth_kind_name(v->kind));
    }
}

int pth_pickle(struct buf *out, const struct pth_value *root, struct pth_tensor_list *tensors,
               struct det_err *err)
{
    struct pickler p = {.out = out, .tensors = tensors, .err = err};
    buf_add(out, "\x80\x02", 2); /* PROTO 2 */
    int rc = put_value(&p, root, 0);
    buf_add_ch(out, '.');
    if (rc == 0 && out->len > PTH_PICKLE_MAX)
        return det_fail(err, DET_ETOOBIG, "a pickle of %zu bytes", out->len);
    return rc;
}
