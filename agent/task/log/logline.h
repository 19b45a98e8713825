/*
 * Lines out of a rank's output, as docs/contract/task.md 4 has them: split at '\n' or '\r', cut at
 * LOGLINE_MAX bytes (its end included), always ended by '\n'; an optional "[rank=N] " and then
 * "LEVEL:" in front are taken off and told apart. Pure.
 */
#ifndef LOGLINE_H
#define LOGLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOGLINE_MAX 8192

enum logline_level {
    LOGLINE_UNKNOWN,
    LOGLINE_TRACE,
    LOGLINE_DEBUG,
    LOGLINE_INFO,
    LOGLINE_WARNING,
    LOGLINE_ERROR,
    LOGLINE_CRITICAL,
    LOGLINE_LEVEL_COUNT
};
const char *logline_level_name(enum logline_level l); /* "LOG_LEVEL_INFO" */

struct logline {
    const char *text; /* ends in '\n'; borrowed */
    size_t len;
    int rank; /* -1: not said */
    enum logline_level level;
};

struct logline_split {
    char buf[LOGLINE_MAX];
    size_t n;
    bool after_cr; /* a '\n' now belongs to the '\r' before */
};
#define LOGLINE_SPLIT_INIT                                                                         \
    {                                                                                              \
        .n = 0                                                                                     \
    }

typedef void logline_fn(void *arg, const struct logline *l);
/* Calls fn for every line that is complete with these bytes. */
void logline_feed(struct logline_split *s, const char *p, size_t n, logline_fn *fn, void *arg);
/* The output ended: what is left becomes a line. */
void logline_flush(struct logline_split *s, logline_fn *fn, void *arg);
/* Takes the prefixes off. */
struct logline logline_parse(const char *text, size_t len);

#endif
