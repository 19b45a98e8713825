/*
 * An agent's own certificate, without I/O: the token by which it joins (agent.md, "Joining"), and
 * when a certificate is to be renewed.
 */
#ifndef AGENT_JOIN_H
#define AGENT_JOIN_H

#include "det/err.h"
#include <stdbool.h>
#include <stdint.h>

#define JOIN_DIGITS    64 /* hexadecimal, of both parts */
#define JOIN_TOKEN_MAX 140
#define JOIN_BODY_MAX  ((size_t)16 << 10)

/* "detjoin-SECRET-FINGERPRINT": what the master knows a digest of, and by which authority the agent
 * knows the master. */
struct join_token {
    char secret[JOIN_DIGITS + 1];
    char fingerprint[sizeof "SHA256:" + JOIN_DIGITS];
};
void join_token_write(const struct join_token *t, char out[JOIN_TOKEN_MAX]);
/* DET_EINVAL: it is none; the text does not repeat it. */
DET_MUST int join_token_read(const char *text, struct join_token *ret, struct det_err *err);

enum cert_state {
    CERT_EARLY, /* not valid yet: the clock here is behind */
    CERT_FRESH,
    CERT_DUE,     /* good, in the last third of its time: to be renewed */
    CERT_EXPIRED, /* its holder has to join again */
    CERT_REVOKED, /* so it is for good, whatever its dates */
};
/* Seconds since 1970; until_s itself is past the end. */
struct cert_dates {
    int64_t from_s, until_s;
};
enum cert_state cert_state(const struct cert_dates *d, bool is_revoked, int64_t now_s);
/* When it becomes due. */
int64_t cert_due_s(const struct cert_dates *d);
/* Those of one that is issued now for so long: valid since a little before, for clocks that are
 * behind, by a day at most and a third of its life. */
struct cert_dates cert_dates_of(int64_t now_s, int64_t life_s);
/* How long to wait until the next look at it, ms: a second at least, an hour at most. While it is
 * due that is until the next try, the sooner the less time is left. */
int64_t cert_look_ms(const struct cert_dates *d, int64_t now_s);

#endif
