/*
 * det experiment watch, det trial watch. Four times a second the master is asked for the experiment
 * and the few trials on the screen; the rest only when one of these changed. So a thousand trials
 * cost no more than ten. q leaves.
 */
#include "watch.h"

#include "away.h"
#include "clk.h"
#include "experiment.h"
#include "show.h"
#include "table.h"
#include "watch_keys.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { SHOWN = 12, POINTS = 120, PERIOD_MS = 250, REST_MS = 50, WHY_MS = 2000, REDRAW_MS = 2000 };

static struct {
    const char *metric;
} o;

struct watch {
    struct cli *c;
    int64_t exp_id, trial_id; /* trial 0: the experiment's running ones */
    bool screen, keys, left;  /* keys: they are heard; left: somebody typed q */
    json_t *experiment, *trials, *best, *first, *said;
    int64_t total;             /* trials that have not ended, shown or not */
    char *drawn;               /* what is on the screen */
    struct winsize drawn_size; /* and its size then */
    struct curves curves;
    bool has_curves; /* they were asked for, and may be none */
    char *why;
    int64_t began_ms, why_ms, drawn_ms;
    struct away away;
};

static void watch_end(struct watch *w)
{
    json_decref(w->experiment);
    json_decref(w->trials);
    json_decref(w->best);
    json_decref(w->first);
    json_decref(w->said);
    curves_finish(&w->curves);
    free(w->why);
    free(w->drawn);
}

/* By id, so that none changes its place and its colour while it is looked at. */
static json_t *ordered_by_id(const json_t *trials)
{
    json_t *ordered = json_array();
    size_t i, k;
    json_t *t;
    json_array_foreach((json_t *)trials, i, t)
    {
        for (k = json_array_size(ordered); k > 0; k--)
            if (json_int(json_array_get(ordered, k - 1), "id", 0) < json_int(t, "id", 0))
                break;
        json_array_insert(ordered, k, t);
    }
    return ordered;
}

static int ask_trials(struct watch *w, json_t **ret, struct det_err *err)
{
    JSON_OWN answer = NULL;
    int rc;
    if (w->trial_id) {
        rc = cli_get(w->c, &answer, err, "/trials/%" PRId64, w->trial_id);
        w->total = 1;
        if (rc == 0)
            *ret = json_make("[O]", json_object_get(answer, "trial"));
        return rc;
    }
    rc = cli_get(w->c, &answer, err,
                 "/experiments/%" PRId64 "/trials?limit=%d&states=STATE_ACTIVE&sortBy=SORT_BY_STATE"
                 "&orderBy=ORDER_BY_DESC", /* those that have slots come first */
                 w->exp_id, SHOWN);
    w->total = json_int(json_obj(answer, "pagination"), "total", 0);
    if (rc == 0)
        *ret = ordered_by_id(json_arr(answer, "trials"));
    return rc;
}

static int ask_best(struct watch *w, struct det_err *err)
{
    JSON_OWN answer = NULL;
    bool smaller =
        json_flag(json_path(w->experiment, "config.searcher"), "smaller_is_better", true);
    int rc = cli_get(w->c, &answer, err,
                     "/experiments/%" PRId64
                     "/trials?limit=1&sortBy=SORT_BY_BEST_VALIDATION_METRIC&orderBy=%s",
                     w->exp_id, smaller ? "ORDER_BY_ASC" : "ORDER_BY_DESC");
    if (rc < 0)
        return rc;
    json_decref(w->best);
    w->best = json_incref(json_array_get(json_arr(answer, "trials"), 0));
    return 0;
}

static int ask_curves(struct watch *w, struct det_err *err)
{
    int64_t ids[SHOWN];
    size_t n = json_array_size(w->trials);
    const char *metric = json_str(json_path(w->experiment, "config.searcher"), "metric", "");
    metric = o.metric ? o.metric : metric;
    n = n < SHOWN ? n : SHOWN;
    for (size_t i = 0; i < n; i++)
        ids[i] = json_int(json_array_get(w->trials, i), "id", 0);
    if (n == 0 || !*metric)
        return 0;
    curves_finish(&w->curves);
    w->has_curves = true;
    return curves_get(w->c, ids, n, metric, o.metric ? "" : "validation", POINTS, &w->curves, err);
}

static bool is_paused(const struct watch *w)
{
    return strcmp(json_str(w->experiment, "state", ""), "STATE_PAUSED") == 0;
}

