#include "authority.h"

#include "mem.h"

#include <arpa/inet.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { CA_DAYS = 7300, SERVER_DAYS = 730, SERIAL_BITS = 127, DAY_S = 86400 };

DET_DEFINE_CLEANUP(X509 *, X509_free)
DET_DEFINE_CLEANUP(EVP_PKEY *, EVP_PKEY_free)
DET_DEFINE_CLEANUP(BIO *, BIO_free_all)
DET_DEFINE_CLEANUP(BIGNUM *, BN_free)

void pem_pair_finish(struct pem_pair *p)
{
    buf_finish(&p->cert);
    if (p->key.p)
        explicit_bzero(p->key.p, p->key.len);
    buf_finish(&p->key);
}

static int failed(struct det_err *err, const char *what)
{
    return det_fail(err, DET_EIO, "the cluster's own authority: %s", what);
}

static bool extend(X509 *x, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    bool ok = e && X509_add_ext(x, e, -1);
    X509_EXTENSION_free(e);
    return ok;
}

static bool set_serial(X509 *x)
{
    det_cleanup(BN_freep) BIGNUM *n = BN_new();
    return n && BN_rand(n, SERIAL_BITS, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) &&
           BN_to_ASN1_INTEGER(n, X509_get_serialNumber(x));
}

/* Valid since yesterday, for clocks that are behind. issuer NULL: itself. */
static bool fill(X509 *x, X509 *issuer, EVP_PKEY *key, const char *name, int days)
{
    X509_NAME *subject = X509_get_subject_name(x);
    return X509_set_version(x, X509_VERSION_3) && set_serial(x) &&
           X509_gmtime_adj(X509_getm_notBefore(x), -DAY_S) &&
           X509_time_adj_ex(X509_getm_notAfter(x), days, 0, NULL) &&
           X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)name, -1,
                                      -1, 0) &&
           X509_set_issuer_name(x, issuer ? X509_get_subject_name(issuer) : subject) &&
           X509_set_pubkey(x, key) &&
           extend(x, issuer ? issuer : x, NID_subject_key_identifier, "hash");
}

static bool write_pem(X509 *x, EVP_PKEY *key, struct pem_pair *ret)
{
    det_cleanup(BIO_free_allp) BIO *cert = BIO_new(BIO_s_mem()), *secret = BIO_new(BIO_s_secmem());
    char *p;
    if (!cert || !secret || !PEM_write_bio_X509(cert, x) ||
        !PEM_write_bio_PrivateKey(secret, key, NULL, NULL, 0, NULL, NULL))
        return false;
    long n = BIO_get_mem_data(cert, &p);
    buf_add(&ret->cert, p, (size_t)n);
    n = BIO_get_mem_data(secret, &p);
    buf_add(&ret->key, p, (size_t)n);
    return true;
}

int authority_make(struct pem_pair *ret, struct det_err *err)
{
    det_cleanup(X509_freep) X509 *x = X509_new();
    det_cleanup(EVP_PKEY_freep) EVP_PKEY *key = EVP_EC_gen("P-256");
    bool ok = x && key && fill(x, NULL, key, "det cluster authority", CA_DAYS) &&
              extend(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
              extend(x, x, NID_key_usage, "critical,keyCertSign,cRLSign") &&
              X509_sign(x, key, EVP_sha256()) && write_pem(x, key, ret);
    return ok ? 0 : failed(err, "could not be made");
}

static X509 *read_cert(const char *text)
{
    det_cleanup(BIO_free_allp) BIO *b = BIO_new_mem_buf(text, -1);
    return b ? PEM_read_bio_X509(b, NULL, NULL, NULL) : NULL;
}

static EVP_PKEY *read_key(const char *text)
{
    det_cleanup(BIO_free_allp) BIO *b = BIO_new_mem_buf(text, -1);
    return b ? PEM_read_bio_PrivateKey(b, NULL, NULL, NULL) : NULL;
}

/* "DNS:a,IP:127.0.0.1"; what is no name is left out: a comma would make it two. */
static void alternative_names(const char *const *names, size_t n, struct buf *out)
{
    unsigned char address[sizeof(struct in6_addr)];
    for (size_t i = 0; i < n; i++) {
        bool is_ip = inet_pton(AF_INET, names[i], address) == 1 ||
                     inet_pton(AF_INET6, names[i], address) == 1;
        if (is_ip || (*names[i] && !strpbrk(names[i], ",:%")))
            buf_addf(out, "%s%s:%s", out->len ? "," : "", is_ip ? "IP" : "DNS", names[i]);
    }
}

int authority_issue(const struct pem_pair *ca, const char *const *names, size_t n,
                    struct pem_pair *ret, struct det_err *err)
{
    det_cleanup(X509_freep) X509 *x = X509_new(), *issuer = read_cert(ca->cert.p);
    det_cleanup(EVP_PKEY_freep) EVP_PKEY *key = EVP_EC_gen("P-256"), *signer = read_key(ca->key.p);
    struct buf san = BUF_INIT;
    alternative_names(names, n, &san);
    bool readable = issuer && signer;
    bool ok = readable && x && key && fill(x, issuer, key, "det-master", SERVER_DAYS) &&
              extend(x, issuer, NID_authority_key_identifier, "keyid") &&
              extend(x, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
              extend(x, issuer, NID_key_usage, "critical,digitalSignature") &&
              extend(x, issuer, NID_ext_key_usage, "serverAuth") &&
              extend(x, issuer, NID_subject_alt_name, buf_str(&san)) &&
              X509_sign(x, signer, EVP_sha256()) && write_pem(x, key, ret);
    if (ok)
        buf_add(&ret->cert, ca->cert.p, ca->cert.len);
    buf_finish(&san);
    return ok         ? 0
           : readable ? failed(err, "could not issue the server's certificate")
                      : failed(err, "its row in the table authority is not a certificate and key");
}

/* In a chain its authority's, as far as it is there. */
static X509 *read_last(const char *text)
{
    det_cleanup(BIO_free_allp) BIO *b = BIO_new_mem_buf(text, -1);
    X509 *last = NULL;
    for (X509 *x; b && (x = PEM_read_bio_X509(b, NULL, NULL, NULL)) != NULL;) {
        X509_free(last);
        last = x;
    }
    ERR_clear_error(); /* that of the end */
    return last;
}

int authority_fingerprint(const char *chain, char out[FINGERPRINT_MAX], struct det_err *err)
{
    det_cleanup(X509_freep) X509 *x = read_last(chain);
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    if (!x || !X509_digest(x, EVP_sha256(), hash, &n))
        return det_fail(err, DET_EINVAL, "not a certificate in PEM");
    size_t at = (size_t)snprintf(out, FINGERPRINT_MAX, "SHA256:");
    for (unsigned i = 0; i < n; i++)
        at += (size_t)snprintf(out + at, FINGERPRINT_MAX - at, "%02x", hash[i]);
    return 0;
}
