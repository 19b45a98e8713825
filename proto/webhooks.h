/* What receivers of webhooks may be, and which address they are dialled at. Pure. */
#ifndef PROTO_WEBHOOKS_H
#define PROTO_WEBHOOKS_H

#include "det/err.h"

#include <stdbool.h>
#include <stddef.h>

struct sockaddr;

enum {
    WEBHOOK_URL_MAX = 2000,
    WEBHOOKS_MAX = 100,         /* of a cluster */
    WEBHOOK_TRIGGERS_MAX = 20,  /* of one */
    WEBHOOK_KEY_BYTES_MAX = 200 /* of the key that signs, with its NUL */
};

/* A URL taken apart; into the text that it was read from. */
struct webhook_url {
    const char *host; /* "scheme://host:port" are the first base_len bytes of the whole */
    size_t base_len, host_len;
    const char *path; /* with its query; "" is "/" */
};
/* http or https, a host, a port maybe; no user, no password, no fragment; printable ASCII. An
 * address in digits is one that webhook_may_dial(); names are looked at when they are dialled.
 * DET_EINVAL. */
DET_MUST int webhook_read_url(const char *url, struct webhook_url *ret, struct det_err *err);

/* False: an address that no receiver has, but where a host's own secrets may be asked for, as
 * 169.254.169.254 of clouds: link-local, multicast, unspecified. */
bool webhook_may_dial(const struct sockaddr *a);

#endif
