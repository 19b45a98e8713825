/*
 * GPT-2 (Radford et al. 2019): a transformer that guesses the next token. The sizes are
 * hyperparameters; those of const.yaml are small enough for a laptop's CPU.
 *
 * data.path is a directory with train.u16 and valid.u16, files of 16-bit tokens (make_data.py). The
 * names in the state are those of the original: wte, wpe, h.0.ln_1, h.0.attn.c_attn, ...
 */
#include <det/nn_seq.h>
#include <det/trial.h>

#include <math.h>
#include <stdio.h>

enum { LAYERS_MAX = 48 };

struct block {
    struct det_module *ln_1, *c_attn, *attn_proj, *ln_2, *c_fc, *mlp_proj;
};

struct gpt2 {
    struct det_module *net, *wte, *wpe, *ln_f, *lm_head;
    struct block h[LAYERS_MAX];
    int64_t layers, heads, width;
    double dropout;
    struct det_optim *adamw;
};

/* ---- the model ---- */

/* A linear layer as GPT-2 begins: N(0, std), no bias yet. */
static struct det_module *linear(struct det_engine *e, int64_t in, int64_t out, double std)
{
    struct det_module *m = det_nn_linear(e, in, out);
    det_init_normal(e, det_module_tensor(m, "weight"), 0, std);
    det_init_zeros(e, det_module_tensor(m, "bias"));
    return m;
}

static struct det_module *embedding(struct det_engine *e, int64_t rows, int64_t width)
{
    struct det_module *m = det_nn_embedding(e, rows, width);
    det_init_normal(e, det_module_tensor(m, "weight"), 0, 0.02);
    return m;
}

static void make_block(struct det_engine *e, const struct gpt2 *g, struct det_module *m,
                       struct block *b)
{
    int64_t w = g->width;
    double residual = 0.02 / sqrt(2.0 * (double)g->layers);
    struct det_module *attn = det_nn_module(e), *mlp = det_nn_module(e);
    b->ln_1 = det_module_add(m, "ln_1", det_nn_layer_norm(e, w));
    det_module_add(m, "attn", attn);
    b->c_attn = det_module_add(attn, "c_attn", linear(e, w, 3 * w, 0.02));
    b->attn_proj = det_module_add(attn, "c_proj", linear(e, w, w, residual));
    b->ln_2 = det_module_add(m, "ln_2", det_nn_layer_norm(e, w));
    det_module_add(m, "mlp", mlp);
    b->c_fc = det_module_add(mlp, "c_fc", linear(e, w, 4 * w, 0.02));
    b->mlp_proj = det_module_add(mlp, "c_proj", linear(e, 4 * w, w, residual));
}

static struct det_tensor *block(const struct gpt2 *g, const struct block *b, struct det_tensor *x)
{
    struct det_engine *e = det_module_engine(g->net);
    bool training = det_module_training(g->net);
    struct det_tensor *qkv = det_forward(b->c_attn, det_forward(b->ln_1, x));
    struct det_tensor *y = det_packed_attention(e, qkv, g->heads, .causal = true);
    x = det_add(e, x, det_dropout(e, det_forward(b->attn_proj, y), g->dropout, training));
    y = det_gelu_tanh(e, det_forward(b->c_fc, det_forward(b->ln_2, x)));
    return det_add(e, x, det_dropout(e, det_forward(b->mlp_proj, y), g->dropout, training));
}

/* (batch, time) tokens -> (batch * time, vocabulary) scores of the token that follows each. */
static struct det_tensor *forward(struct det_module *net, struct det_tensor *tokens, void *arg)
{
    struct gpt2 *g = arg;
    struct det_engine *e = det_module_engine(g->net);
    struct det_tensor *place = det_arange(e, DET_I64, 0, (double)det_tensor_dim(tokens, 1), 1);
    struct det_tensor *x = det_add(e, det_forward(g->wte, tokens), det_forward(g->wpe, place));
    x = det_dropout(e, x, g->dropout, det_module_training(g->net));
    for (int64_t i = 0; i < g->layers; i++)
        x = block(g, &g->h[i], x);
    x = det_reshape(e, det_forward(g->ln_f, x), 2, (const int64_t[]){-1, g->width});
    return det_forward(g->lm_head, x);
}

