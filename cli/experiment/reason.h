/* Why a trial failed, out of its log. */
#ifndef CLI_REASON_H
#define CLI_REASON_H

#include "json.h"

/* lines: the API's log entries, the oldest first. What the last failure was, and where in the
 * user's own code, as "ValueError: x (model_def.py, line 12, in train_batch)"; NULL: the log does
 * not tell. Caller frees. */
char *reason_of(const json_t *lines);

#endif
