#include "api.h"
#include "api_handlers.h"

enum { BODY_DEFAULT = 0, BODY_MAX = HTTP_BODY_MAX };

const struct http_route api_routes[] = {
#define X(name, method, pattern, auth, body)                                                       \
    {HTTP_##method, pattern, HTTP_AUTH_##auth, api_##name, BODY_##body},
    ROUTES(X)
#undef X
};
const size_t api_routes_n = sizeof api_routes / sizeof api_routes[0];
