#include "spool.h"

#include "buf.h"
#include "failpoint.h"
#include "hash.h"
#include "mem.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC        "DETSPOL1"
#define HEADER_BYTES 16
#define SHRINK_BYTES (1u << 20) /* shrinking costs two calls, so not after every record */

struct spool {
    int fd;
    char *path;
    pthread_mutex_t lock; /* guards the offsets and the file's length */
    uint64_t sent, end;   /* first record not sent; end of the last whole record */
    uint64_t next_end;    /* end of the records that are being sent; 0: none are */
    uint64_t more_end;    /* end of the record that spool_more() gave */
    struct buf current;   /* the payload of the last that was read; the sender's alone */
    uint64_t bytes_max;   /* of the file */
};

struct frame {
    uint32_t bytes, crc;
};

static int io_fail(const struct spool *s, const char *what, struct det_err *err)
{
    return det_fail_errno(err, DET_EIO, errno, "%s %s", what, s->path);
}

static int read_at(const struct spool *s, void *p, size_t n, uint64_t at, struct det_err *err)
{
    size_t done = 0;
    while (done < n) {
        ssize_t k = pread(s->fd, (char *)p + done, n - done, (off_t)(at + done));
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return io_fail(s, "read", err);
        if (k == 0)
            return det_fail(err, DET_ENOENT, "%s ends at %llu", s->path,
                            (unsigned long long)(at + done));
        done += (size_t)k;
    }
    return 0;
}

static int write_at(const struct spool *s, const void *p, size_t n, uint64_t at,
                    struct det_err *err)
{
    size_t done = 0;
    while (done < n) {
        ssize_t k = pwrite(s->fd, (const char *)p + done, n - done, (off_t)(at + done));
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return io_fail(s, "write", err);
        done += (size_t)k;
    }
    return 0;
}

/* Reads the record at `at` into out; *ret_end is where it ends. DET_ENOENT: no whole record
 * there. */
static int read_record(const struct spool *s, uint64_t at, struct buf *out, uint64_t *ret_end,
                       struct det_err *err)
{
    struct frame f;
    int rc = read_at(s, &f, sizeof f, at, err);
    if (rc < 0)
        return rc;
    if (f.bytes < 4 || f.bytes > SPOOL_RECORD_MAX)
        return det_fail(err, DET_ENOENT, "%s: torn record", s->path);
    buf_clear(out);
    buf_reserve(out, f.bytes);
    rc = read_at(s, out->p, f.bytes, at + sizeof f, err);
    if (rc < 0)
        return rc;
    out->len = f.bytes;
    if (crc32c(0, out->p, f.bytes) != f.crc || out->p[f.bytes - 1] != 0)
        return det_fail(err, DET_ENOENT, "%s: torn record", s->path);
    *ret_end = at + sizeof f + f.bytes;
    return 0;
}

static int put_sent(struct spool *s, uint64_t sent, struct det_err *err)
{
    int rc = write_at(s, &sent, sizeof sent, 8, err);
    if (rc == 0)
        s->sent = sent;
    return rc;
}

static int begin_file(struct spool *s, struct det_err *err)
{
    uint64_t sent = HEADER_BYTES;
    if (ftruncate(s->fd, 0) < 0)
        return io_fail(s, "truncate", err);
    int rc = write_at(s, MAGIC, 8, 0, err);
    s->end = HEADER_BYTES;
    return rc < 0 ? rc : put_sent(s, sent, err);
}

/* Finds the end of the last whole record and cuts off what follows it. */
static int recover_file(struct spool *s, uint64_t size, struct det_err *err)
{
    char magic[8];
    uint64_t sent;
    int rc = read_at(s, magic, sizeof magic, 0, err);
    if (rc == 0)
        rc = read_at(s, &sent, sizeof sent, 8, err);
    if (rc < 0 || memcmp(magic, MAGIC, sizeof magic) != 0)
        return det_fail(err, DET_ECORRUPT, "%s is not a spool of reports", s->path);
    if (sent < HEADER_BYTES || sent > size) { /* a crash while shrinking: all was sent */
        sent = size;
        rc = put_sent(s, sent, err); /* or what is appended now would seem sent at the next open */
        if (rc < 0)
            return rc;
    }
    s->end = s->sent = sent;
    while (s->end < size && read_record(s, s->end, &s->current, &s->end, NULL) == 0)
        ;
    if (ftruncate(s->fd, (off_t)s->end) < 0)
        return io_fail(s, "truncate", err);
    return 0;
}

static int open_file(struct spool *s, const char *path, struct det_err *err)
{
    s->fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)
                 : memfd_create("reports", MFD_CLOEXEC);
    if (s->fd < 0)
        return io_fail(s, "open", err);
    if (flock(s->fd, LOCK_EX | LOCK_NB) < 0)
        return det_fail(err, DET_ESTATE, "%s is in use by another process", s->path);
    struct stat st;
    if (fstat(s->fd, &st) < 0)
        return io_fail(s, "stat", err);
    return st.st_size < HEADER_BYTES ? begin_file(s, err)
                                     : recover_file(s, (uint64_t)st.st_size, err);
}

