#include "owncache.h"

#include "fsx.h"
#include "mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const folders[OWNCACHE_COUNT] = {"models", "python"};

/* Open; or < 0. */
static int folder_of_root(const char *cache, enum owncache of, struct det_err *err)
{
    struct stat st;
    det_cleanup(det_closep) int all = fsx_open_dir(AT_FDCWD, cache, err);
    if (all < 0)
        return all;
    if (mkdirat(all, folders[of], 0711) < 0 && errno != EEXIST)
        return det_fail_errno(err, DET_EIO, errno, "mkdir %s/%s", cache, folders[of]);
    int fd = openat(all, folders[of], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != 0 || (st.st_mode & 022) ||
        fchmod(fd, 0711) < 0) {
        det_closep(&fd);
        return det_fail(err, DET_EPERM, "%s/%s is no folder of root's alone; remove it", cache,
                        folders[of]);
    }
    return fd;
}

int owncache_prepare(const char *cache, struct det_err *err)
{
    int rc = 0;
    for (enum owncache of = 0; of < OWNCACHE_COUNT; of++) {
        det_cleanup(det_closep) int fd = folder_of_root(cache, of, rc < 0 ? NULL : err);
        rc = rc < 0 ? rc : fd < 0 ? fd : 0;
    }
    return rc;
}

int owncache_make(const char *cache, enum owncache of, uid_t uid, gid_t gid, char **ret,
                  struct det_err *err)
{
    char name[32];
    det_cleanup(det_closep) int fd = folder_of_root(cache, of, err);
    if (fd < 0)
        return fd;
    snprintf(name, sizeof name, "%u", uid);
    if ((mkdirat(fd, name, 0700) < 0 && errno != EEXIST) ||
        fchownat(fd, name, uid, gid, AT_SYMLINK_NOFOLLOW) < 0)
        return det_fail_errno(err, DET_EIO, errno, "mkdir %s/%s/%s", cache, folders[of], name);
    *ret = det_asprintf("%s/%s/%s", cache, folders[of], name);
    return 0;
}
