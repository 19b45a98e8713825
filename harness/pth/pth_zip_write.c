/*
 * PKWARE's APPNOTE 6.3: local headers, central directory, end record; method 0 only; zip64 (its
 * 4.5.3, 4.3.14 and 4.3.15) for what 32 bits do not hold. As torch has it, an entry's checksum and
 * sizes follow its content (4.3.9): so the content is read once, and its writing need not wait for
 * a checksum of gigabytes.
 */
#include "mem.h"
#include "pth_blocks.h"
#include "pth_zip.h"
#include "vec.h"
#include <libdeflate.h>
#include <string.h>

#define ALIGN         64
#define LOCAL_BYTES   30
#define ZIP64_ID      1
#define VERSION_PLAIN 10
#define VERSION_ZIP64 45
#define FLAGS         0x0808              /* names are UTF-8; a descriptor follows the content */
#define PORTION       ((size_t)256 << 10) /* it stays in a core's cache between checksum and copy */

struct written {
    char *name;
    uint32_t crc;
    uint64_t size, at;
};

struct zip_writer {
    struct blocks *out;
    uint64_t zip64_from;
    VEC(struct written) entries;
};

static void add_le16(struct buf *b, uint32_t v)
{
    const char p[2] = {(char)v, (char)(v >> 8)};
    buf_add(b, p, 2);
}

static void add_le32(struct buf *b, uint32_t v)
{
    add_le16(b, v & 0xffff);
    add_le16(b, v >> 16);
}

static void add_le64(struct buf *b, uint64_t v)
{
    add_le32(b, (uint32_t)v);
    add_le32(b, (uint32_t)(v >> 32));
}

static bool is_big(const struct zip_writer *w, uint64_t v)
{
    return v >= w->zip64_from;
}

/* All ones say: see the zip64 field. */
static uint32_t or_ones(const struct zip_writer *w, uint64_t v)
{
    return is_big(w, v) ? UINT32_MAX : (uint32_t)v;
}

static uint32_t count_or_ones(const struct zip_writer *w, uint64_t n)
{
    return is_big(w, n) || n >= UINT16_MAX ? UINT16_MAX : (uint32_t)n;
}

/* The extra field of what the header itself cannot hold: the sizes, the place. */
static void put_zip64(struct buf *b, bool sizes, bool place, const struct written *e)
{
    if (!sizes && !place)
        return;
    add_le16(b, ZIP64_ID);
    add_le16(b, (sizes ? 16 : 0) + (place ? 8 : 0));
    if (sizes) {
        add_le64(b, e->size);
        add_le64(b, e->size);
    }
    if (place)
        add_le64(b, e->at);
}

/* The fields that local and central headers share. The time is 1980-01-01: equal states, equal
 * bytes. */
static void put_common(struct buf *b, const struct zip_writer *w, const struct written *e,
                       bool local, size_t extra)
{
    add_le16(b, is_big(w, e->size) || is_big(w, e->at) ? VERSION_ZIP64 : VERSION_PLAIN);
    add_le16(b, FLAGS);
    add_le16(b, 0); /* stored */
    add_le16(b, 0);
    add_le16(b, 0x0021);
    add_le32(b, local ? 0 : e->crc);
    add_le32(b, local && !is_big(w, e->size) ? 0 : or_ones(w, e->size));
    add_le32(b, local && !is_big(w, e->size) ? 0 : or_ones(w, e->size));
    add_le16(b, (uint32_t)strlen(e->name));
    add_le16(b, (uint32_t)extra);
}

int zip_writer_create(const char *path, const struct zip_writer_options *o, struct zip_writer **ret,
                      struct det_err *err)
{
    struct blocks *out;
    int rc = blocks_create(path, o->room, &out, err);
    if (rc < 0)
        return rc;
    struct zip_writer *w = det_zalloc(sizeof *w);
    w->out = out;
    w->zip64_from = o->zip64_from ? o->zip64_from : UINT32_MAX;
    *ret = w;
    return 0;
}

/* An extra field ("FB", as torch has it) that makes the content start aligned; at least 4 bytes. */
static void put_padding(struct buf *b, size_t bytes)
{
    add_le16(b, 0x4246);
    add_le16(b, (uint32_t)bytes - 4);
    for (size_t i = 4; i < bytes; i++)
        buf_add_ch(b, 'Z');
}

