/*
 * A word language model: an embedding, an LSTM and a decoder that guess the next word, as PyTorch's
 * example of this name.
 *
 * data.path is a directory with train.u16 and valid.u16, files of 16-bit words (make_data.py makes
 * them of any text). A record is `sequence` words and, as its target, the same words one further.
 */
#include <det/nn_seq.h>
#include <det/trial.h>

#include <stdio.h>

struct lm {
    struct det_module *net, *encoder, *rnn, *decoder;
    struct det_optim *adam;
};

/* (batch, time) words -> (batch * time, words) scores of the word that follows each. */
static struct det_tensor *forward(struct det_module *net, struct det_tensor *x, void *arg)
{
    struct lm *m = arg;
    struct det_engine *e = det_module_engine(m->net);
    struct det_tensor *y = det_forward(m->rnn, det_forward(m->encoder, x));
    y = det_reshape(e, y, 2, (const int64_t[]){-1, det_tensor_dim(y, -1)});
    return det_forward(m->decoder, y);
}

static void create(void *self, struct det_trial_context *ctx)
{
    struct lm *m = self;
    struct det_engine *e = det_trial_engine(ctx);
    int64_t words = det_hparam_i64(ctx, "vocabulary"), width = det_hparam_i64(ctx, "width");

    m->net = det_nn_module(e);
    m->encoder = det_module_add(m->net, "encoder", det_nn_embedding(e, words, width));
    m->rnn = det_module_add(m->net, "rnn",
                            det_nn_lstm(e, width, width, .batch_first = true,
                                        .layers = (int)det_hparam_i64(ctx, "layers"),
                                        .dropout = det_hparam_f64(ctx, "dropout")));
    m->decoder = det_module_add(m->net, "decoder", det_nn_linear(e, width, words));
    det_module_set_forward(m->net, forward, m);
    det_trial_wrap_model(ctx, m->net);
    m->adam = det_adam(m->net, .lr = det_hparam_f64(ctx, "learning_rate"));
    det_trial_wrap_optimizer(ctx, m->adam);
}

static struct det_dataset *words(struct det_trial_context *ctx, const char *name)
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
    return det_data_loader(words(ctx, "train"), det_trial_err(ctx), .shuffle = true,
                           .batch_size = det_trial_per_slot_batch_size(ctx));
}

static struct det_data_loader *validation_loader(void *self, struct det_trial_context *ctx)
{
    return det_data_loader(words(ctx, "valid"), det_trial_err(ctx), .batch_size = 20);
}

static struct det_tensor *loss_of(struct lm *m, const struct det_batch *batch)
{
    struct det_engine *e = det_module_engine(m->net);
    struct det_tensor *scores = det_forward(m->net, det_batch_tensor(batch, "input"));
    struct det_tensor *target =
        det_reshape(e, det_batch_tensor(batch, "target"), 1, (const int64_t[]){-1});
    return det_cross_entropy(e, scores, target);
}

static void train_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                        int64_t epoch_idx, int64_t batch_idx, struct det_metrics *metrics)
{
    struct lm *m = self;
    struct det_tensor *loss = loss_of(m, batch);
    det_trial_backward(ctx, loss);
    det_trial_step_optimizer(ctx, m->adam, .clip_norm = det_hparam_f64(ctx, "clip"));
    det_metrics_tensor(metrics, "loss", loss);
}

/* In nats a word; exp() of it is the perplexity. */
static void evaluate_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                           int64_t batch_idx, struct det_metrics *metrics)
{
    det_metrics_tensor(metrics, "validation_loss", loss_of(self, batch));
}

const struct det_trial_type WordModelTrial = {
    .det_api_version = DET_API_VERSION,
    .self_bytes = sizeof(struct lm),
    .create = create,
    .build_training_data_loader = training_loader,
    .build_validation_data_loader = validation_loader,
    .train_batch = train_batch,
    .evaluate_batch = evaluate_batch,
};
