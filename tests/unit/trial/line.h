/* What small trials of tests share: y = w x without a bias, over records of x = 1 that want y =
 * 3. */
#ifndef TESTS_LINE_H
#define TESTS_LINE_H

#include "det/trial.h"

static inline struct det_module *line_model(struct det_trial_context *ctx, float w)
{
    size_t n;
    struct det_module *m =
        det_trial_wrap_model(ctx, det_nn_linear(det_trial_engine(ctx), 1, 1, .no_bias = true));
    det_tensor_write(det_module_params(m, &n)[0].tensor, &w, sizeof w, det_trial_err(ctx));
    return m;
}

/* At most 4 records. */
static inline struct det_data_loader *line_loader(struct det_trial_context *ctx, int records,
                                                  int batch_size)
{
    const float x[] = {1, 1, 1, 1}, y[] = {3, 3, 3, 3};
    int64_t one = 1;
    struct det_dataset *ds = det_dataset_create(records, det_trial_err(ctx));
    det_dataset_add(ds, "x", DET_F32, 1, &one, x, det_trial_err(ctx));
    det_dataset_add(ds, "y", DET_F32, 1, &one, y, det_trial_err(ctx));
    return det_data_loader(ds, det_trial_err(ctx), .batch_size = batch_size);
}

static inline struct det_tensor *line_loss(struct det_trial_context *ctx, struct det_module *m,
                                           const struct det_batch *batch)
{
    return det_mse_loss(det_trial_engine(ctx), det_forward(m, det_batch_tensor(batch, "x")),
                        det_batch_tensor(batch, "y"));
}

#endif
