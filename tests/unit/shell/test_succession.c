/* From one authority of the cluster's own to the next: who trusts an old one checks the master by
 * what vouches, and goes over to what it vouches for, and to nothing that is only sent along. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "authority.h"
#include "mem.h"
#include "succession.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <string.h>

static const char *const names[] = {"127.0.0.1"};

enum { A, B, C, STRANGER, N };
static struct pem_pair ca[N];
static struct buf b_by_a, c_by_b, stranger_by_itself;

static int setup(void **state)
{
    return authority_make(&ca[A], NULL) || authority_succeed(&ca[A], &ca[B], &b_by_a, NULL) ||
           authority_succeed(&ca[B], &ca[C], &c_by_b, NULL) ||
           authority_succeed(&ca[C], &ca[STRANGER], &stranger_by_itself, NULL);
}

static int teardown(void **state)
{
    for (int i = 0; i < N; i++)
        pem_pair_finish(&ca[i]);
    buf_finish(&b_by_a);
    buf_finish(&c_by_b);
    buf_finish(&stranger_by_itself);
    return 0;
}

/* A chain of texts, the last NULL; whether who trusts `kept` goes over to its end. */
static bool follows(int kept, ...)
{
    struct buf chain = BUF_INIT;
    va_list ap;
    va_start(ap, kept);
    const char *last = "";
    for (const char *one; (one = va_arg(ap, const char *)) != NULL; last = one)
        buf_add_str(&chain, one);
    va_end(ap);
    char *next det_cleanup(freep) = succession_find(ca[kept].cert.p, buf_str(&chain));
    if (next)
        assert_string_equal(next, last);
    buf_finish(&chain);
    return next != NULL;
}

static char *leaf_of(int who)
{
    struct pem_pair leaf = {BUF_INIT, BUF_INIT};
    assert_int_equal(authority_issue(&ca[who], names, 1, &leaf, NULL), 0);
    char *text = det_strdup(leaf.cert.p);
    pem_pair_finish(&leaf);
    return text;
}

static void from_each_to_the_last(void **state)
{
    char *leaf det_cleanup(freep) = leaf_of(C);
    for (int kept = A; kept <= B; kept++)
        assert_true(follows(kept, leaf, c_by_b.p, b_by_a.p, ca[A].cert.p, ca[B].cert.p,
                            ca[C].cert.p, NULL));
    assert_false(follows(C, leaf, c_by_b.p, b_by_a.p, ca[A].cert.p, ca[B].cert.p, ca[C].cert.p,
                         NULL)); /* there already */
    assert_true(follows(A, c_by_b.p, b_by_a.p, ca[C].cert.p, NULL));
}

static void what_is_sent_along_is_nobody(void **state)
{
    /* A server's key that was stolen: its certificate is good, the rest is the thief's. */
    char *leaf det_cleanup(freep) = leaf_of(A);
    assert_false(follows(A, leaf, ca[A].cert.p, ca[STRANGER].cert.p, NULL));
    assert_false(follows(A, leaf, stranger_by_itself.p, ca[STRANGER].cert.p, NULL));
    assert_false(follows(A, leaf, b_by_a.p, ca[STRANGER].cert.p, NULL)); /* for another key */
    assert_false(follows(A, leaf, c_by_b.p, ca[C].cert.p, NULL));        /* a step is missing */
    assert_false(follows(A, leaf, b_by_a.p, NULL));     /* no authority that stands by itself */
    assert_false(follows(A, ca[B].cert.p, leaf, NULL)); /* a server is none */
    assert_false(follows(B, leaf, b_by_a.p, ca[A].cert.p, NULL)); /* and never back */
    assert_false(follows(A, NULL));
    assert_false(
        follows(A, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", NULL));
    assert_null(succession_find("", b_by_a.p));
    char *other det_cleanup(freep) = leaf_of(B);
    assert_null(succession_find(other, b_by_a.p));
}

static X509 *read(const char **at)
{
    BIO *b = BIO_new_mem_buf(*at, -1);
    X509 *x = PEM_read_bio_X509(b, NULL, NULL, NULL);
    *at += x ? BIO_tell(b) : 0;
    BIO_free_all(b);
    return x;
}

/* As a client of TLS checks it. */
static int verify(int kept, const char *leaf, const char *rest)
{
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    STACK_OF(X509) *chain = sk_X509_new_null();
    const char *at = ca[kept].cert.p;
    X509 *root = read(&at), *own = read(&leaf);
    for (X509 *x; (x = read(&rest)) != NULL;)
        sk_X509_push(chain, x);
    X509_STORE_add_cert(store, root);
    X509_STORE_CTX_init(ctx, store, own, chain);
    X509_STORE_CTX_set_purpose(ctx, X509_PURPOSE_SSL_SERVER);
    int ok = X509_verify_cert(ctx);
    X509_STORE_CTX_free(ctx);
    X509_STORE_free(store);
    sk_X509_pop_free(chain, X509_free);
    X509_free(root);
    X509_free(own);
    return ok;
}

static void a_server_is_checked_by_any_of_them(void **state)
{
    char *leaf det_cleanup(freep) = leaf_of(C), *before det_cleanup(freep) = leaf_of(A);
    char *rest det_cleanup(freep) =
        det_asprintf("%s%s%s%s%s", c_by_b.p, b_by_a.p, ca[A].cert.p, ca[B].cert.p, ca[C].cert.p);
    for (int kept = A; kept <= C; kept++)
        assert_int_equal(verify(kept, leaf, rest), 1);
    assert_int_equal(verify(STRANGER, leaf, rest), 0);
    assert_int_equal(verify(B, before, rest), 0);
    assert_int_equal(verify(A, leaf, ""), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_each_to_the_last),
        cmocka_unit_test(what_is_sent_along_is_nobody),
        cmocka_unit_test(a_server_is_checked_by_any_of_them),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
