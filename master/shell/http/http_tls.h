/*
 * The certificate that the server shows. It can be replaced while the server runs: handshakes from
 * then on show the new one, connections that there are stay as they are.
 */
#ifndef SHELL_HTTP_TLS_H
#define SHELL_HTTP_TLS_H

#include "authority.h"

struct MHD_OptionItem;
/* The chain is sent as it stands in pair->cert. DET_EINVAL: it is no certificate, or the key is
 * another's; then the one of before stays. Nothing of pair is kept. */
DET_MUST int http_tls_show(const struct pem_pair *pair, struct det_err *err);
/* libmicrohttpd's option by which it asks for what is shown. */
struct MHD_OptionItem http_tls_option(void);
void http_tls_finish(void); /* after the server's end */

#endif
