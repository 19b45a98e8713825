#include "watch.h"

#include "experiment.h"
#include "mem.h"
#include "plain.h"
#include "show.h"
#include "wide.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { BAR = 20, SHORT_BAR = 8, WIDE = 120, NARROW = 100, NAMES = 3 };

static const char *metric_of(const json_t *experiment)
{
    return json_str(json_path(experiment, "config.searcher"), "metric", "");
}

/* name's last report in training; NULL: none, or no number. */
static const json_t *training_of(const json_t *trial, const char *name)
{
    const json_t *all = json_path(trial, "summaryMetrics.avg_metrics");
    const json_t *last = json_object_get(json_object_get(all, name), "last");
    return json_is_number(last) ? last : NULL;
}

/* A name that says it itself needs no "validation" before it. */
static void add_validation(const json_t *trial, const char *metric, struct buf *out)
{
    const json_t *v = json_path(trial, "latestValidation.metrics.avgMetrics");
    const json_t *value = v ? json_object_get(v, metric) : NULL;
    if (value)
        buf_addf(out, "  %s%s %s", strncmp(metric, "val", 3) == 0 ? "" : "validation ", metric,
                 show_metric(value));
}

static void add_training(const json_t *trial, const char *name, struct buf *out)
{
    if (training_of(trial, name))
        buf_addf(out, "  %s %s", name, show_metric(training_of(trial, name)));
}

static bool is_loss(const char *name)
{
    return strstr(name, "loss") != NULL;
}

/* The names of a trial's metrics in training, without the one that was asked for, losses first;
 * *ret_n of them. */
static const char **other_names(const json_t *trial, const char *asked, size_t *ret_n)
{
    size_t all, n = 0;
    const char **sorted det_cleanup(freep) =
        json_sorted_keys(json_path(trial, "summaryMetrics.avg_metrics"), &all);
    const char **names = det_alloc((all + 1) * sizeof *names);
    for (int losses = 1; losses >= 0; losses--)
        for (size_t i = 0; i < all; i++)
            if (is_loss(sorted[i]) == losses && !(asked && strcmp(sorted[i], asked) == 0))
                names[n++] = sorted[i];
    *ret_n = n;
    return names;
}

void watch_line(const json_t *trial, const json_t *experiment, const char *metric, struct buf *out)
{
    buf_addf(out, "trial %" PRId64 " %s, batch %" PRId64, json_int(trial, "id", 0),
             show_state(json_str(trial, "state", "")), json_int(trial, "totalBatchesProcessed", 0));
    size_t n;
    const char **names det_cleanup(freep) = other_names(trial, metric, &n);
    if (metric)
        add_training(trial, metric, out);
    for (size_t i = 0; i < n && i < NAMES; i++)
        add_training(trial, names[i], out);
    add_validation(trial, metric ? metric : metric_of(experiment), out);
}

/* Ends a line of the screen, cut to its width: in columns, not in bytes. */
static void add_cut(struct buf *out, const char *line, int columns)
{
    const char *end = line + wide_cut(line, columns);
    for (; line < end; line++)
        if ((unsigned char)*line >= 0x20)
            buf_add_ch(out, *line);
    buf_add_ch(out, '\n');
}

/* Where a line that begins with text ends: at the last blank that fits; *ret_next is what follows.
 */
static size_t end_of_line(const char *text, int columns, const char **ret_next)
{
    size_t n = wide_cut(text, columns), end = n;
    *ret_next = text + n;
    if (!text[n])
        return n;
    while (end > 0 && text[end] != ' ')
        end--;
    if (end > 0)
        *ret_next = text + end + 1;
    return end ? end : n;
}

/* In lines that end with a word, `most` at most; the last one says whether there is more. */
static void add_words(struct buf *out, const char *text, int columns, int most)
{
    static const char more[] = "...";
    for (const char *next; *text && most > 0; text = next, most--) {
        size_t n = end_of_line(text, columns, &next);
        bool is_cut = *next && most == 1;
        if (is_cut && columns > 20)
            n = end_of_line(text, columns - (int)strlen(more) - 1, &next);
        char *line det_cleanup(freep) = det_strndup(text, n);
        char *told det_cleanup(freep) = det_asprintf("%s%s", line, is_cut ? " ..." : "");
        add_cut(out, told, columns);
    }
}

