/* Finds the entries of a stored zip. Every offset is checked against the file before it is used;
 * the local header of an entry is only needed for where its content starts. */
#include "mem.h"
#include "pth_zip.h"
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#define END_BYTES     22
#define CENTRAL_BYTES 46
#define LOCAL_BYTES   30
#define LOCATOR_BYTES 20
#define END64_BYTES   56
#define ZIP64_ID      1
#define COMMENT_MAX   65535

static uint32_t read_le16(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t read_le32(const uint8_t *p)
{
    return read_le16(p) | read_le16(p + 2) << 16;
}

static uint64_t read_le64(const uint8_t *p)
{
    return (uint64_t)read_le32(p) | (uint64_t)read_le32(p + 4) << 32;
}

static int fail_zip(struct det_err *err, const char *what)
{
    return det_fail(err, DET_ECORRUPT, "zip: %s", what);
}

static const uint8_t *find_end(const uint8_t *p, size_t n)
{
    size_t most = n < END_BYTES + COMMENT_MAX ? n : END_BYTES + COMMENT_MAX;
    for (size_t back = END_BYTES; back <= most; back++)
        if (memcmp(p + n - back, "PK\5\6", 4) == 0)
            return p + n - back;
    return NULL;
}

/* The content of an entry whose local header is at `at`. */
static int locate_content(const uint8_t *p, size_t n, size_t at, struct zip_entry *e,
                          struct det_err *err)
{
    if (at > n || n - at < LOCAL_BYTES || memcmp(p + at, "PK\3\4", 4) != 0)
        return fail_zip(err, "an entry's header is not where the directory says");
    size_t skip = LOCAL_BYTES + read_le16(p + at + 26) + read_le16(p + at + 28);
    if (skip > n - at || e->size > n - at - skip)
        return fail_zip(err, "an entry reaches past the end of the file");
    e->data = (const char *)p + at + skip;
    return 0;
}

/* The 64 bits in place of what the header has as all ones: size, size in the file, place, in the
 * order in which they stand in the zip64 field among the extra ones. */
static int read_zip64(const uint8_t *extra, size_t n, uint64_t *v[3], struct det_err *err)
{
    while (n >= 4 && read_le16(extra) != ZIP64_ID) {
        size_t bytes = 4 + read_le16(extra + 2);
        if (bytes > n)
            return fail_zip(err, "an entry's extra field is cut short");
        extra += bytes;
        n -= bytes;
    }
    size_t room = n >= 4 ? read_le16(extra + 2) : 0, used = 0;
    if (room + 4 > n && room > 0)
        return fail_zip(err, "an entry's extra field is cut short");
    for (int i = 0; i < 3; i++) {
        if (*v[i] != UINT32_MAX)
            continue;
        if (room - used < 8)
            return fail_zip(err, "an entry without the 64 bits of its size or place");
        *v[i] = read_le64(extra + 4 + used);
        used += 8;
    }
    return 0;
}

static int read_entry(const uint8_t *p, size_t n, const uint8_t *c, size_t room,
                      struct zip_entry *e, size_t *ret_bytes, struct det_err *err)
{
    if (room < CENTRAL_BYTES || memcmp(c, "PK\1\2", 4) != 0)
        return fail_zip(err, "its directory is damaged or cut short");
    uint64_t size = read_le32(c + 24), stored = read_le32(c + 20), at = read_le32(c + 42);
    *e = (struct zip_entry){.name_len = read_le16(c + 28), .crc32 = read_le32(c + 16)};
    size_t extra = read_le16(c + 30);
    *ret_bytes = CENTRAL_BYTES + e->name_len + extra + read_le16(c + 32);
    if (*ret_bytes > room)
        return fail_zip(err, "its directory is cut short");
    e->name = (const char *)c + CENTRAL_BYTES;
    int rc = read_zip64(c + CENTRAL_BYTES + e->name_len, extra, (uint64_t *[]){&size, &stored, &at},
                        err);
    if (rc < 0)
        return rc;
    if (read_le16(c + 10) != 0 || stored != size)
        return fail_zip(err, "a compressed entry: only files of torch.save can be read");
    if (read_le16(c + 8) & 1)
        return fail_zip(err, "an encrypted entry");
    e->size = size;
    return locate_content(p, n, at, e, err);
}

static int by_name(const void *a, const void *b)
{
    const struct zip_entry *x = a, *y = b;
    size_t n = x->name_len < y->name_len ? x->name_len : y->name_len;
    int order = memcmp(x->name, y->name, n);
    return order ? order : (x->name_len > y->name_len) - (x->name_len < y->name_len);
}

struct directory {
    uint64_t count, bytes, at;
};

/* A locator right before the end record says that there is a zip64 one. */
static int find_directory(const uint8_t *p, size_t n, const uint8_t *end, struct directory *ret,
                          struct det_err *err)
{
    *ret = (struct directory){read_le16(end + 10), read_le32(end + 12), read_le32(end + 16)};
    const uint8_t *locator = end - p >= LOCATOR_BYTES ? end - LOCATOR_BYTES : NULL;
    if (!locator || memcmp(locator, "PK\6\7", 4) != 0)
        return 0;
    uint64_t at = read_le64(locator + 8);
    if (at > n || n - at < END64_BYTES || memcmp(p + at, "PK\6\6", 4) != 0)
        return fail_zip(err, "its zip64 end is not where it should be");
    *ret =
        (struct directory){read_le64(p + at + 32), read_le64(p + at + 40), read_le64(p + at + 48)};
    return 0;
}

static int read_directory(struct zip_reader *z, const uint8_t *p, size_t n,
                          const struct directory *d, struct det_err *err)
{
    size_t count = d->count, bytes = d->bytes, at = d->at, used = 0;
    if (at > n || bytes > n - at || count > bytes / CENTRAL_BYTES)
        return fail_zip(err, "its directory is not within the file");
    z->v = det_alloc((count + 1) * sizeof *z->v);
    for (const uint8_t *c = p + at; z->n < count; c += used, bytes -= used) {
        int rc = read_entry(p, n, c, bytes, &z->v[z->n], &used, err);
        if (rc < 0)
            return rc;
        z->n++;
    }
    qsort(z->v, z->n, sizeof *z->v, by_name);
    for (size_t i = 1; i < z->n; i++)
        if (by_name(&z->v[i - 1], &z->v[i]) == 0)
            return fail_zip(err, "two entries of one name");
    return 0;
}

int zip_reader_init(struct zip_reader *z, const void *bytes, size_t n, struct det_err *err)
{
    *z = (struct zip_reader){0};
    const uint8_t *end = n >= END_BYTES ? find_end(bytes, n) : NULL;
    if (!end)
        return fail_zip(err,
                        "not a zip file, or cut short (files of torch before 1.6 are no zip: save "
                        "them again with a newer torch)");
    struct directory d;
    int rc = find_directory(bytes, n, end, &d, err);
    return rc < 0 ? rc : read_directory(z, bytes, n, &d, err);
}

void zip_reader_finish(struct zip_reader *z)
{
    free(z->v);
    *z = (struct zip_reader){0};
}

int zip_reader_get(const struct zip_reader *z, const char *folder, size_t folder_len,
                   const char *name, const struct zip_entry **ret, struct det_err *err)
{
    det_cleanup(freep) char *full = det_asprintf("%.*s/%s", (int)folder_len, folder, name);
    struct zip_entry key = {.name = full, .name_len = strlen(full)};
    struct zip_entry *e = z->n ? bsearch(&key, z->v, z->n, sizeof *z->v, by_name) : NULL;
    if (!e)
        return det_fail(err, DET_ENOENT, "zip: no entry %.200s", full);
    e->verified = e->verified || libdeflate_crc32(0, e->data, e->size) == e->crc32;
    if (!e->verified)
        return det_fail(err, DET_ECORRUPT, "zip: entry %.200s is damaged (its checksum differs)",
                        full);
    *ret = e;
    return 0;
}
