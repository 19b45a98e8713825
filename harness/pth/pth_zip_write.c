/* PKWARE's APPNOTE 6.3: local headers, central directory, end record; method 0 only. */
#include "fsx.h"
#include "mem.h"
#include "pth_zip.h"
#include "vec.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define ALIGN 64
#define LOCAL_BYTES 30
#define SIZE_LIMIT UINT32_MAX
/* Written in blocks of this size, at multiples of it, from aligned memory: the kernel copies fastest
 * then. The disk is set to work on them early, so that the publisher's fsync has less to wait for. */
#define BLOCK ((size_t)1 << 20)
#define EARLY ((off_t)8 << 20)

struct written {
    char *name;
    uint32_t crc, size, at;
};

struct zip_writer {
    char *path;
    int fd;
    uint64_t at;   /* bytes written, those of the block included */
    char *block;   /* the last at % BLOCK of them (or a whole one) are here */
    size_t filled;
    VEC(struct written) entries;
};

static void le16(struct buf *b, uint32_t v)
{
    const char p[2] = {(char)v, (char)(v >> 8)};
    buf_add(b, p, 2);
}

static void le32(struct buf *b, uint32_t v)
{
    le16(b, v & 0xffff);
    le16(b, v >> 16);
}

/* The fields that local and central headers share. The time is 1980-01-01: equal states, equal
 * bytes. */
static void put_common(struct buf *b, const struct written *e, size_t extra)
{
    le16(b, 10);     /* version needed: 1.0 */
    le16(b, 0x0800); /* names are UTF-8 */
    le16(b, 0);      /* stored */
    le16(b, 0);
    le16(b, 0x0021);
    le32(b, e->crc);
    le32(b, e->size);
    le32(b, e->size);
    le16(b, (uint32_t)strlen(e->name));
    le16(b, (uint32_t)extra);
}

int zip_writer_create(const char *path, struct zip_writer **ret, struct det_err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return det_fail(err, DET_EIO, "create %s: %s", path, strerror(errno));
    struct zip_writer *w = det_zalloc(sizeof *w);
    w->path = det_strdup(path);
    w->fd = fd;
    w->block = aligned_alloc(BLOCK, BLOCK);
    if (!w->block) {
        zip_writer_destroy(w);
        return det_fail(err, DET_ENOMEM, "write %s: no memory for a block", path);
    }
    *ret = w;
    return 0;
}

static int flush(struct zip_writer *w, struct det_err *err)
{
    int rc = fsx_write_all(w->fd, w->block, w->filled, err);
    if (rc < 0)
        return det_wrap(err, rc, "write %s", w->path);
    w->filled = 0;
    if ((off_t)w->at % EARLY == 0)
        sync_file_range(w->fd, (off_t)w->at - EARLY, EARLY, SYNC_FILE_RANGE_WRITE);
    return 0;
}

static int put(struct zip_writer *w, const void *p, size_t n, struct det_err *err)
{
    const char *from = p;
    int rc = 0;
    while (rc == 0 && n > 0) {
        size_t part = BLOCK - w->filled < n ? BLOCK - w->filled : n;
        memcpy(w->block + w->filled, from, part);
        w->filled += part;
        w->at += part;
        from += part;
        n -= part;
        if (w->filled == BLOCK)
            rc = flush(w, err);
    }
    return rc;
}

/* An extra field ("FB", as torch has it) that makes the content start aligned; at least 4 bytes. */
static void put_padding(struct buf *b, size_t extra)
{
    le16(b, 0x4246);
    le16(b, (uint32_t)extra - 4);
    for (size_t i = 4; i < extra; i++)
        buf_add_ch(b, 'Z');
}

int zip_writer_add(struct zip_writer *w, const char *name, const void *data, size_t n,
                   struct det_err *err)
{
    size_t head = LOCAL_BYTES + strlen(name) + 4;
    size_t extra = 4 + (ALIGN - (w->at + head) % ALIGN) % ALIGN;
    if (n > SIZE_LIMIT || w->at + head + ALIGN + n > SIZE_LIMIT)
        return det_fail(err, DET_ETOOBIG, "write %s: a state file above 4 GiB", w->path);
    struct written e = {.name = det_strdup(name), .size = (uint32_t)n, .at = (uint32_t)w->at};
    e.crc = (uint32_t)crc32_z(0, data, n);
    vec_push(&w->entries, e);
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    buf_add(&b, "PK\3\4", 4);
    put_common(&b, &e, extra);
    buf_add_str(&b, name);
    put_padding(&b, extra);
    int rc = put(w, b.p, b.len, err);
    return rc < 0 ? rc : put(w, data, n, err);
}

static void put_directory(struct buf *b, const struct zip_writer *w)
{
    for (size_t i = 0; i < w->entries.n; i++) {
        const struct written *e = &w->entries.v[i];
        buf_add(b, "PK\1\2", 4);
        le16(b, 10); /* made by: 1.0, MS-DOS */
        put_common(b, e, 0);
        le16(b, 0); /* comment */
        le16(b, 0); /* disk */
        le16(b, 0); /* internal attributes */
        le32(b, 0); /* external attributes */
        le32(b, e->at);
        buf_add_str(b, e->name);
    }
}

static int put_end(struct zip_writer *w, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    put_directory(&b, w);
    size_t bytes = b.len;
    if (w->entries.n > UINT16_MAX || w->at + bytes > SIZE_LIMIT)
        return det_fail(err, DET_ETOOBIG, "write %s: %zu tensors", w->path, w->entries.n);
    buf_add(&b, "PK\5\6\0\0\0\0", 8);
    le16(&b, (uint32_t)w->entries.n);
    le16(&b, (uint32_t)w->entries.n);
    le32(&b, (uint32_t)bytes);
    le32(&b, (uint32_t)w->at);
    le16(&b, 0);
    return put(w, b.p, b.len, err);
}

int zip_writer_end(struct zip_writer *w, struct det_err *err)
{
    int rc = put_end(w, err);
    if (rc == 0)
        rc = flush(w, err);
    if (rc == 0 && close(w->fd) < 0)
        rc = det_fail(err, DET_EIO, "close %s: %s", w->path, strerror(errno));
    if (rc == 0)
        w->fd = -1;
    zip_writer_destroy(w);
    return rc;
}

void zip_writer_destroy(struct zip_writer *w)
{
    if (!w)
        return;
    det_closep(&w->fd);
    for (size_t i = 0; i < w->entries.n; i++)
        free(w->entries.v[i].name);
    vec_free(&w->entries);
    free(w->block);
    free(w->path);
    free(w);
}
