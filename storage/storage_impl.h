/* What the files of storage/ share; not for others. */
#ifndef STORAGE_IMPL_H
#define STORAGE_IMPL_H

#include "mem.h"
#include "storage.h"

struct storage {
    char *root;            /* absolute path, for messages and for storage_path() */
    int fd;                /* of the root; everything happens beneath it */
    char id[UUID_STR_MAX]; /* what its marker must say; "": nobody knows it */
};
DET_DEFINE_CLEANUP(struct storage *, storage_close)

/* The name of a begun checkpoint, and of one that is being deleted. */
#define STORAGE_TMP_SUFFIX  ".tmp"
#define STORAGE_DEL_SUFFIX  ".del"
#define STORAGE_GONE_SUFFIX ".gone" /* in quarantine; never swept */

DET_MUST int storage_check_uuid(const char *uuid, struct det_err *err);
/* The directory of a path, made where it is absent and then on the disk. fd or < 0. */
DET_MUST int storage_make_root(const char *place, struct det_err *err);
/* ".<uuid><suffix>"; caller frees. */
char *storage_hidden_name(const char *uuid, const char *suffix);
/* An errno of a call on a path, as a code with text: "<what> <path>: No space left on device". */
int storage_errno(const char *what, const char *root, const char *name, struct det_err *err);
/* fsyncs every file and directory beneath fd, then fd. `path` is for messages. */
DET_MUST int storage_sync_tree(int fd, const char *path, struct det_err *err);
/* {path: size} of all beneath fd, as storage_list(). New reference, or NULL. */
json_t *storage_files(int fd, struct det_err *err);

#endif
