/* The inside of a module, for this folder and for optim. */
#ifndef MODULE_H
#define MODULE_H

#include "det/nn_seq.h"
#include "engine.h"
#include "mem.h"
#include "vec.h"

/* What kind of layer a module is. */
struct module_type {
    const char *name;
    /* `relu`: also apply max(0, y); only asked of a type that fuses_relu. */
    struct det_tensor *(*forward)(struct det_module *m, struct det_tensor *x, bool relu);
    bool fuses_relu;
};

/* relu(m(x) + residual) of a batch norm of images, in one pass. */
struct det_tensor *module_norm_add_relu(struct det_module *m, struct det_tensor *x,
                                        struct det_tensor *residual);

struct module_entry { /* a parameter or buffer; the name is owned, without dots */
    char *name;
    struct det_tensor *tensor;
};

struct module_child {
    char *name;
    struct det_module *module;
};

typedef VEC(struct det_named_tensor) named_list; /* names owned */

/* The numbers of a layer; each type reads its own. */
struct layer {
    struct det_conv2d_options conv;
    struct det_batch_norm_options norm;
    struct det_pool_options pool;
    struct det_interpolate_options resize;
    enum det_pad_mode pad_mode;
    int n;
    int pads[6];
    int64_t size[DET_DIMS_MAX];
    double p, q;
    struct det_embedding_options embedding;
    struct det_layer_norm_options rows;
    struct det_rnn_options rnn;
    int64_t in, hidden, groups; /* groups: of channels, or heads */
    int gates;
    bool batch_first;
};

struct det_module {
    struct det_engine *engine;
    const struct module_type *type;
    struct det_module *parent;
    VEC(struct module_entry) params, buffers;
    VEC(struct module_child) children;
    bool training;
    struct layer layer;
    struct det_tensor *(*forward)(struct det_module *m, struct det_tensor *x, void *arg);
    void *forward_arg;
    bool listed;                               /* the three lists are up to date */
    named_list state, own_params, own_buffers; /* of the whole tree beneath; see module_list.c */
    struct det_tensor *grads, *grads_marked;   /* module_grads.c, module_grads_ranks.c */
};

static inline void module_destroyp(struct det_module **m)
{
    det_module_destroy(*m);
}
#define MODULE_OWN det_cleanup(module_destroyp) struct det_module *

extern const struct module_type module_relu_type;

/* Adds a parameter of uniform draws in +-bound. */
bool module_add_uniform(struct det_module *m, const char *name, int ndim, const int64_t *dims,
                        double bound);
/* NULL where the engine has an error already. */
struct det_module *module_new(struct det_engine *e, const struct module_type *type);
/* True where a function of the user's computes m or a part of it. */
bool module_is_users(const struct det_module *m);
/* The tensor of m's own parameter or buffer; it must exist. */
struct det_tensor *module_param(struct det_module *m, const char *name);
struct det_tensor *module_buffer(struct det_module *m, const char *name);
/* The gradients of the whole tree as bytes, appended to out; and back from *left bytes at *at,
 * which move on. DET_ECORRUPT: too few for this module. */
struct buf;
DET_MUST int module_grads_pack(struct det_module *m, struct buf *out, struct det_err *err);
DET_MUST int module_grads_unpack(struct det_module *m, const char **at, size_t *left,
                                 struct det_err *err);
/* det_module_grads_max() as a scalar of the device, which nobody waits for; the caller owns it.
 * NULL after an error. */
struct det_tensor *module_grads_most(struct det_module *m);
/* For a mean over ranks: det_module_grads() and, behind it, a number for each parameter, 1 where it
 * has a gradient, else 0. NULL after an error. */
struct det_tensor *module_grads_marked(struct det_module *m);
/* The parts of it: the vector, where each gradient has its place (m->grads); zeros for those of the
 * parameters from..to-1 that are absent; the numbers behind it (m->grads_marked). */
DET_MUST int module_grads_place(struct det_module *m, struct det_err *err);
DET_MUST int module_grads_fill(struct det_module *m, size_t from, size_t to, struct det_err *err);
DET_MUST int module_grads_mark(struct det_module *m, struct det_err *err);
/* After that mean: what has a gradient on any rank has one on this. */
DET_MUST int module_grads_heard(struct det_module *m, struct det_err *err);
void module_lists_forget(struct det_module *m); /* of m and everything above it */
void module_lists_finish(struct det_module *m);

#endif
