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

#define CA_NAME "det cluster authority"

enum { CA_DAYS = 7300, SERVER_DAYS = 730, SERIAL_BITS = 127, DAY_S = 86400 };

DET_DEFINE_CLEANUP(X509 *, X509_free)
DET_DEFINE_CLEANUP(X509_REQ *, X509_REQ_free)
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

static int fail_openssl(struct det_err *err, const char *what)
{
    return det_fail(err, DET_EIO, "the cluster's own authority: %s", what);
}

static bool add_extension(X509 *x, X509 *issuer, int nid, const char *value)
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

/* Valid since yesterday, for clocks that are behind. */
static bool set_dates(X509 *x, int days)
{
    return X509_gmtime_adj(X509_getm_notBefore(x), -DAY_S) &&
           X509_time_adj_ex(X509_getm_notAfter(x), days, 0, NULL);
}

/* All but the dates. issuer NULL: itself. */
static bool fill_certificate(X509 *x, X509 *issuer, EVP_PKEY *key, const char *name)
{
    X509_NAME *subject = X509_get_subject_name(x);
    return X509_set_version(x, X509_VERSION_3) && set_serial(x) &&
           X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)name, -1,
                                      -1, 0) &&
           X509_set_issuer_name(x, issuer ? X509_get_subject_name(issuer) : subject) &&
           X509_set_pubkey(x, key) &&
           add_extension(x, issuer ? issuer : x, NID_subject_key_identifier, "hash");
}

static bool write_cert(X509 *x, struct buf *out)
{
    det_cleanup(BIO_free_allp) BIO *b = BIO_new(BIO_s_mem());
    char *p;
    if (!b || !PEM_write_bio_X509(b, x))
        return false;
    long n = BIO_get_mem_data(b, &p);
    buf_add(out, p, (size_t)n);
    return true;
}

static bool write_pem(X509 *x, EVP_PKEY *key, struct pem_pair *ret)
{
    det_cleanup(BIO_free_allp) BIO *secret = BIO_new(BIO_s_secmem());
    char *p;
    if (!secret || !PEM_write_bio_PrivateKey(secret, key, NULL, NULL, 0, NULL, NULL) ||
        !write_cert(x, &ret->cert))
        return false;
    long n = BIO_get_mem_data(secret, &p);
    buf_add(&ret->key, p, (size_t)n);
    return true;
}

