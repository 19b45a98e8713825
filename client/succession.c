#include "succession.h"

#include "mem.h"
#include "pem.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <string.h>

enum { CHAIN_MAX = 32 }; /* more is nobody's */

static void chain_free(STACK_OF(X509) * s)
{
    sk_X509_pop_free(s, X509_free);
}

DET_DEFINE_CLEANUP(X509 *, X509_free)
DET_DEFINE_CLEANUP(X509_STORE *, X509_STORE_free)
DET_DEFINE_CLEANUP(X509_STORE_CTX *, X509_STORE_CTX_free)
DET_DEFINE_CLEANUP(BIO *, BIO_free_all)
DET_DEFINE_CLEANUP(STACK_OF(X509) *, chain_free)

static X509 *read_one(const char *pem)
{
    det_cleanup(BIO_free_allp) BIO *b = BIO_new_mem_buf(pem, -1);
    return b ? PEM_read_bio_X509(b, NULL, NULL, NULL) : NULL;
}

static STACK_OF(X509) * read_all(const char *chain)
{
    det_cleanup(BIO_free_allp) BIO *b = BIO_new_mem_buf(chain, -1);
    STACK_OF(X509) *all = sk_X509_new_null();
    X509 *x;
    while (b && all && sk_X509_num(all) < CHAIN_MAX &&
           (x = PEM_read_bio_X509(b, NULL, NULL, NULL)) != NULL)
        if (!sk_X509_push(all, x))
            X509_free(x);
    return all;
}

/* It may vouch for others itself. */
static bool is_authority(X509 *x)
{
    return X509_check_ca(x) == 1;
}

static bool is_vouched(X509 *x, X509 *kept, STACK_OF(X509) * chain)
{
    det_cleanup(X509_STORE_freep) X509_STORE *store = X509_STORE_new();
    det_cleanup(X509_STORE_CTX_freep) X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    if (!store || !ctx || !X509_STORE_add_cert(store, kept) ||
        !X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN) ||
        !X509_STORE_CTX_init(ctx, store, x, chain))
        return false;
    return X509_verify_cert(ctx) == 1;
}

static bool is_same(X509 *a, X509 *b)
{
    EVP_PKEY *ka = X509_get0_pubkey(a), *kb = X509_get0_pubkey(b);
    return ka && kb && EVP_PKEY_eq(ka, kb) == 1 &&
           X509_NAME_cmp(X509_get_subject_name(a), X509_get_subject_name(b)) == 0;
}

static bool vouches_for(X509 *kept, X509 *last, STACK_OF(X509) * chain)
{
    EVP_PKEY *key = X509_get0_pubkey(last);
    if (!key || !is_authority(kept) || !is_authority(last) || X509_verify(last, key) != 1)
        return false;
    for (int i = 0; i < sk_X509_num(chain); i++) {
        X509 *x = sk_X509_value(chain, i);
        if (is_same(x, last) && is_authority(x) && is_vouched(x, kept, chain))
            return true;
    }
    return false;
}

char *succession_find(const char *kept, const char *chain)
{
    char *text det_cleanup(freep) = pem_last(chain);
    det_cleanup(X509_freep) X509 *old = read_one(kept), *last = text ? read_one(text) : NULL;
    det_cleanup(chain_freep) STACK_OF(X509) *all = read_all(chain);
    bool ok = old && last && all && X509_cmp(old, last) != 0 && vouches_for(old, last, all);
    ERR_clear_error();
    return ok ? det_take(text) : NULL;
}
