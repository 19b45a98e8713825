/*
 * One checkpoint on its way to the store, for loop_checkpoint.c: begin (the snapshot is taken, or
 * the trial's state written), then either write and seal here, or start a thread that does both,
 * and wait for it.
 */
#ifndef LOOP_SAVE_H
#define LOOP_SAVE_H

#include "loop_impl.h"

struct loop_save;

struct loop_saved {
    char uuid[64];
    int64_t steps;
    json_t *metadata, *files, *hashes; /* what the report says; the latter two: once it is sealed */
};

/* Makes the store's directory and takes the trial's snapshot; a trial without snapshots saves its
 * state there. `metadata` is copied. */
DET_MUST int loop_save_begin(struct loop *l, const char *uuid, const json_t *metadata,
                             struct loop_save **ret, struct det_err *err);
/* All files that are not there yet, but metadata.json. */
DET_MUST int loop_save_write(struct loop_save *s, struct det_err *err);
/* The hashes and metadata.json; published. */
DET_MUST int loop_save_seal(struct loop_save *s, struct det_err *err);

/* Both, in a thread. */
DET_MUST int loop_save_start(struct loop_save *s, struct det_err *err);
bool loop_save_done(const struct loop_save *s); /* one atomic load */
bool loop_save_ok(const struct loop_save *s);   /* done, and well */
/* What is not yet published never will be. */
void loop_save_cancel(struct loop_save *s);
/* Its outcome, once it has ended. */
DET_MUST int loop_save_wait(struct loop_save *s, struct det_err *err);

const struct loop_saved *loop_save_result(const struct loop_save *s); /* borrowed */
const char *loop_save_dir(const struct loop_save *s); /* before it is sealed; borrowed */
/* Waits for the thread; drops what was not published. NULL is allowed. */
void loop_save_destroy(struct loop_save *s);

#endif
