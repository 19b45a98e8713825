#include "b64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "rng.h"
#include <string.h>

/* RFC 4648, section 10. */
static void test_vectors(void **state)
{
    static const char *const v[][2] = {{"", ""},
                                       {"f", "Zg=="},
                                       {"fo", "Zm8="},
                                       {"foo", "Zm9v"},
                                       {"foob", "Zm9vYg=="},
                                       {"fooba", "Zm9vYmE="},
                                       {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        struct buf b = BUF_INIT, back = BUF_INIT;
        b64_encode(&b, v[i][0], strlen(v[i][0]));
        assert_string_equal(buf_str(&b), v[i][1]);
        assert_int_equal(b64_decode(&back, buf_str(&b), b.len, NULL), 0);
        assert_string_equal(buf_str(&back), v[i][0]);
        buf_finish(&b);
        buf_finish(&back);
    }
}

static void test_bad(void **state)
{
    static const char *const bad[] = {"Zg=", "Z===", "====", "Zm9v!mFy", "Zg==Zg==", "Zm 9vYg="};
    struct buf b = BUF_INIT;
    buf_add_str(&b, "keep");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(b64_decode(&b, bad[i], strlen(bad[i]), NULL), DET_EINVAL);
        assert_string_equal(b.p, "keep");
    }
    buf_finish(&b);
}

/* Random bytes of every length up to 200 come back; a stranger at any place is told. */
static void test_any(void **state)
{
    struct mt19937 r;
    mt19937_seed(&r, 1);
    for (size_t n = 0; n <= 200; n++) {
        struct buf text = BUF_INIT, back = BUF_INIT;
        char bytes[200];
        for (size_t i = 0; i < n; i++)
            bytes[i] = (char)mt19937_u32(&r);
        b64_encode(&text, bytes, n);
        assert_int_equal(text.len, (n + 2) / 3 * 4);
        assert_int_equal(b64_decode(&back, buf_str(&text), text.len, NULL), 0);
        assert_int_equal(back.len, n);
        assert_memory_equal(buf_str(&back), bytes, n);
        for (size_t i = 0; i < text.len; i++) {
            char was = text.p[i];
            text.p[i] = (char)(0x80 | was);
            assert_int_equal(b64_decode(&back, text.p, text.len, NULL), DET_EINVAL);
            text.p[i] = was;
        }
        assert_int_equal(back.len, n);
        buf_finish(&text);
        buf_finish(&back);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_any),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
