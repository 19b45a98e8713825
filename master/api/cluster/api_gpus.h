/* The GPUs of agents in figures, as their agents say: for slots, `det why` and /metrics. */
#ifndef API_GPUS_H
#define API_GPUS_H

#include "json.h"
#include "shell.h"

/* The "gpu" of a slot; NULL: nothing is known of late. New reference. */
json_t *gpus_json(struct shell *sh, const char *agent_id, int slot);
/* Adds to the "text" of an answer which GPUs of the trial have been without work for long. */
void gpus_tell_idle(struct shell *sh, int64_t trial_id, json_t *answer);
void gpus_metrics(struct shell *sh, struct buf *out);

#endif
