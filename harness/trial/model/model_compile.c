/* Compiles a model definition in C, once for each content. */
#include "fsx.h"
#include "mem.h"
#include "model.h"
#include "model_cc.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- where things are ---- */

/* A cache must be ours alone: what lies in it is loaded into the process. */
static bool usable_cache(const char *dir)
{
    struct stat st;
    if (fsx_mkdirs(AT_FDCWD, dir, 0700, NULL) < 0 || stat(dir, &st) < 0)
        return false;
    return S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022) &&
           access(dir, W_OK | X_OK) == 0;
}

/* Under a root agent each account's is made for it, in a folder that is root's (owncache.h). */
static char *made_for_us(const char *cache)
{
    char *dir = det_asprintf("%s/models/%u", cache, geteuid());
    if (access(dir, W_OK | X_OK) == 0)
        return dir;
    free(dir);
    return NULL;
}

static char *cache_dir(struct det_err *err)
{
    const char *own = getenv("DET_CACHE_DIR"), *xdg = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    char *tries[] = {
        own && *own == '/' ? made_for_us(own) : NULL,
        own && *own == '/' ? det_asprintf("%s/models-%u", own, geteuid()) : NULL,
        xdg && *xdg == '/' ? det_asprintf("%s/det", xdg) : NULL,
        home && *home == '/' ? det_asprintf("%s/.cache/det", home) : NULL,
        det_asprintf("/tmp/det-cache-%u", geteuid()),
    };
    char *found = NULL;
    for (size_t i = 0; i < DET_ARRAY_LEN(tries); i++) {
        if (!found && tries[i] && usable_cache(tries[i]))
            found = tries[i];
        else
            free(tries[i]);
    }
    if (!found)
        det_fail(err, DET_EIO,
                 "no directory for compiled models: none of DET_CACHE_DIR, XDG_CACHE_HOME, HOME "
                 "and /tmp can be used by user %u alone",
                 geteuid());
    return found;
}

/* ---- the cache ---- */

/* Held by its descriptor: a crash releases it. */
static int take_lock(const char *path, struct det_err *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return det_fail_errno(err, DET_EIO, errno, "open %s", path);
    while (flock(fd, LOCK_EX) < 0) {
        if (errno == EINTR)
            continue;
        close(fd);
        return det_fail_errno(err, DET_EIO, errno, "lock %s", path);
    }
    return fd;
}

static int compile_into(struct model_cc *cc, const char *so, const char *c_path,
                        struct det_err *err)
{
    det_cleanup(freep) char *lock_path = det_asprintf("%s.lock", so);
    det_cleanup(det_closep) int lock = take_lock(lock_path, err);
    if (lock < 0)
        return lock;
    if (access(so, R_OK) == 0)
        return 0; /* another rank was first */
    det_cleanup(freep) char *tmp = det_asprintf("%s.%ld.tmp", so, (long)getpid());
    int rc = model_cc_make(cc, c_path, tmp, err);
    if (rc == 0 && rename(tmp, so) < 0)
        rc = det_fail_errno(err, DET_EIO, errno, "rename %s", tmp);
    if (rc < 0)
        unlink(tmp);
    /* Those who wait for it hold the old file; whoever makes a new one finds the object, or
     * compiles it again under another name: nothing is ever half there. */
    unlink(lock_path);
    return rc;
}

int model_compile(const char *c_path, bool quiet, char **ret_so, struct det_err *err)
{
    char key[HASH_HEX_MAX];
    det_cleanup(model_cc_finish) struct model_cc cc;
    int rc = model_cc_init(&cc, quiet, err);
    det_cleanup(freep) char *cache = rc == 0 ? cache_dir(err) : NULL;
    if (!cache)
        return DET_ENOENT;
    if ((rc = model_cc_read(&cc, c_path, key, err)) < 0)
        return rc;
    det_cleanup(freep) char *so = det_asprintf("%s/%s.so", cache, key);
    if (access(so, R_OK) != 0 && (rc = compile_into(&cc, so, c_path, err)) < 0)
        return rc;
    *ret_so = det_take(so);
    return 0;
}
