/* The names that a checkpoint may mention, and what "calling" them means here. */
#include "mem.h"
#include "pth_vm.h"
#include "tensor_impl.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Of a tensor that repeats elements (strides of 0): a small file may not ask for all memory. */
#define REPEATED_MAX ((int64_t)1 << 24)

static const struct {
    const char *module, *name;
    enum pth_global id;
    enum pth_dtype dtype;
} names[] = {
    {"collections", "OrderedDict", PTH_G_ORDERED_DICT, 0},
    {"collections", "Counter", PTH_G_COUNTER, 0},
    {"torch._utils", "_rebuild_tensor_v2", PTH_G_REBUILD_TENSOR, 0},
    {"torch._utils", "_rebuild_parameter", PTH_G_REBUILD_PARAMETER, 0},
    {"torch", "Size", PTH_G_SIZE, 0},
    {"torch", "FloatStorage", PTH_G_STORAGE, PTH_F32},
    {"torch", "DoubleStorage", PTH_G_STORAGE, PTH_F64},
    {"torch", "HalfStorage", PTH_G_STORAGE, PTH_F16},
    {"torch", "BFloat16Storage", PTH_G_STORAGE, PTH_BF16},
    {"torch", "LongStorage", PTH_G_STORAGE, PTH_I64},
    {"torch", "IntStorage", PTH_G_STORAGE, PTH_I32},
    {"torch", "ShortStorage", PTH_G_STORAGE, PTH_I16},
    {"torch", "CharStorage", PTH_G_STORAGE, PTH_I8},
    {"torch", "ByteStorage", PTH_G_STORAGE, PTH_U8},
    {"torch", "BoolStorage", PTH_G_STORAGE, PTH_B8},
    {"numpy.core.multiarray", "_reconstruct", PTH_G_NP_RECONSTRUCT, 0},
    {"numpy._core.multiarray", "_reconstruct", PTH_G_NP_RECONSTRUCT, 0},
    {"numpy", "ndarray", PTH_G_NP_NDARRAY, 0},
    {"numpy", "dtype", PTH_G_NP_DTYPE, 0},
    {"numpy.core.multiarray", "scalar", PTH_G_NP_SCALAR, 0},
    {"numpy._core.multiarray", "scalar", PTH_G_NP_SCALAR, 0},
    {"_codecs", "encode", PTH_G_ENCODE, 0},
};

/* What torch writes that has no place here, by the start of its name, and what to save instead. */
static const struct {
    const char *start, *what;
} foreign[] = {
    {"torch.Complex", "complex numbers are not read here: save torch.view_as_real(x)"},
    {"torch._utils._rebuild_qtensor", "quantized tensors are not read here: save x.dequantize()"},
    {"torch._utils._rebuild_sparse", "sparse tensors are not read here: save x.to_dense()"},
    {"torch._utils._rebuild_meta", "a tensor on the meta device has no values: save one that has"},
    {"", "a checkpoint is read as data, nothing in it is executed: save tensors, numbers, strings, "
         "lists and dicts of them, as model.state_dict() is"},
};

static int refuse_name(struct pth_vm *vm, const char *module, const char *name)
{
    char full[200];
    size_t i = 0;
    snprintf(full, sizeof full, "%.80s.%.80s", module, name);
    while (strncmp(full, foreign[i].start, strlen(foreign[i].start)) != 0)
        i++;
    return det_fail(vm->err, DET_ECORRUPT, "pickle: byte %zu: the name %s is refused: %s",
                    vm->op_at, full, foreign[i].what);
}

static int push_name(struct pth_vm *vm, const char *module, const char *name)
{
    for (size_t i = 0; i < DET_ARRAY_LEN(names); i++) {
        if (strcmp(names[i].module, module) != 0 || strcmp(names[i].name, name) != 0)
            continue;
        struct pth_value *v = pth_new(vm->doc, PTH_GLOBAL);
        if (v) {
            v->global.id = names[i].id;
            v->global.dtype = names[i].dtype;
        }
        return pth_vm_push(vm, v);
    }
    return refuse_name(vm, module, name);
}

/* A line of at most 99 printable characters. */
static int take_line(struct pth_vm *vm, char out[100])
{
    size_t n = 0;
    while (vm->p < vm->end && *vm->p != '\n' && n < 99 && *vm->p >= ' ' && *vm->p < 127)
        out[n++] = (char)*vm->p++;
    out[n] = '\0';
    if (vm->p == vm->end || *vm->p != '\n')
        return pth_vm_bad(vm, "a name that is too long, cut short or not text");
    vm->p++;
    return 0;
}

