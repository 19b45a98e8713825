/* What the files of layers share. */
#ifndef LAYERS_H
#define LAYERS_H

#include "module.h"

/* A new f32 parameter of zeros; NULL with the engine's error set. Owned by m. */
static inline struct det_tensor *layer_param(struct det_module *m, const char *name, int ndim,
                                             const int64_t *dims)
{
    return det_module_add_param(m, name, det_zeros(m->engine, DET_F32, ndim, dims));
}

#endif
