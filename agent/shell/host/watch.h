/*
 * The places of checkpoint stores that the master wants looked at: each at once, then every 5 s. A
 * look may hang for as long as a file server is away, so each has a thread of its own, and a place
 * that is still being looked at is not looked at again.
 */
#ifndef AGENT_WATCH_H
#define AGENT_WATCH_H

#include "account.h"
#include "agentlink.h"
#include <uv.h>

#define WATCH_EVERY_MS 5000

struct watches;
/* on_seen: after each order about a place, and when what is seen there has changed. accounts is
 * borrowed until close: as whom stores are made. */
struct watches *watches_create(uv_loop_t *loop, const struct account_rule *accounts,
                               void (*on_seen)(void *arg, const struct link_store *s), void *arg);
void watches_close(struct watches *w);
/* The order {"place", "id", "known", "make", "user", "owner"}; it takes the place of one before. */
void watches_add(struct watches *w, const json_t *order);
/* Looks nowhere any more. */
void watches_clear(struct watches *w);

#endif
