/* The stack of the machine that reads pickles. */
#include "pth_vm.h"

int pth_vm_bad(struct pth_vm *vm, const char *what)
{
    return det_fail(vm->err, DET_ECORRUPT, "pickle: byte %zu: %s", vm->op_at, what);
}

int pth_vm_push(struct pth_vm *vm, struct pth_value *v)
{
    if (!v)
        return det_fail(vm->err, DET_ETOOBIG, "pickle: more than %zu values", PTH_VALUES_MAX);
    vec_push(&vm->stack, v);
    return 0;
}

struct pth_value *pth_vm_pop(struct pth_vm *vm)
{
    return vm->stack.n > pth_vm_floor(vm) ? vm->stack.v[--vm->stack.n] : NULL;
}
