/* The zip container of torch.save: entries stored, never compressed, below one folder. */
#ifndef PTH_ZIP_H
#define PTH_ZIP_H

#include "buf.h"
#include "det/err.h"
#include <stdbool.h>
#include <stdint.h>

/* Writing: entries are appended to a file; the directory goes last. Sizes and places of 4 GiB and
 * more, and more than 65,534 entries, are written as zip64 has them. */
struct zip_writer;
struct zip_writer_options {
    void *room;          /* as pth_save_hashed() has it */
    uint64_t zip64_from; /* sizes, places and counts from here on need zip64; 0: where they do */
};
DET_MUST int zip_writer_create(const char *path, const struct zip_writer_options *o,
                               struct zip_writer **ret, struct det_err *err);
/* `data` is only read. The content starts at a multiple of 64 bytes, as torch's own does. */
DET_MUST int zip_writer_add(struct zip_writer *w, const char *name, const void *data, size_t n,
                            struct det_err *err);
/* The directory; destroys w. ret_hash: as pth_save_hashed() has it. */
DET_MUST int zip_writer_end(struct zip_writer *w, char *ret_hash, struct det_err *err);
void zip_writer_destroy(struct zip_writer *w); /* without a directory; NULL ok */

/* Reading: over bytes in memory, borrowed. DET_ECORRUPT for anything that is not such a file. */
struct zip_entry {
    const char *name; /* not NUL-terminated */
    size_t name_len;
    const char *data;
    size_t size;
    uint32_t crc32;
    bool verified; /* a large storage may be asked for by many tensors */
};
struct zip_reader {
    struct zip_entry *v; /* sorted by name */
    size_t n;
};
DET_MUST int zip_reader_init(struct zip_reader *z, const void *bytes, size_t n,
                             struct det_err *err);
void zip_reader_finish(struct zip_reader *z);
/* The entry `<folder>/<name>`, its checksum verified the first time; DET_ENOENT if absent. */
DET_MUST int zip_reader_get(const struct zip_reader *z, const char *folder, size_t folder_len,
                            const char *name, const struct zip_entry **ret, struct det_err *err);

#endif