/* Nothing comes until somebody activates it. */
static char *why_paused(const json_t *answer)
{
    int64_t id = json_int(answer, "experimentId", 0);
    bool held = json_flag(answer, "held", false);
    return det_asprintf("experiment %" PRId64 " is paused%s%s; it goes on by  det experiment "
                        "activate %" PRId64,
                        id, held ? ": " : "", held ? json_str(answer, "text", "") : "", id);
}

/* Something waits: why. Seldom, since a scheduler is asked what it would do. */
static void ask_why(struct watch *w)
{
    JSON_OWN answer = NULL;
    struct det_err err;
    int64_t now = clk_mono_ms();
    if (w->why_ms && now - w->why_ms < WHY_MS)
        return;
    w->why_ms = now;
    free(w->why);
    w->why = NULL;
    if (cli_get(w->c, &answer, &err, "/%s/%" PRId64 "/why", w->trial_id ? "trials" : "experiments",
                w->trial_id ? w->trial_id : w->exp_id) < 0)
        return;
    if (json_flag(answer, "waiting", false))
        w->why = det_asprintf("trial %" PRId64 " waits: %s", json_int(answer, "trialId", 0),
                              json_str(answer, "text", ""));
    else if (is_paused(w))
        w->why = why_paused(answer);
}

static void note_speeds(struct watch *w)
{
    size_t i;
    json_t *t;
    double seconds = (double)(clk_mono_ms() - w->began_ms) / 1000;
    json_array_foreach(w->trials, i, t) watch_note(t, seconds, w->first);
}

static int fetch_trials(struct watch *w, bool *ret_news, struct det_err *err)
{
    JSON_OWN e = NULL;
    JSON_OWN trials = NULL;
    if (experiment_get(w->c, w->exp_id, &e, err) < 0 || ask_trials(w, &trials, err) < 0)
        return -1;
    *ret_news = !w->trials || !json_equal(trials, w->trials) || has_ended(e);
    json_decref(w->experiment);
    json_decref(w->trials);
    w->experiment = json_incref(e);
    w->trials = json_incref(trials);
    note_speeds(w);
    return 0;
}

static bool is_over(const struct watch *w)
{
    return has_ended(w->trial_id ? json_array_get(w->trials, 0) : w->experiment);
}

static int look_closer(struct watch *w, bool news, struct det_err *err)
{
    if (news && (ask_best(w, err) < 0 || ask_curves(w, err) < 0))
        return -1;
    if (is_over(w)) { /* nothing waits any more */
        free(w->why);
        w->why = NULL;
    } else {
        ask_why(w);
    }
    return 0;
}

/* A pipe has no size, and some terminals say 0. */
static struct winsize size_now(void)
{
    struct winsize size = {0};
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 && size.ws_row > 1;
    return known ? size : (struct winsize){.ws_col = 80, .ws_row = 24};
}

/* Over what is there, so that nothing flickers. */
static void put_over(const char *text)
{
    det_cleanup(buf_finish) struct buf out = BUF_INIT;
    buf_add_str(&out, "\033[H");
    for (const char *p = text; *p; p += *p == '\n') {
        size_t n = strcspn(p, "\n");
        buf_add(&out, p, n);
        buf_add_str(&out, "\033[K\n");
        p += n;
    }
    buf_add_str(&out, "\033[J");
    fputs(buf_str(&out), stdout);
    fflush(stdout);
}

/* Only where it is another than what is there, but now and then all the same: somebody else may
 * have written into it. */
static void put_screen(struct watch *w, struct winsize size, const char *text)
{
    int64_t now = clk_mono_ms();
    bool is_same = w->drawn && strcmp(w->drawn, text) == 0 && now - w->drawn_ms < REDRAW_MS &&
                   memcmp(&size, &w->drawn_size, sizeof size) == 0;
    if (is_same)
        return;
    put_over(text);
    free(w->drawn);
    w->drawn = det_strdup(text);
    w->drawn_size = size;
    w->drawn_ms = now;
}

/* While the master does not answer: how old is what is shown. NULL: it answers. */
static char *tell_absence(const struct watch *w)
{
    int64_t away_s = (clk_mono_ms() - w->away.since_ms) / 1000;
    return w->away.since_ms ? det_asprintf("the master has not answered for %" PRId64
                                           " s: what is shown is as old; it is asked again",
                                           away_s)
                            : NULL;
}

