/*
 * A strict machine for the pickles that torch.save writes: values and a few known names, nothing
 * else.
 *
 * State: the input with a cursor, a stack of values, a stack of marks, a memo. Every opcode checks
 * what it takes from the stack; any surprise is DET_ECORRUPT with the offset. Work is bounded by
 * the bytes of the pickle: each opcode makes at most one value of bounded size, and counts that a
 * file states are checked against what is left of it.
 */
#include "mem.h"
#include "pth_impl.h"
#include "pth_vm.h"
#include "vec.h"
#include <string.h>

/* Python numbers the memo densely; tools that thin it out leave small gaps. */
#define MEMO_GAP_MAX 16

/* ---- input ---- */

static int take_bytes(struct pth_vm *vm, size_t n, const uint8_t **ret)
{
    if (n > (size_t)(vm->end - vm->p))
        return pth_vm_bad(vm, "cut short");
    *ret = vm->p;
    vm->p += n;
    return 0;
}

/* A little-endian number of n bytes. */
static int take_uint(struct pth_vm *vm, size_t n, uint64_t *ret)
{
    const uint8_t *p = NULL;
    int rc = take_bytes(vm, n, &p);
    if (rc < 0)
        return rc;
    *ret = 0;
    for (size_t i = n; i > 0; i--)
        *ret = *ret << 8 | p[i - 1];
    return 0;
}

/* ---- stack ---- */

static struct pth_value *stack_top(const struct pth_vm *vm)
{
    return vm->stack.n > pth_vm_floor(vm) ? vm->stack.v[vm->stack.n - 1] : NULL;
}

/* Takes the topmost mark: the values above it are stack.v[*ret_from .. n). */
static int pop_mark(struct pth_vm *vm, size_t *ret_from)
{
    if (vm->marks.n == 0)
        return pth_vm_bad(vm, "no mark on the stack");
    *ret_from = vm->marks.v[--vm->marks.n];
    return 0;
}

/* ---- plain values ---- */

static int push_int(struct pth_vm *vm, int kind, int64_t i)
{
    struct pth_value *v = pth_new(vm->doc, kind);
    if (v)
        v->i = i;
    return pth_vm_push(vm, v);
}

static int push_float(struct pth_vm *vm)
{
    const uint8_t *p = NULL;
    uint64_t bits = 0;
    int rc = take_bytes(vm, 8, &p);
    if (rc < 0)
        return rc;
    for (int i = 0; i < 8; i++)
        bits = bits << 8 | p[i];
    struct pth_value *v = pth_new(vm->doc, PTH_FLOAT);
    if (v)
        memcpy(&v->f, &bits, sizeof bits);
    return pth_vm_push(vm, v);
}

static int push_long1(struct pth_vm *vm)
{
    uint64_t n = 0, v = 0;
    int rc = take_uint(vm, 1, &n);
    if (rc < 0)
        return rc;
    if (n > 8)
        return pth_vm_bad(vm, "an integer above 64 bits");
    if ((rc = take_uint(vm, n, &v)) < 0)
        return rc;
    if (n > 0 && n < 8 && (v >> (8 * n - 1) & 1))
        v |= UINT64_MAX << (8 * n); /* two's complement of n bytes */
    return push_int(vm, PTH_INT, (int64_t)v);
}

static int push_bytes(struct pth_vm *vm, int kind, const void *bytes, size_t n)
{
    struct pth_value *v = pth_new(vm->doc, kind);
    if (v) {
        char *p = pth_doc_alloc(vm->doc, n + 1);
        memcpy(p, bytes, n);
        p[n] = '\0';
        v->str.p = p;
        v->str.n = n;
    }
    return pth_vm_push(vm, v);
}

/* A string whose length is a number of `len_bytes` bytes. Text with a NUL is no name of
 * anything. */
static int push_string(struct pth_vm *vm, int kind, size_t len_bytes)
{
    uint64_t n = 0;
    const uint8_t *p = NULL;
    int rc = take_uint(vm, len_bytes, &n);
    if (rc < 0 || (rc = take_bytes(vm, n, &p)) < 0)
        return rc;
    if (kind == PTH_STR && memchr(p, '\0', n))
        kind = PTH_BYTES;
    return push_bytes(vm, kind, p, n);
}

/* ---- containers ---- */

static int push_seq(struct pth_vm *vm, int kind)
{
    return pth_vm_push(vm, pth_new(vm->doc, kind));
}

static int tuple_from(struct pth_vm *vm, size_t from)
{
    struct pth_value *v = pth_new(vm->doc, PTH_TUPLE);
    for (size_t i = from; v && i < vm->stack.n; i++)
        pth_seq_add(vm->doc, v, vm->stack.v[i]);
    vm->stack.n = from;
    return pth_vm_push(vm, v);
}

