/*
 * The REST API: one file per resource. A handler parses, authorises, posts an event to the core or
 * runs a query, and answers in the contract's shape. The table comes from proto/routes.h, so a
 * route without a handler does not link.
 */
#ifndef API_API_H
#define API_API_H

#include "http.h"

extern const struct http_route api_routes[];
extern const size_t api_routes_n;

#endif
