#include "http_tls.h"

#include "clk.h"
#include "hash.h"
#include "http_conn.h"
#include "mem.h"

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <stdbool.h>
#include <string.h>

enum { CHAIN_MAX = 32, HANDSHAKE_MS = 600000 };

struct shown {
    gnutls_pcert_st chain[CHAIN_MAX];
    unsigned n;
    gnutls_privkey_t key;
    struct shown *older; /* a handshake may still be at it; */
    int64_t until_ms;    /* since it was the newest, no longer than this */
};
/* libmicrohttpd hands nothing of ours to the function that it asks; a process has one server. */
static struct shown *newest;

static void shown_free(struct shown *s)
{
    for (unsigned i = 0; i < s->n; i++)
        gnutls_pcert_deinit(&s->chain[i]);
    if (s->key)
        gnutls_privkey_deinit(s->key);
    free(s);
}

static gnutls_datum_t datum_of(const struct buf *b)
{
    return (gnutls_datum_t){.data = (unsigned char *)b->p, .size = (unsigned)b->len};
}

static bool belong_together(const gnutls_datum_t *cert, const gnutls_datum_t *key)
{
    gnutls_certificate_credentials_t c;
    if (gnutls_certificate_allocate_credentials(&c) < 0)
        return false;
    int rc = gnutls_certificate_set_x509_key_mem(c, cert, key, GNUTLS_X509_FMT_PEM);
    gnutls_certificate_free_credentials(c);
    return rc >= 0;
}

/* Handshakes are cut long before (http_peer.c). */
static void drop_old(int64_t now_ms)
{
    for (struct shown **at = &newest->older; *at;) {
        struct shown *s = *at;
        if (now_ms - s->until_ms < HANDSHAKE_MS) {
            at = &s->older;
            continue;
        }
        *at = s->older;
        shown_free(s);
    }
}

int http_tls_show(const struct pem_pair *pair, struct det_err *err)
{
    gnutls_datum_t cert = datum_of(&pair->cert), key = datum_of(&pair->key);
    struct shown *s = det_zalloc(sizeof *s);
    unsigned n = CHAIN_MAX;
    bool ok = cert.size && key.size && belong_together(&cert, &key) &&
              gnutls_pcert_list_import_x509_raw(s->chain, &n, &cert, GNUTLS_X509_FMT_PEM, 0) >= 0;
    s->n = ok ? n : 0;
    ok = ok && gnutls_privkey_init(&s->key) >= 0 &&
         gnutls_privkey_import_x509_raw(s->key, &key, GNUTLS_X509_FMT_PEM, NULL, 0) >= 0;
    if (!ok) {
        shown_free(s);
        return det_fail(err, DET_EINVAL,
                        "security.tls.cert and .key must be PEM and belong together");
    }
    if (newest)
        newest->until_ms = clk_mono_ms();
    s->older = newest;
    newest = s;
    drop_old(clk_mono_ms());
    return 0;
}

static int on_ask(gnutls_session_t session, const gnutls_datum_t *authorities, int authorities_n,
                  const gnutls_pk_algorithm_t *kinds, int kinds_n, gnutls_pcert_st **ret,
                  unsigned *ret_n, gnutls_privkey_t *ret_key)
{
    if (!newest)
        return -1;
    *ret = newest->chain;
    *ret_n = newest->n;
    *ret_key = newest->key;
    return 0;
}

struct MHD_OptionItem http_tls_option(void)
{
    return (struct MHD_OptionItem){MHD_OPTION_HTTPS_CERT_CALLBACK, 0, (void *)on_ask};
}

void http_tls_finish(void)
{
    while (newest) {
        struct shown *s = newest;
        newest = s->older;
        shown_free(s);
    }
}

/* The handshake has proved that the client holds the key; who issued the certificate is not asked,
 * since those that count are known one by one. */
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