static int tuple_of(struct pth_vm *vm, size_t n)
{
    if (vm->stack.n - pth_vm_floor(vm) < n)
        return pth_vm_bad(vm, "the stack is empty");
    return tuple_from(vm, vm->stack.n - n);
}

static int tuple_mark(struct pth_vm *vm)
{
    size_t from = 0;
    int rc = pop_mark(vm, &from);
    return rc < 0 ? rc : tuple_from(vm, from);
}

/* Moves the values from `from` on into the list or dict beneath them. */
static int add_items(struct pth_vm *vm, size_t from, int kind)
{
    size_t n = vm->stack.n - from;
    if (from <= pth_vm_floor(vm) || vm->stack.v[from - 1]->kind != kind)
        return pth_vm_bad(vm, "items for something that is not a list or a dict");
    if (kind == PTH_DICT && n % 2)
        return pth_vm_bad(vm, "a dict with a key without a value");
    struct pth_value *to = vm->stack.v[from - 1];
    for (size_t i = from; i < vm->stack.n; i++) {
        if (kind == PTH_DICT && (i - from) % 2 == 0 && vm->stack.v[i]->kind > PTH_BYTES)
            return pth_vm_bad(vm, "a dict's key is not a plain value");
        pth_seq_add(vm->doc, to, vm->stack.v[i]);
    }
    vm->stack.n = from;
    return 0;
}

static int add_marked(struct pth_vm *vm, int kind)
{
    size_t from = 0;
    int rc = pop_mark(vm, &from);
    return rc < 0 ? rc : add_items(vm, from, kind);
}

static int add_last(struct pth_vm *vm, size_t n, int kind)
{
    if (vm->stack.n - pth_vm_floor(vm) < n + 1)
        return pth_vm_bad(vm, "the stack is empty");
    return add_items(vm, vm->stack.n - n, kind);
}

/* ---- memo ---- */

static int memo_put(struct pth_vm *vm, size_t len_bytes)
{
    uint64_t at = vm->memo.n;
    int rc = len_bytes ? take_uint(vm, len_bytes, &at) : 0;
    if (rc < 0)
        return rc;
    if (!stack_top(vm))
        return pth_vm_bad(vm, "the stack is empty");
    if (at > vm->memo.n + MEMO_GAP_MAX)
        return pth_vm_bad(vm, "a memo index out of order");
    while (vm->memo.n <= at)
        vec_push(&vm->memo, NULL);
    vm->memo.v[at] = stack_top(vm);
    return 0;
}

static int memo_get(struct pth_vm *vm, size_t len_bytes)
{
    uint64_t at = 0;
    int rc = take_uint(vm, len_bytes, &at);
    if (rc < 0)
        return rc;
    if (at >= vm->memo.n || !vm->memo.v[at])
        return pth_vm_bad(vm, "a memo index that was never set");
    return pth_vm_push(vm, vm->memo.v[at]);
}

/* ---- the machine ---- */

static int push_mark(struct pth_vm *vm)
{
    vec_push(&vm->marks, vm->stack.n);
    return 0;
}

static int check_proto(struct pth_vm *vm)
{
    uint64_t v = 0;
    int rc = take_uint(vm, 1, &v);
    return rc < 0 ? rc : v > 5 ? pth_vm_bad(vm, "a protocol above 5") : 0;
}

static int skip_frame(struct pth_vm *vm)
{
    uint64_t n = 0;
    return take_uint(vm, 8, &n);
}

static int push_uint(struct pth_vm *vm, size_t n)
{
    uint64_t v = 0;
    int rc = take_uint(vm, n, &v);
    return rc < 0 ? rc : push_int(vm, PTH_INT, n == 4 ? (int32_t)(uint32_t)v : (int64_t)v);
}

static int unknown_op(struct pth_vm *vm, uint8_t op)
{
    det_fail(vm->err, DET_ECORRUPT,
             "pickle: byte %zu: opcode 0x%02x is not one that a checkpoint needs", vm->op_at, op);
    return DET_ECORRUPT;
}

