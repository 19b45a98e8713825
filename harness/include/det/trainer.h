/*
 * The trainer: determined.pytorch's init(), Trainer and load_trial_from_checkpoint_path() for a
 * program of one's own. The same program trains on a laptop and, as a command entrypoint, on the
 * cluster:
 *
 *     int main(void)
 *     {
 *         struct det_err err = {0};
 *         struct det_trainer *t = NULL;
 *         int rc = det_trainer_create(&MNistTrial, &(struct det_trainer_options){
 *                                         .hparams = "{\"lr\": 0.1, \"global_batch_size\": 32}"},
 *                                     &t, &err);
 *         if (rc == 0)
 *             rc = det_trainer_fit(t, &err, .max_length = DET_EPOCHS(2),
 *                                  .checkpoint_period = DET_BATCHES(500));
 *         if (rc < 0)
 *             fprintf(stderr, "%s\n", err.text);
 *         det_trainer_destroy(t);
 *         return det_trainer_exit_code(rc);
 *     }
 *
 *     cc -o train train.c $(pkg-config --cflags --libs det)
 *
 * Nothing here reads the command line; `det-harness run` is the program that does.
 *
 * Threads: a trainer belongs to one thread. Several may live one after the other, and at once if no
 * two of them train at the same time.
 */
#ifndef DET_TRAINER_H
#define DET_TRAINER_H

#include "det/trial.h"
#include <signal.h>

struct det_trainer;

/* ---- Lengths and periods (pytorch.Batch, pytorch.Epoch) -------------------------------------- */

enum det_unit_kind { DET_UNIT_BATCHES, DET_UNIT_RECORDS, DET_UNIT_EPOCHS };

/* n of the kind; 0: not given. As a period it may be a list of steps instead: due after exactly
 * those batches, or epochs, from the start of the trial. Records are turned into batches by the
 * hyperparameter global_batch_size. */
struct det_unit {
    enum det_unit_kind kind;
    int64_t n;
    const int64_t *at; /* n_at steps, or NULL; borrowed during the call */
    size_t n_at;
};
/* clang-format off */
#define DET_BATCHES(count) {.kind = DET_UNIT_BATCHES, .n = (count)}
#define DET_RECORDS(count) {.kind = DET_UNIT_RECORDS, .n = (count)}
#define DET_EPOCHS(count) {.kind = DET_UNIT_EPOCHS, .n = (count)}
/* clang-format on */

/* ---- The trainer ----------------------------------------------------------------------------- */

/* core.DistributedContext, for launchers of one's own. */
struct det_distributed {
    int rank, size, local_rank, local_size;
    const char *chief_host; /* NULL: 127.0.0.1; borrowed */
    int port;               /* on which rank 0 listens */
};

/* All texts are copied. On a cluster the experiment gives exp_conf, seed, distributed and the place
 * of checkpoints; hparams too where it is NULL here. */
struct det_trainer_options {
    const char *hparams;           /* a JSON object; NULL: none */
    const char *exp_conf;          /* a JSON object, an experiment's configuration; NULL: none */
    int64_t aggregation_frequency; /* 0: 1 */
    uint32_t seed;
    const struct det_distributed *distributed; /* NULL: RANK, WORLD_SIZE, ... of the environment */
    const char *checkpoint_dir;                /* NULL: $XDG_DATA_HOME/determined */
    const char *tensorboard_dir;               /* NULL: metrics are not written for TensorBoard */
    void *arg;                                 /* det_trial_arg(); borrowed until destroy */
    const char *kwargs;                        /* det_trial_kwargs_json(): a JSON object */
};

/* `type` and nothing else is looked at; the trial itself is created by the first fit. `options` may
 * be NULL. DET_EINVAL: a text that is not JSON, a table that lacks a hook. */
int det_trainer_create(const struct det_trial_type *type, const struct det_trainer_options *options,
                       struct det_trainer **ret, struct det_err *err);
void det_trainer_destroy(struct det_trainer *t); /* NULL ok */

/* Trainer.fit()'s arguments. */
struct det_fit_options {
    struct det_unit max_length;        /* required but in test mode; the experiment's on a
                                        * cluster */
    struct det_unit checkpoint_period; /* not given: never by period */
    struct det_unit validation_period;
    struct det_unit reporting_period; /* not given: 100 batches */
    const char *checkpoint_policy;    /* "best", "all", "none"; NULL: best, which is all locally */
    /* A checkpoint's directory, or its uuid in checkpoint_dir. On a cluster it is the trial's
     * latest, whatever is given. */
    const char *latest_checkpoint;
    bool step_zero_validation;
    bool test_mode; /* one batch, one validation batch, a checkpoint; local */
    bool fake_data; /* made-up records of the loaders' shapes; process-wide */
    bool quiet;     /* print no progress */
    const volatile sig_atomic_t *interrupt; /* not NULL: once set, stop with a checkpoint; local */
};

/* Trains. It may be called again: the trial and its weights stay, callbacks and loaders are made
 * anew, and counting begins at zero (or at latest_checkpoint). 0 also for hyperparameters that the
 * trial refused (det_trial_invalid_hp); err->code then is DET_EINVALIDHP. */
#define det_trainer_fit(t, error, ...)                                                             \
    det_trainer_fit_opt(t, &(const struct det_fit_options){__VA_ARGS__}, error)
int det_trainer_fit_opt(struct det_trainer *t, const struct det_fit_options *options,
                        struct det_err *err);

/* The trial after a fit: borrowed until destroy; NULL before. */
struct det_trial_context *det_trainer_context(struct det_trainer *t);
void *det_trainer_trial(struct det_trainer *t);
/* The directory of the last checkpoint that this process wrote; NULL: none (a cluster's may lie
 * elsewhere). Borrowed until the next fit. */
const char *det_trainer_checkpoint(const struct det_trainer *t);
/* What main() should return for a fit's result, so that the cluster understands it. */
int det_trainer_exit_code(int rc);

/* ---- A trained trial (load_trial_from_checkpoint_path) --------------------------------------- */

struct det_loaded_trial;

struct det_load_options {
    const struct det_trial_type *type; /* NULL: compiled from the checkpoint's code directory */
    const char *hparams; /* a JSON object whose members replace the checkpoint's; NULL: none */
    const char *kwargs;  /* det_trial_kwargs_json() */
    void *arg;           /* det_trial_arg() */
};

/* The trial of a checkpoint's directory, created with the hyperparameters and configuration it was
 * trained with; its models have their weights, are in eval mode, and record no gradients.
 * Optimizers and random state are not restored. `options` may be NULL. */
int det_load_trial_from_checkpoint(const char *path, const struct det_load_options *options,
                                   struct det_loaded_trial **ret, struct det_err *err);
/* Borrowed until destroy. */
struct det_trial_context *det_loaded_trial_context(struct det_loaded_trial *t);
void *det_loaded_trial_trial(struct det_loaded_trial *t);
void det_loaded_trial_destroy(struct det_loaded_trial *t); /* NULL ok */

#endif
