/*
 * A scripted trial: it does no mathematics, writes down every call in one trace, and does what the
 * test told it to (fail at a batch, ask to stop). Its one parameter is the number of batches
 * trained, kept in state_dict.pth, so that a restore can be checked.
 */
#ifndef FAKE_TRIAL_H
#define FAKE_TRIAL_H

#include "buf.h"
#include "loop.h"

struct fake {
    struct det_loop_config config;
    struct loop *loop;
    struct buf trace; /* "b0 b1 validate@2 ..." */
    int64_t train_batches, valid_batches;
    int64_t trained;          /* the model */
    int64_t stop_at, fail_at; /* batch indices; -1: never */
    int fail_code;
    int fail_create, fail_save;
    const char *fail_save_text; /* after the words of that failure; NULL: none */
    int fail_save_sys;          /* its errno; 0: none */
    void (*loading)(void);      /* called by a restore */
    bool trace_fetch;           /* also "f<epoch>.<index>" */
    double (*loss)(int64_t b);
    double (*val)(int64_t trained, int64_t k);
    struct loop_callback callbacks[2];
    struct fake_name {
        struct fake *fake;
        int n;
    } names[2];
    struct loop_lr lr;
    struct loop_reducer reducer;
    size_t n_callbacks, n_lrs, n_reducers;
    double reduced;
};

/* Local mode, validation loss 1/(1 + batches), everything off. */
void fake_init(struct fake *f);
void fake_finish(struct fake *f);
/* Runs it once; the trace goes on. */
int fake_run(struct fake *f, struct det_err *err);
/* The one checkpoint in a store, which must hold one; caller frees. */
char *fake_checkpoint(const char *store);
int fake_checkpoints(const char *store); /* how many it holds */
/* Appends a word to the trace. */
void fake_note(struct fake *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
extern const struct det_loop_trial_type fake_type;

#endif
