/* Functions of recurrent layers, for modules. */
#ifndef FUNCTIONS_SEQ_H
#define FUNCTIONS_SEQ_H

#include "op.h"

/* One layer in one direction. x: the input's part of the gates, [T, B, 4 or 3 * H]; weight_hh, h0,
 * (c0,) bias_hh or NULL. LSTM: [T+1, B, H], the last one being the last cell; GRU: [T, B, H]. */
struct det_tensor *det__lstm(struct det_engine *e, struct det_tensor *const in[5], bool reverse);
struct det_tensor *det__gru(struct det_engine *e, struct det_tensor *const in[4], bool reverse);

#endif
