/* Keys and certificate requests of an agent (OpenSSL; EC P-256, SHA-256), as PEM texts. No I/O. */
#ifndef CERTKEY_H
#define CERTKEY_H

#include "buf.h"
#include "join.h"

/* A new key, and the request for a certificate of it. */
DET_MUST int certkey_make(struct buf *key, struct buf *request, struct det_err *err);
/* The request of a key that is there already. */
DET_MUST int certkey_request(const char *key, struct buf *request, struct det_err *err);
/* From when until when. DET_ECORRUPT: it is no certificate, or of another key. */
DET_MUST int certkey_dates(const char *cert, const char *key, struct cert_dates *ret,
                           struct det_err *err);

#endif
