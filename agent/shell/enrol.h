/*
 * How the agent gets its certificate and keeps it (proto/agent.md, "Joining"): it makes a key,
 * joins once by a token, and from then on renews the certificate in the last third of its time.
 * Tasks notice nothing: what is under way ends on the connection it began on.
 */
#ifndef ENROL_H
#define ENROL_H

#include "agentopts.h"
#include "client_uv.h"
#include "identity.h"

/* Joins, if o has a token by which id has not joined yet. Blocking. The master is known by o's
 * ca_file, else by the authority that the token names, which is then kept. Under a service manager
 * that restarts us (notify.h) it does not fail, but is tried again until it succeeds. */
DET_MUST int enrol(struct identity *id, const struct agentopts *o, struct det_err *err);

struct renewal;
/* http and id are borrowed, and are given what is new. NULL: id has no certificate. */
struct renewal *renewal_create(uv_loop_t *loop, struct client_uv *http, struct identity *id,
                               const char *agent_id);
/* Not only when it is due: somebody asks for it (SIGHUP). NULL ok. */
void renewal_now(struct renewal *r);
void renewal_close(struct renewal *r); /* NULL ok */

#endif