/* {"id": [batches, seconds, whether it is a report's]}: until one comes a trial may still load. */
void watch_note(const json_t *trial, double seconds, json_t *first)
{
    char id[24];
    snprintf(id, sizeof id, "%" PRId64, json_int(trial, "id", 0));
    double batches = json_num(trial, "totalBatchesProcessed", 0);
    const json_t *then = json_object_get(first, id);
    double before = json_number_value(json_array_get(then, 0));
    bool is_report = then && batches > before;
    if (strcmp(json_str(trial, "state", ""), "STATE_RUNNING") != 0)
        json_object_del(first, id);
    else if (!then || batches < before || (is_report && !json_is_true(json_array_get(then, 2))))
        json_set(first, id, json_make("[f,f,b]", batches, seconds, is_report));
}

/* Batches a second since then; of one that does not run there is none. */
static double speed_of(const struct watch_view *v, const json_t *trial)
{
    char id[24];
    snprintf(id, sizeof id, "%" PRId64, json_int(trial, "id", 0));
    const json_t *then = json_object_get(v->first, id);
    double took = v->seconds - json_number_value(json_array_get(then, 1));
    double done =
        json_num(trial, "totalBatchesProcessed", 0) - json_number_value(json_array_get(then, 0));
    return then && took > 0 ? done / took : 0;
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
    buf_addf(out, "%.0f %s left", seconds / units[i].seconds, units[i].unit);
}

static double seconds_left(const struct watch_view *v, const json_t *trial)
{
    double left = trial_target(trial, v->experiment) - json_num(trial, "totalBatchesProcessed", 0);
    double speed = speed_of(v, trial);
    return speed > 0 && left > 0 ? left / speed : 0;
}

static int columns_of(const char *text)
{
    return (int)wide_columns(text);
}

/* Half a number is none: what does not fit whole is left out. part is emptied. */
static bool add_if_fits(struct buf *line, struct buf *part, int columns)
{
    bool fits = columns_of(buf_str(line)) + columns_of(buf_str(part)) <= columns;
    if (fits)
        buf_add_str(line, buf_str(part));
    buf_clear(part);
    return fits;
}

/* How far it is: a bar, or per cent where there is no room for one. */
static void add_bar(const struct watch_view *v, const json_t *trial, struct buf *out)
{
    double done = trial_fraction(trial, v->experiment);
    int bar = v->columns < WIDE ? SHORT_BAR : BAR, full = (int)(done * bar + 0.5);
    if (v->columns < NARROW) {
        buf_addf(out, "%3.0f%% ", done * 100);
        return;
    }
    for (int i = 0; i < bar; i++)
        buf_add_ch(out, i < full ? '#' : '.');
    buf_add_ch(out, ' ');
}

/* Where there is no room for both, the time that is left says more. */
static void add_speed(const struct watch_view *v, const json_t *trial, struct buf *line)
{
    det_cleanup(buf_finish) struct buf part = BUF_INIT;
    double speed = speed_of(v, trial), left = seconds_left(v, trial);
    if (speed <= 0)
        return;
    buf_addf(&part, v->columns < NARROW ? "  %.4g/s" : "  %.4g batches/s", speed);
    if (left > 0) {
        buf_add_str(&part, ", ");
        add_left(left, &part);
    }
    if (add_if_fits(line, &part, v->columns) || left <= 0)
        return;
    buf_add_str(&part, "  ");
    add_left(left, &part);
    add_if_fits(line, &part, v->columns);
}