static void draw_view(struct watch *w)
{
    det_cleanup(buf_finish) struct buf text = BUF_INIT;
    struct winsize size = size_now();
    det_cleanup(freep) char *absence = tell_absence(w);
    struct watch_view v = {.experiment = w->experiment,
                           .trials = w->trials,
                           .total = w->total,
                           .best = w->best,
                           .why = absence ? absence : w->why,
                           .curves = w->has_curves ? &w->curves : NULL,
                           .seconds = (double)(clk_mono_ms() - w->began_ms) / 1000,
                           .first = w->first,
                           .metric = o.metric,
                           .keys = w->keys,
                           .columns = size.ws_col - 1,
                           .rows = size.ws_row,
                           .plain = curves_are_plain(),
                           .coloured = curves_are_coloured()};
    watch_screen(&v, &text);
    put_screen(w, size, buf_str(&text));
}

static void tell_line(struct watch *w, const char *what, const char *line)
{
    if (strcmp(json_str(w->said, what, ""), line) == 0)
        return;
    puts(line);
    json_set(w->said, what, json_string(line));
}

/* A name that was mistyped is never reported. */
static void tell_absent(struct watch *w)
{
    det_cleanup(buf_finish) struct buf line = BUF_INIT;
    const json_t *summary = json_obj(json_array_get(w->trials, 0), "summaryMetrics");
    if (!o.metric || !w->has_curves || w->curves.n > 0 || json_object_size(summary) == 0)
        return;
    watch_absent(w->trials, o.metric, &line);
    tell_line(w, "absent", buf_str(&line));
}

/* For programs: a trial as the API has it, a line of JSON each time that it changed. */
static void tell_json(struct watch *w)
{
    size_t i;
    json_t *t;
    json_array_foreach(w->trials, i, t)
    {
        char id[24];
        snprintf(id, sizeof id, "%" PRId64, json_int(t, "id", 0));
        char *line det_cleanup(freep) = json_text(t);
        tell_line(w, id, line);
    }
    fflush(stdout);
}

/* Without a screen: a line about each trial whose line is another than before. */
static void tell_trials(struct watch *w)
{
    size_t i;
    json_t *t;
    json_array_foreach(w->trials, i, t)
    {
        char id[24];
        struct buf line = BUF_INIT;
        snprintf(id, sizeof id, "%" PRId64, json_int(t, "id", 0));
        watch_line(t, w->experiment, o.metric, &line);
        tell_line(w, id, buf_str(&line));
        buf_finish(&line);
    }
    tell_absent(w);
    if (w->why)
        tell_line(w, "why", w->why);
    fflush(stdout);
}

