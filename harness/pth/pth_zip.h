/* The zip container of torch.save: entries stored, never compressed, below one folder. */
#ifndef PTH_ZIP_H
#define PTH_ZIP_H

#include "buf.h"
#include "det/err.h"
#include <stdint.h>

/* Writing: entries are appended to a file; the directory goes last. */
struct zip_writer;
int zip_writer_create(const char *path, struct zip_writer **ret, struct det_err *err);
/* `data` is only read. The content starts at a multiple of 64 bytes, as torch's own does. */
int zip_writer_add(struct zip_writer *w, const char *name, const void *data, size_t n,
                   struct det_err *err);
int zip_writer_end(struct zip_writer *w, struct det_err *err); /* the directory; destroys w */
void zip_writer_destroy(struct zip_writer *w);                 /* without one; NULL ok */

/* Reading: over bytes in memory, borrowed. DET_ECORRUPT for anything that is not such a file. */
struct zip_entry {
    const char *name; /* not NUL-terminated */
    size_t name_len;
    const char *data;
    size_t size;
    uint32_t crc32;
};
struct zip_reader {
    struct zip_entry *v; /* sorted by name */
    size_t n;
};
int zip_reader_init(struct zip_reader *z, const void *bytes, size_t n, struct det_err *err);
void zip_reader_finish(struct zip_reader *z);
/* The entry `<folder>/<name>`, its checksum verified; DET_ENOENT if absent. */
int zip_reader_get(const struct zip_reader *z, const char *folder, size_t folder_len,
                   const char *name, const struct zip_entry **ret, struct det_err *err);

#endif
