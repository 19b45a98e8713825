/* A master that was there, and does not answer: it is being started anew, or a network has a gap.
 * What a person leaves open, or a script waits by, goes on asking. */
#ifndef CLI_AWAY_H
#define CLI_AWAY_H

#include "det/err.h"

#include <stdbool.h>
#include <stdint.h>

enum { AWAY_MAX_MS = 10 * 60 * 1000 };

struct away {
    bool was_there, is_told;
    int64_t since_ms; /* when the first call that failed was made; 0: it answers */
};

/* It has answered; true: after a call that failed. */
bool away_answered(struct away *a);
/* Whether to ask again after a call, made at asked_ms, that failed with *err: never before it has
 * answered once. */
bool away_is_borne(struct away *a, const struct det_err *err, int64_t asked_ms, int64_t now_ms);
/* Where there is no screen: the first failed call of an absence, and its end, on standard error.
 * Call it behind the two above. */
void away_tell(struct away *a, const struct det_err *err);
void away_tell_back(void);

#endif
