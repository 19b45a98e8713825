/*
 * The last lines of the master's own log, for GET /api/v1/master/logs. Bounded in lines and bytes:
 * the oldest fall out. Ids count up from 0 and are never used again by this process. Thread: the
 * loop's.
 */
#ifndef SHELL_LOGRING_H
#define SHELL_LOGRING_H

#include "log.h"
#include <stddef.h>
#include <stdint.h>

enum { LOGRING_LINES_MAX = 10000, LOGRING_BYTES_MAX = 4 << 20 };

struct logring;
struct logring *logring_create(void);
void logring_destroy(struct logring *r); /* watches must be gone; NULL ok */
/* A sink of log.h; arg is the ring. */
void logring_add(void *arg, const struct log_record *record);

/* Lines are [first, end). */
int64_t logring_first(const struct logring *r);
int64_t logring_end(const struct logring *r);
struct logring_line {
    int64_t wall_us;
    enum log_level level;
    char *text;
};
const struct logring_line *logring_at(const struct logring *r, int64_t id); /* of [first, end) */

/* fn(arg) runs after each line; it may unwatch itself, and must not log. */
struct logring_watch;
struct logring_watch *logring_watch(struct logring *r, void (*fn)(void *arg), void *arg);
void logring_unwatch(struct logring_watch *w); /* NULL ok */

#endif