int pth_vm_global(struct pth_vm *vm)
{
    char module[100], name[100];
    int rc = take_line(vm, module);
    if (rc < 0 || (rc = take_line(vm, name)) < 0)
        return rc;
    return push_name(vm, module, name);
}

int pth_vm_stack_global(struct pth_vm *vm)
{
    struct pth_value *name = pth_vm_pop(vm), *module = pth_vm_pop(vm);
    if (!module || name->kind != PTH_STR || module->kind != PTH_STR)
        return pth_vm_bad(vm, "a name that is not two strings");
    return push_name(vm, module->str.p, name->str.p);
}

/* ---- storages: ('storage', torch.FloatStorage, '0', 'cpu', 12) ---- */

int pth_vm_persistent(struct pth_vm *vm)
{
    struct pth_value *id = pth_vm_pop(vm);
    if (pth_len(id) != 5 || id->kind != PTH_TUPLE ||
        strcmp(pth_as_str(id->seq.v[0], ""), "storage") != 0)
        return pth_vm_bad(vm, "a persistent id that is not a storage");
    struct pth_value *type = id->seq.v[1];
    const char *key = pth_as_str(id->seq.v[2], NULL);
    int64_t numel = pth_as_int(id->seq.v[4], -1);
    if (type->kind != PTH_GLOBAL || type->global.id != PTH_G_STORAGE || !key || numel < 0)
        return pth_vm_bad(vm, "a storage whose id is not understood");
    if (!vm->storages)
        return pth_vm_bad(vm, "a tensor in a bare pickle");
    struct pth_value *v = pth_new(vm->doc, PTH_STORAGE);
    if (!v)
        return pth_vm_push(vm, NULL);
    v->storage.dtype = type->global.dtype;
    int rc =
        vm->storages->find(vm->storages->arg, key, &v->storage.data, &v->storage.bytes, vm->err);
    if (rc < 0)
        return rc;
    if ((uint64_t)numel > v->storage.bytes / pth_dtype_size(v->storage.dtype))
        return pth_vm_bad(vm, "a storage that is larger than its file");
    return pth_vm_push(vm, v);
}

/* ---- tensors ---- */

/* dims or strides of a tensor: non-negative numbers. */
static int read_dims(struct pth_vm *vm, const struct pth_value *v, int64_t *out, int *ret_n)
{
    size_t n = pth_len(v);
    if (pth_kind(v) != PTH_TUPLE || n > DET_DIMS_MAX)
        return pth_vm_bad(vm, "a tensor's shape is not a tuple of at most 8 numbers");
    for (size_t i = 0; i < n; i++) {
        out[i] = pth_as_int(v->seq.v[i], -1);
        if (out[i] < 0)
            return pth_vm_bad(vm, "a tensor's shape holds something that is not a size");
    }
    *ret_n = (int)n;
    return 0;
}

/* The elements that the tensor reaches must lie in its storage: offset + sum((dim-1) * stride). A
 * stride that is never stepped by may be any number: it becomes 0. */
static int check_fits(struct pth_vm *vm, struct pth_tensor_view *t, int64_t offset,
                      size_t storage_bytes)
{
    int64_t last = offset, step;
    int64_t numel = det__shape_numel(pth_to_dtype(t->dtype), t->ndim, t->dims);
    int64_t room = (int64_t)(storage_bytes / pth_dtype_size(t->dtype));
    bool counted = numel >= 0;
    for (int i = 0; counted && i < t->ndim; i++) {
        if (t->dims[i] <= 1)
            t->strides[i] = 0;
        else
            counted = !__builtin_mul_overflow(t->dims[i] - 1, t->strides[i], &step) &&
                      !__builtin_add_overflow(last, step, &last);
    }
    if (!counted)
        return pth_vm_bad(vm, "a tensor of more elements than can be counted: save the smaller "
                              "one, or x.contiguous()");
    if (numel > 0 && last >= room)
        return pth_vm_bad(vm, "a tensor that does not lie within its storage");
    if (numel <= room || numel <= REPEATED_MAX)
        return 0;
    return det_fail(vm->err, DET_ETOOBIG,
                    "pickle: byte %zu: an expanded tensor of %" PRId64 " elements made of %" PRId64
                    ": save the smaller one, or x.contiguous()",
                    vm->op_at, numel, room);
}

/* What torch 2 says beside a tensor: that its values count with the other sign. */
static int check_metadata(struct pth_vm *vm, const struct pth_value *args)
{
    if (pth_as_int(pth_get(pth_at(args, 6), "neg"), 0) == 0)
        return 0;
    return pth_vm_bad(vm, "a tensor whose negation was put off: save x.resolve_neg()");
}

