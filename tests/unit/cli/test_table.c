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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(csv_quotes_what_needs_it)};
    return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