static int put_head(struct zip_writer *w, const struct written *e, struct det_err *err)
{
    const struct written unknown = {0};
    det_cleanup(buf_finish) struct buf zip64 = BUF_INIT, b = BUF_INIT;
    put_zip64(&zip64, is_big(w, e->size), false, &unknown);
    size_t head = LOCAL_BYTES + strlen(e->name) + zip64.len + 4;
    size_t padding = 4 + (ALIGN - (e->at + head) % ALIGN) % ALIGN;
    buf_add(&b, "PK\3\4", 4);
    put_common(&b, w, e, true, zip64.len + padding);
    buf_add_str(&b, e->name);
    buf_add(&b, zip64.p, zip64.len);
    put_padding(&b, padding);
    return blocks_put(w->out, b.p, b.len, err);
}

static int put_content(struct zip_writer *w, struct written *e, const char *data,
                       struct det_err *err)
{
    int rc = 0;
    for (uint64_t at = 0; rc == 0 && at < e->size; at += PORTION) {
        size_t n = e->size - at < PORTION ? e->size - at : PORTION;
        e->crc = libdeflate_crc32(e->crc, data + at, n);
        rc = blocks_put(w->out, data + at, n, err);
    }
    return rc;
}

static int put_descriptor(struct zip_writer *w, const struct written *e, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    buf_add(&b, "PK\7\10", 4);
    add_le32(&b, e->crc);
    for (int i = 0; i < 2; i++) { /* as it is stored, and as it was */
        if (is_big(w, e->size))
            add_le64(&b, e->size);
        else
            add_le32(&b, (uint32_t)e->size);
    }
    return blocks_put(w->out, b.p, b.len, err);
}

int zip_writer_add(struct zip_writer *w, const char *name, const void *data, size_t n,
                   struct det_err *err)
{
    vec_push(&w->entries,
             ((struct written){.name = det_strdup(name), .size = n, .at = blocks_at(w->out)}));
    struct written *e = &w->entries.v[w->entries.n - 1];
    int rc = put_head(w, e, err);
    if (rc == 0)
        rc = put_content(w, e, data, err);
    return rc < 0 ? rc : put_descriptor(w, e, err);
}

static void put_directory(struct buf *b, const struct zip_writer *w)
{
    for (size_t i = 0; i < w->entries.n; i++) {
        const struct written *e = &w->entries.v[i];
        det_cleanup(buf_finish) struct buf zip64 = BUF_INIT;
        put_zip64(&zip64, is_big(w, e->size), is_big(w, e->at), e);
        buf_add(b, "PK\1\2", 4);
        add_le16(b, VERSION_PLAIN); /* made by: MS-DOS */
        put_common(b, w, e, false, zip64.len);
        add_le16(b, 0); /* comment */
        add_le16(b, 0); /* disk */
        add_le16(b, 0); /* internal attributes */
        add_le32(b, 0); /* external attributes */
        add_le32(b, or_ones(w, e->at));
        buf_add_str(b, e->name);
        buf_add(b, zip64.p, zip64.len);
    }
}

/* The zip64 end record, and the locator that says where it is. */
static void put_zip64_end(struct buf *b, uint64_t count, uint64_t bytes, uint64_t at)
{
    buf_add(b, "PK\6\6", 4);
    add_le64(b, 44); /* what follows of the record */
    add_le16(b, VERSION_ZIP64);
    add_le16(b, VERSION_ZIP64);
    add_le64(b, 0); /* disks */
    add_le64(b, count);
    add_le64(b, count);
    add_le64(b, bytes);
    add_le64(b, at);
    buf_add(b, "PK\6\7\0\0\0\0", 8);
    add_le64(b, at + bytes);
    add_le32(b, 1); /* disks in all */
}

static int put_end(struct zip_writer *w, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    uint64_t at = blocks_at(w->out), count = w->entries.n;
    put_directory(&b, w);
    uint64_t bytes = b.len;
    if (is_big(w, at) || is_big(w, bytes) || count_or_ones(w, count) == UINT16_MAX)
        put_zip64_end(&b, count, bytes, at);
    buf_add(&b, "PK\5\6\0\0\0\0", 8);
    add_le16(&b, count_or_ones(w, count));
    add_le16(&b, count_or_ones(w, count));
    add_le32(&b, or_ones(w, bytes));
    add_le32(&b, or_ones(w, at));
    add_le16(&b, 0);
    return blocks_put(w->out, b.p, b.len, err);
}

int zip_writer_end(struct zip_writer *w, char *ret_hash, struct det_err *err)
{
    int rc = put_end(w, err);
    if (rc == 0)
        rc = blocks_end(det_take(w->out), ret_hash, err);
    zip_writer_destroy(w);
    return rc;
}

void zip_writer_destroy(struct zip_writer *w)
{
    if (!w)
        return;
    blocks_destroy(w->out);
    for (size_t i = 0; i < w->entries.n; i++)
        free(w->entries.v[i].name);
    vec_free(&w->entries);
    free(w);
}
