/*
 * LSTM and GRU: layers and directions of the one-layer operations, with PyTorch's names. The
 * input's part of the gates is one linear layer over all steps; only what depends on the step
 * before goes through time.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "det/init.h"
#include "det/nn_seq.h"
#include "functions_seq.h"
#include "layers.h"
#include "mem.h"

static int count_directions(const struct det_module *m)
{
    return m->layer.rnn.bidirectional ? 2 : 1;
}

static const char *suffix_name(char buf[40], const char *what, int layer, bool reverse)
{
    snprintf(buf, 40, "%s_l%d%s", what, layer, reverse ? "_reverse" : "");
    return buf;
}

static struct det_tensor *find_param(struct det_module *m, const char *what, int layer,
                                     bool reverse)
{
    char name[40];
    return module_param(m, suffix_name(name, what, layer, reverse));
}

static bool add_direction(struct det_module *m, int64_t in, int layer, bool reverse)
{
    int64_t hidden = m->layer.hidden, rows = m->layer.gates * hidden;
    const struct {
        const char *what;
        int ndim;
        int64_t dims[2];
    } all[] = {{"weight_ih", 2, {rows, in}},
               {"weight_hh", 2, {rows, hidden}},
               {"bias_ih", 1, {rows}},
               {"bias_hh", 1, {rows}}};
    double bound = 1 / sqrt((double)hidden);
    char name[40];
    for (int i = 0; i < (m->layer.rnn.no_bias ? 2 : 4); i++) {
        struct det_tensor *t = layer_param(m, suffix_name(name, all[i].what, layer, reverse),
                                           all[i].ndim, all[i].dims);
        if (!t)
            return false;
        det_init_uniform(m->engine, t, -bound, bound);
    }
    return true;
}

/* One layer in one direction; the state of row `index` of the states, and into it. */
static struct det_tensor *one_direction(struct det_module *m, struct det_tensor *x, int layer,
                                        bool reverse, struct det_rnn_state *state)
{
    struct det_engine *e = m->engine;
    struct det_tensor *gates = det_linear(e, x, find_param(m, "weight_ih", layer, reverse),
                                          find_param(m, "bias_ih", layer, reverse));
    struct det_tensor *w = find_param(m, "weight_hh", layer, reverse);
    struct det_tensor *b = find_param(m, "bias_hh", layer, reverse);
    int64_t time = det_tensor_dim(x, 0), last = reverse ? 0 : time - 1;
    if (m->layer.gates == 3) {
        struct det_tensor *in[4] = {gates, w, state->h, b};
        struct det_tensor *y = det__gru(e, in, reverse);
        state->h = det_select(e, y, 0, last);
        return y;
    }
    struct det_tensor *in[5] = {gates, w, state->h, state->c, b};
    struct det_tensor *all = det__lstm(e, in, reverse), *y = det_narrow(e, all, 0, 0, time);
    state->h = det_select(e, y, 0, last);
    state->c = det_select(e, all, 0, time);
    return y;
}

/* Row i of a state, or zeros for x. */
static struct det_tensor *state_row(struct det_module *m, struct det_tensor *all, int64_t i,
                                    const struct det_tensor *x)
{
    if (all)
        return det_select(m->engine, all, 0, i);
    return det_zeros(m->engine, x->dtype, 2, (int64_t[]){x->dims[1], m->layer.hidden});
}

#define ROWS_MAX 64 /* layers * directions */

static struct det_tensor *one_layer(struct det_module *m, struct det_tensor *x, int layer,
                                    const struct det_rnn_state *from, struct det_rnn_state *to)
{
    struct det_tensor *y[2] = {NULL, NULL};
    int n = count_directions(m);
    for (int d = 0; d < n; d++) {
        int i = layer * n + d;
        to[i].h = state_row(m, from->h, i, x);
        if (m->layer.gates == 4)
            to[i].c = state_row(m, from->c, i, x);
        y[d] = one_direction(m, x, layer, d == 1, &to[i]);
    }
    return n == 1 ? y[0] : det_cat(m->engine, y, 2, 2);
}

static bool check_input(struct det_module *m, const struct det_tensor *x,
                        const struct det_rnn_state *s)
{
    int64_t rows = (int64_t)count_directions(m) * m->layer.rnn.layers;
    int64_t batch = det_tensor_dim(x, m->layer.rnn.batch_first ? 0 : 1);
    struct det_tensor *const given[] = {s->h, s->c};
    if (!x || m->engine->err.code < 0)
        return false;
    if (x->ndim != 3 || x->dims[2] != m->layer.in || x->dims[m->layer.rnn.batch_first] == 0) {
        char text[160];
        det_engine_fail(m->engine, DET_EINVAL,
                        "%s(%s): the input must be [%s, %" PRId64 "], its time not 0",
                        m->type->name, det__tensor_text(x, text, sizeof text),
                        m->layer.rnn.batch_first ? "batch, time" : "time, batch", m->layer.in);
        return false;
    }
    for (int i = 0; i < 2; i++) {
        const struct det_tensor *t = given[i];
        if (t && (t->ndim != 3 || t->dims[0] != rows || t->dims[1] != batch ||
                  t->dims[2] != m->layer.hidden)) {
            det_engine_fail(m->engine, DET_EINVAL,
                            "%s: a state must be [%" PRId64 ", %" PRId64 ", %" PRId64
                            "]: layers * directions, batch, hidden",
                            m->type->name, rows, batch, m->layer.hidden);
            return false;
        }
    }
    return true;
}

