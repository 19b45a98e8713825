/* What the files of storage/ share; not for others. */
#ifndef STORAGE_IMPL_H
#define STORAGE_IMPL_H

#include "storage.h"

struct storage {
    char *root; /* absolute path, for messages and for storage_path() */
    int fd;     /* of the root; everything happens beneath it */
};

/* The name of a begun checkpoint, and of one that is being deleted. */
#define STORAGE_TMP_SUFFIX ".tmp"
#define STORAGE_DEL_SUFFIX ".del"
#define STORAGE_GONE_SUFFIX ".gone" /* in quarantine; never swept */

/* ".<uuid><suffix>"; caller frees. */
char *storage_hidden_name(const char *uuid, const char *suffix);
/* An errno of a call on a path, as a code with text: "<what> <path>: No space left on device". */
int storage_errno(const char *what, const char *root, const char *name, struct det_err *err);
/* fsyncs every file and directory beneath fd, then fd. `path` is for messages. */
int storage_sync_tree(int fd, const char *path, struct det_err *err);

#endif
