/* The machine that reads pickles: its state, and the opcodes that deal with names. */
#ifndef PTH_VM_H
#define PTH_VM_H

#include "pth_impl.h"
#include "vec.h"

struct pth_vm {
    const uint8_t *begin, *p, *end;
    size_t op_at; /* offset of the opcode being done, for messages */
    VEC(struct pth_value *) stack;
    VEC(size_t) marks; /* heights of the stack */
    VEC(struct pth_value *) memo;
    const struct pth_storages *storages;
    struct pth_doc *doc;
    struct det_err *err;
};

int pth_vm_bad(struct pth_vm *vm, const char *what); /* DET_ECORRUPT */
/* The height below which the topmost mark forbids to pop. */
static inline size_t pth_vm_floor(const struct pth_vm *vm)
{
    return vm->marks.n ? vm->marks.v[vm->marks.n - 1] : 0;
}

int pth_vm_push(struct pth_vm *vm, struct pth_value *v); /* NULL: too many values */
struct pth_value *pth_vm_pop(struct pth_vm *vm);         /* NULL when empty, down to the mark */

int pth_vm_global(struct pth_vm *vm);       /* GLOBAL: two lines */
int pth_vm_stack_global(struct pth_vm *vm); /* STACK_GLOBAL: two strings on the stack */
int pth_vm_persistent(struct pth_vm *vm);   /* BINPERSID: a storage */
int pth_vm_reduce(struct pth_vm *vm);       /* REDUCE: one of the known calls */
int pth_vm_build(struct pth_vm *vm);        /* BUILD: attributes, dropped */

#endif
