/*
 * What a configuration would train: the search is played with a random metric at every validation,
 * trials in the order of their operations. Pure; may run on any thread.
 */
#ifndef CORE_SEARCH_PREVIEW_H
#define CORE_SEARCH_PREVIEW_H

#include "det/err.h"
#include "json.h"
#include <stdint.h>

/* *ret, a new reference: [{"lengths": [100, 400], "trials": 3}..], the longest first; config is a
 * whole configuration. DET_EINVAL: it cannot be read, is of a custom searcher, or more trials than
 * SEARCH_BURST_MAX would be made. */
DET_MUST int search_preview(const json_t *config, uint32_t seed, json_t **ret, struct det_err *err);

#endif
