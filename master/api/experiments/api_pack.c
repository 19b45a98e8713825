#include "api_pack.h"
#include "tgz.h"
#include "b64.h"
#include "wire.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TYPE_FILE = '0', TYPE_DIR = '5' };

struct entry {
    const char *path, *content;
    int64_t type, mtime, mode;
};
#define E(member) offsetof(struct entry, member)
static const struct wire_field entry_fields[] = {
    {"path", WIRE_STR, E(path), WIRE_REQUIRED, NULL},
    {"content", WIRE_STR, E(content), 0, NULL},
    {"type", WIRE_I32, E(type), 0, NULL},
    {"mtime", WIRE_I64, E(mtime), 0, NULL},
    {"mode", WIRE_I64, E(mode), 0, NULL},
};

/* The path without trailing slashes, which directories come with. */
static char *bare_path(const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    return det_strndup(path, n);
}

static int entry_add(struct archive_writer *w, const struct entry *e, const char *path,
                     const struct buf *content, struct det_err *err)
{
    if (e->type != TYPE_FILE && e->type != TYPE_DIR)
        return det_fail(err, DET_EINVAL,
                        "%s: type %" PRId64 " is neither a file (48) nor a directory (53)", path,
                        e->type);
    struct archive_file f = {.path = path,
                             .is_dir = e->type == TYPE_DIR,
                             .mode = (uint32_t)e->mode & 0777,
                             .mtime_s = e->mtime,
                             .data = buf_str(content),
                             .len = content->len};
    return archive_writer_add(w, &f, err);
}

static int entry_pack(struct archive_writer *w, const json_t *j, const char *where, size_t *total,
                      struct det_err *err)
{
    struct entry e = {.content = "", .type = TYPE_FILE, .mode = 0644};
    struct buf content = BUF_INIT;
    int rc = wire_decode(j, where, entry_fields, DET_ARRAY_LEN(entry_fields), &e, err);
    if (rc < 0)
        return rc;
    det_cleanup(freep) char *path = bare_path(e.path);
    rc = archive_check_path(path, err);
    if (rc == 0)
        rc = b64_decode(&content, e.content, strlen(e.content), err);
    *total += content.len;
    if (rc == 0 && *total > PACK_CONTENT_MAX)
        rc = det_fail(err, DET_ETOOBIG,
                      "the files are larger than %zu MiB together; name what is not "
                      "needed in .detignore",
                      PACK_CONTENT_MAX >> 20);
    else if (rc == 0)
        rc = entry_add(w, &e, path, &content, err);
    buf_finish(&content);
    return rc < 0 ? det_wrap(err, rc, "%s (%.200s)", where, e.path) : 0;
}

int pack_entries(const json_t *entries, struct buf *out, struct det_err *err)
{
    struct archive_writer *w = archive_writer_create(out);
    size_t total = 0;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < json_array_size(entries); i++) {
        char where[64];
        snprintf(where, sizeof where, "modelDefinition[%zu]", i);
        rc = entry_pack(w, json_array_get(entries, i), where, &total, err);
    }
    int end = archive_writer_end(w, rc == 0 ? err : NULL);
    return rc < 0 ? rc : end;
}
