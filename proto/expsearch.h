/*
 * What SearchExperiments is asked for: the filter's JSON and the sort's text, checked, as the JSON
 * that the database's find_experiments() takes. A column is of the experiment ("name"), a
 * hyperparameter ("hp.optim.lr"), or what the summary of its best trial says of a metric
 * ("validation.loss.min"). Thread: any.
 */
#ifndef PROTO_EXPSEARCH_H
#define PROTO_EXPSEARCH_H

#include "det/err.h"
#include "json.h"

enum { EXPSEARCH_FIELDS_MAX = 200, EXPSEARCH_DEPTH_MAX = 16, EXPSEARCH_KEYS_MAX = 20 };

/*
 * NULL or "" asks for nothing: no condition, archived ones too; by id, the newest first. The answer
 * has `leaves`, a condition each ({"kind", "op", "value"} and what the kind needs), `where` (the
 * number of a leaf, or
 * {"and": [..]}, {"or": [..]}; null: all), `order` (keys, the strongest first) and `archived` (0:
 * none of those). A leaf of the kind "shown" asks for QUEUED, PULLING, STARTING or RUNNING, which
 * no row has: api_search_read() puts the ids there that the core knows. New reference. DET_EINVAL
 * names what is wrong by its path.
 */
DET_MUST int expsearch_read(const char *filter, const char *sort, json_t **ret,
                            struct det_err *err);
/* A column by name, of the location that the filter says or NULL, as a key of `order`: {"kind",
 * ..}. New reference. */
DET_MUST int expsearch_column(const char *name, const char *location, json_t **ret,
                              struct det_err *err);

#endif
