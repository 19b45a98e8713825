#include "mem.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

/* A number that was closed may be somebody else's by the time it is closed again. */
static void a_descriptor_is_closed_once(void **state)
{
    int fd = open("/dev/null", O_RDONLY);
    int number = fd;
    det_closep(&fd);
    assert_int_equal(fd, -1);
    int other = open("/dev/null", O_RDONLY);
    assert_int_equal(other, number);
    det_closep(&fd);
    assert_true(fcntl(other, F_GETFD) >= 0);
    close(other);
}

static void ownership_is_given_away(void **state)
{
    char *a = det_strdup("x");
    char *b = det_take(a);
    assert_null(a);
    assert_string_equal(b, "x");
    free(b);
    assert_null(det_strdup(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_descriptor_is_closed_once),
        cmocka_unit_test(ownership_is_given_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
