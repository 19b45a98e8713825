/* What trials of an experiment show at one step. */
#ifndef API_API_SNAPSHOT_H
#define API_API_SNAPSHOT_H

#include <stdint.h>

struct buf;
/* Appends, with commas between, what the lines of both texts tell (db_metric_snapshot()), in order
 * of trials: what is newer than since. Of a trial that is in both, open tells. */
void api_put_snapshot(struct buf *out, const char *settled, const char *open, int64_t since);

#endif