/* What matters most comes first. */
static void add_trial(const struct watch_view *v, const json_t *trial, struct buf *out)
{
    det_cleanup(buf_finish) struct buf line = BUF_INIT, part = BUF_INIT;
    size_t n;
    const char **names det_cleanup(freep) = other_names(trial, v->metric, &n);
    buf_addf(&line, "trial %-5" PRId64 " ", json_int(trial, "id", 0));
    add_bar(v, trial, &line);
    buf_addf(&line, "%-9s batch %" PRId64, show_state(json_str(trial, "state", "")),
             json_int(trial, "totalBatchesProcessed", 0));
    add_validation(trial, v->metric ? v->metric : metric_of(v->experiment), &part);
    add_if_fits(&line, &part, v->columns);
    if (v->metric)
        add_training(trial, v->metric, &part);
    add_if_fits(&line, &part, v->columns);
    add_speed(v, trial, &line);
    for (size_t i = 0; i < n && i < NAMES; i++) {
        add_training(trial, names[i], &part);
        add_if_fits(&line, &part, v->columns);
    }
    add_cut(out, buf_str(&line), v->columns);
}

/* Its best validation may have no checkpoint, and the best that has one be of another batch. */
static void add_kept(const json_t *trial, struct buf *out)
{
    const json_t *kept = json_obj(trial, "bestCheckpoint"),
                 *best = json_obj(trial, "bestValidation");
    const char *uuid = json_str(kept, "uuid", NULL);
    int64_t at = json_int(kept, "totalBatches", 0);
    const bool has_ended = json_str(trial, "endTime", NULL);
    if (uuid)
        buf_addf(out, ", checkpoint %s", uuid);
    else
        buf_add_str(out, has_ended ? ", without a checkpoint" : ", no checkpoint yet");
    if (uuid && at != json_int(best, "totalBatches", 0))
        buf_addf(out, " of batch %" PRId64, at);
}

static void add_best(const struct watch_view *v, struct buf *out)
{
    det_cleanup(buf_finish) struct buf line = BUF_INIT, part = BUF_INIT;
    const char *metric = metric_of(v->experiment);
    const json_t *value = json_path(v->best, "bestValidation.metrics.avgMetrics");
    value = value ? json_object_get(value, metric) : NULL;
    if (!value)
        return;
    buf_addf(&line, "best so far: trial %" PRId64 ", %s %s at batch %" PRId64,
             json_int(v->best, "id", 0), metric, show_metric(value),
             json_int(json_obj(v->best, "bestValidation"), "totalBatches", 0));
    add_kept(v->best, &part);
    if (columns_of(buf_str(&line)) + columns_of(buf_str(&part)) > v->columns) {
        buf_add_str(&line, ",");
        add_words(out, buf_str(&line), v->columns, 2);
        add_words(out, buf_str(&part) + 2, v->columns,
                  2); /* one can copy it from a line of its own */
        return;
    }
    buf_add_str(&line, buf_str(&part));
    add_cut(out, buf_str(&line), v->columns);
}

static void add_slots(const json_t *experiment, struct buf *out)
{
    int64_t n = json_int(json_path(experiment, "config.resources"), "slots_per_trial", 1);
    if (json_flag(experiment, "unmanaged", false))
        buf_add_str(out, ", which run elsewhere");
    else
        buf_addf(out, ", %" PRId64 " slot%s each", n, n == 1 ? "" : "s");
}

static const char leaves[] = "  (q leaves)";

/* The name gives way to how it stands, but not all of it. */
static void add_name(const struct watch_view *v, int taken, struct buf *line)
{
    enum { NAME_MIN = 8 };
    const char *name = json_str(v->experiment, "name", "");
    int room = v->columns - taken - columns_of(buf_str(line));
    buf_add(line, name, room >= NAME_MIN ? wide_cut(name, room) : strlen(name));
}

