/* What receivers of webhooks may be, and which address they are dialled at. Pure. */
#ifndef PROTO_WEBHOOKS_H
#define PROTO_WEBHOOKS_H

#include "det/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sockaddr;

enum {
    WEBHOOK_URL_MAX = 2000,
    WEBHOOKS_MAX = 100,         /* of a cluster */
    WEBHOOK_TRIGGERS_MAX = 20,  /* of one */
    WEBHOOK_EVENTS_MAX = 10000, /* that wait for one */
    WEBHOOK_NETWORKS_MAX = 64
};

/* Where receivers may be. All addresses are those of IPv6, 0.0.0.0/0 being ::ffff:0.0.0.0/96. */
struct webhook_networks {
    struct webhook_network {
        uint8_t addr[16];
        int bits;
    } v[WEBHOOK_NETWORKS_MAX];
    size_t n;
    bool is_given; /* false: everywhere but on this host, of which loopback is known here */
};
/* Of "10.0.0.0/8 192.0.2.7 fd00::/8"; "" is not given, "none" is nowhere. DET_EINVAL. */
DET_MUST int webhook_read_networks(const char *text, struct webhook_networks *ret,
                                   struct det_err *err);

/* A URL taken apart; into the text that it was read from. */
struct webhook_url {
    const char *host; /* "scheme://host:port" are the first base_len bytes of the whole */
    size_t base_len, host_len;
    const char *path; /* with its query; "" is "/" */
};
/* http or https, a host, a port maybe; no user, no password, no fragment; printable ASCII. An
 * address in digits is one that webhook_may_dial(); names are looked at when they are dialled.
 * DET_EINVAL. */
DET_MUST int webhook_read_url(const char *url, const struct webhook_networks *nets,
                              struct webhook_url *ret, struct det_err *err);

/* False: not in nets, or an address that no receiver has, but where a host's own secrets may be
 * asked for, as 169.254.169.254 of clouds: link-local, multicast, unspecified. What stands for an
 * IPv4 address (mapped, NAT64, 6to4) is judged as that. */
bool webhook_may_dial(const struct webhook_networks *nets, const struct sockaddr *a);
/* By what webhook_may_dial() judges; ports do not count. */
bool webhook_same_address(const struct sockaddr *a, const struct sockaddr *b);

#endif
