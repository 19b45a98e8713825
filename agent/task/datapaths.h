/*
 * Paths to data that an experiment's configuration names: in `data`, in hyperparameters and in
 * bind_mounts. Where the task's account may not read one, os.path.exists() and its like say that
 * nothing is there, and people look for their data where they are: so it is told beforehand.
 */
#ifndef DATAPATHS_H
#define DATAPATHS_H

#include "buf.h"
#include "json.h"

#define DATAPATHS_MAX 64 /* that are looked at */

/* [["data.dir", "/srv/x"], ...], the absolute ones; env holds DET_EXPERIMENT_CONFIG and
 * DET_HPARAMS, if any. */
json_t *datapaths_of(const json_t *env);
/* With the rights and in the place of the caller. A line for each that may not be read: "data.dir:
 * /root/x cannot be read: ... may not enter /root"; who: "the account ann (uid 7)". */
void datapaths_tell(const json_t *paths, const char *who, struct buf *out);

#endif
