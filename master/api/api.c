#include "access.h"
#include "api.h"
#include "api_handlers.h"
#include "large.h"

enum {
    BODY_DEFAULT = 0,
    BODY_BUNDLE = 256 << 10,
    BODY_LARGE = 4 << 20,
    BODY_REPORT = 32 << 20,
    BODY_MAX = HTTP_BODY_MAX
};
enum { LARGE_BYTES = 128 << 10 };

static http_handler *const handlers[ROUTE_COUNT] = {
#define X(name, method, pattern, auth, body) [ROUTE_##name] = api_##name,
    ROUTES(X)
#undef X
};

static size_t route_of(const struct http_req *req)
{
    return (size_t)(req->route - api_routes);
}

/* With thousands of files: its handler has the rest of the work done in the same thread. */
static bool reads_itself(size_t route)
{
    return route == ROUTE_create_experiment || route == ROUTE_put_external_experiment;
}

static void go_in(struct http_req *req)
{
    size_t i = route_of(req);
    access_enter(req, &rules_all[i], handlers[i]);
}

static void enter_route(struct shell *sh, struct http_req *req)
{
    size_t i = route_of(req);
    if (req->body.len < LARGE_BYTES || reads_itself(i))
        go_in(req);
    else
        large_read(req, (enum route_id)i, go_in);
}

const struct http_route api_routes[] = {
#define X(name, method, pattern, auth, body)                                                       \
    {HTTP_##method, pattern, HTTP_AUTH_##auth, enter_route, BODY_##body},
    ROUTES(X)
#undef X
};
const size_t api_routes_n = sizeof api_routes / sizeof api_routes[0];
