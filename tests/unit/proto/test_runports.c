/* The ports of a run, as its hosts tell them to each other. */
#include "mem.h"
#include "runports.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void what_is_written_is_read(void **state)
{
    static const struct runports some[] = {
        {{0}}, {{41003}}, {{0, 1, 0, 65535}}, {{65535, 65535, 65535, 65535}}};
    for (size_t i = 0; i < DET_ARRAY_LEN(some); i++) {
        det_cleanup(buf_finish) struct buf text = BUF_INIT;
        struct runports back;
        struct det_err err;
        runports_write(&text, &some[i]);
        assert_int_equal(runports_read(&back, text.len ? buf_str(&text) : NULL, &err), 0);
        assert_memory_equal(&back, &some[i], sizeof back);
        assert_true(text.len < RUNPORTS_STR_MAX);
    }
}

/* Of a later version, which has more of them. */
static void others_are_passed_over(void **state)
{
    struct runports back;
    struct det_err err;
    assert_int_equal(runports_read(&back, "C10D:5,C10D_PORT_2:6,DTRAIN_SSH_PORT:7", &err), 0);
    assert_memory_equal(&back, (&(struct runports){{0, 7}}), sizeof back);
}

static void the_rest_is_refused(void **state)
{
    static const char *const bad[] = {"",
                                      ",",
                                      "C10D_PORT",
                                      "C10D_PORT:",
                                      ":1",
                                      "C10D_PORT:0",
                                      "C10D_PORT:65536",
                                      "X:1,",
                                      ",X:1",
                                      "X:-1",
                                      "X:+1",
                                      "X: 1",
                                      "X:1 ",
                                      "X:1;Y:2",
                                      "X:01",
                                      "X:0x1",
                                      "X:1:2",
                                      "X:99999999999999999999"};
    struct runports back;
    struct det_err err;
    for (size_t i = 0; i < DET_ARRAY_LEN(bad); i++) {
        assert_int_equal(runports_read(&back, bad[i], &err), DET_EINVAL);
        assert_memory_equal(&back, &(struct runports){{0}}, sizeof back);
    }
    det_cleanup(buf_finish) struct buf many = BUF_INIT;
    buf_add_str(&many, "C10D_PORT:1");
    while (many.len <= RUNPORTS_STR_MAX)
        buf_add_str(&many, ",X:1");
    assert_int_equal(runports_read(&back, buf_str(&many), &err), DET_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(others_are_passed_over),
        cmocka_unit_test(the_rest_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
