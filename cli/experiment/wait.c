/*
 * det experiment wait: a bar per trial on a terminal, a line for each change elsewhere. Both go to
 * standard error, so that the output of a script stays its own.
 */
#include "away.h"
#include "cli.h"
#include "clk.h"
#include "experiment.h"
#include "show.h"
#include "wide.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define BAR      24
#define ROWS_MAX 16

static struct {
    int64_t interval_s; /* 0: not given */
} o;

const struct opt experiment_wait_opts[] = {
    {"polling-interval", 0, OPT_COUNT, &o.interval_s, "SECONDS",
     "how often to ask (default: five times a second)"},
    {0},
};

bool has_ended(const json_t *it)
{
    const char *state = json_str(it, "state", "");
    static const char *const ended[] = {"STATE_COMPLETED", "STATE_CANCELED", "STATE_ERROR",
                                        "STATE_DELETED", "STATE_DELETE_FAILED"};
    for (size_t i = 0; i < DET_ARRAY_LEN(ended); i++)
        if (strcmp(state, ended[i]) == 0)
            return true;
    return false;
}

static void print_bar(const json_t *trial, const json_t *experiment, const json_t *common,
                      int width)
{
    const char *metric = json_str(json_path(experiment, "config.searcher"), "metric", "");
    const json_t *latest = json_path(trial, "latestValidation.metrics.avgMetrics");
    char *hp det_cleanup(freep) = show_hparams(json_object_get(trial, "hparams"), common);
    int full = (int)(trial_fraction(trial, experiment) * BAR + 0.5);
    det_cleanup(buf_finish) struct buf line = BUF_INIT;
    buf_addf(&line, "trial %4" PRId64 " ", json_int(trial, "id", 0));
    for (int i = 0; i < BAR; i++)
        buf_add_ch(&line, i < full ? '#' : '.');
    buf_addf(&line, " %-10s %s %-9s %s", show_state(json_str(trial, "state", "")), metric,
             show_metric(latest ? json_object_get(latest, metric) : NULL), hp);
    for (size_t i = 0; i < line.len; i++)
        if ((unsigned char)line.p[i] < 0x20)
            line.p[i] = ' '; /* a name must not move the cursor */
    int shown = (int)wide_cut(buf_str(&line), width);
    fprintf(stderr, "\r\033[K%.*s\n", shown, buf_str(&line));
}

/* Draws all bars, over the ones drawn before; returns how many lines there are now. */
static int draw_bars(const json_t *experiment, const json_t *trials, int lines_before)
{
    struct winsize w = {0};
    int width = ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 20 ? w.ws_col - 1 : 79;
    size_t n = json_array_size(trials), shown = n > ROWS_MAX ? ROWS_MAX : n;
    if (lines_before > 0)
        fprintf(stderr, "\033[%dA", lines_before);
    fprintf(stderr, "\r\033[Kexperiment %" PRId64 " %s %s, %zu trials%s\n",
            json_int(experiment, "id", 0), show_state(json_str(experiment, "state", "")),
            show_progress(json_object_get(experiment, "progress")), n,
            n > shown ? " (the last ones:)" : "");
    JSON_OWN common = show_common_hparams(trials);
    for (size_t i = n - shown; i < n; i++)
        print_bar(json_array_get(trials, i), experiment, common, width);
    return (int)shown + 1;
}

/* Without a terminal: one line whenever the state or a tenth of the progress changes. */
static void tell_progress(const json_t *experiment, char *last, size_t cap)
{
    char line[128];
    const json_t *p = json_object_get(experiment, "progress");
    double progress = json_is_number(p) ? json_number_value(p) : 0;
    snprintf(line, sizeof line, "experiment %" PRId64 " %s %.0f%%", json_int(experiment, "id", 0),
             show_state(json_str(experiment, "state", "")), (double)(int)(progress * 10) * 10);
    if (strcmp(line, last) == 0)
        return;
    snprintf(last, cap, "%s", line);
    fprintf(stderr, "%s\n", line);
}

int experiment_verdict(struct cli *c, const json_t *experiment, struct det_err *err)
{
    int64_t id = json_int(experiment, "id", 0);
    const char *state = json_str(experiment, "state", "");
    char *why det_cleanup(freep) = experiment_reason(c, experiment);
    if (strcmp(state, "STATE_COMPLETED") == 0)
        return 0;
    if (strcmp(state, "STATE_PAUSED") == 0)
        det_fail(err, DET_ESTATE,
                 "experiment %" PRId64 " is paused%s%s; det experiment activate %" PRId64
                 " lets it go on",
                 id, why ? ": " : "", why ? why : "", id);
    else
        det_fail(err, DET_ESTATE,
                 "experiment %" PRId64 " ended %s%s%s; det experiment logs %" PRId64 " tells %s",
                 id, show_state(state), why ? ": " : "", why ? why : "", id, why ? "more" : "why");
    return CLI_FAILED;
}

struct waiting {
    struct cli *c;
    int64_t id;
    bool bars;
    int lines;      /* of bars that are drawn */
    char last[128]; /* what was told of the progress */
    struct away away;
};

/* *ret: the experiment, as it is now and is shown. */
static int look_again(struct waiting *w, json_t **ret, struct det_err *err)
{
    JSON_OWN e = NULL;
    JSON_OWN trials = NULL;
    if (experiment_get(w->c, w->id, &e, err) < 0)
        return -1;
    if (w->bars &&
        cli_get(w->c, &trials, err, "/experiments/%" PRId64 "/trials?limit=1000", w->id) < 0)
        return -1;
    if (away_answered(&w->away))
        away_tell_back();
    if (w->bars)
        w->lines = draw_bars(e, json_arr(trials, "trials"), w->lines);
    else
        tell_progress(e, w->last, sizeof w->last);
    *ret = json_incref(e);
    return 0;
}

/* What it says is no line of the bars: they begin anew below it. */
static int bear_absence(struct waiting *w, const struct det_err *err, int64_t asked_ms)
{
    if (!away_is_borne(&w->away, err, asked_ms, clk_mono_ms()))
        return -1;
    away_tell(&w->away, err);
    w->lines = 0;
    return 0;
}

int wait_for_experiment(struct cli *c, int64_t id, struct det_err *err)
{
    struct waiting w = {.c = c, .id = id, .bars = isatty(STDERR_FILENO) && !c->json};
    const struct timespec pause = wait_pause(o.interval_s);
    for (;; nanosleep(&pause, NULL)) {
        JSON_OWN e = NULL;
        int64_t asked_ms = clk_mono_ms();
        if (look_again(&w, &e, err) < 0) {
            if (bear_absence(&w, err, asked_ms) < 0)
                return CLI_FAILED;
            continue;
        }
        if (has_ended(e) || strcmp(json_str(e, "state", ""), "STATE_PAUSED") == 0)
            return experiment_verdict(c, e, err);
    }
}

int experiment_wait(struct cli *c, struct det_err *err)
{
    int64_t id;
    if (cli_arg_id(c, 0, "experiment", &id, err) < 0)
        return CLI_USAGE;
    return wait_for_experiment(c, id, err);
}
