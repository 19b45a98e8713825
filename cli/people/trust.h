/*
 * Whether who answers is the master, ssh's way. An authority of the system's is believed, and
 * DET_MASTER_CERT_FILE is; else the fingerprint of the authority that a master's certificate comes
 * with is shown at the first use and, if a person trusts it, the authority is kept in certs.json:
 * from then on it counts for this master, and no other one does, but for one that it has vouched
 * for: that is kept in its place.
 */
#ifndef CLI_TRUST_H
#define CLI_TRUST_H

#include "client.h"

/* A client of o's masters that a password can be sent with. Until it is returned nothing is said to
 * them but GET /healthz, and that over a checked connection only. fingerprint: trust the authority
 * that has it, without asking, in place of one that was kept; NULL: not said. On failure *ret may
 * be a client all the same, or NULL; the caller destroys it. */
DET_MUST int trust_open(const struct client_options *o, const char *fingerprint,
                        struct client **ret, struct det_err *err);

#endif
