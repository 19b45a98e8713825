/* Curves in characters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "mem.h"
#include "plot.h"
#include "plot_range.h"
#include <math.h>
#include <png.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void assert_plots(const struct plot_point *v, size_t n, bool plain, const char *want)
{
    struct plot_line line = {"a", v, n};
    struct buf out = BUF_INIT;
    plot_text(&line, 1, (struct plot_size){4, 2, plain, false, {0}}, &out);
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

static void several_lines_are_told_apart(void **state)
{
    static const struct plot_point up[] = {{0, 0}, {3, 1}}, down[] = {{0, 1}, {3, 0}};
    const struct plot_line lines[] = {{"trial 1", up, 2}, {"trial 2", down, 2}};
    struct plot_size size = {.columns = 4, .rows = 2, .plain = true, .coloured = false};
    det_cleanup(buf_finish) struct buf out = BUF_INIT;
    plot_names(lines, 2, size, &out);
    assert_string_equal(buf_str(&out), "* trial 1; + trial 2");
    buf_clear(&out);
    plot_text(lines, 2, size, &out);
    assert_string_equal(buf_str(&out), "         1 |++**\n         0 |**++\n            0  3\n");
    size.plain = false;
    size.coloured = true;
    buf_clear(&out);
    plot_names(lines, 2, size, &out);
    assert_string_equal(buf_str(&out), "\033[36mtrial 1\033[0m; \033[33mtrial 2\033[0m");
    buf_clear(&out);
    plot_text(lines, 2, size, &out);
    assert_string_equal(buf_str(&out), "         1 |\033[33m⠑⢄\033[36m⡠⠊\033[0m\n"
                                       "         0 |\033[36m⡠⠊\033[33m⠑⢄\033[0m\n"
                                       "            0  3\n");
    buf_clear(&out);
    plot_names(lines, 1, size, &out); /* one is seen without */
    plot_text(lines, 1, size, &out);
    assert_null(strchr(buf_str(&out), '\033'));
}

static void assert_ticks(double lo, double hi, double first, double step, int n)
{
    struct plot_ticks t = plot_ticks_of(lo, hi);
    assert_int_equal(t.n, n);
    assert_true(fabs(t.first - first) <= fabs(step) * 1e-9);
    assert_true(fabs(t.step - step) <= step * 1e-9);
    assert_true(plot_tick(t, 0) >= lo - step * 1e-8 && plot_tick(t, n - 1) <= hi + step * 1e-8);
}

static void ticks_are_round(void **state)
{
    assert_ticks(25, 400, 50, 50, 8);
    assert_ticks(0.2007, 0.9554, 0.3, 0.1, 7);
    assert_ticks(-1, 1, -1, 0.5, 5);
    assert_ticks(0.1, 0.7, 0.1, 0.1, 7);
    assert_ticks(0, 1e5, 0, 20000, 6);
    assert_ticks(2.0001, 2.0002, 2.0001, 0.00002, 6);
    assert_ticks(-1e308, 1e308, -1e308, 5e307, 5);
    assert_ticks(3, 3, 3, 0, 1);
    assert_ticks(0, 5e-324, 0, 0, 1);
    assert_true(plot_tick(plot_ticks_of(-0.3, 0.3), 3) == 0);
}

static const struct plot_axes named = {.x = "batches", .y = "loss"};

static void assert_log_ticks(double lo, double hi, size_t n, const double *want)
{
    double v[LOG_TICKS_MAX];
    assert_int_equal(plot_log_ticks(log10(lo), log10(hi), v), n);
    for (size_t i = 0; i < n; i++)
        assert_true(fabs(pow(10, v[i]) - want[i]) < want[i] * 1e-9);
}

static void logarithms_have_round_ticks_too(void **state)
{
    assert_log_ticks(0.001, 1000, 7, (const double[]){0.001, 0.01, 0.1, 1, 10, 100, 1000});
    assert_log_ticks(0.04, 3, 6, (const double[]){0.05, 0.1, 0.2, 0.5, 1, 2});
    assert_log_ticks(0.8, 1, 5, (const double[]){0.8, 0.85, 0.9, 0.95, 1});
    assert_log_ticks(1e-30, 1, 8,
                     (const double[]){1e-28, 1e-24, 1e-20, 1e-16, 1e-12, 1e-8, 1e-4, 1});
    assert_log_ticks(7, 7, 1, (const double[]){7});
}

/* What the numbers are of; those of logarithms stand for what they are the logarithms of. */
static void axes_have_names(void **state)
{
    static const struct plot_point v[] = {{0, -2}, {100, 1}};
    const struct plot_line line = {"trial 1", v, 2};
    struct plot_size size = {.columns = 16, .rows = 2, .plain = true, .axes = named};
    det_cleanup(buf_finish) struct buf out = BUF_INIT;
    size.axes.log = true;
    plot_text(&line, 1, size, &out);
    assert_non_null(strstr(buf_str(&out), "        10 |"));
    assert_non_null(strstr(buf_str(&out), "      0.01 |"));
    assert_non_null(strstr(buf_str(&out), "\n            0  batches   100\n"));
    buf_clear(&out);
    plot_svg(&line, 1, &size.axes, &out);
    assert_non_null(strstr(buf_str(&out), ">batches</text>"));
    assert_non_null(strstr(buf_str(&out), ">loss</text>"));
    assert_non_null(strstr(buf_str(&out), ">0.1</text>"));
    assert_null(strstr(buf_str(&out), ">-2</text>"));
}

