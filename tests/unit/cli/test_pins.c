/* Whom to take for a master: certificates' fingerprints, and what is kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "authfile.h"
#include "fsx.h"
#include "mem.h"
#include "pem.h"
#include "pins.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* What is between the lines is looked at by its digest alone: "one\n" and "two\n". */
#define CERT(base64) "-----BEGIN CERTIFICATE-----\n" base64 "\n-----END CERTIFICATE-----\n"
#define ONE          CERT("b25l\nCg==")
#define TWO          CERT("dHdvCg==")
#define PRINT_ONE    "SHA256:2c8b08da5ce60398e1f19af0e5dccc744df274b826abe585eaba68c525434806"
#define PRINT_TWO    "SHA256:27dd8ed44a83ff94d557f9fd0412ed5a8cbca69ea04922d88c01184a07300a5a"
#define MASTER       "https://master:8080"

static void of_a_chain(void **state)
{
    char print[FINGERPRINT_MAX];
    struct det_err err = {0};
    assert_int_equal(pem_fingerprint("words before it " ONE TWO, print, &err), 0);
    assert_string_equal(print, PRINT_ONE);
    char *last det_cleanup(freep) = pem_last(ONE TWO),
               *found det_cleanup(freep) = pem_find(ONE TWO, PRINT_TWO);
    assert_string_equal(last, TWO);
    assert_string_equal(found, TWO);
    assert_null(pem_find(ONE, PRINT_TWO));
    assert_null(pem_last(""));
    assert_null(pem_last("-----END CERTIFICATE-----\n-----BEGIN CERTIFICATE-----\n"));
}

static void of_what_is_none(void **state)
{
    char print[FINGERPRINT_MAX];
    struct det_err err = {0};
    assert_int_equal(pem_fingerprint("", print, &err), DET_EINVAL);
    assert_int_equal(pem_fingerprint(CERT("b25*"), print, &err), DET_EINVAL);
    assert_int_equal(pem_fingerprint("-----BEGIN CERTIFICATE-----\nb25l", print, &err), DET_EINVAL);
    assert_null(pem_find(CERT("b25*"), PRINT_ONE));
    assert_null(pem_last("-----BEGIN CERTIFICATE-----END CERTIFICATE-----")); /* shared dashes */
}

static void as_people_write_it(void **state)
{
    static const char hex[] = "2C8B08DA5CE60398E1F19AF0E5DCCC744DF274B826ABE585EABA68C525434806";
    static const char *const bad[] = {"",  "sha256:",     "sha256:2c8b", "sha1:2c8b",
                                      "x", PRINT_ONE "0", PRINT_ONE " "};
    char print[FINGERPRINT_MAX], colons[128] = "sha256:";
    struct det_err err = {0};
    for (size_t i = 0, at = strlen(colons); i < 64; i += 2)
        at += (size_t)snprintf(colons + at, sizeof colons - at, "%s%.2s", i ? ":" : "", hex + i);
    const char *const good[] = {hex, PRINT_ONE, colons};
    for (size_t i = 0; i < DET_ARRAY_LEN(good); i++) {
        assert_int_equal(fingerprint_read(good[i], print, &err), 0);
        assert_string_equal(print, PRINT_ONE);
    }
    for (size_t i = 0; i < DET_ARRAY_LEN(bad); i++)
        assert_int_equal(fingerprint_read(bad[i], print, &err), DET_EINVAL);
    assert_non_null(strstr(err.text, "64 hexadecimal digits"));
}

static void assert_kept(const char *master, const char *want)
{
    struct det_err err = {0};
    char *pem det_cleanup(freep) = NULL;
    assert_int_equal(pins_get(master, &pem, &err), 0);
    if (want)
        assert_string_equal(pem, want);
    else
        assert_null(pem);
}

static void one_for_each_master(void **state)
{
    struct det_err err = {0};
    struct stat st;
    char *path det_cleanup(freep) = pins_path();
    assert_kept(MASTER, NULL);
    assert_int_equal(pins_put(MASTER, ONE, &err), 0);
    assert_int_equal(pins_put("https://other:8080", TWO, &err), 0);
    assert_kept(MASTER, ONE);
    assert_int_equal(pins_put(MASTER, TWO, &err), 0);
    assert_kept(MASTER, TWO);
    assert_kept("https://master:8081", NULL);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
}

/* Neither is anybody trusted, nor is what others are trusted by lost. */
static void a_broken_file_is_told(void **state)
{
    static const char *const texts[] = {"{\"https://master:8080\": ", "[]", ""};
    char *path det_cleanup(freep) = pins_path(), *pem = NULL;
    for (size_t i = 0; i < DET_ARRAY_LEN(texts); i++) {
        struct det_err err = {0};
        assert_int_equal(fsx_write_atomic(AT_FDCWD, path, texts[i], strlen(texts[i]), 0600, &err),
                         0);
        assert_int_equal(pins_get(MASTER, &pem, &err), DET_ECORRUPT);
        assert_non_null(strstr(err.text, path));
        assert_int_equal(pins_put(MASTER, ONE, &err), DET_ECORRUPT);
    }
    assert_null(pem);
}

static void without_a_home_nothing_is_kept(void **state)
{
    struct det_err err = {0};
    unsetenv("XDG_CONFIG_HOME");
    unsetenv("HOME");
    assert_int_equal(pins_put(MASTER, ONE, &err), 0);
    assert_kept(MASTER, NULL);
}

int main(void)
{
    char dir[] = "/tmp/test-pins-XXXXXX";
    if (!mkdtemp(dir) || setenv("XDG_CONFIG_HOME", dir, 1) < 0)
        return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(of_a_chain),
                                       cmocka_unit_test(of_what_is_none),
                                       cmocka_unit_test(as_people_write_it),
                                       cmocka_unit_test(one_for_each_master),
                                       cmocka_unit_test(a_broken_file_is_told),
                                       cmocka_unit_test(without_a_home_nothing_is_kept)};
    int failed = cmocka_run_group_tests_name("pins", tests, NULL, NULL);
    det_ignore(fsx_remove_tree(AT_FDCWD, dir, NULL), "the test is over");
    return failed;
}