static int rebuild_tensor(struct pth_vm *vm, const struct pth_value *args)
{
    const struct pth_value *storage = pth_at(args, 0);
    int64_t offset = pth_as_int(pth_at(args, 1), -1);
    int n_strides = 0;
    if (pth_len(args) < 6 || storage->kind != PTH_STORAGE || offset < 0)
        return pth_vm_bad(vm, "a tensor whose arguments are not understood");
    struct pth_value *v = pth_new(vm->doc, PTH_TENSOR);
    if (!v)
        return pth_vm_push(vm, NULL);
    struct pth_tensor_view *t = v->tensor = pth_doc_alloc(vm->doc, sizeof *t);
    *t = (struct pth_tensor_view){.dtype = storage->storage.dtype};
    int rc = read_dims(vm, pth_at(args, 2), t->dims, &t->ndim);
    if (rc < 0 || (rc = read_dims(vm, pth_at(args, 3), t->strides, &n_strides)) < 0)
        return rc;
    if (n_strides != t->ndim)
        return pth_vm_bad(vm, "a tensor whose shape and strides differ in length");
    if ((rc = check_fits(vm, t, offset, storage->storage.bytes)) < 0 ||
        (rc = check_metadata(vm, args)) < 0)
        return rc;
    size_t at = (size_t)offset * pth_dtype_size(t->dtype);
    t->data = at <= storage->storage.bytes ? storage->storage.data + at : NULL;
    return pth_vm_push(vm, v);
}

static int rebuild_parameter(struct pth_vm *vm, const struct pth_value *args)
{
    if (pth_len(args) < 1 || args->seq.v[0]->kind != PTH_TENSOR)
        return pth_vm_bad(vm, "a parameter without a tensor");
    return pth_vm_push(vm, args->seq.v[0]);
}

/* ---- calls ---- */

static int make_size(struct pth_vm *vm, const struct pth_value *args)
{
    if (pth_len(args) != 1 || args->seq.v[0]->kind != PTH_TUPLE)
        return pth_vm_bad(vm, "a torch.Size that is not a tuple");
    return pth_vm_push(vm, args->seq.v[0]);
}

static int make_ordered_dict(struct pth_vm *vm, const struct pth_value *args)
{
    if (pth_len(args) != 0)
        return pth_vm_bad(vm, "an OrderedDict with arguments");
    struct pth_value *v = pth_new(vm->doc, PTH_DICT);
    if (v)
        v->ordered = true;
    return pth_vm_push(vm, v);
}

static int make_counter(struct pth_vm *vm, const struct pth_value *args)
{
    if (pth_len(args) != 1 || args->seq.v[0]->kind != PTH_DICT)
        return pth_vm_bad(vm, "a Counter that is not made of a dict");
    return pth_vm_push(vm, args->seq.v[0]);
}

int pth_vm_reduce(struct pth_vm *vm)
{
    struct pth_value *args = pth_vm_pop(vm), *fn = pth_vm_pop(vm);
    if (!fn || fn->kind != PTH_GLOBAL || args->kind != PTH_TUPLE)
        return pth_vm_bad(vm, "a call of something that is not a known name");
    switch (fn->global.id) {
    case PTH_G_ORDERED_DICT: return make_ordered_dict(vm, args);
    case PTH_G_COUNTER: return make_counter(vm, args);
    case PTH_G_REBUILD_TENSOR: return rebuild_tensor(vm, args);
    case PTH_G_REBUILD_PARAMETER: return rebuild_parameter(vm, args);
    case PTH_G_SIZE: return make_size(vm, args);
    case PTH_G_NP_RECONSTRUCT:
    case PTH_G_NP_DTYPE:
    case PTH_G_NP_SCALAR:
    case PTH_G_ENCODE: return pth_vm_push(vm, pth_new(vm->doc, PTH_OPAQUE));
    case PTH_G_STORAGE:
    case PTH_G_NP_NDARRAY: break;
    }
    return pth_vm_bad(vm, "a call of a type that cannot be made here");
}

int pth_vm_build(struct pth_vm *vm)
{
    struct pth_value *state = pth_vm_pop(vm), *object = pth_vm_pop(vm);
    if (!object || (object->kind != PTH_DICT && object->kind != PTH_OPAQUE))
        return pth_vm_bad(vm, "attributes for something that has none");
    if (object->kind == PTH_DICT && state->kind != PTH_DICT)
        return pth_vm_bad(vm, "attributes that are not a dict");
    return pth_vm_push(vm, object);
}
