#include "certkey.h"

#include "mem.h"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <time.h>

DET_DEFINE_CLEANUP(X509 *, X509_free)
DET_DEFINE_CLEANUP(X509_REQ *, X509_REQ_free)
DET_DEFINE_CLEANUP(EVP_PKEY *, EVP_PKEY_free)
DET_DEFINE_CLEANUP(BIO *, BIO_free_all)

static void add(struct buf *out, BIO *b)
{
    char *p;
    long n = BIO_get_mem_data(b, &p);
    buf_add(out, p, (size_t)n);
}

static EVP_PKEY *read_key(const char *pem)
{
    det_cleanup(BIO_free_allp) BIO *b = BIO_new_mem_buf(pem, -1);
    EVP_PKEY *key = b ? PEM_read_bio_PrivateKey(b, NULL, NULL, NULL) : NULL;
    ERR_clear_error();
    return key;
}

/* It names nobody: the master knows by the token or the certificate who asks. */
static bool request_of(EVP_PKEY *key, struct buf *out)
{
    det_cleanup(X509_REQ_freep) X509_REQ *q = X509_REQ_new();
    det_cleanup(BIO_free_allp) BIO *b = BIO_new(BIO_s_mem());
    bool ok = q && b && X509_REQ_set_version(q, X509_REQ_VERSION_1) &&
              X509_REQ_set_pubkey(q, key) && X509_REQ_sign(q, key, EVP_sha256()) &&
              PEM_write_bio_X509_REQ(b, q);
    if (ok)
        add(out, b);
    return ok;
}

int certkey_make(struct buf *key, struct buf *request, struct det_err *err)
{
    det_cleanup(EVP_PKEY_freep) EVP_PKEY *k = EVP_EC_gen("P-256");
    det_cleanup(BIO_free_allp) BIO *b = BIO_new(BIO_s_secmem());
    if (!k || !b || !PEM_write_bio_PrivateKey(b, k, NULL, NULL, 0, NULL, NULL) ||
        !request_of(k, request))
        return det_fail(err, DET_EIO, "no key could be made for this agent");
    add(key, b);
    return 0;
}

int certkey_request(const char *key, struct buf *request, struct det_err *err)
{
    det_cleanup(EVP_PKEY_freep) EVP_PKEY *k = read_key(key);
    if (!k || !request_of(k, request))
        return det_fail(err, DET_ECORRUPT, "the key cannot be read");
    return 0;
}

static bool seconds_of(const ASN1_TIME *t, int64_t *ret)
{
    struct tm tm;
    if (!ASN1_TIME_to_tm(t, &tm))
        return false;
    *ret = timegm(&tm);
    return true;
}

int certkey_dates(const char *cert, const char *key, struct cert_dates *ret, struct det_err *err)
{
    det_cleanup(BIO_free_allp) BIO *b = BIO_new_mem_buf(cert, -1);
    det_cleanup(X509_freep) X509 *x = b ? PEM_read_bio_X509(b, NULL, NULL, NULL) : NULL;
    det_cleanup(EVP_PKEY_freep) EVP_PKEY *k = read_key(key);
    bool ok = x && k && X509_check_private_key(x, k) == 1 &&
              seconds_of(X509_get0_notBefore(x), &ret->from_s) &&
              seconds_of(X509_get0_notAfter(x), &ret->until_s);
    ERR_clear_error();
    return ok ? 0 : det_fail(err, DET_ECORRUPT, "not a certificate with its key");
}
