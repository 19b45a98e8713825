/* A length of training: so many batches, records or epochs; or a plain number without a unit
 * (searcher.max_length of Core API scripts). */
#ifndef PROTO_LENGTH_H
#define PROTO_LENGTH_H

#include "det/err.h"
#include "json.h"
#include <stdint.h>

enum length_unit { LENGTH_BATCHES, LENGTH_RECORDS, LENGTH_EPOCHS, LENGTH_NONE, LENGTH_UNIT_COUNT };

/* What a double holds exactly: lengths are multiplied and divided as doubles in metrics and
 * progress. */
#define LENGTH_MAX (INT64_C(1) << 53)

struct length {
    enum length_unit unit;
    int64_t n; /* 0..LENGTH_MAX */
};

/* {"batches": 100} or 100. DET_EINVAL says what was expected. */
DET_MUST int length_from_json(const json_t *j, struct length *ret, struct det_err *err);
/* "batches", "records", "epochs"; "" for LENGTH_NONE. */
const char *length_unit_name(enum length_unit unit);
/* By that name; DET_EINVAL if there is none. */
int length_unit_parse(const char *name, enum length_unit *ret);

#endif