int spool_open(const char *path, struct spool **ret, struct det_err *err)
{
    struct spool *s = det_zalloc(sizeof *s);
    s->path = det_strdup(path ? path : "(memory)");
    s->bytes_max = SPOOL_BYTES_MAX;
    pthread_mutex_init(&s->lock, NULL);
    int rc = open_file(s, path, err);
    if (rc < 0) {
        spool_close(s);
        return rc;
    }
    *ret = s;
    return 0;
}

void spool_close(struct spool *s)
{
    if (!s)
        return;
    det_closep(&s->fd);
    buf_finish(&s->current);
    pthread_mutex_destroy(&s->lock);
    free(s->path);
    free(s);
}

static void encode_record(const struct spool_record *r, struct buf *out)
{
    struct frame f = {0};
    buf_add(out, &f, sizeof f);
    const char *parts[] = {r->seq, r->method, r->path, r->body ? r->body : ""};
    for (size_t i = 0; i < DET_ARRAY_LEN(parts); i++)
        buf_add(out, parts[i], strlen(parts[i]) + 1);
    f.bytes = (uint32_t)(out->len - sizeof f);
    f.crc = crc32c(0, out->p + sizeof f, f.bytes);
    memcpy(out->p, &f, sizeof f);
}

int spool_append(struct spool *s, const struct spool_record *r, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    if (r->body && strlen(r->body) > SPOOL_RECORD_MAX - 4096)
        return det_fail(err, DET_ETOOBIG, "%s %s: a report of %zu bytes", r->method, r->path,
                        strlen(r->body));
    encode_record(r, &b);
    pthread_mutex_lock(&s->lock);
    int rc = FAILPOINT("spool.write") < 0 ? det_fail(err, DET_EIO, "write %s: a failpoint", s->path)
                                          : write_at(s, b.p, b.len, s->end, err);
    if (rc == 0)
        s->end += b.len;
    else if (ftruncate(s->fd, (off_t)s->end) < 0) /* half a record; the next append covers it */
        det_wrap(err, rc, "cut off");
    pthread_mutex_unlock(&s->lock);
    return rc;
}

static int split_record(const struct spool *s, struct spool_record *ret, struct det_err *err)
{
    const char **parts[] = {&ret->seq, &ret->method, &ret->path, &ret->body};
    const char *p = s->current.p, *end = s->current.p + s->current.len;
    for (size_t i = 0; i < DET_ARRAY_LEN(parts); i++) {
        if (p >= end)
            return det_fail(err, DET_ECORRUPT, "%s: a record without its four parts", s->path);
        *parts[i] = p;
        p += strlen(p) + 1;
    }
    return 0;
}

int spool_next(struct spool *s, struct spool_record *ret, struct det_err *err)
{
    pthread_mutex_lock(&s->lock);
    uint64_t at = s->sent, end = s->end;
    pthread_mutex_unlock(&s->lock);
    if (at >= end)
        return det_fail(err, DET_ENOENT, "%s: all was sent", s->path);
    int rc = read_record(s, at, &s->current, &s->next_end, err);
    return rc < 0 ? det_wrap(err, DET_ECORRUPT, "spool") : split_record(s, ret, err);
}

int spool_more(struct spool *s, struct spool_record *ret, struct det_err *err)
{
    pthread_mutex_lock(&s->lock);
    uint64_t at = s->next_end, end = s->end;
    pthread_mutex_unlock(&s->lock);
    if (at == 0 || at >= end)
        return det_fail(err, DET_ENOENT, "%s: no more is there", s->path);
    int rc = read_record(s, at, &s->current, &s->more_end, err);
    return rc < 0 ? det_wrap(err, DET_ECORRUPT, "spool") : split_record(s, ret, err);
}

void spool_take(struct spool *s)
{
    s->next_end = s->more_end;
}

int spool_sent(struct spool *s, struct det_err *err)
{
    pthread_mutex_lock(&s->lock);
    int rc = 0;
    if (s->next_end == s->end && (s->end > SHRINK_BYTES || s->end >= s->bytes_max)) {
        if (ftruncate(s->fd, HEADER_BYTES) < 0)
            rc = io_fail(s, "truncate", err);
        else
            s->end = s->next_end = HEADER_BYTES;
    }
    FAILPOINT("spool.before_sent");
    if (rc == 0 && s->next_end)
        rc = put_sent(s, s->next_end, err);
    s->next_end = 0;
    pthread_mutex_unlock(&s->lock);
    return rc;
}

void spool_limit(struct spool *s, uint64_t bytes)
{
    s->bytes_max = bytes;
}

bool spool_is_full(struct spool *s)
{
    pthread_mutex_lock(&s->lock);
    bool full = s->end > s->sent && s->end >= s->bytes_max;
    pthread_mutex_unlock(&s->lock);
    return full;
}

uint64_t spool_pending(struct spool *s)
{
    pthread_mutex_lock(&s->lock);
    uint64_t n = s->end - s->sent;
    pthread_mutex_unlock(&s->lock);
    return n;
}
