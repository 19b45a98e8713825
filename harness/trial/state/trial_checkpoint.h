/* state_dict.pth's dictionary while it is saved or loaded, as callbacks see it. */
#ifndef TRIAL_CHECKPOINT_H
#define TRIAL_CHECKPOINT_H

#include "pth.h"
#include "trial_context.h"

struct det_checkpoint {
    struct det_trial_context *ctx;
    struct pth_doc *doc;
    struct pth_value *root;
    VEC(struct det_tensor *) lent; /* to the hooks; given back when they have returned */
};

enum trial_checkpoint_moment { TRIAL_CHECKPOINT_SAVE, TRIAL_CHECKPOINT_LOAD };
/* on_checkpoint_save_start, or on_checkpoint_load_start, of every callback in order. */
DET_MUST int trial_checkpoint_hooks(struct det_trial_context *ctx, struct pth_doc *doc,
                                    struct pth_value *root, enum trial_checkpoint_moment moment,
                                    struct det_err *err);

#endif
