/*
 * Whether and with which certificate the master speaks TLS: files, the cluster's own authority, or
 * none, which elsewhere than on loopback has to be asked for.
 */
#ifndef SHELL_TRANSPORT_H
#define SHELL_TRANSPORT_H

#include "authority.h"
#include "masterconf.h"

/* ret and ret_ca, from which agents have their certificates, stay empty for plain HTTP. DET_EINVAL:
 * that would carry passwords and tokens over a network in the clear, and nobody asked for it.
 * Blocking; after db_migrate(). */
int transport_open(const struct masterconf *conf, struct pem_pair *ret, struct pem_pair *ret_ca,
                   struct det_err *err);
/* Plain HTTP that others than this host can read: worth a line in the log, again and again. */
bool transport_is_insecure(const struct masterconf *conf);
void transport_warn(const struct masterconf *conf);

#endif
