/* det trial plot */
#include "curves.h"

#include "experiment.h"
#include "fsx.h"
#include "table.h"
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    const char *metric, *group, *svg, *png;
    int64_t width, height;
    bool log;
} o = {.group = ""};

static void add_line(struct curves *k, const json_t *trial, const json_t *m, const char *metric)
{
    const json_t *data = json_arr(m, "data");
    size_t n = json_array_size(data), have = 0;
    struct plot_point *v = det_reallocarray(NULL, n + 1, sizeof *v);
    for (size_t i = 0; i < n; i++) {
        const json_t *p = json_array_get(data, i);
        const json_t *y = json_object_get(json_obj(p, "values"), metric);
        if (y && !json_is_null(y))
            v[have++] = (struct plot_point){json_num(p, "batches", 0),
                                            json_is_number(y) ? json_number_value(y) : NAN};
    }
    if (have == 0) {
        free(v);
        return;
    }
    k->lines = det_reallocarray(k->lines, k->n + 1, sizeof *k->lines);
    k->lines[k->n++] = (struct plot_line){
        .name = det_asprintf("trial %" PRId64 ", %s", json_int(json_obj(trial, "trial"), "id", 0),
                             json_str(m, "group", "")),
        .v = v,
        .n = have};
}

int curves_get(struct cli *c, const int64_t *trials, size_t n, const char *metric,
               const char *group, int most, struct curves *ret, struct det_err *err)
{
    JSON_OWN answer = NULL;
    struct buf url = BUF_INIT;
    char *name det_cleanup(freep) = cli_escaped(metric),
               *of det_cleanup(freep) = cli_escaped(group);
    size_t i, k;
    json_t *trial, *m;
    buf_addf(&url, "/trials/time-series?maxDatapoints=%d", most);
    if (*group)
        buf_addf(&url, "&metricIds=%s.%s", of, name);
    else
        buf_addf(&url, "&metricIds=training.%s&metricIds=validation.%s", name, name);
    for (i = 0; i < n; i++)
        buf_addf(&url, "&trialIds=%" PRId64, trials[i]);
    int rc = cli_get(c, &answer, err, "%s", buf_str(&url));
    buf_finish(&url);
    *ret = (struct curves){0};
    if (rc < 0)
        return rc;
    json_array_foreach((json_t *)json_arr(answer, "trials"), i, trial)
        json_array_foreach((json_t *)json_arr(trial, "metrics"), k, m)
            add_line(ret, trial, m, metric);
    return 0;
}

void curves_finish(struct curves *k)
{
    for (size_t i = 0; i < k->n; i++) {
        free((void *)k->lines[i].name);
        free((void *)k->lines[i].v);
    }
    free(k->lines);
    *k = (struct curves){0};
}

bool curves_are_plain(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    const char *term = getenv("TERM"), *locale = NULL;
    for (size_t i = 0; i < DET_ARRAY_LEN(names) && !(locale && *locale); i++)
        locale = getenv(names[i]);
    bool utf8 = locale && (strcasestr(locale, "UTF-8") || strcasestr(locale, "UTF8"));
    return !isatty(STDOUT_FILENO) || !term || strcmp(term, "dumb") == 0 || !utf8;
}

bool curves_are_coloured(void)
{
    const char *unwanted = getenv("NO_COLOR");
    return !curves_are_plain() && !(unwanted && *unwanted);
}

char *curves_metric(struct cli *c, int64_t trial, struct det_err *err)
{
    JSON_OWN answer = NULL;
    JSON_OWN e = NULL;
    if (cli_get(c, &answer, err, "/trials/%" PRId64, trial) < 0 ||
        experiment_get(c, json_int(json_obj(answer, "trial"), "experimentId", 0), &e, err) < 0)
        return NULL;
    return det_strdup(json_str(json_path(e, "config.searcher"), "metric", ""));
}

static struct plot_size size_of_screen(void)
{
    struct winsize w = {0};
    struct plot_size s = {
        .columns = 66, .rows = 16, .plain = curves_are_plain(), .coloured = curves_are_coloured()};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 30 && w.ws_row > 8) {
        s.columns = w.ws_col - 14;
        s.rows = w.ws_row > 40 ? 24 : w.ws_row - 6;
    }
    s.columns = o.width > 3 ? (int)o.width : s.columns;
    s.rows = o.height > 1 ? (int)o.height : s.rows;
    return s;
}

/* Of reports; the loop counts batches. */
static struct plot_axes axes_of(const char *metric)
{
    return (struct plot_axes){.x = "batches", .y = metric, .log = o.log};
}

/* Every y becomes its logarithm; false: none has any. */
static bool take_logs(struct curves *k)
{
    bool any = false;
    for (size_t i = 0; i < k->n; i++) {
        struct plot_point *v = (struct plot_point *)k->lines[i].v; /* our own */
        for (size_t n = 0; n < k->lines[i].n; n++) {
            v[n].y = v[n].y > 0 ? log10(v[n].y) : NAN;
            any |= isfinite(v[n].y);
        }
    }
    return any;
}

static int write_svg(const struct curves *k, const char *metric, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf out = BUF_INIT;
    const struct plot_axes axes = axes_of(metric);
    plot_svg(k->lines, k->n, &axes, &out);
    return fsx_write_atomic(AT_FDCWD, o.svg, out.p, out.len, 0644, err);
}

