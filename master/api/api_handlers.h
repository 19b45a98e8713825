/* One handler a route of proto/routes.h: api_<name>. Private to api/. */
#ifndef API_API_HANDLERS_H
#define API_API_HANDLERS_H

#include "http.h"
#include "routes.h"

#define X(name, method, pattern, auth, body) http_handler api_##name;
ROUTES(X)
#undef X

#endif
