/* Which certificate a client has shown. The handshake has proved that it holds the key; who issued
 * the certificate is not asked, since those that count are known one by one. */
#include "http_conn.h"

#include "hash.h"

#include <gnutls/gnutls.h>
#include <string.h>

const char *http_certificate(const struct http_req *req, char out[65])
{
    const struct http_conn *c = req->conn;
    const union MHD_ConnectionInfo *i =
        c && c->mhd ? MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION) : NULL;
    unsigned n = 0;
    const gnutls_datum_t *chain = i ? gnutls_certificate_get_peers(i->tls_session, &n) : NULL;
    char hex[HASH_HEX_MAX];
    if (!chain || n == 0)
        return NULL;
    hash_bytes(HASH_SHA256, chain[0].data, chain[0].size, hex);
    memcpy(out, hex, 65);
    return out;
}
