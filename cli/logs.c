/* Logs: det experiment logs, det trial logs, det task logs, and what create --follow prints. */
#include "away.h"
#include "cli.h"
#include "clk.h"
#include "logs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

static struct {
    bool follow;
    int64_t tail, head;
    struct opt_list levels, ranks, stdtypes, agents, containers, sources;
    const char *text, *after, *before;
    bool is_regex;
} o;

const struct opt logs_opts[] = {
    {"follow", 'f', OPT_FLAG, &o.follow, NULL, "go on until the trial ended"},
    {"tail", 0, OPT_COUNT, &o.tail, "N", "only the last N lines"},
    {"head", 0, OPT_COUNT, &o.head, "N", "only the first N lines"},
    {"level", 0, OPT_STR_LIST, &o.levels, "LEVEL",
     "only lines of this level and above: TRACE, DEBUG, INFO, WARNING, ERROR or CRITICAL"},
    {"rank-id", 0, OPT_STR_LIST, &o.ranks, "N", "only lines of this rank"},
    {"stdtype", 0, OPT_STR_LIST, &o.stdtypes, "stdout|stderr", "only lines of this stream"},
    {"agent-id", 0, OPT_STR_LIST, &o.agents, "ID", "only lines from this agent"},
    {"container-id", 0, OPT_STR_LIST, &o.containers, "ID", "only lines of this container"},
    {"source", 0, OPT_STR_LIST, &o.sources, "task|master|agent", "only lines of this source"},
    {"timestamp-after", 0, OPT_STR, &o.after, "TIME", "only lines after 2023-07-06T23:56:54Z"},
    {"timestamp-before", 0, OPT_STR, &o.before, "TIME", "only lines until then"},
    {"search-text", 0, OPT_STR, &o.text, "TEXT", "only lines that hold TEXT"},
    {"regex", 0, OPT_FLAG, &o.is_regex, NULL, "TEXT is a regular expression"},
    {0},
};

/* The API's entry with --json, else its line. */
static int print_line(void *arg, json_t *line)
{
    if (!cli_print_json(arg, line))
        fputs(json_str(line, "message", ""), stdout);
    fflush(stdout);
    return 0;
}

static void add_query(struct buf *b, const char *key, const char *prefix, const char *value)
{
    char *text det_cleanup(freep) = cli_escaped(value);
    buf_addf(b, "&%s=%s%s", key, prefix, text);
}

static void add_list(struct buf *b, const char *key, const char *prefix, const struct opt_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        add_query(b, key, prefix, l->v[i]);
}

static const char *const levels[] = {"UNSPECIFIED", "TRACE", "DEBUG",   "INFO",
                                     "WARNING",     "ERROR", "CRITICAL"};

/* The lowest that was given; their number: none was. -1: *err says which is no level. */
static int lowest_level(struct det_err *err)
{
    int lowest = (int)DET_ARRAY_LEN(levels);
    for (size_t i = 0; i < o.levels.n; i++) {
        int at = 0;
        while (at < (int)DET_ARRAY_LEN(levels) && strcasecmp(levels[at], o.levels.v[i]) != 0)
            at++;
        if (at == (int)DET_ARRAY_LEN(levels))
            return det_fail(err, DET_EINVAL,
                            "--level %s: expected TRACE, DEBUG, INFO, WARNING, ERROR or CRITICAL",
                            o.levels.v[i]),
                   -1;
        lowest = at < lowest ? at : lowest;
    }
    return lowest;
}

static void add_filters(struct buf *b)
{
    if (o.tail > 0)
        buf_addf(b, "&orderBy=ORDER_BY_DESC&limit=%" PRId64, o.tail);
    else if (o.head > 0)
        buf_addf(b, "&limit=%" PRId64, o.head);
    for (int i = lowest_level(NULL); i >= 0 && i < (int)DET_ARRAY_LEN(levels); i++)
        add_query(b, "levels", "LOG_LEVEL_", levels[i]);
    add_list(b, "rankIds", "", &o.ranks);
    add_list(b, "stdtypes", "", &o.stdtypes);
    add_list(b, "agentIds", "", &o.agents);
    add_list(b, "containerIds", "", &o.containers);
    add_list(b, "sources", "", &o.sources);
    if (o.after)
        add_query(b, "timestampAfter", "", o.after);
    if (o.before)
        add_query(b, "timestampBefore", "", o.before);
    if (o.text)
        add_query(b, "searchText", "", o.text);
    if (o.is_regex)
        add_query(b, "enableRegex", "", "true");
}

static int keep_entry(void *arg, json_t *line)
{
    json_array_append(arg, line);
    return 0;
}

