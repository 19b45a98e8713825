/* The cluster's own authority: what it issues to agents, and what requests it takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "authority.h"
#include "mem.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>

enum { NOW = 1800000000, LATER = NOW + 1000 };

struct made { /* a request */
    char text[4096];
};

static void make(struct made *m, EVP_PKEY *key, EVP_PKEY *signer)
{
    X509_REQ *q = X509_REQ_new();
    BIO *b = BIO_new(BIO_s_mem());
    X509_NAME_add_entry_by_txt(X509_REQ_get_subject_name(q), "CN", MBSTRING_ASC,
                               (const unsigned char *)"somebody else", -1, -1, 0);
    X509_REQ_set_pubkey(q, key);
    assert_true(X509_REQ_sign(q, signer, EVP_sha256()) > 0);
    assert_true(PEM_write_bio_X509_REQ(b, q));
    int n = BIO_read(b, m->text, sizeof m->text - 1);
    m->text[n] = '\0';
    BIO_free_all(b);
    X509_REQ_free(q);
}

static X509 *read(const struct buf *pem)
{
    BIO *b = BIO_new_mem_buf(pem->p, (int)pem->len);
    X509 *x = PEM_read_bio_X509(b, NULL, NULL, NULL);
    BIO_free_all(b);
    assert_non_null(x);
    return x;
}

static void for_the_name_alone(void **state)
{
    struct pem_pair ca = {BUF_INIT, BUF_INIT};
    struct agent_cert c = {.name = "node-1", .from_s = NOW, .until_s = LATER};
    struct made m;
    struct det_err err;
    char name[80] = "", key[65];
    EVP_PKEY *own = EVP_EC_gen("P-256");
    make(&m, own, own);
    assert_int_equal(authority_make(&ca, &err), 0);
    assert_int_equal(authority_key_of(m.text, key, &err), 0);
    assert_int_equal(strlen(key), 64);
    assert_int_equal(authority_issue_agent(&ca, m.text, &c, &err), 0);
    assert_int_equal(strlen(c.fingerprint), 64);
    X509 *x = read(&c.pem), *issuer = read(&ca.cert);
    X509_NAME_get_text_by_NID(X509_get_subject_name(x), NID_commonName, name, sizeof name);
    assert_string_equal(name, "node-1");
    assert_int_equal(X509_verify(x, X509_get0_pubkey(issuer)), 1);
    assert_int_equal(EVP_PKEY_eq(X509_get0_pubkey(x), own), 1);
    assert_int_equal(X509_check_ca(x), 0);
    assert_int_equal(X509_check_purpose(x, X509_PURPOSE_SSL_CLIENT, 0), 1);
    assert_int_equal(X509_check_purpose(x, X509_PURPOSE_SSL_SERVER, 0), 0);
    assert_int_equal(ASN1_TIME_cmp_time_t(X509_get0_notBefore(x), NOW), 0);
    assert_int_equal(ASN1_TIME_cmp_time_t(X509_get0_notAfter(x), LATER), 0);
    X509_free(x);
    X509_free(issuer);
    buf_finish(&c.pem);
    EVP_PKEY_free(own);
    pem_pair_finish(&ca);
}

static void other_requests_are_refused(void **state)
{
    struct pem_pair ca = {BUF_INIT, BUF_INIT};
    struct agent_cert c = {.name = "node-1", .from_s = NOW, .until_s = LATER};
    struct det_err err;
    struct made m;
    char key[65];
    EVP_PKEY *own = EVP_EC_gen("P-256"), *other = EVP_EC_gen("P-256"), *large = EVP_EC_gen("P-521"),
             *rsa = EVP_RSA_gen(2048);
    assert_int_equal(authority_make(&ca, &err), 0);
    make(&m, own, other); /* of a key that it does not hold */
    assert_int_equal(authority_key_of(m.text, key, &err), 0);
    assert_int_equal(authority_issue_agent(&ca, m.text, &c, &err), DET_EINVAL);
    assert_non_null(strstr(err.text, "signed"));
    make(&m, large, large);
    assert_int_equal(authority_key_of(m.text, key, &err), DET_EINVAL);
    make(&m, rsa, rsa);
    assert_int_equal(authority_issue_agent(&ca, m.text, &c, &err), DET_EINVAL);
    static const char *const bad[] = {"", "x",
                                      "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n"
                                      "-----END CERTIFICATE REQUEST-----\n"};
    for (size_t i = 0; i < DET_ARRAY_LEN(bad); i++)
        assert_int_equal(authority_key_of(bad[i], key, &err), DET_EINVAL);
    assert_int_equal(c.pem.len, 0);
    EVP_PKEY_free(own);
    EVP_PKEY_free(other);
    EVP_PKEY_free(large);
    EVP_PKEY_free(rsa);
    pem_pair_finish(&ca);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(for_the_name_alone),
        cmocka_unit_test(other_requests_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