static void add_head(const struct watch_view *v, struct buf *out)
{
    det_cleanup(buf_finish) struct buf line = BUF_INIT, part = BUF_INIT;
    int64_t n = json_int(v->experiment, "numTrials", 0);
    buf_addf(&part, "  %s %s", show_state(json_str(v->experiment, "state", "")),
             show_progress(json_object_get(v->experiment, "progress")));
    buf_addf(&line, "experiment %" PRId64 "  ", json_int(v->experiment, "id", 0));
    add_name(v, columns_of(buf_str(&part)), &line);
    add_if_fits(&line, &part, v->columns);
    buf_addf(&part, "  %" PRId64 " trial%s", n, n == 1 ? "" : "s");
    add_slots(v->experiment, &part);
    add_if_fits(&line, &part, v->columns);
    if (!json_flag(v->experiment, "unmanaged", false))
        buf_addf(&part, ", pool %s", json_str(v->experiment, "resourcePool", ""));
    add_if_fits(&line, &part, v->columns - (v->keys ? (int)strlen(leaves) : 0));
    if (v->keys)
        buf_add_str(&part, leaves);
    add_if_fits(&line, &part, v->columns);
    add_cut(out, buf_str(&line), v->columns);
}

/* Nobody else writes into these lines, so that their colours are ours, which take no column. */
static void add_cut_coloured(struct buf *out, const char *line, int columns)
{
    while (*line && *line != '\n') {
        int width = 0;
        size_t colour = plain_colour(line), n = colour ? colour : wide_char(line, &width);
        if (width > columns) {
            buf_add_str(out, "\033[0m");
            break;
        }
        columns -= width;
        buf_add(out, line, n);
        line += n;
    }
    buf_add_ch(out, '\n');
}

/* "trial 7, validation": the group, if all curves are of it. */
static const char *group_of(const struct curves *k)
{
    const char *first = strchr(k->lines[0].name, ',');
    for (size_t i = 1; first && i < k->n; i++) {
        const char *other = strchr(k->lines[i].name, ',');
        if (!other || strcmp(other, first) != 0)
            return NULL;
    }
    return first ? first + strlen(", ") : NULL;
}

/* By their numbers alone: a search has many. */
static void add_numbers(const struct curves *k, struct plot_size size, struct buf *out)
{
    static const char begin[] = "trial ";
    struct plot_line *short_of det_cleanup(freep) = det_reallocarray(NULL, k->n, sizeof *short_of);
    for (size_t i = 0; i < k->n; i++) {
        const char *name = k->lines[i].name;
        name += strncmp(name, begin, strlen(begin)) == 0 ? strlen(begin) : 0;
        short_of[i] = k->lines[i];
        short_of[i].name = det_strndup(name, strcspn(name, ","));
    }
    plot_names(short_of, k->n, size, out);
    for (size_t i = 0; i < k->n; i++)
        free((void *)short_of[i].name); /* our own */
}

static void add_title(const struct watch_view *v, struct plot_size size, struct buf *out)
{
    det_cleanup(freep) char *name = det_strdup(v->metric ? v->metric : metric_of(v->experiment));
    const char *group = group_of(v->curves);
    for (char *p = name; *p; p++) /* its own colours would go on behind it */
        *p = *p == '\033' ? '?' : *p;
    if (group)
        buf_addf(out, "%s %s", group, name);
    else
        buf_add_str(out, name);
    if (v->curves->n > 1) {
        buf_add_str(out, group ? " of trials " : " of ");
        if (group)
            add_numbers(v->curves, size, out);
        else
            plot_names(v->curves->lines, v->curves->n, size, out);
    }
    buf_add_ch(out, '\n');
}

void watch_absent(const json_t *trials, const char *metric, struct buf *out)
{
    const json_t *summary = json_obj(json_array_get(trials, 0), "summaryMetrics");
    const char *group;
    json_t *metrics;
    bool first = true;
    buf_addf(out, "no report has %s yet", metric);
    json_object_foreach((json_t *)summary, group, metrics)
    {
        size_t n;
        const char **names det_cleanup(freep) = json_sorted_keys(metrics, &n);
        for (size_t i = 0; i < n; i++, first = false)
            buf_addf(out, "%s %s", first ? "; there are" : ",", names[i]);
    }
}

static void add_no_curves(const struct watch_view *v, struct buf *out)
{
    det_cleanup(buf_finish) struct buf line = BUF_INIT;
    if (!v->metric || json_array_size(v->trials) == 0)
        return;
    watch_absent(v->trials, v->metric, &line);
    add_cut(out, buf_str(&line), v->columns);
}