/* The last entries came first. New reference. */
static json_t *reverse_entries(const json_t *entries)
{
    json_t *ret = json_array();
    for (size_t i = json_array_size(entries); i-- > 0;)
        json_array_append(ret, json_array_get(entries, i));
    return ret;
}

struct follower {
    struct cli *c;
    int64_t last; /* id of the line that came last; 0: none came */
    struct away away;
};

/* It is there, though a trial that is silent has no line for it to send. */
static void note_answer(void *arg)
{
    struct follower *f = arg;
    if (away_answered(&f->away))
        away_tell_back();
}

static int print_followed(void *arg, json_t *line)
{
    struct follower *f = arg;
    f->last = json_int(line, "id", f->last);
    return print_line(f->c, line);
}

/* To the trial's end: a master that is started anew goes on behind the last line. */
static int follow_lines(struct cli *c, const char *path, struct det_err *err)
{
    struct follower f = {.c = c};
    const struct timespec pause = {.tv_nsec = 200 * 1000000};
    for (;; nanosleep(&pause, NULL)) {
        det_cleanup(buf_finish) struct buf url = BUF_INIT;
        buf_addf(&url, "%s?follow=true", path);
        add_filters(&url);
        if (f.last)
            buf_addf(&url, "&beyondId=%" PRId64, f.last);
        if (cli_follow(c, buf_str(&url), note_answer, print_followed, &f, err) >= 0)
            return 0;
        int64_t now = clk_mono_ms(); /* it was asked long ago, and was there until now */
        if (!away_is_borne(&f.away, err, now, now))
            return CLI_FAILED;
        away_tell(&f.away, err);
    }
}

static int stream_lines(struct cli *c, const char *path, bool follow, struct det_err *err)
{
    struct buf url = BUF_INIT;
    JSON_OWN tail = o.tail > 0 ? json_array() : NULL;
    if (follow && o.head == 0 && !tail)
        return follow_lines(c, path, err);
    buf_addf(&url, "%s?follow=%s", path, follow ? "true" : "false");
    add_filters(&url);
    int rc = tail ? cli_stream(c, buf_str(&url), keep_entry, tail, err)
                  : cli_stream(c, buf_str(&url), print_line, c, err);
    for (size_t i = json_array_size(tail); rc >= 0 && i-- > 0;)
        print_line(c, json_array_get(tail, i));
    buf_finish(&url);
    return rc < 0 ? CLI_FAILED : 0;
}

int logs_follow_trial(struct cli *c, int64_t trial_id, struct det_err *err)
{
    det_cleanup(freep) char *path = det_asprintf("/trials/%" PRId64 "/logs", trial_id);
    return stream_lines(c, path, true, err);
}

int logs_print_trial(struct cli *c, int64_t trial_id, struct det_err *err)
{
    det_cleanup(freep) char *path = det_asprintf("/trials/%" PRId64 "/logs", trial_id);
    return logs_print(c, path, err);
}

json_t *logs_last(struct cli *c, int64_t trial_id, int64_t n)
{
    struct det_err err;
    JSON_OWN lines = json_array();
    det_cleanup(freep) char *path =
        det_asprintf("/trials/%" PRId64 "/logs?orderBy=ORDER_BY_DESC&limit=%" PRId64, trial_id, n);
    return cli_stream(c, path, keep_entry, lines, &err) < 0 ? NULL : reverse_entries(lines);
}

int logs_print_last(struct cli *c, int64_t trial_id, int64_t n, struct det_err *err)
{
    det_cleanup(freep) char *path = det_asprintf("/trials/%" PRId64 "/logs", trial_id);
    o.tail = n;
    return stream_lines(c, path, false, err);
}

int logs_print(struct cli *c, const char *path, struct det_err *err)
{
    if (o.follow && (o.tail > 0 || o.head > 0)) {
        det_fail(err, DET_EINVAL, "--follow does not go with --tail or --head");
        return CLI_USAGE;
    }
    if (lowest_level(err) < 0)
        return CLI_USAGE;
    return stream_lines(c, path, o.follow, err);
}

int logs_print_experiment(struct cli *c, struct det_err *err)
{
    int64_t id;
    JSON_OWN answer = NULL;
    if (cli_arg_id(c, 0, "experiment", &id, err) < 0)
        return CLI_USAGE;
    if (cli_get(c, &answer, err, "/experiments/%" PRId64 "/trials?limit=1", id) < 0)
        return CLI_FAILED;
    const json_t *first = json_array_get(json_arr(answer, "trials"), 0);
    if (!first) {
        det_fail(err, DET_ENOENT, "experiment %" PRId64 " has no trial yet", id);
        return CLI_FAILED;
    }
    return logs_print_trial(c, json_int(first, "id", 0), err);
}
