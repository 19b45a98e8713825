/*
 * Long polls: of a running task its preemption, rendezvous, all-gather; of the client of a custom
 * search its events (waits_search.c). Each function takes over
 * the request and answers it in the contract's shape: at once, when the awaited thing happens, at
 * the timeout, or with an error. The caller has checked that the token may act for the allocation.
 */
#ifndef SHELL_WAITS_H
#define SHELL_WAITS_H

#include "http.h"
#include "json.h"
#include <stdbool.h>
#include <stdint.h>

struct waits;
struct shell;
struct waits *waits_create(struct shell *sh);
/* Answers what waits with 503, and at once whatever comes to wait from now on. */
void waits_stop(struct waits *w);
/* When no request is open and the driver, which answers and wakes waits, is gone. */
void waits_destroy(struct waits *w);

/* {"preempt":bool}: true as soon as the allocation is asked to stop; false at the timeout. */
void waits_preempt(struct waits *w, struct http_req *req, const char *alloc_id, int64_t timeout_ms);
/* {"rendezvousInfo":{"addresses":[..],"rank":i,"slots":[..],"ports":".."}} once every container has
 * come; ports as rank 0's host said them (runports.h), left out where it said NULL. container_id is
 * the path's resources id. */
void waits_rendezvous(struct waits *w, struct http_req *req, const char *alloc_id,
                      const char *container_id, const char *ports);
/* {"data":[..]} once num_peers distinct request_uuids have come; a repeat replaces its data, which
 * is borrowed. The barrier ends after 10 min with an error. */
void waits_all_gather(struct waits *w, struct http_req *req, const char *alloc_id,
                      const char *request_uuid, int num_peers, json_t *data);

/* Whether ranks of the allocation wait to hear that they are to stop. */
bool waits_has_ranks(const struct waits *w, const char *alloc_id);
/* How many wait now. */
size_t waits_open(const struct waits *w);

/* {"searcherEvents":[..]}: what waits for the client of a custom search, as soon as there is
 * something; empty at the timeout. */
void waits_search(struct waits *w, struct http_req *req, int64_t exp_id, int64_t timeout_ms);

/* Called by the driver when the core said so. */
void waits_on_search(struct waits *w, int64_t exp_id);
void waits_on_preempt(struct waits *w, const char *alloc_id);
struct core_rendezvous;
void waits_on_rendezvous(struct waits *w, const struct core_rendezvous *r);
void waits_on_alloc_end(struct waits *w, const char *alloc_id);

#endif
