/* What names, texts, labels and metadata of the model registry may be. Pure. */
#ifndef PROTO_REGISTRY_H
#define PROTO_REGISTRY_H

#include "det/err.h"
#include "json.h"

enum {
    REGISTRY_NAME_MAX = 200,
    REGISTRY_TEXT_MAX = 64 << 10, /* bytes of a description, comment, notes; metadata as JSON */
    REGISTRY_LABEL_MAX = 200,
    REGISTRY_LABELS_MAX = 100,
};

/* A model's name stands in paths, where a number would be an id: 1 to REGISTRY_NAME_MAX bytes, no
 * '/', no control characters, not only digits, no spaces at its ends and none beside another, not
 * "." or "..", which clients take out of a path. DET_EINVAL says which. */
DET_MUST int registry_check_name(const char *name, struct det_err *err);
/* DET_EINVAL: the text of this field (NULL: none) has more than max bytes. */
DET_MUST int registry_check_text(const char *field, const char *text, size_t max,
                                 struct det_err *err);
/* *ret: metadata as JSON; the caller frees it. DET_EINVAL: it has more than REGISTRY_TEXT_MAX
 * bytes. */
DET_MUST int registry_metadata(const json_t *metadata, char **ret, struct det_err *err);
/* Appends the labels of list to out, each once. DET_EINVAL names the one that is none: a string of
 * 1 to REGISTRY_LABEL_MAX bytes, not blank; at most REGISTRY_LABELS_MAX of them. */
DET_MUST int registry_labels(const json_t *list, json_t *out, struct det_err *err);

#endif
