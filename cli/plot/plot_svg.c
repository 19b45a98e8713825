#include "plot_canvas.h"

#include <math.h>

static void add_xml(struct buf *out, const char *text)
{
    for (; *text; text++)
        if (*text == '<' || *text == '&' || *text == '>' || *text == '"')
            buf_addf(out, "&#%d;", *text);
        else if ((unsigned char)*text >= 0x20)
            buf_add_ch(out, *text);
}

static void svg_text(void *self, double x, double y, enum canvas_anchor anchor, const char *text)
{
    static const char *const anchors[] = {"start", "middle", "end"};
    buf_addf(self, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchors[anchor]);
    add_xml(self, text);
    buf_add_str(self, "</text>\n");
}

static void svg_path(void *self, const struct plot_point *v, size_t n, unsigned colour,
                     double width)
{
    bool joined = false;
    buf_add_str(self, "<path fill=\"none\" d=\"");
    for (size_t i = 0; i < n; i++) {
        bool good = isfinite(v[i].x) && isfinite(v[i].y);
        if (good)
            buf_addf(self, "%c%.1f %.1f", joined ? 'L' : 'M', v[i].x, v[i].y);
        joined = good;
    }
    buf_addf(self, "\" stroke=\"#%06x\" stroke-width=\"%g\"/>\n", colour, width);
}

void plot_svg(const struct plot_line *lines, size_t n, const struct plot_axes *axes,
              struct buf *out)
{
    buf_addf(out,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
             "font-family=\"sans-serif\" font-size=\"12\">\n"
             "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
             CANVAS_W, CANVAS_H);
    canvas_plot(&(struct canvas){svg_path, svg_text, out}, lines, n, axes);
    buf_add_str(out, "</svg>\n");
}
