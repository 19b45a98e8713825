#include "access.h"
#include "api.h"
#include "api_handlers.h"

enum { BODY_DEFAULT = 0, BODY_MAX = HTTP_BODY_MAX };

static http_handler *const handlers[ROUTE_COUNT] = {
#define X(name, method, pattern, auth, body) [ROUTE_##name] = api_##name,
    ROUTES(X)
#undef X
};

static void enter(struct shell *sh, struct http_req *req)
{
    size_t i = (size_t)(req->route - api_routes);
    access_enter(req, &rules_all[i], handlers[i]);
}

const struct http_route api_routes[] = {
#define X(name, method, pattern, auth, body)                                                       \
    {HTTP_##method, pattern, HTTP_AUTH_##auth, enter, BODY_##body},
    ROUTES(X)
#undef X
};
const size_t api_routes_n = sizeof api_routes / sizeof api_routes[0];
