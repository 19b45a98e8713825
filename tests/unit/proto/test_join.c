/* Join tokens, and the life of a certificate. */
#include "join.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { NOW = 1800000000, DAY = 86400 };

static void tokens_come_back(void **state)
{
    struct join_token t = {.fingerprint = "SHA256:"}, back;
    char text[JOIN_TOKEN_MAX];
    struct det_err err;
    memset(t.secret, 'a', JOIN_DIGITS);
    memset(t.fingerprint + strlen("SHA256:"), '7', JOIN_DIGITS);
    join_token_write(&t, text);
    assert_int_equal(join_token_read(text, &back, &err), 0);
    assert_string_equal(back.secret, t.secret);
    assert_string_equal(back.fingerprint, t.fingerprint);
    for (size_t n = 0; n < strlen(text); n++) { /* cut anywhere, or with another sign */
        char bad[JOIN_TOKEN_MAX];
        snprintf(bad, sizeof bad, "%.*s", (int)n, text);
        assert_int_equal(join_token_read(bad, &back, &err), DET_EINVAL);
        snprintf(bad, sizeof bad, "%s", text);
        bad[n] = 'X';
        assert_int_equal(join_token_read(bad, &back, &err), DET_EINVAL);
        assert_null(strstr(err.text, "aaaa"));
    }
    char more[JOIN_TOKEN_MAX + 1];
    snprintf(more, sizeof more, "%s0", text);
    assert_int_equal(join_token_read(more, &back, &err), DET_EINVAL);
}

static void a_certificate_ages(void **state)
{
    struct cert_dates d = {NOW, NOW + 90 * DAY};
    assert_int_equal(cert_state(&d, false, NOW - 1), CERT_EARLY);
    assert_int_equal(cert_state(&d, false, NOW), CERT_FRESH);
    assert_int_equal(cert_due_s(&d), NOW + 60 * DAY);
    assert_int_equal(cert_state(&d, false, NOW + 60 * DAY - 1), CERT_FRESH);
    assert_int_equal(cert_state(&d, false, NOW + 60 * DAY), CERT_DUE);
    assert_int_equal(cert_state(&d, false, NOW + 90 * DAY - 1), CERT_DUE);
    assert_int_equal(cert_state(&d, false, NOW + 90 * DAY), CERT_EXPIRED);
    for (int day = -1; day < 100; day++)
        assert_int_equal(cert_state(&d, true, NOW + day * DAY), CERT_REVOKED);
}

/* However short it lives, it is good at once, not due at once, and due before its end. */
static void dates_fit_any_life(void **state)
{
    static const int64_t lives[] = {1, 2, 5, 60, 3600, 3 * DAY, 90 * DAY, 3650 * (int64_t)DAY};
    for (size_t i = 0; i < sizeof lives / sizeof *lives; i++) {
        struct cert_dates d = cert_dates_of(NOW, lives[i]);
        assert_int_equal(d.until_s, NOW + lives[i]);
        assert_true(d.from_s <= NOW && d.from_s >= NOW - DAY);
        assert_int_equal(cert_state(&d, false, NOW), CERT_FRESH);
        assert_true(cert_due_s(&d) <= d.until_s);
    }
}

static void looks_are_neither_rare_nor_many(void **state)
{
    struct cert_dates d = cert_dates_of(NOW, 90 * DAY);
    assert_int_equal(cert_look_ms(&d, NOW), 3600000);
    assert_int_equal(cert_look_ms(&d, cert_due_s(&d) - 5), 5000);
    assert_int_equal(cert_look_ms(&d, cert_due_s(&d)), 3600000);
    assert_int_equal(cert_look_ms(&d, d.until_s - 300), 10000);
    assert_int_equal(cert_look_ms(&d, d.until_s - 1), 1000);
    assert_int_equal(cert_look_ms(&d, d.until_s + DAY), 3600000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_come_back),
        cmocka_unit_test(a_certificate_ages),
        cmocka_unit_test(dates_fit_any_life),
        cmocka_unit_test(looks_are_neither_rare_nor_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