static void join_states(struct det_module *m, const struct det_rnn_state *rows,
                        struct det_rnn_state *ret)
{
    struct det_tensor *h[ROWS_MAX], *c[ROWS_MAX];
    int n = count_directions(m) * m->layer.rnn.layers;
    for (int i = 0; i < n; i++) {
        h[i] = rows[i].h;
        c[i] = rows[i].c;
    }
    ret->h = det_stack(m->engine, h, n, 0);
    ret->c = m->layer.gates == 4 ? det_stack(m->engine, c, n, 0) : NULL;
}

struct det_tensor *det_rnn_forward(struct det_module *m, struct det_tensor *x,
                                   struct det_rnn_state *state)
{
    struct det_rnn_state rows[ROWS_MAX], none = {NULL, NULL};
    if (!m || !check_input(m, x, state ? state : &none))
        return NULL;
    struct det_engine *e = m->engine;
    const struct det_rnn_options *o = &m->layer.rnn;
    struct det_tensor *y = o->batch_first ? det_transpose(e, x, 0, 1) : x;
    for (int layer = 0; y && layer < o->layers; layer++) {
        y = one_layer(m, y, layer, state ? state : &none, rows);
        if (layer + 1 < o->layers && o->dropout > 0)
            y = det_dropout(e, y, o->dropout, m->training);
    }
    if (y && state)
        join_states(m, rows, state);
    return o->batch_first ? det_transpose(e, y, 0, 1) : y;
}

static struct det_tensor *forward_rnn(struct det_module *m, struct det_tensor *x, bool relu)
{
    (void)relu;
    return det_rnn_forward(m, x, NULL);
}

static struct det_module *create_rnn(struct det_engine *e, const struct module_type *type,
                                     int gates, const int64_t sizes[2],
                                     const struct det_rnn_options *options)
{
    MODULE_OWN m = module_new(e, type);
    if (!m)
        return NULL;
    m->layer.rnn = *options;
    m->layer.rnn.layers = options->layers ? options->layers : 1;
    m->layer.gates = gates;
    m->layer.in = sizes[0];
    m->layer.hidden = sizes[1];
    int n = count_directions(m), layers = m->layer.rnn.layers;
    if (sizes[0] < 1 || sizes[1] < 1 || layers < 1 || layers > ROWS_MAX / n) {
        det_engine_fail(e, DET_EINVAL,
                        "%s: %" PRId64 " in, %" PRId64
                        " hidden, %d layers: at least 1 of each, at most %d layers",
                        type->name, sizes[0], sizes[1], layers, ROWS_MAX / n);
        return NULL;
    }
    for (int layer = 0; layer < layers; layer++)
        for (int d = 0; d < n; d++)
            if (!add_direction(m, layer == 0 ? sizes[0] : n * sizes[1], layer, d == 1))
                return NULL;
    return det_take(m);
}

struct det_module *det_nn_lstm_create(struct det_engine *e, int64_t in, int64_t hidden,
                                      const struct det_rnn_options *options)
{
    static const struct module_type type = {"lstm", forward_rnn, false};
    return create_rnn(e, &type, 4, (const int64_t[]){in, hidden}, options);
}

struct det_module *det_nn_gru_create(struct det_engine *e, int64_t in, int64_t hidden,
                                     const struct det_rnn_options *options)
{
    static const struct module_type type = {"gru", forward_rnn, false};
    return create_rnn(e, &type, 3, (const int64_t[]){in, hidden}, options);
}

static void keep_state(struct det_engine *e, struct det_tensor **kept, struct det_tensor *t)
{
    struct det_tensor *old = *kept;
    *kept = t ? det_tensor_ref(det_detach(e, t)) : NULL;
    det_tensor_unref(old);
}

void det_rnn_state_keep(struct det_engine *e, struct det_rnn_state *kept,
                        const struct det_rnn_state *state)
{
    keep_state(e, &kept->h, state->h);
    keep_state(e, &kept->c, state->c);
}

void det_rnn_state_finish(struct det_rnn_state *kept)
{
    det_tensor_unref(kept->h);
    det_tensor_unref(kept->c);
    *kept = (struct det_rnn_state){NULL, NULL};
}
