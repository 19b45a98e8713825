/*
 * Weights in files of PyTorch: `torch.save(net.state_dict(), path)` and
 * `net.load_state_dict(torch.load(path))`. Files are read as data; nothing in them is executed.
 */
#ifndef DET_WEIGHTS_H
#define DET_WEIGHTS_H

#include "det/nn.h"

struct det_weights_options {
    bool partial;       /* strict=False: names on one side only are left alone */
    const char *prefix; /* only names that begin with it, which is taken off: "backbone." */
    /* The name in the model for a name in the file (without the prefix); NULL: it is left out. */
    const char *(*map)(void *arg, const char *name);
    void *map_arg;
    int model; /* of a checkpoint: which of models_state_dict */
};

/*
 * Loads a state_dict into m: from a file of torch.save that holds one (alone, or under "state_dict"
 * or "model"), from a checkpoint's state_dict.pth (models_state_dict), or from the directory of
 * such a checkpoint. Elements are converted to the model's types. Names are the model's but for
 * what the options change; those of DistributedDataParallel ("module.") are understood.
 *
 *     det_module_load_file(net, "resnet18.pth", det_trial_err(ctx));
 *     det_module_load_file(net, path, &err, .partial = true, .prefix = "encoder.");
 *
 * All is checked before anything is changed. 0; DET_ENOENT, DET_EIO; DET_ECORRUPT for what is no
 * such file; DET_EINVAL where it does not fit the model, with the names and shapes.
 */
#define det_module_load_file(m, path, err, ...)                                                    \
    det_module_load_file_of(m, path, &(const struct det_weights_options){__VA_ARGS__}, err)
int det_module_load_file_of(struct det_module *m, const char *path,
                            const struct det_weights_options *options, struct det_err *err);
/* torch.save(m.state_dict(), path): written beside it, synced, then renamed. */
int det_module_save_file(struct det_module *m, const char *path, struct det_err *err);

#endif
