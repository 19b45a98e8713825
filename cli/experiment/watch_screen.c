#include "watch.h"

#include "experiment.h"
#include "mem.h"
#include "plain.h"
#include "show.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { BAR = 20, NARROW_BAR = 8, NARROW = 100, NAMES = 3 };

static const char *metric_of(const json_t *experiment)
{
    return json_str(json_path(experiment, "config.searcher"), "metric", "");
}

/* The last reported training metrics: "loss 0.12  accuracy 0.9". */
static void add_training(const json_t *trial, struct buf *out)
{
    const json_t *all = json_path(trial, "summaryMetrics.avg_metrics");
    size_t n;
    const char **names det_cleanup(freep) = json_sorted_keys(all, &n);
    for (size_t i = 0; i < n && i < NAMES; i++) {
        const json_t *last = json_object_get(json_object_get(all, names[i]), "last");
        if (json_is_number(last))
            buf_addf(out, "  %s %s", names[i], show_metric(last));
    }
}

static void add_validation(const json_t *trial, const json_t *experiment, struct buf *out)
{
    const char *metric = metric_of(experiment);
    const json_t *v = json_path(trial, "latestValidation.metrics.avgMetrics");
    const json_t *value = v ? json_object_get(v, metric) : NULL;
    if (value)
        buf_addf(out, "  validation %s %s", metric, show_metric(value));
}

void watch_line(const json_t *trial, const json_t *experiment, struct buf *out)
{
    buf_addf(out, "trial %" PRId64 " %s, batch %" PRId64, json_int(trial, "id", 0),
             show_state(json_str(trial, "state", "")), json_int(trial, "totalBatchesProcessed", 0));
    add_training(trial, out);
    add_validation(trial, experiment, out);
}

/* Ends a line of the screen, cut to its width: in columns, not in bytes. */
static void add_cut(struct buf *out, const char *line, int columns)
{
    int n = 0;
    for (; *line && *line != '\n'; line++) {
        bool begins = ((unsigned char)*line & 0xc0) != 0x80;
        if (begins && n++ == columns)
            break;
        if ((unsigned char)*line >= 0x20)
            buf_add_ch(out, *line);
    }
    buf_add_ch(out, '\n');
}

static double speed_of(const struct watch_view *v, const json_t *trial)
{
    char id[24];
    snprintf(id, sizeof id, "%" PRId64, json_int(trial, "id", 0));
    const json_t *then = json_object_get(v->first, id);
    double done = json_num(trial, "totalBatchesProcessed", 0);
    return then && v->seconds > 0 ? (done - json_number_value(then)) / v->seconds : 0;
}

static void add_left(double seconds, struct buf *out)
{
    static const struct {
        const char *unit;
        double seconds, below;
    } units[] = {{"s", 1, 60}, {"min", 60, 7200}, {"h", 3600, 172800}, {"days", 86400, 0}};
    size_t i = 0;
    while (units[i].below > 0 && seconds >= units[i].below)
        i++;
    buf_addf(out, ", %.0f %s left", seconds / units[i].seconds, units[i].unit);
}

static void add_speed(const struct watch_view *v, const json_t *trial, struct buf *out)
{
    double speed = speed_of(v, trial), all = trial_target(trial, v->experiment);
    double left = all - json_num(trial, "totalBatchesProcessed", 0);
    if (speed <= 0)
        return;
    buf_addf(out, "  %.4g batches/s", speed);
    if (left > 0)
        add_left(left / speed, out);
}

/* Where there is little room the metrics come first: what is cut is the speed. */
static void add_trial(const struct watch_view *v, const json_t *trial, struct buf *out)
{
    struct buf line = BUF_INIT;
    bool narrow = v->columns < NARROW;
    int bar = narrow ? NARROW_BAR : BAR;
    int full = (int)(trial_fraction(trial, v->experiment) * bar + 0.5);
    buf_addf(&line, "trial %-5" PRId64 " ", json_int(trial, "id", 0));
    for (int i = 0; i < bar; i++)
        buf_add_ch(&line, i < full ? '#' : '.');
    buf_addf(&line, " %-9s batch %" PRId64, show_state(json_str(trial, "state", "")),
             json_int(trial, "totalBatchesProcessed", 0));
    if (!narrow)
        add_speed(v, trial, &line);
    add_training(trial, &line);
    add_validation(trial, v->experiment, &line);
    if (narrow)
        add_speed(v, trial, &line);
    add_cut(out, buf_str(&line), v->columns);
    buf_finish(&line);
}

