#include "logspool.h"

#include "clk.h"
#include "failpoint.h"
#include "fsx.h"
#include "log.h"
#include "logtail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BATCH_LINES 1000
#define BATCH_BYTES ((size_t)1 << 20)
#define HOLE_BYTES  ((uint64_t)16 << 20)
#define LINE_BYTES  ((uint64_t)1 << 20) /* more than any line has */

struct logspool {
    int fd;
    json_t *origin;       /* the members that every line has */
    int64_t next;         /* number of the next line */
    uint64_t sent, end;   /* offsets in the file */
    uint64_t hole;        /* up to here the file's blocks were given back */
    uint64_t lost;        /* lines that could not be written */
    uint64_t limit, kept; /* bytes of the ranks' lines; 0: no limit */
    bool is_cut;          /* the limit was reached */
    bool is_torn;         /* the file may end in half a line */
    struct logtail tail;  /* of what is left out */
};

/* Half a line goes, so that the file holds whole ones only; where that fails the next line is
 * written over it. */
static void cut_off(struct logspool *s)
{
    if (ftruncate(s->fd, (off_t)s->end) < 0)
        log_debug("cut the log spool: %s", strerror(errno));
}

/* Fewer than n bytes only where the file ends or cannot be read. */
static size_t read_at(struct logspool *s, char *p, size_t n, uint64_t from)
{
    size_t got = 0;
    while (got < n) {
        ssize_t k = pread(s->fd, p + got, n - got, (off_t)(from + got));
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            break;
        got += (size_t)k;
    }
    return got;
}

/* What a crash has left of its last line would spoil the request of all lines around it. */
static void find_end(struct logspool *s, char *block, uint64_t size)
{
    uint64_t from = size > LINE_BYTES ? size - LINE_BYTES : 0;
    size_t n = read_at(s, block, (size_t)(size - from), from);
    const char *newline = memrchr(block, '\n', n);
    s->end = newline ? from + (uint64_t)(newline - block) + 1 : from;
    s->is_torn = n < size - from; /* it cannot be read now */
    if (s->is_torn)
        s->end = size;
    else if (s->end < size)
        cut_off(s);
}

/* What was sent before a crash may be a hole by now: the file begins with NULs up to a line. */
static void find_start(struct logspool *s, char *block)
{
    off_t data = lseek(s->fd, 0, SEEK_DATA);
    if (data <= 0)
        return;
    size_t n = read_at(s, block, LINE_BYTES, (uint64_t)data), nuls = 0;
    while (nuls < n && block[nuls] == '\0')
        nuls++;
    uint64_t start = (uint64_t)data + nuls;
    s->sent = s->hole = start < s->end ? start : s->end;
}

int logspool_open(int dirfd, const char *name, const struct logspool_origin *o, int64_t first,
                  struct logspool **ret, struct det_err *err)
{
    struct stat st;
    int fd = openat(dirfd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || fstat(fd, &st) < 0) {
        int e = errno;
        det_closep(&fd);
        return det_fail_errno(err, DET_EIO, e, "open the log spool %s", name);
    }
    struct logspool *s = det_zalloc(sizeof *s);
    s->fd = fd;
    s->next = first;
    det_cleanup(freep) char *block = det_alloc(LINE_BYTES);
    find_end(s, block, (uint64_t)st.st_size);
    find_start(s, block);
    s->origin = json_make("{s:s, s:s, s:s, s:s}", "task_id", o->task_id, "allocation_id",
                          o->alloc_id, "container_id", o->container_id, "agent_id", o->agent_id);
    *ret = s;
    return 0;
}

void logspool_close(struct logspool *s)
{
    if (!s)
        return;
    det_closep(&s->fd);
    json_decref(s->origin);
    logtail_finish(&s->tail);
    free(s);
}

static json_t *line_json(struct logspool *s, const char *stdtype, int rank, const struct logline *l)
{
    char now[CLK_RFC3339_MAX];
    json_t *j = json_copy(s->origin);
    clk_format(clk_wall_us(), now);
    json_set(j, "timestamp", json_string(now));
    json_set(j, "source", json_string(stdtype ? "task" : "agent"));
    if (stdtype)
        json_set(j, "stdtype", json_string(stdtype));
    if (rank >= 0)
        json_set(j, "rank_id", json_integer(rank));
    if (l->level != LOGLINE_UNKNOWN)
        json_set(j, "level", json_string(logline_level_name(l->level)));
    json_set(j, "log", json_lossy(l->text, l->len));
    json_set(j, "offset", json_integer(s->next));
    return j;
}

static bool append_bytes(struct logspool *s, const struct buf *b)
{
    size_t done = 0;
    while (done < b->len) {
        ssize_t n = pwrite(s->fd, b->p + done, b->len - done, (off_t)(s->end + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            int e = errno;
            cut_off(s);
            errno = e;
            return false;
        }
        done += (size_t)n;
    }
    s->end += b->len;
    return true;
}

/* Said where it is seen at once, on this host; who reads the log is told when there is room
 * again. */
static void count_lost(struct logspool *s)
{
    if (s->lost++ == 0)
        log_error("the log spool cannot be written: %s; lines are lost until it can",
                  strerror(errno));
}

static void tell_lost(struct logspool *s)
{
    unsigned long long n = s->lost;
    s->lost = 0;
    logspool_say(s, LOGLINE_WARNING, /* which may be lost itself */
                 "%llu lines before this one are lost: they could not be written on this host (is "
                 "the disk of det-agent's --work-dir full?)",
                 n);
    s->lost = s->lost > 0 ? n : 0;
}

static void put_line(struct logspool *s, const char *stdtype, int rank, const struct logline *l)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    JSON_OWN j = line_json(s, stdtype, l->rank >= 0 ? l->rank : rank, l);
    if (s->is_torn)
        buf_add_ch(&b, '\n');
    json_write(&b, j);
    buf_add_ch(&b, '\n');
    FAILPOINT("logspool.before_write");
    s->next++;
    if (!append_bytes(s, &b)) {
        count_lost(s);
        return;
    }
    s->is_torn = false;
    s->kept += stdtype ? b.len : 0;
    if (s->lost > 0)
        tell_lost(s);
}

