/* A file that is written from beginning to end, in blocks, by a thread; with its digest. */
#ifndef PTH_BLOCKS_H
#define PTH_BLOCKS_H

#include "pth.h"
#include <stddef.h>
#include <stdint.h>

struct blocks;

/* Created or replaced. room: PTH_ROOM bytes aligned to 4096, borrowed until the end; NULL: its
 * own. */
DET_MUST int blocks_create(const char *path, void *room, struct blocks **ret, struct det_err *err);
/* Appends; `p` is only read. */
DET_MUST int blocks_put(struct blocks *b, const void *p, size_t n, struct det_err *err);
uint64_t blocks_at(const struct blocks *b); /* bytes so far */
/* Writes what is left; the digest's hex goes to ret_hash (HASH_HEX_MAX). Destroys b. */
DET_MUST int blocks_end(struct blocks *b, char *ret_hash, struct det_err *err);
void blocks_destroy(struct blocks *b); /* without an end; NULL ok */

#endif
