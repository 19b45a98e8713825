/*
 * tar.gz archives of a model context (libarchive). Every entry is checked: relative, no "..",
 * regular file or directory, total size bounded. Extraction happens beneath a directory descriptor.
 */
#ifndef BASE_TGZ_H
#define BASE_TGZ_H

#include "buf.h"
#include "det/err.h"
#include <stdbool.h>
#include <stdint.h>

struct archive_file {
    const char *path; /* relative, '/' separated */
    bool is_dir;
    uint32_t mode; /* permission bits; setuid, setgid and sticky are dropped */
    int64_t mtime_s;
    const void *data;
    size_t len;
};

/* DET_EINVAL with the reason if path is absolute, empty, or has "." or ".." parts. */
DET_MUST int archive_check_path(const char *path, struct det_err *err);

struct archive_writer;
/* A .tar.gz, appended to out. */
struct archive_writer *archive_writer_create(struct buf *out);
/* Or a .zip. As it is made, to sink, fast rather than small; what sink refuses (< 0) is an error of
 * the call that wrote. */
typedef int archive_sink(void *arg, const void *p, size_t n);
struct archive_writer *archive_writer_create_to(bool zip, archive_sink *sink, void *arg);
DET_MUST int archive_writer_add(struct archive_writer *w, const struct archive_file *f,
                                struct det_err *err);
/* The same of f->len bytes that fd has from where it stands, a piece at a time; fewer: DET_EIO. */
DET_MUST int archive_writer_add_fd(struct archive_writer *w, const struct archive_file *f, int fd,
                                   struct det_err *err);
DET_MUST int archive_writer_end(struct archive_writer *w, struct det_err *err); /* destroys w */

/* Calls fn for every entry, in order; data lives until fn returns. A non-zero fn result stops and
 * is returned. Unpacked size above bytes_max: DET_ETOOBIG. */
DET_MUST int archive_read(const void *tgz, size_t len, size_t bytes_max,
                          int (*fn)(void *arg, const struct archive_file *f, struct det_err *err),
                          void *arg, struct det_err *err);
/* Extracts everything beneath dirfd; existing files are replaced. */
DET_MUST int archive_extract(const void *tgz, size_t len, size_t bytes_max, int dirfd,
                             struct det_err *err);

#endif
