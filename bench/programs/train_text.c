/* The figures that train on text: a word language model and GPT-2. */
#include <stdio.h>
#include <stdlib.h>

#include "det/nn_seq.h"

#include "train.h"

static struct det_tensor *tokens(int64_t rows, int64_t columns, int64_t classes)
{
    struct det_tensor *t = det_host_tensor(DET_I64, 2, (int64_t[]){rows, columns}, NULL);
    int64_t *v = det_tensor_data(t);
    for (int64_t i = 0; i < rows * columns; i++)
        v[i] = i * 7919 % classes;
    return t;
}

/* ---- The word language model of PyTorch's examples: 2 x 200 LSTM, 35 steps, batch 20 ---- */

#define WORDS 10000

struct lstm {
    struct det_module *encoder, *rnn, *decoder;
};

static void make_lstm(struct run *r)
{
    struct lstm *m = r->parts = calloc(1, sizeof *m);
    r->net = det_nn_module(r->e);
    m->encoder = det_module_add(r->net, "encoder", det_nn_embedding(r->e, WORDS, 200));
    m->rnn = det_module_add(r->net, "rnn", det_nn_lstm(r->e, 200, 200, .layers = 2));
    m->decoder = det_module_add(r->net, "decoder", det_nn_linear(r->e, 200, WORDS));
    r->items = 35 * batch(20);
    r->x = tokens(35, batch(20), WORDS);
    r->y = labels(r->items, WORDS);
}

static struct det_tensor *loss_lstm(struct run *r)
{
    struct lstm *m = r->parts;
    struct det_tensor *y = det_forward(m->rnn, det_forward(m->encoder, r->x));
    y = det_reshape(r->e, y, 2, (int64_t[]){-1, 200});
    return det_cross_entropy(r->e, det_forward(m->decoder, y), r->y);
}

static struct det_optim *plain_sgd(struct run *r)
{
    return det_sgd(r->net, .lr = 1);
}

const struct figure figure_lstm = {
    .name = "lstm", .make = make_lstm, .loss = loss_lstm, .optim = plain_sgd, .clip_norm = 0.25};

/* ---- GPT-2 small: 12 layers of 768, 12 heads; 2 sequences of 128, or 1 of 1024 ---- */

#define LAYERS 12
#define WIDTH  768
#define VOCAB  50257

struct block {
    struct det_module *ln_1, *attn, *proj, *ln_2, *fc, *out;
};

struct gpt2 {
    int64_t time;
    struct det_module *wte, *wpe, *ln_f, *lm_head;
    struct block h[LAYERS];
};

static void make_block(struct det_engine *e, struct det_module *m, struct block *b)
{
    b->ln_1 = det_module_add(m, "ln_1", det_nn_layer_norm(e, WIDTH));
    b->attn = det_module_add(m, "attn", det_nn_linear(e, WIDTH, 3 * WIDTH));
    b->proj = det_module_add(m, "proj", det_nn_linear(e, WIDTH, WIDTH));
    b->ln_2 = det_module_add(m, "ln_2", det_nn_layer_norm(e, WIDTH));
    b->fc = det_module_add(m, "fc", det_nn_linear(e, WIDTH, 4 * WIDTH));
    b->out = det_module_add(m, "out", det_nn_linear(e, 4 * WIDTH, WIDTH));
}

static void make_gpt2(struct run *r, int64_t rows, int64_t time)
{
    struct det_engine *e = r->e;
    struct gpt2 *m = r->parts = calloc(1, sizeof *m);
    m->time = time;
    r->net = det_nn_module(e);
    m->wte = det_module_add(r->net, "wte", det_nn_embedding(e, VOCAB, WIDTH));
    m->wpe = det_module_add(r->net, "wpe", det_nn_embedding(e, 1024, WIDTH));
    struct det_module *h = det_module_add(r->net, "h", det_nn_module(e));
    for (int i = 0; i < LAYERS; i++) {
        char name[24];
        snprintf(name, sizeof name, "%d", i);
        make_block(e, det_module_add(h, name, det_nn_module(e)), &m->h[i]);
    }
    m->ln_f = det_module_add(r->net, "ln_f", det_nn_layer_norm(e, WIDTH));
    m->lm_head = det_module_add(r->net, "lm_head", det_nn_linear(e, WIDTH, VOCAB, .no_bias = true));
    det_module_share_param(m->lm_head, "weight", m->wte, "weight");
    r->items = rows * time;
    r->x = tokens(rows, time, VOCAB);
    r->y = labels(r->items, VOCAB);
    det_engine_step_end(e);
}

static void make_gpt2_small(struct run *r)
{
    make_gpt2(r, batch(2), 128);
}

static void make_gpt2_1024(struct run *r)
{
    make_gpt2(r, batch(1), 1024);
}

static struct det_tensor *block(struct det_engine *e, const struct block *b, struct det_tensor *x)
{
    struct det_tensor *qkv = det_forward(b->attn, det_forward(b->ln_1, x));
    x = det_add(e, x, det_forward(b->proj, det_packed_attention(e, qkv, 12, .causal = true)));
    struct det_tensor *wide = det_forward(b->fc, det_forward(b->ln_2, x));
    return det_add(e, x, det_forward(b->out, det_gelu_tanh(e, wide)));
}

static struct det_tensor *loss_gpt2(struct run *r)
{
    struct gpt2 *m = r->parts;
    struct det_tensor *place = det_arange(r->e, DET_I64, 0, m->time, 1);
    struct det_tensor *x = det_add(r->e, det_forward(m->wte, r->x), det_forward(m->wpe, place));
    for (int i = 0; i < LAYERS; i++)
        x = block(r->e, &m->h[i], x);
    x = det_reshape(r->e, det_forward(m->ln_f, x), 2, (int64_t[]){-1, WIDTH});
    return det_cross_entropy(r->e, det_forward(m->lm_head, x), r->y);
}

static struct det_optim *adamw(struct run *r)
{
    return det_adamw(r->net, .lr = 3e-4, .weight_decay = 0.01);
}

const struct figure figure_gpt2_small = {
    .name = "gpt2_small", .make = make_gpt2_small, .loss = loss_gpt2, .optim = adamw};
const struct figure figure_gpt2_1024 = {
    .name = "gpt2_1024", .make = make_gpt2_1024, .loss = loss_gpt2, .optim = adamw};