static int write_png(const struct curves *k, const char *metric, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf out = BUF_INIT;
    const struct plot_axes axes = axes_of(metric);
    int rc = plot_png(k->lines, k->n, &axes, &out, err);
    return rc < 0 ? rc : fsx_write_atomic(AT_FDCWD, o.png, out.p, out.len, 0644, err);
}

static int write_pictures(const struct curves *k, const char *metric, struct det_err *err)
{
    int rc = o.svg ? write_svg(k, metric, err) : 0;
    return rc == 0 && o.png ? write_png(k, metric, err) : rc;
}

/* The points themselves: what a program draws. */
static void print_points(struct cli *c, const struct curves *k)
{
    static const char *const heads[] = {"TRIAL", "GROUP", ">BATCHES", ">VALUE"};
    struct table *t = table_create(heads, DET_ARRAY_LEN(heads));
    JSON_OWN found = json_array();
    for (size_t i = 0; i < k->n; i++) {
        const struct plot_line *line = &k->lines[i];
        const char *group = strchr(line->name, ',');
        int64_t trial = strtoll(line->name + strlen("trial "), NULL, 10);
        group = group ? group + 2 : "";
        json_t *points = json_array();
        for (size_t n = 0; n < line->n; n++) {
            json_array_append_new(points,
                                  json_make("[f,o]", line->v[n].x, json_double(line->v[n].y)));
            table_cell(t, "%" PRId64, trial);
            table_cell(t, "%s", group);
            table_cell(t, "%.0f", line->v[n].x);
            table_cell(t, "%.17g", line->v[n].y);
        }
        json_array_append_new(found, json_make("{s:I,s:s,s:o}", "trialId", (json_int_t)trial,
                                               "group", group, "points", points));
    }
    if (!cli_print_json(c, found))
        table_print(t, "");
    else
        table_destroy(t);
}

static int show_curves(struct cli *c, struct curves *k, const char *metric, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf out = BUF_INIT;
    struct plot_size size = size_of_screen();
    size.axes = axes_of(metric);
    if (k->n == 0)
        return det_fail(err, DET_ENOENT,
                        "no report of these trials%s%s has a metric '%s'; det trial "
                        "describe ID --metrics lists those there are, with their groups",
                        *o.group ? " in group " : "", o.group, metric);
    if ((c->json || table_is_csv()) && !o.svg && !o.png) {
        print_points(c, k); /* as they were reported, whatever the axis */
        return 0;
    }
    if (o.log && !take_logs(k))
        return det_fail(err, DET_EINVAL, "no report of '%s' is above 0: --log has nothing to show",
                        metric);
    if (o.svg || o.png)
        return write_pictures(k, metric, err);
    plot_names(k->lines, k->n, size, &out);
    buf_add_ch(&out, '\n');
    plot_text(k->lines, k->n, size, &out);
    printf("%s of %s", metric, buf_str(&out));
    return 0;
}

static int check_file(const char *option, const char *path, struct det_err *err)
{
    struct stat st;
    if (!path || stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return 0;
    return det_fail(err, DET_EINVAL, "%s %s is a directory: name a file in it, such as %s/plot.%s",
                    option, path, path, option + 2);
}

static int check_options(struct det_err *err)
{
    if (o.width > 1000 || o.height > 1000)
        return det_fail(err, DET_EINVAL, "--width and --height are 1000 at most");
    int rc = check_file("--svg", o.svg, err);
    return rc < 0 ? rc : check_file("--png", o.png, err);
}

int trial_plot(struct cli *c, struct det_err *err)
{
    struct curves k = {0};
    int64_t *ids det_cleanup(freep) = det_reallocarray(NULL, c->args.n, sizeof *ids);
    for (size_t i = 0; i < c->args.n; i++)
        if (cli_arg_id(c, i, "trial", &ids[i], err) < 0)
            return CLI_USAGE;
    if (check_options(err) < 0)
        return CLI_USAGE;
    char *metric det_cleanup(freep) =
        o.metric ? det_strdup(o.metric) : curves_metric(c, ids[0], err);
    int rc = metric ? curves_get(c, ids, c->args.n, metric, o.group, 1000, &k, err) : -1;
    if (rc == 0)
        rc = show_curves(c, &k, metric, err);
    curves_finish(&k);
    return rc < 0 ? CLI_FAILED : 0;
}

const struct opt trial_plot_opts[] = {
    {"metric", 0, OPT_STR, &o.metric, "NAME", "which (default the searcher's)"},
    {"group", 0, OPT_STR, &o.group, "GROUP",
     "of training, validation or a group of one's own only"},
    {"log", 0, OPT_FLAG, &o.log, NULL, "a logarithmic scale; what is not above 0 is left out"},
    {"svg", 0, OPT_STR, &o.svg, "FILE", "write a picture instead"},
    {"png", 0, OPT_STR, &o.png, "FILE", "the same, in dots"},
    {"width", 0, OPT_COUNT, &o.width, "N", "columns (default the terminal's)"},
    {"height", 0, OPT_COUNT, &o.height, "N", "rows"},
    {0},
};
