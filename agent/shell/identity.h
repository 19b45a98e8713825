/*
 * Who this agent is to its master: the key it made and the certificate it got for it, kept in
 * identity.json of the work directory (0600). The key leaves this host never. Beside it is
 * authority.pem, by which agent and tasks know the master, where no --cert-file says.
 */
#ifndef IDENTITY_H
#define IDENTITY_H

#include "join.h"

struct identity {
    char *path, *authority_path; /* absolute */
    char *key, *cert;            /* PEM; NULL: none yet */
    char *token;                 /* digest of the token that it joined by, or is about to */
    struct cert_dates dates;     /* of cert */
};
/* A work directory without one gives an empty one. DET_ECORRUPT names the file. To be finished in
 * either case. */
DET_MUST int identity_open(const char *work_dir, struct identity *ret, struct det_err *err);
void identity_finish(struct identity *id);
/* A key that waits for its certificate: on disk when this returns, so that a join whose answer was
 * lost is asked for again with the same. */
DET_MUST int identity_prepare(struct identity *id, const char *key, const char *token,
                              struct det_err *err);
/* Its certificate; key NULL: of the key that is there. On disk when this returns; else all stays as
 * it was. */
DET_MUST int identity_take(struct identity *id, const char *key, const char *cert,
                           struct det_err *err);

/* authority.pem goes over to the authority that chain ends in, if the one in it vouches for that;
 * on disk when this returns. DET_EAUTH: it does not, and all stays as it was. No such file, or an
 * empty chain: nothing to do. */
DET_MUST int identity_follow(const struct identity *id, const char *chain, struct det_err *err);

#endif