/* pathlen counts none that an authority of the same name has vouched for. */
static bool extend_ca(X509 *x, X509 *issuer)
{
    return add_extension(x, issuer, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
           add_extension(x, issuer, NID_key_usage, "critical,keyCertSign,cRLSign");
}

int authority_make(struct pem_pair *ret, struct det_err *err)
{
    det_cleanup(X509_freep) X509 *x = X509_new();
    det_cleanup(EVP_PKEY_freep) EVP_PKEY *key = EVP_EC_gen("P-256");
    bool ok = x && key && fill_certificate(x, NULL, key, CA_NAME) && set_dates(x, CA_DAYS) &&
              extend_ca(x, x) && X509_sign(x, key, EVP_sha256()) && write_pem(x, key, ret);
    return ok ? 0 : fail_openssl(err, "could not be made");
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

static bool vouch_for(X509 *x, EVP_PKEY *key, const struct pem_pair *ca, struct buf *out)
{
    det_cleanup(X509_freep) X509 *issuer = read_cert(buf_str(&ca->cert));
    det_cleanup(EVP_PKEY_freep) EVP_PKEY *signer = read_key(buf_str(&ca->key));
    return x && key && issuer && signer && fill_certificate(x, issuer, key, CA_NAME) &&
           set_dates(x, CA_DAYS) &&
           add_extension(x, issuer, NID_authority_key_identifier, "keyid") &&
           extend_ca(x, issuer) && X509_sign(x, signer, EVP_sha256()) && write_cert(x, out);
}

int authority_succeed(const struct pem_pair *ca, struct pem_pair *ret, struct buf *vouch,
                      struct det_err *err)
{
    int rc = authority_make(ret, err);
    if (rc < 0)
        return rc;
    det_cleanup(X509_freep) X509 *x = X509_new();
    det_cleanup(EVP_PKEY_freep) EVP_PKEY *key = read_key(buf_str(&ret->key));
    return vouch_for(x, key, ca, vouch) ? 0
                                        : fail_openssl(err, "could not vouch for its successor");
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
    bool ok = readable && x && key && fill_certificate(x, issuer, key, "det-master") &&
              set_dates(x, SERVER_DAYS) &&
              add_extension(x, issuer, NID_authority_key_identifier, "keyid") &&
              add_extension(x, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
              add_extension(x, issuer, NID_key_usage, "critical,digitalSignature") &&
              add_extension(x, issuer, NID_ext_key_usage, "serverAuth") &&
              add_extension(x, issuer, NID_subject_alt_name, buf_str(&san)) &&
              X509_sign(x, signer, EVP_sha256()) && write_pem(x, key, ret);
    buf_finish(&san);
    return ok ? 0
           : readable
               ? fail_openssl(err, "could not issue the server's certificate")
               : fail_openssl(err, "its row in the table authority is not a certificate and key");
}

static void hex_of(const unsigned char *p, size_t n, char *out)
{
    for (size_t i = 0; i < n; i++)
        snprintf(out + 2 * i, 3, "%02x", p[i]);
}

static bool is_p256(EVP_PKEY *key)
{
    char group[32] = "";
    return key && EVP_PKEY_get_base_id(key) == EVP_PKEY_EC &&
           EVP_PKEY_get_group_name(key, group, sizeof group, NULL) &&
           strcmp(group, "prime256v1") == 0;
}

/* Other keys could cost whom they are shown to dearly. NULL: it is none of these. */
static X509_REQ *read_request(const char *text, struct det_err *err)
{
    det_cleanup(BIO_free_allp) BIO *b = BIO_new_mem_buf(text, -1);
    X509_REQ *q = b ? PEM_read_bio_X509_REQ(b, NULL, NULL, NULL) : NULL;
    bool ok = q && is_p256(X509_REQ_get0_pubkey(q));
    ERR_clear_error();
    if (ok)
        return q;
    det_fail(err, DET_EINVAL, "request: not a certificate request in PEM with an EC key on P-256%s",
             q ? "; its key is another" : "");
    X509_REQ_free(q);
    return NULL;
}

int authority_key_of(const char *request, char out[65], struct det_err *err)
{
    det_cleanup(X509_REQ_freep) X509_REQ *q = read_request(request, err);
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    if (!q)
        return DET_EINVAL;
    unsigned char *der = NULL;
    int len = i2d_X509_PUBKEY(X509_REQ_get_X509_PUBKEY(q), &der);
    bool ok = len > 0 && EVP_Digest(der, (size_t)len, hash, &n, EVP_sha256(), NULL);
    OPENSSL_free(der);
    if (!ok)
        return fail_openssl(err, "a key has no digest");
    hex_of(hash, n, out);
    return 0;
}

static bool date_agent(X509 *x, const struct agent_cert *c)
{
    return ASN1_TIME_set(X509_getm_notBefore(x), (time_t)c->from_s) &&
           ASN1_TIME_set(X509_getm_notAfter(x), (time_t)c->until_s);
}

static bool sign_agent(X509 *x, X509 *issuer, EVP_PKEY *key, EVP_PKEY *signer,
                       const struct agent_cert *c)
{
    return fill_certificate(x, issuer, key, c->name) && date_agent(x, c) &&
           add_extension(x, issuer, NID_authority_key_identifier, "keyid") &&
           add_extension(x, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
           add_extension(x, issuer, NID_key_usage, "critical,digitalSignature") &&
           add_extension(x, issuer, NID_ext_key_usage, "clientAuth") &&
           X509_sign(x, signer, EVP_sha256());
}

int authority_issue_agent(const struct pem_pair *ca, const char *request, struct agent_cert *ret,
                          struct det_err *err)
{
    det_cleanup(X509_REQ_freep) X509_REQ *q = read_request(request, err);
    if (!q)
        return DET_EINVAL;
    EVP_PKEY *key = X509_REQ_get0_pubkey(q);
    if (X509_REQ_verify(q, key) != 1) {
        ERR_clear_error();
        return det_fail(err, DET_EINVAL, "request: it is not signed with its own key");
    }
    det_cleanup(X509_freep) X509 *x = X509_new(), *issuer = read_cert(buf_str(&ca->cert));
    det_cleanup(EVP_PKEY_freep) EVP_PKEY *signer = read_key(buf_str(&ca->key));
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    if (!x || !issuer || !signer || !sign_agent(x, issuer, key, signer, ret) ||
        !X509_digest(x, EVP_sha256(), hash, &n) || !write_cert(x, &ret->pem))
        return fail_openssl(err, "could not issue an agent's certificate");
    hex_of(hash, n, ret->fingerprint);
    return 0;
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
    hex_of(hash, n, out + at);
    return 0;
}