static void add_curves(const struct watch_view *v, int rows, struct buf *out)
{
    det_cleanup(buf_finish) struct buf picture = BUF_INIT;
    struct plot_size size = {.axes = {.x = "batches"},
                             .columns = v->columns - 13,
                             .rows = rows < 15 ? rows - 3 : 12,
                             .plain = v->plain,
                             .coloured = v->coloured};
    if (v->curves && v->curves->n == 0 && rows > 0)
        add_no_curves(v, out);
    if (!v->curves || v->curves->n == 0 || rows < 5 || v->columns < 30)
        return;
    add_title(v, size, &picture);
    plot_text(v->curves->lines, v->curves->n, size, &picture);
    for (const char *p = buf_str(&picture); *p; p += strcspn(p, "\n"), p += *p == '\n')
        (v->coloured ? add_cut_coloured : add_cut)(out, p, v->columns);
}

static int lines_of(const struct buf *out)
{
    int n = 0;
    for (const char *p = buf_str(out); *p; p++)
        n += *p == '\n';
    return n;
}

static bool is_waiting(const json_t *trial)
{
    return strcmp(json_str(trial, "state", ""), "STATE_QUEUED") == 0;
}

/* Of those that have no line: how many. */
static void add_others(int64_t others, bool all_wait, bool is_first, struct buf *out)
{
    if (others > 0)
        buf_addf(out, "%" PRId64 " %s%s\n", others, is_first ? "trials" : "more",
                 all_wait ? " wait" : "");
}

/* Waits for no slot, but for its searcher. */
static bool is_idle(const json_t *trial)
{
    return strcmp(json_str(trial, "state", ""), "STATE_ACTIVE") == 0;
}

static int count_if(const json_t *trials, bool (*is)(const json_t *))
{
    size_t i;
    json_t *t;
    int n = 0;
    json_array_foreach((json_t *)trials, i, t) n += is(t);
    return n;
}

/* Those that run, one or two that wait, and where there is room those that wait for their searcher;
 * of the others one line says how many. */
static void add_trials(const struct watch_view *v, int most, struct buf *out)
{
    int n = (int)json_array_size(v->trials), shown = 0;
    int waiting = count_if(v->trials, is_waiting), idle = count_if(v->trials, is_idle);
    int left_out = waiting > 2 ? waiting : 0;
    bool all_fit = v->total <= n && n <= most && left_out == 0;
    int lines = all_fit ? most : most - 1; /* one for the others */
    int too_many = n - left_out - lines;
    size_t i;
    json_t *t;
    json_array_foreach((json_t *)v->trials, i, t)
    {
        bool is_first_to_go = is_idle(t) && idle-- <= too_many;
        if (is_first_to_go || (left_out && is_waiting(t)) || shown >= lines)
            continue;
        add_trial(v, t, out);
        shown++;
    }
    int64_t others = (v->total > n ? v->total : n) - shown;
    if (most > 0)
        add_others(others, others == left_out, shown == 0, out);
}

/* No more lines than there are rows: what a terminal scrolls away is its beginning. */
static void add_rows(const char *text, int rows, struct buf *out)
{
    const char *end = text;
    for (; rows > 0 && *end; rows--)
        end += strcspn(end, "\n") + 1;
    buf_add(out, text, (size_t)(end - text));
}

void watch_screen(const struct watch_view *v, struct buf *out)
{
    det_cleanup(buf_finish) struct buf all = BUF_INIT;
    add_head(v, &all);
    add_best(v, &all);
    if (v->why)
        add_words(&all, v->why, v->columns, 2);
    if (v->rows > 12)
        buf_add_ch(&all, '\n');
    int room = v->rows - 1 - lines_of(&all);
    add_trials(v, v->rows > 12 ? room / 2 : room, &all);
    if (v->rows > 12)
        buf_add_ch(&all, '\n');
    add_curves(v, v->rows - 1 - lines_of(&all), &all);
    add_rows(buf_str(&all), v->rows - 1, out);
}