bool watch_has_screen(void)
{
    const char *term = getenv("TERM");
    return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

/* Until a period after the last look began, so that slow answers make reports no later. */
static void wait_out_period(struct watch *w, int64_t begun_ms)
{
    int64_t left = begun_ms + PERIOD_MS - clk_mono_ms();
    w->left = watch_keys_wait(left > REST_MS ? left : REST_MS);
}

static void show_all(struct watch *w)
{
    if (w->screen)
        draw_view(w);
    else if (w->c->json)
        tell_json(w);
    else
        tell_trials(w);
}

static int look_again(struct watch *w, struct det_err *err)
{
    bool news;
    if (fetch_trials(w, &news, err) < 0)
        return -1;
    if (away_answered(&w->away) && !w->screen)
        away_tell_back();
    if (w->screen && !w->keys) /* now that nobody is asked for a password any more */
        w->keys = watch_keys_begin();
    if (w->screen && news) /* at once: the rest takes more questions */
        draw_view(w);
    if (look_closer(w, news, err) < 0)
        return -1;
    show_all(w);
    return 0;
}

/* A master that is started anew is no end of a screen that was left open. */
static int bear_absence(struct watch *w, const struct det_err *err, int64_t asked_ms)
{
    if (!away_is_borne(&w->away, err, asked_ms, clk_mono_ms()))
        return -1;
    if (w->screen)
        draw_view(w);
    else
        away_tell(&w->away, err);
    return 0;
}

static int watch_to_end(struct watch *w, struct det_err *err)
{
    w->screen = watch_has_screen() && !w->c->json;
    w->first = json_object();
    w->said = json_object();
    w->began_ms = clk_mono_ms();
    if (w->screen)
        fputs("\033[H\033[J", stdout);
    for (int64_t begun_ms = w->began_ms; !w->left; wait_out_period(w, begun_ms)) {
        begun_ms = clk_mono_ms();
        if (look_again(w, err) < 0) {
            if (bear_absence(w, err, begun_ms) < 0)
                return CLI_FAILED;
        } else if (is_over(w)) {
            return 0;
        }
    }
    return 0;
}

/* What somebody left runs on: how to come back to it. */
static void tell_end(const struct watch *w)
{
    const char *what = w->trial_id ? "trial" : "experiment";
    int64_t id = w->trial_id ? w->trial_id : w->exp_id;
    const json_t *it = w->trial_id ? json_array_get(w->trials, 0) : w->experiment;
    bool is_paused = strcmp(json_str(it, "state", ""), "STATE_PAUSED") == 0;
    if (w->left)
        printf("%s %" PRId64 " %s; det %s watch %" PRId64 " shows it again\n", what, id,
               is_paused ? "stays paused" : "goes on", what, id);
    else
        printf("%s %" PRId64 " ended %s\n", what, id, show_state(json_str(it, "state", "")));
}

/* The last line of JSON. */
static void tell_experiment(const struct watch *w)
{
    JSON_OWN line = json_make("{s:O}", "experiment", w->experiment);
    char *text det_cleanup(freep) = json_text(line);
    if (!w->trial_id)
        puts(text);
}

/* No table is printed that could be CSV. */
static int check_csv(struct det_err *err)
{
    return table_is_csv() ? det_fail(err, DET_EINVAL,
                                     "--csv: watch prints no table; --json prints a line for each "
                                     "change of a trial, and det trial plot --csv the points")
                          : 0;
}

static int run_watch(struct watch *w, struct det_err *err)
{
    int status = watch_to_end(w, err);
    watch_keys_end();
    if (status == 0 && w->c->json)
        tell_experiment(w);
    else if (status == 0)
        tell_end(w);
    watch_end(w);
    return status;
}

int watch_of_experiment(struct cli *c, int64_t id, bool *ret_left, struct det_err *err)
{
    struct watch w = {.c = c, .exp_id = id};
    int status = run_watch(&w, err);
    *ret_left = w.left;
    return status;
}

int experiment_watch(struct cli *c, struct det_err *err)
{
    int64_t id;
    bool left;
    if (cli_arg_id(c, 0, "experiment", &id, err) < 0 || check_csv(err) < 0)
        return CLI_USAGE;
    int status = watch_of_experiment(c, id, &left, err);
    JSON_OWN e = NULL;
    if (status != 0 || left)
        return status;
    return experiment_get(c, id, &e, err) < 0 ? CLI_FAILED : experiment_verdict(c, e, err);
}

static int tell_failure(struct cli *c, int64_t trial, struct det_err *err)
{
    JSON_OWN answer = NULL;
    if (cli_get(c, &answer, err, "/trials/%" PRId64, trial) < 0)
        return CLI_FAILED;
    if (strcmp(json_str(json_obj(answer, "trial"), "state", ""), "STATE_ERROR") != 0)
        return 0;
    char *why det_cleanup(freep) = trial_reason(c, trial);
    det_fail(err, DET_ESTATE, "trial %" PRId64 " failed%s%s; det trial logs %" PRId64 " tells %s",
             trial, why ? ": " : "", why ? why : "", trial, why ? "more" : "why");
    return CLI_FAILED;
}

int trial_watch(struct cli *c, struct det_err *err)
{
    struct watch w = {.c = c};
    JSON_OWN answer = NULL;
    if (cli_arg_id(c, 0, "trial", &w.trial_id, err) < 0 || check_csv(err) < 0)
        return CLI_USAGE;
    if (cli_get(c, &answer, err, "/trials/%" PRId64, w.trial_id) < 0)
        return CLI_FAILED;
    w.exp_id = json_int(json_obj(answer, "trial"), "experimentId", 0);
    int status = run_watch(&w, err);
    return status != 0 || w.left ? status : tell_failure(c, w.trial_id, err);
}

const struct opt watch_opts[] = {
    {"metric", 0, OPT_STR, &o.metric, "NAME",
     "its curve and values, in training and in validation (default the searcher's)"},
    {0},
};
