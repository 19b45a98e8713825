/*
 * The link to the master (proto/agent.md), agent's side: says hello, sends what the host machine
 * has in its outbox until it is acknowledged, keeps the stream of orders open, and begins anew with
 * a growing pause when it breaks or is silent for 10 s.
 */
#ifndef DIAL_H
#define DIAL_H

#include "client_uv.h"
#include "host.h"
#include "life.h"

struct dial;
/* http and host are borrowed. on_change is called after orders or acknowledgements reached the
 * host: effects may wait. */
struct dial *dial_create(uv_loop_t *loop, struct client_uv *http, struct host *host,
                         struct life *life, const char *agent_id, void (*on_change)(void *arg),
                         void *arg);
void dial_close(struct dial *d); /* NULL ok */
/* The outbox has something new. */
void dial_kick(struct dial *d);

#endif
