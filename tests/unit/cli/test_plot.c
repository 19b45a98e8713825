/* Curves in characters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "plot.h"
#include <math.h>
#include <string.h>

static void assert_plots(const struct plot_point *v, size_t n, bool plain, const char *want)
{
    struct plot_line line = {"a", v, n};
    struct buf out = BUF_INIT;
    plot_text(&line, 1, (struct plot_size){4, 2, plain}, &out);
    assert_string_equal(buf_str(&out), want);
    buf_finish(&out);
}

static void a_line_goes_from_corner_to_corner(void **state)
{
    static const struct plot_point up[] = {{0, 0}, {100, 1}};
    assert_plots(up, 2, false, "         1 |⠀⠀⡠⠊\n         0 |⡠⠊⠀⠀\n            0100\n");
}

static void plain_ones_are_ascii(void **state)
{
    static const struct plot_point v[] = {{0, 2}, {3, 2}}, gap[] = {{0, 1}, {1, NAN}, {3, 5}};
    assert_plots(v, 2, true, "         2 |    \n         2 |****\n            0  3\n");
    assert_plots(gap, 3, true, "         5 |   *\n         1 |*   \n            0  3\n");
    assert_plots(gap + 1, 1, true, "no points\n");
    assert_plots(NULL, 0, false, "no points\n");
}

static void a_picture_quotes_names(void **state)
{
    static const struct plot_point v[] = {{0, -1e308}, {1, 1e308}, {2, INFINITY}};
    struct plot_line line = {"<b>&\033", v, 3};
    struct buf out = BUF_INIT;
    plot_svg(&line, 1, "loss", &out);
    assert_non_null(strstr(buf_str(&out), "&#60;b&#62;&#38;</text>"));
    assert_null(strstr(buf_str(&out), "nan"));
    assert_null(strstr(buf_str(&out), "inf"));
    assert_non_null(strstr(buf_str(&out), "</svg>"));
    buf_finish(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_line_goes_from_corner_to_corner),
                                       cmocka_unit_test(plain_ones_are_ascii),
                                       cmocka_unit_test(a_picture_quotes_names)};
    return cmocka_run_group_tests_name("plot", tests, NULL, NULL);
}
