/* What the files of `det checkpoint` share. */
#ifndef CLI_CHECKPOINT_H
#define CLI_CHECKPOINT_H

#include "cli.h"

extern const struct opt checkpoint_rm_opts[], checkpoint_delete_opts[], checkpoint_gc_opts[],
    checkpoint_download_opts[], checkpoint_unknown_opts[], checkpoint_discard_opts[];
DET_MUST int checkpoint_download(struct cli *c, struct det_err *err);
DET_MUST int checkpoint_rm(struct cli *c, struct det_err *err);
DET_MUST int checkpoint_delete(struct cli *c, struct det_err *err);
DET_MUST int checkpoint_undelete(struct cli *c, struct det_err *err);
DET_MUST int checkpoint_gc(struct cli *c, struct det_err *err);
DET_MUST int checkpoint_unknown(struct cli *c, struct det_err *err);
DET_MUST int checkpoint_adopt(struct cli *c, struct det_err *err);
DET_MUST int checkpoint_discard(struct cli *c, struct det_err *err);

extern const struct opt trial_download_opts[], experiment_download_opts[];
DET_MUST int trial_download(struct cli *c, struct det_err *err);
DET_MUST int experiment_download(struct cli *c, struct det_err *err);
extern const char *checkpoint_mode; /* --mode: how the files come; never NULL */
DET_MUST int checkpoint_check_mode(struct det_err *err);
/* Copies the files of a checkpoint into the directory `to`, which it makes, and prints it. */
DET_MUST int checkpoint_copy(struct cli *c, const json_t *cp, const char *to, struct det_err *err);

/* The checkpoint that the first argument names, with the "modelVersions" that it is; the caller's.
 */
DET_MUST int checkpoint_get(struct cli *c, json_t **ret, struct det_err *err);
/* Prints the answer of POST /checkpoints/gc; all: those that stay, too. */
void checkpoint_show_collection(const json_t *answer, bool all);

#endif
