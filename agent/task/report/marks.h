/*
 * What happened to a task on this host and when (agent.md, `marks`): told to the agent with the
 * state, a moment later than known, so that a task of a few milliseconds tells all in one line.
 * What the ranks know (model loaded, first batch) is read from the first one's progress file.
 */
#ifndef MARKS_H
#define MARKS_H

#include "taskspec.h"
#include <uv.h>

struct marks {
    json_t *all; /* as the wire has them */
    size_t told;
    uv_timer_t timer;
    int64_t ranks_ms; /* when the ranks were started, monotonic; 0: not yet */
    int fd;           /* progress file of the first rank; -1 */
    bool is_loaded, has_batch;
    void (*on_news)(void *arg);
    void *arg;
};

void marks_init(struct marks *m, uv_loop_t *loop, void (*on_news)(void *arg), void *arg);
/* Before the loop ends; the rest by marks_finish() after it. */
void marks_close(struct marks *m);
void marks_finish(struct marks *m);

/* It happened now; duration_ms: of what ended. More than LINK_MARKS_MAX are dropped. */
void marks_add(struct marks *m, const char *kind, int64_t duration_ms, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Those that the det-task before told and kept, an array or NULL; what is none is left out. */
void marks_restore(struct marks *m, const json_t *kept);
/* The ranks run: looks after their first signs. */
void marks_ranks(struct marks *m, const struct taskspec *s);
/* Looks once more, for the last time. The array lives as long as m. */
const json_t *marks_all(struct marks *m);

#endif
