#include "hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>

static void test_digests(void **state)
{
    char hex[HASH_HEX_MAX];
    hash_bytes(HASH_MD5, "abc", 3, hex);
    assert_string_equal(hex, "900150983cd24fb0d6963f7d28e17f72");
    hash_bytes(HASH_SHA256, "", 0, hex);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    struct hash *h = hash_create(HASH_SHA512);
    hash_add(h, "a", 1);
    hash_add(h, "bc", 2);
    hash_end(h, hex);
    assert_int_equal(strlen(hex), 128);
    assert_memory_equal(hex, "ddaf35a193617abacc417349ae204131", 32);
    h = hash_create(HASH_XXH128); /* what xxhsum -H128 says, in parts and whole */
    hash_add(h, "a", 1);
    hash_add(h, "bc", 2);
    hash_end(h, hex);
    assert_string_equal(hex, "06b05ab6733a618578af5f94892f3950");
    hash_bytes(HASH_XXH128, "", 0, hex);
    assert_string_equal(hex, "99aa06d3014798d86001c324468d497f");
}

static void test_hmac(void **state) /* RFC 4231, 4.3 */
{
    char hex[HASH_HEX_MAX];
    hash_hmac("Jefe", "what do ya want for nothing?", 28, hex);
    assert_string_equal(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

static void test_file(void **state)
{
    char of_file[HASH_HEX_MAX], of_bytes[HASH_HEX_MAX];
    static char zeros[100000];
    int fd = memfd_create("hash", 0);
    assert_int_equal(write(fd, zeros, sizeof zeros), sizeof zeros);
    lseek(fd, 0, SEEK_SET);
    assert_int_equal(hash_fd(HASH_SHA256, fd, of_file, NULL), 0);
    hash_bytes(HASH_SHA256, zeros, sizeof zeros, of_bytes);
    assert_string_equal(of_file, of_bytes);
    close(fd);
    assert_int_equal(hash_fd(HASH_SHA256, fd, of_file, NULL), DET_EIO);
}

static void test_crc32c(void **state)
{
    assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283u); /* RFC 3720's check value */
    assert_int_equal(crc32c(crc32c(0, "1234", 4), "56789", 5), 0xe3069283u);
    assert_int_equal(crc32c(0, "12345678901234567890", 20),
                     crc32c(crc32c(0, "1", 1), "2345678901234567890", 19));
}

static void test_rest(void **state)
{
    assert_true(hash_fnv64("a", 1) == UINT64_C(0xaf63dc4c8601ec8c));
    assert_true(hash_equal("abc", "abc"));
    assert_false(hash_equal("abc", "abd"));
    assert_false(hash_equal("abc", "abcd"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_digests), cmocka_unit_test(test_hmac), cmocka_unit_test(test_file),
        cmocka_unit_test(test_crc32c),  cmocka_unit_test(test_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
