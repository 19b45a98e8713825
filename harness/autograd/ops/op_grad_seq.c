/* Gradient rules of layer norm and recurrent layers. */
#include "op_grad.h"

int grad_layer_norm(struct det_engine *e, struct det_node *n, struct det_tensor *dy,
                    struct det_err *err)
{
    static const struct grad_outputs o = {3, {0, 1, 2}, 0};
    struct det_call c = {.kernel = DET_KERNEL_LAYER_NORM_BWD,
                         .in = {dy, n->in[0], n->in[1], n->out[1], n->out[2]},
                         .a = n->a};
    return grad_run(e, n, &c, &o, err);
}

int grad_lstm(struct det_engine *e, struct det_node *n, struct det_tensor *dy, struct det_err *err)
{
    static const struct grad_outputs o = {5, {0, 1, 4, 2, 3}, 1 | 2 | 8 | 16};
    struct det_call c = {.kernel = DET_KERNEL_LSTM_BWD,
                         .in = {dy, n->out[0], n->out[1], n->out[2], n->in[1], n->in[2], n->in[3]},
                         .a = n->a};
    return grad_run(e, n, &c, &o, err);
}

int grad_gru(struct det_engine *e, struct det_node *n, struct det_tensor *dy, struct det_err *err)
{
    static const struct grad_outputs o = {4, {0, 1, 3, 2}, 1 | 2 | 8};
    struct det_call c = {.kernel = DET_KERNEL_GRU_BWD,
                         .in = {dy, n->out[0], n->out[1], n->in[1], n->in[2]},
                         .a = n->a};
    return grad_run(e, n, &c, &o, err);
}
