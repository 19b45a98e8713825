/* What a search of experiments is asked for, with what only the core knows. Private to api/. */
#ifndef API_API_EXP_SEARCH_H
#define API_API_EXP_SEARCH_H

#include "expsearch.h"

struct shell;

/* expsearch_read(); a leaf of the kind "shown" has the ids of those that are shown so as its value,
 * or with `but` of those among the ACTIVE ones that are not. */
DET_MUST int api_search_read(struct shell *sh, const char *filter, const char *sort, json_t **ret,
                             struct det_err *err);

#endif
