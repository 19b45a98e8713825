/*
 * What the loop says to the master and asks of it (docs/contract/loop.md 12). The chief calls
 * these; in local mode they inform the observer and answer what a master without memory would.
 */
#ifndef LOOP_REPORT_H
#define LOOP_REPORT_H

#include "loop_impl.h"

/* "training", "validating", "checkpointing". */
DET_MUST int loop_report_status(struct loop *l, const char *state, struct det_err *err);
/* rows: the metrics of each batch (training), or NULL (validation). */
DET_MUST int loop_report_metrics(struct loop *l, const char *group,
                                 const struct loop_metrics *metrics,
                                 const struct loop_metrics *rows, size_t n, struct det_err *err);
DET_MUST int loop_report_progress(struct loop *l, struct det_err *err);
/* Waits until the master has it. */
DET_MUST int loop_report_completed(struct loop *l, double metric, struct det_err *err);
/* What a checkpoint consists of, borrowed: bytes and hashes by path, and which hashes. */
struct loop_files {
    const json_t *sizes;
    const char *hash_kind;
    const json_t *hashes;
};
/* After `steps` batches; metadata is borrowed. */
DET_MUST int loop_report_checkpoint(struct loop *l, const char *uuid, int64_t steps,
                                    const json_t *metadata, const struct loop_files *files,
                                    struct det_err *err);
DET_MUST int loop_report_preempted(struct loop *l, struct det_err *err); /* acknowledges */
/* Any rank, at its end; waits. What err says so far is told as the reason. */
DET_MUST int loop_report_invalid_hp(struct loop *l, struct det_err *err);
/* The chief's, in any thread; does not wait. */
DET_MUST int loop_post_invalid_hp(struct loop *l, const char *why, struct det_err *err);
/* The experiment's best validation into l->best as far as it is known now; never waits long. */
void loop_ask_best(struct loop *l);
/* l->known_validation from the master; waits. */
DET_MUST int loop_ask_trial(struct loop *l, struct det_err *err);
/* The next operation; *ret_none when there is no more. Waits. */
DET_MUST int loop_ask_operation(struct loop *l, int64_t *ret_length, bool *ret_none,
                                struct det_err *err);
/* {"checkpoints": [...]} of this trial; waits. NULL with *err. New reference. */
json_t *loop_ask_checkpoints(struct loop *l, struct det_err *err);

#endif
