/* A request's modelDefinition entries as one tar.gz. Pure: runs on a worker thread. */
#ifndef API_API_PACK_H
#define API_API_PACK_H

#include "buf.h"
#include "det/err.h"
#include "json.h"

#define PACK_CONTENT_MAX ((size_t)95 << 20) /* bytes of all files together */

/* entries: array of util.v1.File, or NULL. Appends to out. DET_EINVAL names the entry: a path that
 * leaves the directory, a type that is neither file nor directory, bad base64; DET_ETOOBIG. */
DET_MUST int pack_entries(const json_t *entries, struct buf *out, struct det_err *err);

#endif
