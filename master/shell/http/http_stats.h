/* How many requests were answered, by class of route (its first word below /api/v1) and status.
 * Private to http*.c and /metrics. */
#ifndef SHELL_HTTP_STATS_H
#define SHELL_HTTP_STATS_H

#include "vec.h"
#include <stdint.h>

struct http_count {
    const char *class; /* of class_len bytes; borrowed from the route table */
    int class_len, status;
    uint64_t n;
};
struct http_stats {
    VEC(struct http_count) counts;
    uint64_t connections; /* open now */
    uint64_t bytes_in;    /* of bodies */
};
/* pattern: the route's; NULL: no route matched. It must live for ever. */
void http_stats_count(struct http_stats *s, const char *pattern, int status);
void http_stats_finish(struct http_stats *s);

#endif
