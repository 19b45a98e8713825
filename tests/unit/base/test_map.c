#include "map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "rng.h"
#include <stdio.h>

static void *ptr(uintptr_t v)
{
    return (void *)v;
}

static void test_strings(void **state)
{
    struct map *m = map_create();
    char key[16];
    assert_null(map_get(m, "absent"));
    for (uintptr_t i = 1; i <= 5000; i++) {
        snprintf(key, sizeof key, "k%d", (int)i);
        assert_null(map_put(m, key, ptr(i)));
    }
    assert_ptr_equal(map_put(m, "k77", ptr(7)), ptr(77));
    assert_ptr_equal(map_get(m, "k77"), ptr(7));
    assert_ptr_equal(map_del(m, "k78"), ptr(78));
    assert_null(map_del(m, "k78"));
    assert_null(map_get(m, "k78"));
    assert_int_equal(map_size(m), 4999);
    assert_null(map_put(m, "k78", ptr(1)));
    assert_ptr_equal(map_get(m, "k78"), ptr(1));
    map_destroy(m);
    map_destroy(NULL);
}

static void test_order(void **state)
{
    struct map *m = map_create();
    static const char *const keys[] = {"z", "a", "m", "", "b"};
    for (uintptr_t i = 0; i < 5; i++)
        map_put(m, keys[i], ptr(i + 1));
    size_t it = 0, n = 0;
    const char *key;
    void *value;
    for (; map_next(m, &it, &key, &value); n++) {
        assert_string_equal(key, keys[n]);
        assert_ptr_equal(value, ptr(n + 1));
    }
    assert_int_equal(n, 5);
    map_destroy(m);
}

/* Random puts and removals against a plain array. */
static void test_ints_against_model(void **state)
{
    enum { KEYS = 500 };
    uintptr_t model[KEYS] = {0};
    struct imap *m = imap_create();
    struct mt19937 r;
    mt19937_seed(&r, 1);
    for (uintptr_t step = 1; step < 50000; step++) {
        uint64_t k = mt19937_bounded(&r, KEYS - 1);
        if (mt19937_bounded(&r, 2) == 0) {
            assert_ptr_equal(imap_del(m, k << 32), ptr(model[k]));
            model[k] = 0;
        } else {
            assert_ptr_equal(imap_put(m, k << 32, ptr(step)), ptr(model[k]));
            model[k] = step;
        }
    }
    size_t live = 0, seen = 0, it = 0;
    for (uint64_t k = 0; k < KEYS; k++) {
        assert_ptr_equal(imap_get(m, k << 32), ptr(model[k]));
        live += model[k] != 0;
    }
    uint64_t key;
    void *value;
    while (imap_next(m, &it, &key, &value))
        seen++;
    assert_int_equal(imap_size(m), live);
    assert_int_equal(seen, live);
    imap_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_ints_against_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
