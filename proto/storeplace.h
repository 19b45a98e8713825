/*
 * Where the checkpoints of a configuration lie: one directory, which names a store on every host.
 *
 * shared_fs: host_path, or storage_path beneath it (relative, or absolute and below host_path).
 * directory: container_path. Two sections that name one directory have one store, whatever their
 * kinds are.
 */
#ifndef PROTO_STOREPLACE_H
#define PROTO_STOREPLACE_H

#include "det/err.h"
#include "json.h"

#define STOREPLACE_MAX 2048 /* bytes of a place: a key of the database holds no more */

/* `storage`: a checkpoint_storage section. *ret: an absolute path without "//", "/./" or a slash at
 * its end; caller frees. DET_EUNIMPL names a kind that has no directory, DET_EINVAL a wrong key. */
DET_MUST int storeplace_of(const json_t *storage, char **ret, struct det_err *err);

#endif
