/* File-system helpers; *at functions resolve beneath dirfd and never follow a link out of it
 * (openat2 RESOLVE_BENEATH). dirfd may be AT_FDCWD. */
#ifndef BASE_FSX_H
#define BASE_FSX_H

#include "buf.h"
#include "det/err.h"
#include <stdbool.h>
#include <sys/types.h>

DET_MUST int fsx_read_file(int dirfd, const char *path, size_t bytes_max, struct buf *out,
                           struct det_err *err);
/* From where fd stands to its end; `name` is for the error. */
DET_MUST int fsx_read_rest(int fd, const char *name, size_t bytes_max, struct buf *out,
                           struct det_err *err);
/* write to a temporary name, fsync, rename, fsync the directory. */
DET_MUST int fsx_write_atomic(int dirfd, const char *path, const void *p, size_t n, mode_t mode,
                              struct det_err *err);
/* mkdir -p. With AT_FDCWD each new name is on the disk when it returns; else path may not leave
 * dirfd. */
DET_MUST int fsx_mkdirs(int dirfd, const char *path, mode_t mode, struct det_err *err);
DET_MUST int fsx_open_dir(int dirfd, const char *path, struct det_err *err); /* fd or < 0 */
/* Removes path and everything below it without following links; absent is fine. */
DET_MUST int fsx_remove_tree(int dirfd, const char *path, struct det_err *err);
/* Whether path is there, beneath dirfd, without a link and within one mount: what may hang is not
 * looked at. Kernels without openat2: no. */
bool fsx_is_within(int dirfd, const char *path);
/* Beneath dirfd only; DET_EINVAL when the path would leave it. Returns fd or a negative code. */
DET_MUST int fsx_open_beneath(int dirfd, const char *path, int flags, mode_t mode,
                              struct det_err *err);
DET_MUST int fsx_write_all(int fd, const void *p, size_t n, struct det_err *err);
/* What is left of `in`, from where it stands, to where `out` stands: by copy_file_range(), which
 * shares blocks where the file system can, by hand where it cannot (between two of them). */
DET_MUST int fsx_copy_rest(int in, int out, struct det_err *err);
/* Calls fn for each file and directory below dirfd, depth first, sorted by name; path is relative,
 * directories end in '/' and come before what they hold; for one fn may return FSX_SKIP: it is not
 * entered. Links and special files are passed over. */
#define FSX_SKIP 1
typedef int walk_fn(void *arg, const char *path, bool is_dir, uint64_t bytes, struct det_err *err);
DET_MUST int fsx_walk(int dirfd, walk_fn *fn, void *arg, struct det_err *err);
/* Links and special files too, as files of no bytes; links are not followed. */
DET_MUST int fsx_walk_all(int dirfd, walk_fn *fn, void *arg, struct det_err *err);

#endif
