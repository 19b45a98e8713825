/*
 * Where each account's environments of Python lie under a root agent. The cache is open to all, who
 * know each other's numbers: whoever came first could take another's name. So these are in a folder
 * of root's, beneath the cache, and each account's is made for it.
 */
#ifndef PYCACHE_H
#define PYCACHE_H

#include "det/err.h"
#include <sys/types.h>

/* Makes cache/python, root's, which others pass through; the agent does before any task runs. cache
 * is there. DET_EPERM: something is there that is not root's alone. */
DET_MUST int pycache_prepare(const char *cache, struct det_err *err);
/* And in it uid's own, which nobody else reads. *ret: its path, the caller's to free. As root. */
DET_MUST int pycache_make(const char *cache, uid_t uid, gid_t gid, char **ret,
                          struct det_err *err);

#endif
