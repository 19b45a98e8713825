/*
 * A certificate authority of the cluster's own (X.509 by OpenSSL; EC P-256, SHA-256). It lasts 20
 * years; what it issues, 2 years, and is issued anew at each start. No I/O.
 */
#ifndef SHELL_AUTHORITY_H
#define SHELL_AUTHORITY_H

#include "buf.h"
#include "det/err.h"

struct pem_pair { /* texts; a certificate may have its chain after it */
    struct buf cert, key;
};
void pem_pair_finish(struct pem_pair *p); /* forgets the key's bytes */

int authority_make(struct pem_pair *ret, struct det_err *err);
/* A server's certificate for n names: host names, or addresses as text. The authority's follows it
 * in ret->cert. */
int authority_issue(const struct pem_pair *ca, const char *const *names, size_t n,
                    struct pem_pair *ret, struct det_err *err);
/* "SHA256:" and hex of the last certificate in a PEM text: of a chain its authority's. */
#define FINGERPRINT_MAX 80
int authority_fingerprint(const char *chain, char out[FINGERPRINT_MAX], struct det_err *err);

#endif
