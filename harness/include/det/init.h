/*
 * Initial values: torch.nn.init. Each function overwrites a tensor of the engine, a module's
 * parameter (det_module_tensor(net, "fc1.weight")) or another. Draws come from the engine's
 * generator and do not depend on the device. Nothing is recorded for gradients.
 *
 * Errors are the engine's: a shape that does not fit, a number out of range. A NULL tensor does
 * nothing.
 */
#ifndef DET_INIT_H
#define DET_INIT_H

#include "det/tensor.h"

void det_init_uniform(struct det_engine *e, struct det_tensor *t, double from, double to);
void det_init_normal(struct det_engine *e, struct det_tensor *t, double mean, double std);
/* A normal distribution cut off at from and to (not multiples of std). */
void det_init_trunc_normal(struct det_engine *e, struct det_tensor *t, double mean, double std,
                           double from, double to);
void det_init_constant(struct det_engine *e, struct det_tensor *t, double value);
void det_init_ones(struct det_engine *e, struct det_tensor *t);
void det_init_zeros(struct det_engine *e, struct det_tensor *t);

/* What the next ones count as inputs and outputs: of (out, in, ...), in and out times the size of
 * the kernel. At least two dimensions. Glorot & Bengio 2010 (gain 1 in PyTorch): */
void det_init_xavier_uniform(struct det_engine *e, struct det_tensor *t, double gain);
void det_init_xavier_normal(struct det_engine *e, struct det_tensor *t, double gain);

/* He et al. 2015. 0 and NULL stand for PyTorch's defaults. */
struct det_kaiming_options {
    double a;                 /* 0: the slope of a leaky_relu */
    bool fan_out;             /* mode="fan_out"; else "fan_in" */
    const char *nonlinearity; /* "leaky_relu" */
};
#define det_init_kaiming_uniform(e, t, ...)                                                        \
    det_init_kaiming_uniform_of(e, t, &(const struct det_kaiming_options){__VA_ARGS__})
#define det_init_kaiming_normal(e, t, ...)                                                         \
    det_init_kaiming_normal_of(e, t, &(const struct det_kaiming_options){__VA_ARGS__})
void det_init_kaiming_uniform_of(struct det_engine *e, struct det_tensor *t,
                                 const struct det_kaiming_options *options);
void det_init_kaiming_normal_of(struct det_engine *e, struct det_tensor *t,
                                const struct det_kaiming_options *options);
/* calculate_gain: "linear", "conv1d", "conv2d", "conv3d", "sigmoid" 1; "tanh" 5/3; "relu" sqrt 2;
 * "leaky_relu" by its slope `param`; "selu" 3/4. Another name: NaN. */
double det_init_gain(const char *nonlinearity, double param);

/* The identity matrix (2-D); for convolutions (3-D to 5-D) the filters that keep the channels. */
void det_init_eye(struct det_engine *e, struct det_tensor *t);
void det_init_dirac(struct det_engine *e, struct det_tensor *t, int64_t groups);
/* A (half-)orthogonal matrix of shape (first dimension, all others together), times gain (Saxe et
 * al. 2013). */
void det_init_orthogonal(struct det_engine *e, struct det_tensor *t, double gain);
/* 2-D: normal, but for the share `sparsity` of each column, which is zero (Martens 2010; PyTorch:
 * std 0.01). */
void det_init_sparse(struct det_engine *e, struct det_tensor *t, double sparsity, double std);

#endif