static void add_best(const struct watch_view *v, struct buf *out)
{
    struct buf line = BUF_INIT;
    const char *metric = metric_of(v->experiment);
    const json_t *value = json_path(v->best, "bestValidation.metrics.avgMetrics");
    value = value ? json_object_get(value, metric) : NULL;
    if (!value)
        return;
    buf_addf(&line, "best so far: trial %" PRId64 ", %s %s at batch %" PRId64,
             json_int(v->best, "id", 0), metric, show_metric(value),
             json_int(json_obj(v->best, "bestValidation"), "totalBatches", 0));
    const char *uuid = json_str(json_obj(v->best, "bestCheckpoint"), "uuid", NULL);
    buf_addf(&line, uuid ? ", checkpoint %s" : ", no checkpoint yet", uuid);
    add_cut(out, buf_str(&line), v->columns);
    buf_finish(&line);
}

static void add_slots(const json_t *experiment, struct buf *out)
{
    int64_t n = json_int(json_path(experiment, "config.resources"), "slots_per_trial", 1);
    if (json_flag(experiment, "unmanaged", false))
        buf_add_str(out, ", which run elsewhere");
    else
        buf_addf(out, ", %" PRId64 " slot%s each, pool %s", n, n == 1 ? "" : "s",
                 json_str(experiment, "resourcePool", ""));
}

static void add_head(const struct watch_view *v, struct buf *out)
{
    struct buf line = BUF_INIT;
    buf_addf(&line, "experiment %" PRId64 "  %s  %s %s  %" PRId64 " trials",
             json_int(v->experiment, "id", 0), json_str(v->experiment, "name", ""),
             show_state(json_str(v->experiment, "state", "")),
             show_progress(json_object_get(v->experiment, "progress")),
             json_int(v->experiment, "numTrials", 0));
    add_slots(v->experiment, &line);
    add_cut(out, buf_str(&line), v->columns);
    buf_finish(&line);
}

/* Two lines at most; the first ends with a word. */
static void add_why(const struct watch_view *v, struct buf *out)
{
    det_cleanup(freep) char *why = det_strdup(v->why);
    size_t columns = v->columns > 0 ? (size_t)v->columns : 0, end = strlen(why);
    if (end > columns) {
        for (end = columns; end > 0 && why[end] != ' ';)
            end--;
        why[end ? end : columns] = '\n';
        end = end ? end : columns;
    }
    add_cut(out, why, v->columns);
    if (end < strlen(why))
        add_cut(out, why + end + 1, v->columns);
}

/* Nobody else writes into these lines, so that their colours are ours, which take no column. */
static void add_cut_coloured(struct buf *out, const char *line, int columns)
{
    int n = 0;
    while (*line && *line != '\n') {
        size_t colour = plain_colour(line);
        bool begins = ((unsigned char)*line & 0xc0) != 0x80;
        if (colour == 0 && begins && n++ == columns) {
            buf_add_str(out, "\033[0m");
            break;
        }
        buf_add(out, line, colour ? colour : 1);
        line += colour ? colour : 1;
    }
    buf_add_ch(out, '\n');
}

static void add_title(const struct watch_view *v, struct plot_size size, struct buf *out)
{
    const char *metric = metric_of(v->experiment);
    det_cleanup(freep) char *name = plain_text(metric);
    if (v->curves->n == 1) {
        buf_addf(out, "validation %s\n", name ? name : metric);
        return;
    }
    buf_addf(out, "%s of ", name ? name : metric);
    plot_names(v->curves->lines, v->curves->n, size, out);
    buf_add_ch(out, '\n');
}

static void add_curves(const struct watch_view *v, int rows, struct buf *out)
{
    det_cleanup(buf_finish) struct buf picture = BUF_INIT;
    struct plot_size size = {.columns = v->columns - 13,
                             .rows = rows < 14 ? rows - 2 : 12,
                             .plain = v->plain,
                             .coloured = v->coloured};
    if (!v->curves || v->curves->n == 0 || rows < 4 || v->columns < 30)
        return;
    add_title(v, size, &picture);
    plot_text(v->curves->lines, v->curves->n, size, &picture);
    for (const char *p = buf_str(&picture); *p; p += strcspn(p, "\n"), p += *p == '\n')
        (v->coloured ? add_cut_coloured : add_cut)(out, p, v->columns);
}

void watch_screen(const struct watch_view *v, struct buf *out)
{
    size_t n = json_array_size(v->trials), most = v->rows > 12 ? (size_t)v->rows / 2 : 4;
    add_head(v, out);
    add_best(v, out);
    if (v->why)
        add_why(v, out);
    buf_add_ch(out, '\n');
    for (size_t i = 0; i < n && i < most; i++)
        add_trial(v, json_array_get(v->trials, i), out);
    buf_add_ch(out, '\n');
    add_curves(v, v->rows - 7 - (int)(n < most ? n : most), out);
}
