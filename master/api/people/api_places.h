/* What makes and what changes workspaces and projects share. */
#ifndef API_API_PLACES_H
#define API_API_PLACES_H

#include "http.h"
#include "json.h"
#include <stdbool.h>

/* False: answered. */
bool place_check_name(struct http_req *req, const char *name);
/* Whether the body has only what is kept of a workspace. False: answered. */
bool place_check_kept(struct http_req *req, const json_t *body);
void place_name_taken(struct http_req *req);

#endif
