/*
 * The newest lines of an output whose middle is left out: a ring of LOGTAIL_LINES lines, oldest
 * overwritten. Its memory is bounded by LOGTAIL_LINES times LOGLINE_MAX.
 */
#ifndef LOGTAIL_H
#define LOGTAIL_H

#include "buf.h"
#include "logline.h"

#define LOGTAIL_LINES 64

struct logtail_line {
    struct buf text;
    const char *stdtype; /* borrowed: a literal */
    int rank;
    enum logline_level level;
};
struct logtail {
    struct logtail_line v[LOGTAIL_LINES];
    uint64_t lines, bytes; /* that ever came; only the last ones are in v */
};

void logtail_add(struct logtail *t, const char *stdtype, int rank, const struct logline *l);
/* How many lines are there. */
size_t logtail_count(const struct logtail *t);
/* The i-th of them, oldest first; borrowed. */
const struct logtail_line *logtail_at(const struct logtail *t, size_t i);
void logtail_finish(struct logtail *t);

#endif
