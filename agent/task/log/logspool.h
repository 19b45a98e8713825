/*
 * The spool of a task's log: a file of lines that wait for the master, each a whole JSON object of
 * POST /api/v1/task/logs with its number as `offset`, so that a line sent twice is kept once.
 * Appending costs one buffered write; a file that was sent whole is emptied. Above
 * LOGSPOOL_BYTES_MAX of unsent lines logspool_is_full() asks the reader of the pipes to wait, which
 * stops the writer in the end.
 *
 * A limit bounds how much of the ranks' output is kept in all: a trial that prints without end must
 * fill neither this host's disk nor the master's database. Where it is reached one line says so,
 * what follows is dropped, and logspool_end() says how much that was and gives its last lines.
 *
 * Whoever opens an old spool sends all that is in it again; what a crash left of a last line is cut
 * off.
 */
#ifndef LOGSPOOL_H
#define LOGSPOOL_H

#include "buf.h"
#include "json.h"
#include "logline.h"

#define LOGSPOOL_BYTES_MAX ((uint64_t)256 << 20)

/* What every line says; strings are borrowed. */
struct logspool_origin {
    const char *task_id, *alloc_id, *container_id, *agent_id;
};
struct logspool;
/* first: the number of the first line that will be appended. */
DET_MUST int logspool_open(int dirfd, const char *name, const struct logspool_origin *o,
                           int64_t first, struct logspool **ret, struct det_err *err);
void logspool_close(struct logspool *s); /* NULL ok; the file stays */

/* stdtype NULL: a line of our own (source "agent"). Lines that cannot be
 * written are lost; the next one that can tells how many. */
void logspool_add(struct logspool *s, const char *stdtype, int rank, const struct logline *l);
void logspool_say(struct logspool *s, enum logline_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The ranks' lines may take bytes in all, as they are sent; 0: no limit. Set before the first line.
 */
void logspool_limit(struct logspool *s, uint64_t bytes);
/* The output has ended: tells what was lost at last, and what the limit left out, and its end. */
void logspool_end(struct logspool *s);
bool logspool_is_full(const struct logspool *s);
uint64_t logspool_unsent(const struct logspool *s); /* bytes */

/* The next request's body (appended to out), at most 1,000 lines and about 1 MiB; 0 bytes when all
 * was sent. *ret_bytes is what logspool_sent() is to be given when it has arrived. */
DET_MUST int logspool_batch(struct logspool *s, struct buf *out, uint64_t *ret_bytes,
                            struct det_err *err);
void logspool_sent(struct logspool *s, uint64_t bytes);

#endif