static int run_op(struct pth_vm *vm, uint8_t op)
{
    switch (op) {
    case 0x80: return check_proto(vm);
    case 0x95: return skip_frame(vm);
    case '(': return push_mark(vm);
    case 'N': return push_seq(vm, PTH_NONE);
    case 0x88: return push_int(vm, PTH_BOOL, 1);
    case 0x89: return push_int(vm, PTH_BOOL, 0);
    case 'J': return push_uint(vm, 4);
    case 'K': return push_uint(vm, 1);
    case 'M': return push_uint(vm, 2);
    case 0x8a: return push_long1(vm);
    case 'G': return push_float(vm);
    case 0x8c: return push_string(vm, PTH_STR, 1);
    case 'X': return push_string(vm, PTH_STR, 4);
    case 0x8d: return push_string(vm, PTH_STR, 8);
    case 'U': return push_string(vm, PTH_STR, 1);
    case 'T': return push_string(vm, PTH_STR, 4);
    case 'C': return push_string(vm, PTH_BYTES, 1);
    case 'B': return push_string(vm, PTH_BYTES, 4);
    case ']': return push_seq(vm, PTH_LIST);
    case '}': return push_seq(vm, PTH_DICT);
    case ')': return push_seq(vm, PTH_TUPLE);
    case 't': return tuple_mark(vm);
    case 0x85: return tuple_of(vm, 1);
    case 0x86: return tuple_of(vm, 2);
    case 0x87: return tuple_of(vm, 3);
    case 'a': return add_last(vm, 1, PTH_LIST);
    case 'e': return add_marked(vm, PTH_LIST);
    case 's': return add_last(vm, 2, PTH_DICT);
    case 'u': return add_marked(vm, PTH_DICT);
    case 'q': return memo_put(vm, 1);
    case 'r': return memo_put(vm, 4);
    case 0x94: return memo_put(vm, 0);
    case 'h': return memo_get(vm, 1);
    case 'j': return memo_get(vm, 4);
    case 'c': return pth_vm_global(vm);
    case 0x93: return pth_vm_stack_global(vm);
    case 'Q': return pth_vm_persistent(vm);
    case 'R': return pth_vm_reduce(vm);
    case 'b': return pth_vm_build(vm);
    default: return unknown_op(vm, op);
    }
}

/* ---- the result: no value may contain itself, none may be nested too deep, and none shared so
 * often that a walk over all places would not end; each is looked at once ---- */

enum { WHITE, GREY, BLACK };

static int check_tree(struct pth_vm *vm, struct pth_value *v, int depth);

static bool has_items(const struct pth_value *v)
{
    return v->kind == PTH_LIST || v->kind == PTH_TUPLE || v->kind == PTH_DICT;
}

static int check_items(struct pth_vm *vm, struct pth_value *v, int depth)
{
    v->color = GREY;
    for (size_t i = 0; i < v->seq.n; i++) {
        const struct pth_value *x = v->seq.v[i];
        int rc = check_tree(vm, v->seq.v[i], depth + 1);
        if (rc < 0)
            return rc;
        if (has_items(x) && v->height <= x->height)
            v->height = (uint8_t)(x->height + 1);
        v->places += x->places;
        if (v->places > PTH_VALUES_MAX)
            return det_fail(vm->err, DET_ETOOBIG,
                            "pickle: more than %zu values, shared ones counted at each place",
                            PTH_VALUES_MAX);
    }
    v->color = BLACK;
    return 0;
}

static int check_tree(struct pth_vm *vm, struct pth_value *v, int depth)
{
    if (v->kind == PTH_GLOBAL || v->kind == PTH_STORAGE)
        return det_fail(vm->err, DET_ECORRUPT, "pickle: a bare name or storage as a value");
    if (!has_items(v))
        return 0;
    if (v->color == GREY)
        return det_fail(vm->err, DET_ECORRUPT, "pickle: a value contains itself");
    if (depth + v->height > PTH_DEPTH_MAX)
        return det_fail(vm->err, DET_ECORRUPT, "pickle: nested more than %d deep", PTH_DEPTH_MAX);
    return v->color == BLACK ? 0 : check_items(vm, v, depth);
}

static int run_pickle(struct pth_vm *vm)
{
    const uint8_t *op = NULL;
    for (;;) {
        vm->op_at = (size_t)(vm->p - vm->begin);
        int rc = take_bytes(vm, 1, &op);
        if (rc < 0)
            return rc;
        if (*op == '.')
            return 0;
        if ((rc = run_op(vm, *op)) < 0)
            return rc;
    }
}

int pth_unpickle(const void *bytes, size_t n, const struct pth_storages *storages,
                 struct pth_doc *doc, const struct pth_value **ret, struct det_err *err)
{
    struct pth_vm vm = {.begin = bytes, .p = bytes, .storages = storages, .doc = doc, .err = err};
    vm.end = vm.begin + n;
    if (n > PTH_PICKLE_MAX)
        return det_fail(err, DET_ETOOBIG, "pickle: %zu bytes, %zu are allowed", n, PTH_PICKLE_MAX);
    int rc = run_pickle(&vm);
    if (rc == 0 && (vm.marks.n || vm.stack.n != 1))
        rc = pth_vm_bad(&vm, "it does not end with one value");
    if (rc == 0)
        rc = check_tree(&vm, vm.stack.v[0], 0);
    if (rc == 0)
        *ret = vm.stack.v[0];
    vec_free(&vm.stack);
    vec_free(&vm.marks);
    vec_free(&vm.memo);
    return rc;
}
