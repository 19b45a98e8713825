/*
 * What each account keeps in the cache under a root agent: its compiled models, its environments of
 * Python. The cache is open to all, who know each other's numbers: whoever came first could take
 * another's name. So these are in folders of root's, beneath the cache, and each account's is made
 * for it.
 */
#ifndef OWNCACHE_H
#define OWNCACHE_H

#include "det/err.h"
#include <sys/types.h>

enum owncache { OWNCACHE_MODELS, OWNCACHE_PYTHON, OWNCACHE_COUNT }; /* "models", "python" */

/* Makes cache/FOLDER of each, root's, which others pass through; the agent does before any task
 * runs. cache is there. DET_EPERM: something is there that is not root's alone. */
DET_MUST int owncache_prepare(const char *cache, struct det_err *err);
/* And in it uid's own, which nobody else reads. *ret: its path, the caller's to free. As root. */
DET_MUST int owncache_make(const char *cache, enum owncache of, uid_t uid, gid_t gid, char **ret,
                           struct det_err *err);

#endif