static void make_model(struct gpt2 *g, struct det_trial_context *ctx)
{
    struct det_engine *e = det_trial_engine(ctx);
    int64_t words = det_hparam_i64(ctx, "vocabulary");
    g->net = det_nn_module(e);
    g->wte = det_module_add(g->net, "wte", embedding(e, words, g->width));
    g->wpe = det_module_add(g->net, "wpe", embedding(e, det_hparam_i64(ctx, "sequence"), g->width));
    struct det_module *h = det_module_add(g->net, "h", det_nn_module(e));
    for (int64_t i = 0; i < g->layers; i++)
        make_block(e, g, det_module_append(h, det_nn_module(e)), &g->h[i]);
    g->ln_f = det_module_add(g->net, "ln_f", det_nn_layer_norm(e, g->width));
    g->lm_head =
        det_module_add(g->net, "lm_head", det_nn_linear(e, g->width, words, .no_bias = true));
    det_module_share_param(g->lm_head, "weight", g->wte, "weight");
    det_module_set_forward(g->net, forward, g);
}

static void create(void *self, struct det_trial_context *ctx)
{
    struct gpt2 *g = self;
    g->layers = det_hparam_i64(ctx, "layers");
    g->heads = det_hparam_i64(ctx, "heads");
    g->width = det_hparam_i64(ctx, "width");
    g->dropout = det_hparam_f64(ctx, "dropout");
    if (g->layers < 1 || g->layers > LAYERS_MAX || g->heads < 1 || g->width % g->heads != 0) {
        det_trial_invalid_hp(ctx, "layers is 1 to %d, and heads must divide width", LAYERS_MAX);
        return;
    }
    make_model(g, ctx);
    det_trial_wrap_model(ctx, g->net);
    g->adamw = det_adamw(g->net, .lr = det_hparam_f64(ctx, "learning_rate"), .beta2 = 0.95,
                         .weight_decay = 0.1);
    det_trial_wrap_optimizer(ctx, g->adamw);
    struct det_lr *warmup = det_linear_lr(g->adamw, 0.01, 1, det_hparam_i64(ctx, "warmup"));
    det_trial_wrap_lr_scheduler(ctx, warmup, DET_STEP_EVERY_BATCH, 1);
}

/* ---- data ---- */

static struct det_dataset *tokens(struct det_trial_context *ctx, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.u16", det_data_str(ctx, "path", "."), name);
    const struct det_token_options options = {.path = path,
                                              .type = DET_TOKENS_U16,
                                              .sequence = det_hparam_i64(ctx, "sequence"),
                                              .vocabulary = det_hparam_i64(ctx, "vocabulary")};
    return det_dataset_tokens(&options, det_trial_err(ctx));
}

static struct det_data_loader *training_loader(void *self, struct det_trial_context *ctx)
{
    return det_data_loader(tokens(ctx, "train"), det_trial_err(ctx), .shuffle = true,
                           .batch_size = det_trial_per_slot_batch_size(ctx));
}

static struct det_data_loader *validation_loader(void *self, struct det_trial_context *ctx)
{
    return det_data_loader(tokens(ctx, "valid"), det_trial_err(ctx), .batch_size = 16);
}

/* ---- training ---- */

static struct det_tensor *loss_of(struct gpt2 *g, const struct det_batch *batch)
{
    struct det_engine *e = det_module_engine(g->net);
    struct det_tensor *scores = det_forward(g->net, det_batch_tensor(batch, "input"));
    struct det_tensor *target =
        det_reshape(e, det_batch_tensor(batch, "target"), 1, (const int64_t[]){-1});
    return det_cross_entropy(e, scores, target);
}

static void train_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                        int64_t epoch_idx, int64_t batch_idx, struct det_metrics *metrics)
{
    struct gpt2 *g = self;
    struct det_tensor *loss = loss_of(g, batch);
    det_trial_backward(ctx, loss);
    det_trial_step_optimizer(ctx, g->adamw, .clip_norm = 1);
    det_metrics_tensor(metrics, "loss", loss);
}

static void evaluate_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                           int64_t batch_idx, struct det_metrics *metrics)
{
    det_metrics_tensor(metrics, "validation_loss", loss_of(self, batch));
}

const struct det_trial_type Gpt2Trial = {
    .det_api_version = DET_API_VERSION,
    .self_bytes = sizeof(struct gpt2),
    .create = create,
    .build_training_data_loader = training_loader,
    .build_validation_data_loader = validation_loader,
    .train_batch = train_batch,
    .evaluate_batch = evaluate_batch,
};
