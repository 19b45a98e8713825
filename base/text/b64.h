/* Standard base64 (RFC 4648, with padding). */
#ifndef BASE_B64_H
#define BASE_B64_H

#include "buf.h"
#include "det/err.h"

void b64_encode(struct buf *out, const void *p, size_t n);
/* Appends the decoded bytes. DET_EINVAL on a bad digit or length; out then holds nothing new. */
DET_MUST int b64_decode(struct buf *out, const char *s, size_t n, struct det_err *err);

#endif
