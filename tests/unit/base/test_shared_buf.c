#include "shared_buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A sanitizer sees what is freed too early or never. */
static void the_last_owner_frees(void **state)
{
    struct shared_buf *s = shared_buf_create();
    assert_int_equal(s->b.len, 0);
    buf_add_str(&s->b, "made once");
    assert_ptr_equal(shared_buf_ref(s), s);
    shared_buf_unref(s);
    assert_string_equal(s->b.p, "made once");
    shared_buf_unref(s);
    shared_buf_unref(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_owner_frees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
