/*
 * Modules of sequences: embeddings, norms of rows, recurrent layers, attention. Names, order and
 * initial distributions are PyTorch's; see det/nn.h for how modules are made and composed.
 */
#ifndef DET_NN_SEQ_H
#define DET_NN_SEQ_H

#include "det/nn.h"

/* weight (rows, width), drawn from N(0, 1), the padding row zero. Indices i64 of any shape. */
#define det_nn_embedding(e, rows, width, ...)                                                      \
    det_nn_embedding_create(e, rows, width, &(const struct det_embedding_options){__VA_ARGS__})
struct det_module *det_nn_embedding_create(struct det_engine *e, int64_t rows, int64_t width,
                                           const struct det_embedding_options *options);

struct det_layer_norm_options {
    double eps;   /* 0: 1e-5, of RMS norm 1e-6 */
    bool no_bias; /* weight only */
    bool plain;   /* neither weight nor bias */
};
/* Over the last dimension, of `width` elements: weight ones, bias zeros. */
#define det_nn_layer_norm(e, width, ...)                                                           \
    det_nn_layer_norm_create(e, width, &(const struct det_layer_norm_options){__VA_ARGS__})
struct det_module *det_nn_layer_norm_create(struct det_engine *e, int64_t width,
                                            const struct det_layer_norm_options *options);
/* weight ones; never a bias. */
#define det_nn_rms_norm(e, width, ...)                                                             \
    det_nn_rms_norm_create(e, width, &(const struct det_layer_norm_options){__VA_ARGS__})
struct det_module *det_nn_rms_norm_create(struct det_engine *e, int64_t width,
                                          const struct det_layer_norm_options *options);

/* Over each of `groups` groups of channels of (N, C, ...) together; weight ones (C), bias zeros. */
#define det_nn_group_norm(e, groups, channels, ...)                                                \
    det_nn_group_norm_create(e, groups, channels,                                                  \
                             &(const struct det_layer_norm_options){__VA_ARGS__})
struct det_module *det_nn_group_norm_create(struct det_engine *e, int64_t groups, int64_t channels,
                                            const struct det_layer_norm_options *options);

/* ---- Recurrent layers ---- */

struct det_rnn_options {
    int layers;         /* 0: 1 */
    bool no_bias;       /* without bias_ih and bias_hh */
    bool batch_first;   /* (batch, time, width) in and out; the states keep their order */
    bool bidirectional; /* the output has both directions side by side */
    double dropout;     /* between layers, in train mode */
};
/* weight_ih_l0 (4 hidden, in), weight_hh_l0 (4 hidden, hidden), bias_ih_l0, bias_hh_l0 (4 hidden),
 * then weight_ih_l0_reverse ... and weight_ih_l1 ...; uniform in +-1/sqrt(hidden). */
#define det_nn_lstm(e, in, hidden, ...)                                                            \
    det_nn_lstm_create(e, in, hidden, &(const struct det_rnn_options){__VA_ARGS__})
struct det_module *det_nn_lstm_create(struct det_engine *e, int64_t in, int64_t hidden,
                                      const struct det_rnn_options *options);
/* The same with 3 gates, order r z n. */
#define det_nn_gru(e, in, hidden, ...)                                                             \
    det_nn_gru_create(e, in, hidden, &(const struct det_rnn_options){__VA_ARGS__})
struct det_module *det_nn_gru_create(struct det_engine *e, int64_t in, int64_t hidden,
                                     const struct det_rnn_options *options);

/* What a recurrent layer remembers: (layers * directions, batch, hidden) each. c is of LSTM only.
 */
struct det_rnn_state {
    struct det_tensor *h, *c;
};
/* x (time, batch, in) -> (time, batch, directions * hidden). *state (NULL: zeros, nothing returned)
 * is where it starts, NULL within standing for zeros, and becomes where it ended: tensors of the
 * step. det_forward(m, x) is the same with state NULL. To carry a state from step to step:
 *
 *     struct det_rnn_state state = net->kept;
 *     y = det_rnn_forward(net->lstm, x, &state);
 *     det_rnn_state_keep(e, &net->kept, &state);
 */
struct det_tensor *det_rnn_forward(struct det_module *m, struct det_tensor *x,
                                   struct det_rnn_state *state);
/* *kept, which starts as {0}, becomes the state, detached from the step that made it; it lives
 * until the next keep or det_rnn_state_finish(). */
void det_rnn_state_keep(struct det_engine *e, struct det_rnn_state *kept,
                        const struct det_rnn_state *state);
void det_rnn_state_finish(struct det_rnn_state *kept);

/* ---- Attention ---- */

struct det_multihead_options {
    bool no_bias;
    bool batch_first; /* (batch, time, width); else (time, batch, width) */
    double dropout;   /* of the weights, in train mode */
};
/* in_proj_weight (3 width, width), in_proj_bias (3 width), out_proj.weight, out_proj.bias; xavier
 * uniform, biases zero. */
#define det_nn_multihead_attention(e, width, heads, ...)                                           \
    det_nn_multihead_attention_create(e, width, heads,                                             \
                                      &(const struct det_multihead_options){__VA_ARGS__})
struct det_module *det_nn_multihead_attention_create(struct det_engine *e, int64_t width,
                                                     int64_t heads,
                                                     const struct det_multihead_options *options);
/* Of `mask`, `causal` and `scale` of the options; dropout is the module's. key and value NULL: the
 * query, as with det_forward(m, x). */
struct det_tensor *det_multihead_forward(struct det_module *m, struct det_tensor *query,
                                         struct det_tensor *key, struct det_tensor *value,
                                         const struct det_attention_options *options);

/* (time, width) f32: sines and cosines of Vaswani et al. 2017, 3.5, to add to embeddings. */
struct det_tensor *det_sinusoidal_positions(struct det_engine *e, int64_t time, int64_t width);

#endif
