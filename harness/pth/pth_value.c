#include "mem.h"
#include "pth_impl.h"
#include <string.h>

#define CHUNK ((size_t)64 << 10)

struct chunk {
    struct chunk *next;
    size_t used, size;
    _Alignas(16) char bytes[];
};

struct pth_doc {
    struct chunk *chunks;
    size_t values;
};

struct pth_doc *pth_doc_create(void)
{
    return det_zalloc(sizeof(struct pth_doc));
}

void pth_doc_destroy(struct pth_doc *doc)
{
    if (!doc)
        return;
    for (struct chunk *c = doc->chunks, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    free(doc);
}

void *pth_doc_try_alloc(struct pth_doc *doc, size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    struct chunk *c = doc->chunks;
    if (!c || c->size - c->used < bytes) {
        size_t size = bytes > CHUNK ? bytes : CHUNK;
        c = det_try_alloc(sizeof *c + size);
        if (!c)
            return NULL;
        *c = (struct chunk){.next = doc->chunks, .size = size};
        doc->chunks = c;
    }
    void *p = c->bytes + c->used;
    c->used += bytes;
    return p;
}

void *pth_doc_alloc(struct pth_doc *doc, size_t bytes)
{
    void *p = pth_doc_try_alloc(doc, bytes);
    if (!p)
        abort();
    return p;
}

struct pth_value *pth_new(struct pth_doc *doc, int kind)
{
    if (doc->values == PTH_VALUES_MAX)
        return NULL;
    doc->values++;
    struct pth_value *v = pth_doc_alloc(doc, sizeof *v);
    *v = (struct pth_value){.kind = (uint8_t)kind, .places = 1};
    return v;
}

/* ---- types ---- */

static const struct {
    const char *storage;
    size_t size;
} dtypes[PTH_DTYPE_COUNT] = {
    [PTH_F32] = {"FloatStorage", 4}, [PTH_F64] = {"DoubleStorage", 8},
    [PTH_F16] = {"HalfStorage", 2},  [PTH_BF16] = {"BFloat16Storage", 2},
    [PTH_I64] = {"LongStorage", 8},  [PTH_I32] = {"IntStorage", 4},
    [PTH_I16] = {"ShortStorage", 2}, [PTH_I8] = {"CharStorage", 1},
    [PTH_U8] = {"ByteStorage", 1},   [PTH_B8] = {"BoolStorage", 1},
};

size_t pth_dtype_size(enum pth_dtype dtype)
{
    return dtypes[dtype].size;
}

const char *pth_dtype_storage(enum pth_dtype dtype)
{
    return dtypes[dtype].storage;
}

const char *pth_kind_name(enum pth_kind kind)
{
    static const char *const names[PTH_KIND_COUNT] = {
        "None", "bool", "int", "float", "str", "bytes", "list", "tuple", "dict", "tensor", "object",
    };
    return (unsigned)kind < PTH_KIND_COUNT ? names[kind] : "object";
}

/* ---- making: a program's own values; PTH_VALUES_MAX of them is a mistake of ours ---- */

static struct pth_value *make_value(struct pth_doc *doc, int kind)
{
    struct pth_value *v = pth_new(doc, kind);
    if (!v)
        abort();
    return v;
}

struct pth_value *pth_none(struct pth_doc *doc)
{
    return make_value(doc, PTH_NONE);
}

struct pth_value *pth_bool(struct pth_doc *doc, bool v)
{
    struct pth_value *x = make_value(doc, PTH_BOOL);
    x->i = v;
    return x;
}

struct pth_value *pth_int(struct pth_doc *doc, int64_t v)
{
    struct pth_value *x = make_value(doc, PTH_INT);
    x->i = v;
    return x;
}

struct pth_value *pth_float(struct pth_doc *doc, double v)
{
    struct pth_value *x = make_value(doc, PTH_FLOAT);
    x->f = v;
    return x;
}

struct pth_value *pth_str(struct pth_doc *doc, const char *s)
{
    struct pth_value *x = make_value(doc, PTH_STR);
    size_t n = strlen(s);
    char *p = pth_doc_alloc(doc, n + 1);
    memcpy(p, s, n + 1);
    x->str.p = p;
    x->str.n = n;
    return x;
}

struct pth_value *pth_list(struct pth_doc *doc)
{
    return make_value(doc, PTH_LIST);
}

struct pth_value *pth_tuple(struct pth_doc *doc)
{
    return make_value(doc, PTH_TUPLE);
}

struct pth_value *pth_dict(struct pth_doc *doc)
{
    return make_value(doc, PTH_DICT);
}

struct pth_value *pth_ordered_dict(struct pth_doc *doc)
{
    struct pth_value *x = make_value(doc, PTH_DICT);
    x->ordered = true;
    return x;
}

struct pth_value *pth_counter(struct pth_doc *doc)
{
    struct pth_value *x = make_value(doc, PTH_DICT);
    x->counter = true;
    return x;
}

struct pth_value *pth_tensor(struct pth_doc *doc, enum pth_dtype dtype, int ndim,
                             const int64_t *dims, const void *data)
{
    struct pth_value *x = make_value(doc, PTH_TENSOR);
    int64_t stride = 1;
    x->tensor = pth_doc_alloc(doc, sizeof *x->tensor);
    *x->tensor = (struct pth_tensor_view){.dtype = dtype, .ndim = ndim, .data = data};
    for (int i = ndim - 1; i >= 0; i--) {
        x->tensor->dims[i] = dims[i];
        x->tensor->strides[i] = stride;
        stride *= dims[i];
    }
    return x;
}

void pth_seq_add(struct pth_doc *doc, struct pth_value *seq, struct pth_value *v)
{
    if (seq->seq.n == seq->seq.cap) {
        size_t cap = seq->seq.cap ? seq->seq.cap * 2 : 4;
        struct pth_value **grown = pth_doc_alloc(doc, cap * sizeof(*grown));
        if (seq->seq.n)
            memcpy(grown, seq->seq.v, seq->seq.n * sizeof(*grown));
        seq->seq.v = grown;
        seq->seq.cap = cap;
    }
    seq->seq.v[seq->seq.n++] = v;
}

void pth_push(struct pth_doc *doc, struct pth_value *seq, struct pth_value *v)
{
    pth_seq_add(doc, seq, v);
}

void pth_put(struct pth_doc *doc, struct pth_value *dict, const char *key, struct pth_value *v)
{
    pth_seq_add(doc, dict, pth_str(doc, key));
    pth_seq_add(doc, dict, v);
}

void pth_put_int(struct pth_doc *doc, struct pth_value *dict, int64_t key, struct pth_value *v)
{
    pth_seq_add(doc, dict, pth_int(doc, key));
    pth_seq_add(doc, dict, v);
}

/* ---- changing ---- */

/* Where the last value of `key` lies in dict->seq; 0: nowhere (a value is never first). */
static size_t place_of(const struct pth_value *dict, const char *key)
{
    size_t n = dict && dict->kind == PTH_DICT ? dict->seq.n : 0;
    for (; n > 0; n -= 2) {
        const struct pth_value *k = dict->seq.v[n - 2];
        if (k->kind == PTH_STR && strcmp(k->str.p, key) == 0)
            return n - 1;
    }
    return 0;
}

void pth_set(struct pth_doc *doc, struct pth_value *dict, const char *key, struct pth_value *v)
{
    size_t at = place_of(dict, key);
    if (at)
        dict->seq.v[at] = v;
    else
        pth_put(doc, dict, key, v);
}

bool pth_remove(struct pth_value *dict, const char *key)
{
    size_t at = place_of(dict, key);
    if (!at)
        return false;
    memmove(&dict->seq.v[at - 1], &dict->seq.v[at + 1],
            (dict->seq.n - at - 1) * sizeof *dict->seq.v);
    dict->seq.n -= 2;
    return true;
}

bool pth_rename(struct pth_doc *doc, struct pth_value *dict, const char *key, const char *to)
{
    size_t at = place_of(dict, key);
    if (at)
        dict->seq.v[at - 1] = pth_str(doc, to);
    return at != 0;
}

/* ---- reading ---- */

enum pth_kind pth_kind(const struct pth_value *v)
{
    return v ? (enum pth_kind)v->kind : PTH_NONE;
}

static bool is_kind(const struct pth_value *v, int kind)
{
    return v && v->kind == kind;
}

size_t pth_len(const struct pth_value *v)
{
    if (is_kind(v, PTH_DICT))
        return v->seq.n / 2;
    return is_kind(v, PTH_LIST) || is_kind(v, PTH_TUPLE) ? v->seq.n : 0;
}

const struct pth_value *pth_at(const struct pth_value *seq, size_t i)
{
    return !is_kind(seq, PTH_DICT) && i < pth_len(seq) ? seq->seq.v[i] : NULL;
}

const struct pth_value *pth_item(const struct pth_value *dict, size_t i,
                                 const struct pth_value **ret_key)
{
    if (!is_kind(dict, PTH_DICT) || i >= dict->seq.n / 2)
        return NULL;
    *ret_key = dict->seq.v[2 * i];
    return dict->seq.v[2 * i + 1];
}

const struct pth_value *pth_get(const struct pth_value *dict, const char *key)
{
    size_t at = place_of(dict, key);
    return at ? dict->seq.v[at] : NULL;
}

int64_t pth_as_int(const struct pth_value *v, int64_t fallback)
{
    return is_kind(v, PTH_INT) || is_kind(v, PTH_BOOL) ? v->i : fallback;
}

double pth_as_float(const struct pth_value *v, double fallback)
{
    if (is_kind(v, PTH_FLOAT))
        return v->f;
    return is_kind(v, PTH_INT) || is_kind(v, PTH_BOOL) ? (double)v->i : fallback;
}

const char *pth_as_str(const struct pth_value *v, const char *fallback)
{
    return is_kind(v, PTH_STR) ? v->str.p : fallback;
}
