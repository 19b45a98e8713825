#include "slab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { BYTES = 200, MANY = 2000 };

static bool is_filled(const unsigned char *p, int with)
{
    for (size_t i = 0; i < BYTES; i++)
        if (p[i] != with)
            return false;
    return true;
}

/* Each keeps what is in it while others come and go. */
static void apart_and_cleared(void **state)
{
    static unsigned char *p[MANY];
    struct slab s = {.bytes = BYTES};
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < MANY; i++) {
            if (p[i])
                continue;
            p[i] = slab_get(&s);
            assert_int_equal((uintptr_t)p[i] % 64, 0);
            assert_true(is_filled(p[i], 0));
            memset(p[i], (int)(i % 251) + 1, BYTES);
        }
        for (size_t i = round; i < MANY; i += round + 2) {
            slab_put(p[i]);
            p[i] = NULL;
        }
    }
    for (size_t i = 0; i < MANY; i++) {
        assert_true(!p[i] || is_filled(p[i], (int)(i % 251) + 1));
        slab_put(p[i]);
    }
    assert_null(s.open);
}

static void side_by_side(void **state)
{
    struct slab s = {.bytes = 100};
    char *a = slab_get(&s), *b = slab_get(&s);
    assert_int_equal(b - a, 128);
    slab_put(a);
    assert_ptr_equal(slab_get(&s), a);
    slab_put(a);
    slab_put(b);
    slab_put(NULL);
    assert_null(s.open);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(apart_and_cleared),
                                       cmocka_unit_test(side_by_side)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
