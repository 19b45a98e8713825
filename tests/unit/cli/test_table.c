/* Tables as CSV. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "table.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void csv_quotes_what_needs_it(void **state)
{
    static const char *const heads[] = {">N", "TEXT"};
    char got[128] = "";
    int out = dup(1), to[2];
    assert_int_equal(pipe(to), 0);
    table_as_csv();
    struct table *t = table_create(heads, 2), *empty = table_create(heads, 2);
    table_cell(t, "%d", 1);
    table_cell(t, "%s", "a,\"b\"\033");
    fflush(stdout);
    dup2(to[1], 1);
    table_print(t, "none");
    table_print(empty, "none");
    fflush(stdout);
    dup2(out, 1);
    assert_true(read(to[0], got, sizeof got - 1) > 0);
    assert_string_equal(got, "N,TEXT\n1,\"a,\"\"b\"\" \"\nN,TEXT\n");
    close(to[0]);
    close(to[1]);
    close(out);
}

/* Printed to a pipe, into got. */
static void print_into(struct table *t, char *got, size_t size)
{
    int out = dup(1), to[2];
    assert_int_equal(pipe(to), 0);
    fflush(stdout);
    dup2(to[1], 1);
    table_print(t, "none");
    fflush(stdout);
    dup2(out, 1);
    close(to[1]);
    close(out);
    ssize_t n = read(to[0], got, size - 1);
    assert_true(n > 0);
    got[n] = '\0';
    close(to[0]);
}

/* One column gives way; what is left of it is no narrower than 12. */
static void fits_a_screen(void **state)
{
    static const char *const heads[] = {">N", "TEXT", "END"};
    static const struct {
        size_t most;
        const char *want;
    } cases[] = {{80, "N  TEXT                  END\n1  a text of twenty one  x\n"},
                 {24, "N  TEXT              END\n1  a text of twen..  x\n"},
                 {5, "N  TEXT          END\n1  a text of ..  x\n"}};
    char got[256];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct table *t = table_create(heads, 3);
        table_cell(t, "1");
        table_cell(t, "a text of twenty one");
        table_cell(t, "x");
        table_fit(t, 1, cases[i].most);
        print_into(t, got, sizeof got);
        assert_string_equal(got, cases[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(fits_a_screen),
                                       cmocka_unit_test(csv_quotes_what_needs_it)};
    return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
