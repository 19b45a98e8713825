#include "routes.h"

const struct route_info routes_all[] = {
#define X(name, method, pattern, auth, body) {#name, #method, pattern, #auth},
    ROUTES(X)
#undef X
};
const size_t routes_count = sizeof routes_all / sizeof routes_all[0];
