/* Digests as lower-case hex (libcrypto; libxxhash's XXH3-128, as `xxhsum -H128` prints it, is no
 * cryptographic one: it tells damage, not forgery), and CRC-32C as TensorBoard's records use it. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "det/err.h"
#include <stddef.h>
#include <stdint.h>

enum hash_kind { HASH_MD5, HASH_SHA256, HASH_SHA512, HASH_XXH128 };
#define HASH_HEX_MAX 129 /* 64 bytes as hex and NUL */

struct hash; /* streaming */
struct hash *hash_create(enum hash_kind kind);
void hash_add(struct hash *h, const void *p, size_t n);
/* Writes the hex digest and destroys h. */
void hash_end(struct hash *h, char hex[HASH_HEX_MAX]);

void hash_bytes(enum hash_kind kind, const void *p, size_t n, char hex[HASH_HEX_MAX]);
/* HMAC-SHA256 (RFC 2104). */
void hash_hmac(const char *key, const void *p, size_t n, char hex[HASH_HEX_MAX]);
/* Of a whole file read from fd's current position to its end. */
DET_MUST int hash_fd(enum hash_kind kind, int fd, char hex[HASH_HEX_MAX], struct det_err *err);
uint64_t hash_fnv64(const void *p, size_t n);
uint32_t crc32c(uint32_t crc, const void *p, size_t n);
/* Equal in time that depends only on the length. */
int hash_equal(const char *a, const char *b);

#endif
