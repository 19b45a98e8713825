/*
 * Which agents have certificates of their own (proto/agent.md, "Joining"), in memory as in the
 * database: an agent's beat is judged without a query. A name that has joined may come with its
 * certificate only, and one that is revoked not at all, until it joins anew. Thread: the loop's.
 */
#ifndef SHELL_JOINS_H
#define SHELL_JOINS_H

#include "authority.h"
#include "http.h"
#include "join.h"

struct joins;
/* Reads who has joined; blocking, at the start. */
DET_MUST int joins_open(struct shell *sh, struct joins **ret, struct det_err *err);
void joins_destroy(struct joins *j); /* NULL ok */
/* Who issues the certificates. NULL: over plain HTTP there are none. */
const struct pem_pair *joins_authority(const struct joins *j);

/* Whose certificate that is; DET_EAUTH says why it does not count, and the remedy. */
DET_MUST int joins_holder(const struct joins *j, const char *fingerprint, const char **ret_agent,
                          struct det_err *err);
/* Whether an agent of this name may come with the token of all agents. */
DET_MUST int joins_may_share(const struct joins *j, const char *agent_id, struct det_err *err);
bool joins_knows(const struct joins *j, const char *agent_id);

/* Of an agent that has joined, or was revoked without. */
struct join_view {
    const char *agent_id;  /* borrowed */
    enum cert_state state; /* of the certificate that lasts longest */
    int64_t until_s;       /* its end; 0: there is none */
};
bool joins_get(const struct joins *j, const char *agent_id, struct join_view *ret);
/* All of them, by name; the caller frees the array. */
size_t joins_all(const struct joins *j, struct join_view **ret);

/* What the database has taken. A join makes the certificate the agent's only one. */
void joins_on_join(struct joins *j, const struct agent_cert *c);
void joins_on_renewal(struct joins *j, const struct agent_cert *c);
void joins_on_revoke(struct joins *j, const char *agent_id);

#endif
