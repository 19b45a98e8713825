/* Columns of a terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "wide.h"

static void scripts_have_their_widths(void **state)
{
    assert_int_equal(wide_columns(""), 0);
    assert_int_equal(wide_columns("n\xc3\xa4me"), 4);
    assert_int_equal(wide_columns("\xe5\x90\x8d\xe5\x89\x8d"), 4); /* Chinese */
    assert_int_equal(wide_columns("\xed\x95\x9c"), 2);             /* Korean */
    assert_int_equal(wide_columns("a\xcc\x88"), 1);                /* a mark over the a */
    assert_int_equal(wide_columns("\xf0\x9f\x9a\x80!"), 3);        /* a picture */
    assert_int_equal(wide_columns("\xe2\xa0\xbf\xe2\x80\xa6"), 2); /* dots of curves, ... */
    assert_int_equal(wide_columns("\xd0\x96\xce\xbb\xd7\xa9"), 3);
}

/* U+2614, 2653, 26A1, 2705, 2728, 274C; 2795, 2B1C, 2B50, 231A, 1F7E2, 1FA70; and neighbours. */
static void pictures_among_narrow_signs_are_wide(void **state)
{
    assert_int_equal(wide_columns("\xe2\x98\x94\xe2\x99\x93\xe2\x9a\xa1"
                                  "\xe2\x9c\x85\xe2\x9c\xa8\xe2\x9d\x8c"),
                     12);
    assert_int_equal(wide_columns("\xe2\x9e\x95\xe2\xac\x9c\xe2\xad\x90"
                                  "\xe2\x8c\x9a\xf0\x9f\x9f\xa2\xf0\x9f\xa9\xb0"),
                     12);
    assert_int_equal(wide_columns("\xe2\x98\x93\xe2\x99\x94\xe2\x9c\x93"
                                  "\xe2\x9e\x94\xe2\xac\x9d\xf0\x9f\x9e\x80"),
                     6);
}

static void broken_bytes_are_a_column_each(void **state)
{
    assert_int_equal(wide_columns("\xff\x80"), 2);
    assert_int_equal(wide_columns("\xe5\x90"), 2); /* its end is missing */
    assert_int_equal(wide_columns("\xf0\x9f\x9a"), 3);
}

static void a_cut_is_between_characters(void **state)
{
    static const char name[] = "a\xe5\x90\x8d\xe5\x89\x8d";
    const size_t bytes[] = {0, 1, 1, 4, 4, 7, 7};
    for (int columns = 0; columns < 7; columns++)
        assert_int_equal(wide_cut(name, columns), bytes[columns]);
    assert_int_equal(wide_cut("a\xcc\x88"
                              "b",
                              1),
                     3); /* with its mark */
    assert_int_equal(wide_cut("ab\ncd", 9), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scripts_have_their_widths),
        cmocka_unit_test(pictures_among_narrow_signs_are_wide),
        cmocka_unit_test(broken_bytes_are_a_column_each),
        cmocka_unit_test(a_cut_is_between_characters),
    };
    return cmocka_run_group_tests_name("wide", tests, NULL, NULL);
}
