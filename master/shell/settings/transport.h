/*
 * Whether and with which certificate the master speaks TLS: files, the cluster's own authority, or
 * none, which elsewhere than on loopback has to be asked for. Beside its own certificate a master
 * sends what former authorities have vouched for: who trusted one of them goes on to.
 */
#ifndef SHELL_TRANSPORT_H
#define SHELL_TRANSPORT_H

#include "authority.h"
#include "db_authority.h"
#include "hash.h"
#include "http.h"
#include "masterconf.h"
#include <stdbool.h>
#include <uv.h>

struct transport {
    const struct masterconf *conf;
    struct pem_pair ca;          /* issues agents' certificates; empty: plain HTTP */
    struct buf vouches, formers; /* db_authority.h */
    char print[FINGERPRINT_MAX]; /* of the authority by which agents that join know us */
    char seen[HASH_HEX_MAX];     /* of the files, at the last look */
    uint64_t renew_ms;           /* when the own certificate is to be renewed */
    struct slow *looks;          /* at the files, while it runs; NULL: none yet */
    bool is_looking, is_over;
};
/* ret_server stays empty for plain HTTP. DET_EINVAL: that would carry passwords and tokens over a
 * network in the clear, and nobody asked for it. Blocking; after db_migrate(). */
DET_MUST int transport_open(const struct masterconf *conf, struct transport *ret,
                            struct pem_pair *ret_server, struct det_err *err);
void transport_finish(struct transport *t);
/* The cluster's own authority, last in what leads to it from each that it had before; appended.
 * None where clients know us by another. */
void transport_authority(const struct transport *t, struct buf *out);
/* What the database has of the authority (taken): if it is another one than before, h (borrowed)
 * shows a certificate of its from now on, and no connection ends. <0: all is as before, and the
 * next call tries again. */
DET_MUST int transport_take(struct transport *t, struct http *h, struct db_authority *a,
                            struct det_err *err);
/* The same, and reads it: where another master may have rotated it. Blocking. */
DET_MUST int transport_follow(struct transport *t, struct http *h, struct det_err *err);
/* A new certificate, from the next handshake on, where it is time for one: the files are others
 * than at the last look, or the own one has been shown for long enough. Files are read in a
 * thread; while one look lasts there is no other. What is wrong with them is logged once, and the
 * certificate of before stays. t stays where it is; h until transport_stop(). */
#define TRANSPORT_LOOK_MS 2000
void transport_renew(struct transport *t, struct http *h, uv_loop_t *loop);
/* The server ends: what a look finds is shown no more. */
void transport_stop(struct transport *t);
/* Plain HTTP that others than this host can read: worth a line in the log, again and again. */
bool transport_is_insecure(const struct masterconf *conf);
void transport_warn(const struct masterconf *conf);

#endif
