/*
 * The agent links (proto/agent.md), master's side: takes events, drops repeats, streams orders with
 * a heartbeat every 2 s, tells the core when a link is gone. Level-triggered: a new hello forgets
 * the orders queued before, and the core derives anew what is owed.
 *
 * An order waits in its agent's queue until it is complete (a start needs its owner's account and
 * the model definition, which are read from PostgreSQL) and a stream is there; orders leave in
 * order.
 *
 * The files of this folder:
 *   agents.c: links and orders
 *   agents_event.c: an agent's event as the core's
 *   agents_join.c: routes of certificates
 *   joins.c: which agents have one
 *   lives.c: which life of the cluster this is
 *   strays.c: what tasks of another life send
 */
#ifndef SHELL_AGENTS_H
#define SHELL_AGENTS_H

#include "agentlink.h"
#include "core.h"
#include "http.h"

struct agents;
struct agents *agents_create(struct shell *sh);
void agents_stop(struct agents *a);    /* ends the streams; nothing is sent any more */
void agents_destroy(struct agents *a); /* after db_close was called */

/* Performed by the driver. Starts wait for agents_read_rows(), after all of a batch. */
void agents_start(struct agents *a, const struct core_start *s);
void agents_read_rows(struct agents *a);
void agents_kill(struct agents *a, const struct core_kill *k);
/* Asks for the stacks of an allocation's ranks here; false: the agent cannot be asked now. */
bool agents_stacks(struct agents *a, const char *agent_id, const char *alloc_id,
                   const char *container);
void agents_store(struct agents *a, const struct core_store_order *s);

/* How far its clock is ahead of ours (negative: behind); 0 while they agree or it is not here. */
double agents_clock_ahead_s(const struct agents *a, const char *id);
/* A GPU of it, as it said within the last minute; false: it did not. */
bool agents_gpu(const struct agents *a, const char *id, int slot, struct link_gpu *ret);
/* A revoked agent's link ends now. */
void agents_drop(struct agents *a, const char *agent_id);

/* POST .../events and GET .../orders. */
extern const struct http_route agents_routes[];
extern const size_t agents_routes_n;

#endif