static bool is_over_limit(struct logspool *s)
{
    if (s->limit == 0 || s->kept < s->limit)
        return false;
    if (!s->is_cut)
        logspool_say(s, LOGLINE_WARNING,
                     "log truncated: this task's output has reached %llu MiB on this host; what "
                     "follows is left out, but its end (det-agent --log-mib sets the limit)",
                     (unsigned long long)(s->limit >> 20));
    s->is_cut = true;
    return true;
}

void logspool_add(struct logspool *s, const char *stdtype, int rank, const struct logline *l)
{
    if (stdtype && is_over_limit(s))
        logtail_add(&s->tail, stdtype, rank, l);
    else
        put_line(s, stdtype, rank, l);
}

void logspool_limit(struct logspool *s, uint64_t bytes)
{
    s->limit = bytes;
}

void logspool_end(struct logspool *s)
{
    if (s->lost > 0)
        tell_lost(s); /* no line comes that would */
    size_t n = logtail_count(&s->tail);
    if (n == 0)
        return;
    logspool_say(s, LOGLINE_WARNING, "%llu lines (%llu bytes) were left out; the last %zu of them:",
                 (unsigned long long)s->tail.lines, (unsigned long long)s->tail.bytes, n);
    for (size_t i = 0; i < n; i++) {
        const struct logtail_line *k = logtail_at(&s->tail, i);
        struct logline l = {k->text.p, k->text.len, -1, k->level};
        put_line(s, k->stdtype, k->rank, &l);
    }
    logtail_finish(&s->tail);
}

void logspool_say(struct logspool *s, enum logline_level level, const char *fmt, ...)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_vaddf(&b, fmt, ap);
    va_end(ap);
    buf_add_ch(&b, '\n');
    struct logline l = {.text = b.p, .len = b.len, .rank = -1, .level = level};
    logspool_add(s, NULL, -1, &l);
}

bool logspool_is_full(const struct logspool *s)
{
    return s->end - s->sent > LOGSPOOL_BYTES_MAX;
}

uint64_t logspool_unsent(const struct logspool *s)
{
    return s->end - s->sent;
}

static int read_chunk(struct logspool *s, struct buf *raw, struct det_err *err)
{
    uint64_t left = s->end - s->sent;
    size_t want = left < BATCH_BYTES ? (size_t)left : BATCH_BYTES;
    buf_reserve(raw, want);
    while (raw->len < want) {
        ssize_t n = pread(s->fd, raw->p + raw->len, want - raw->len, (off_t)(s->sent + raw->len));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return det_fail(err, DET_EIO, "read the log spool: %s",
                            n < 0 ? strerror(errno) : "it is cut");
        raw->len += (size_t)n;
    }
    return 0;
}

/* What a crash left of a line, where it could not be cut off, goes nowhere. */
static bool is_whole(const char *line, size_t n)
{
    return n > 1 && line[0] == '{' && line[n - 1] == '}';
}

/* Appends the whole lines of raw, at most BATCH_LINES; returns how many bytes they took. */
static size_t join_lines(struct buf *out, const struct buf *raw)
{
    size_t at = 0, added = 0;
    const char *end;
    while (at < raw->len && added < BATCH_LINES &&
           (end = memchr(raw->p + at, '\n', raw->len - at))) {
        size_t n = (size_t)(end - raw->p) - at;
        if (is_whole(raw->p + at, n)) {
            if (added++ > 0)
                buf_add_ch(out, ',');
            buf_add(out, raw->p + at, n);
        }
        at += n + 1;
    }
    return at;
}

int logspool_batch(struct logspool *s, struct buf *out, uint64_t *ret_bytes, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf raw = BUF_INIT;
    *ret_bytes = 0;
    int rc = read_chunk(s, &raw, err);
    if (rc < 0)
        return rc;
    buf_add_str(out, "{\"logs\":[");
    size_t bytes = join_lines(out, &raw);
    buf_add_str(out, "]}");
    if (bytes == 0)
        buf_clear(out);
    *ret_bytes = bytes;
    return 0;
}

void logspool_sent(struct logspool *s, uint64_t bytes)
{
    FAILPOINT("logspool.before_sent");
    s->sent += bytes;
    if (s->sent == s->end && ftruncate(s->fd, 0) == 0)
        s->sent = s->end = s->hole = 0;
    if (s->sent - s->hole < HOLE_BYTES)
        return;
    /* Best effort: without it the file only stays larger until it is empty. */
    if (fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)s->hole,
                  (off_t)(s->sent - s->hole)) == 0)
        s->hole = s->sent;
}
