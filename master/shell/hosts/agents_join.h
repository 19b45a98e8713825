/* How an agent gets its certificate: POST .../join with a token, POST .../certificate with the
 * certificate it has (proto/agent.md, "Joining"). */
#ifndef SHELL_AGENTS_JOIN_H
#define SHELL_AGENTS_JOIN_H

#include "http.h"

extern const struct http_route agents_join_routes[];
extern const size_t agents_join_routes_n;

#endif
