/* How values read in tables. */
#ifndef CLI_SHOW_H
#define CLI_SHOW_H

#include "json.h"

/* "STATE_COMPLETED" -> "COMPLETED"; borrowed from the string given. */
const char *show_state(const char *state);
/* "2026-01-02 03:04:05" (UTC) from RFC 3339, "" when unset. In a ring of eight results. */
const char *show_time(const char *rfc3339);
/* "1h 02m", "3m 04s", "12.3 s" between two RFC 3339 times; now when the second is unset. */
const char *show_duration(const char *from, const char *to);
/* The same as a number; false: there is no time. */
bool show_seconds(const char *from, const char *to, double *ret);
/* "93%" or "". */
const char *show_progress(const json_t *value);
/* "lr=0.1 layers=2": hyperparameters in 5 digits, nested ones dotted, in name order, without those
 * that `common` (NULL: none) has the same. Caller frees. */
char *show_hparams(const json_t *hparams, const json_t *common);
/* What all of several trials have the same, nested as they are: a search's tables leave it out.
 * NULL where that would leave nothing. A new reference. */
json_t *show_common_hparams(const json_t *trials);
/* The same of metrics, in 4 digits; of a list only how many it has. Caller frees. */
char *show_metrics(const json_t *metrics);
/* "1.2 MB" */
const char *show_bytes(double bytes);
/* Any value in one cell: numbers in 4 digits, a list as "[12 values]", "" when null. Caller frees.
 */
char *show_value(const json_t *value);
/* A number in 4 digits. In a ring of eight results. */
const char *show_number(double value);
/* A metric in 4 digits, "" when null. */
const char *show_metric(const json_t *value);
/* The directory of a checkpoint_storage that is one; NULL for others. Caller frees. */
char *show_store_place(const json_t *storage);
/* The directory of a checkpoint in a store that is a directory; NULL for others. Caller frees. */
char *show_checkpoint_place(const json_t *checkpoint);

#endif
