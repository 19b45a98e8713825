/*
 * A certificate authority of the cluster's own (X.509 by OpenSSL; EC P-256, SHA-256). It lasts 20
 * years; the server's certificate 2 years, and is issued anew at each start and before it ends;
 * agents' as they are asked for. No I/O.
 */
#ifndef SHELL_AUTHORITY_H
#define SHELL_AUTHORITY_H

#include "buf.h"
#include "det/err.h"
#include <stdint.h>

struct pem_pair { /* texts; a certificate may have its chain after it */
    struct buf cert, key;
};
void pem_pair_finish(struct pem_pair *p); /* forgets the key's bytes */

DET_MUST int authority_make(struct pem_pair *ret, struct det_err *err);
/* A new authority in the place of ca. vouch is a certificate of the new one's key, signed by ca:
 * who believes ca believes the new one by it. */
DET_MUST int authority_succeed(const struct pem_pair *ca, struct pem_pair *ret, struct buf *vouch,
                               struct det_err *err);
/* A server's certificate for n names: host names, or addresses as text. */
DET_MUST int authority_issue(const struct pem_pair *ca, const char *const *names, size_t n,
                             struct pem_pair *ret, struct det_err *err);
/* What an agent's certificate is issued for, and is known by. */
struct agent_cert {
    const char *name;        /* of the agent, at most 64 bytes */
    int64_t from_s, until_s; /* since 1970 */
    struct buf pem;          /* from here on filled; the caller's to finish */
    char fingerprint[65];    /* sha256 of its bytes, hex */
};
/* The digest (hex) of the public key in a request in PEM, which comes from anybody: nothing else of
 * it is looked at. DET_EINVAL: it is none, or its key is no EC key on P-256. */
DET_MUST int authority_key_of(const char *request, char out[65], struct det_err *err);
/* DET_EINVAL: the request is not signed with its key. What it says of names does not count. */
DET_MUST int authority_issue_agent(const struct pem_pair *ca, const char *request,
                                   struct agent_cert *ret, struct det_err *err);
/* "SHA256:" and hex of the last certificate in a PEM text: of a chain its authority's. */
#define FINGERPRINT_MAX 72
DET_MUST int authority_fingerprint(const char *chain, char out[FINGERPRINT_MAX],
                                   struct det_err *err);

#endif
