/*
 * Large bodies are read in a thread of the queue of large work (slow.h), before their route's
 * handler runs, and let go of there when the request ends: a megabyte of small values takes a
 * quarter of a second, which everybody's requests would wait for. Private to api/.
 */
#ifndef API_LARGE_H
#define API_LARGE_H

#include "http.h"
#include "json.h"
#include "json_cut.h"
#include "rules.h"

struct large {
    json_t *json;             /* the body, but for: */
    struct json_span batches; /* of a report of metrics, as report_cut() has it */
};

/* go_in runs once the body has been read. A body that is no JSON is answered here. */
void large_read(struct http_req *req, enum route_id route, void (*go_in)(struct http_req *req));
/* NULL: the body is small, or its handler reads it in a way of its own. Lives as long as the
 * request. */
const struct large *large_body(const struct http_req *req);

/* The batches of a report of metrics are most of it, and are kept as they came. path: how many of
 * {"metrics": {"metrics": {"batchMetrics" lead there. The rest as JSON, a new reference; NULL: it
 * is none, or longer than REPORT_REST_MAX (DET_ETOOBIG). Thread: any. */
#define REPORT_REST_MAX ((size_t)2 << 20)
json_t *report_cut(const struct buf *body, size_t path, struct json_span *ret_batches,
                   struct det_err *err);

#endif
