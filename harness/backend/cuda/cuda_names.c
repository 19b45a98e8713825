#include "cuda_impl.h"

const char *cuda_kernel_name(enum det_kernel k)
{
    static const char *const names[DET_KERNEL_COUNT] = {
#define X(NAME, name) #name,
        DET_KERNELS(X)
#undef X
    };
    return names[k];
}
