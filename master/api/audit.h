/*
 * The audit log of what people change: who, what, from where, and how it was answered. A row is
 * handed to the database before the request is acted upon, and none is answered with success before
 * its row is on disk, so that no change is without one. Tasks and agents are not in it: what they
 * may do is bound to their allocation. Private to api/.
 */
#ifndef API_AUDIT_H
#define API_AUDIT_H

#include "http.h"
#include "rules.h"

/* Of a request of a user's session; the answer's status follows by itself. */
void audit_begin(struct http_req *req, enum route_id route);
/* Of a request that made a session. */
void audit_login(struct http_req *req, int64_t user_id, const char *username);

#endif
