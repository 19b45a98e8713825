/* What names and labels of the model registry may be. Pure. */
#ifndef PROTO_REGISTRY_H
#define PROTO_REGISTRY_H

#include "det/err.h"
#include "json.h"

enum { REGISTRY_NAME_MAX = 200, REGISTRY_LABEL_MAX = 200, REGISTRY_LABELS_MAX = 100 };

/* A model's name stands in paths, where a number would be an id: 1 to REGISTRY_NAME_MAX bytes, no
 * '/', no control characters, not only digits, no spaces at its ends and none beside another, not
 * "." or "..", which clients take out of a path. DET_EINVAL says which. */
DET_MUST int registry_check_name(const char *name, struct det_err *err);
/* Appends the labels of list to out, each once. DET_EINVAL names the one that is none: a string of
 * 1 to REGISTRY_LABEL_MAX bytes, not blank; at most REGISTRY_LABELS_MAX of them. */
DET_MUST int registry_labels(const json_t *list, json_t *out, struct det_err *err);

#endif