/* One point is no line: it is seen all the same. */
static void a_point_alone_is_a_dot(void **state)
{
    static const struct plot_point v[] = {{0, 1}, {1, NAN}, {2, 3}, {3, 4}};
    const struct plot_line line = {"trial 1", v, 4};
    det_cleanup(buf_finish) struct buf out = BUF_INIT;
    int found = 0;
    plot_svg(&line, 1, &named, &out);
    for (const char *p = buf_str(&out); (p = strstr(p, "stroke-width=\"5\"")) != NULL; p++)
        found++;
    assert_int_equal(found, 1);
}

static void a_picture_quotes_names(void **state)
{
    static const struct plot_point v[] = {{0, -1e308}, {1, 1e308}, {2, INFINITY}};
    struct plot_line line = {"<b>&\033", v, 3};
    struct buf out = BUF_INIT;
    plot_svg(&line, 1, &named, &out);
    assert_non_null(strstr(buf_str(&out), "&#60;b&#62;&#38;</text>"));
    assert_null(strstr(buf_str(&out), "nan"));
    assert_null(strstr(buf_str(&out), "inf"));
    assert_non_null(strstr(buf_str(&out), "</svg>"));
    buf_finish(&out);
}

/* The picture as libpng reads it; the caller frees. */
static uint8_t *read_png(const struct buf *file, png_image *image)
{
    *image = (png_image){.version = PNG_IMAGE_VERSION};
    assert_true(png_image_begin_read_from_memory(image, file->p, file->len));
    image->format = PNG_FORMAT_RGB;
    uint8_t *rgb = det_zalloc(PNG_IMAGE_SIZE(*image));
    assert_true(png_image_finish_read(image, NULL, rgb, 0, NULL));
    return rgb;
}

/* Dots of a colour within a rectangle. */
static int dots(const uint8_t *rgb, const png_image *image, unsigned colour, const int box[4])
{
    int n = 0;
    for (int y = box[1]; y < box[3]; y++)
        for (int x = box[0]; x < box[2]; x++) {
            const uint8_t *p = rgb + ((size_t)y * image->width + (size_t)x) * 3;
            n += (unsigned)(p[0] << 16 | p[1] << 8 | p[2]) == colour;
        }
    return n;
}

static void a_png_has_the_curves_and_their_names(void **state)
{
    static const struct plot_point up[] = {{0, 0}, {100, 1}}, gap[] = {{0, 1}, {50, NAN}, {100, 1}};
    const struct plot_line lines[] = {{"trial 1", up, 2},
                                      {"\xc3\xa4\033 long, cut at its edge ~~~~~", gap, 3}};
    static const int whole[] = {0, 0, 1440, 840}, middle[] = {400, 300, 800, 500},
                     names[] = {1144, 60, 1440, 160}, left_top[] = {130, 70, 150, 90};
    struct det_err err;
    struct buf out = BUF_INIT;
    png_image image;
    assert_int_equal(plot_png(lines, 2, &named, &out, &err), 0);
    uint8_t *rgb = read_png(&out, &image);
    assert_int_equal(image.width, 1440);
    assert_int_equal(image.height, 840);
    assert_in_range(dots(rgb, &image, 0x1f77b4, middle), 100, 5000); /* through its middle */
    assert_int_equal(dots(rgb, &image, 0xd62728, middle), 0);        /* nothing across a gap */
    assert_in_range(dots(rgb, &image, 0xd62728, left_top), 1, 200);  /* but its points */
    assert_in_range(dots(rgb, &image, 0, names), 200, 5000);         /* letters */
    assert_in_range(dots(rgb, &image, 0xffffff, whole), 1000000, 1440 * 840);
    free(rgb);
    buf_clear(&out);
    assert_int_equal(plot_png(NULL, 0, &(struct plot_axes){0}, &out, &err),
                     0); /* nothing to show: white */
    rgb = read_png(&out, &image);
    assert_int_equal(dots(rgb, &image, 0xffffff, whole), 1440 * 840);
    free(rgb);
    buf_finish(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_line_goes_from_corner_to_corner),
                                       cmocka_unit_test(plain_ones_are_ascii),
                                       cmocka_unit_test(several_lines_are_told_apart),
                                       cmocka_unit_test(ticks_are_round),
                                       cmocka_unit_test(logarithms_have_round_ticks_too),
                                       cmocka_unit_test(axes_have_names),
                                       cmocka_unit_test(a_point_alone_is_a_dot),
                                       cmocka_unit_test(a_picture_quotes_names),
                                       cmocka_unit_test(a_png_has_the_curves_and_their_names)};
    return cmocka_run_group_tests_name("plot", tests, NULL, NULL);
}
