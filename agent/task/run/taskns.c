#include "taskns.h"

#include "mem.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLACE "/run/determined"

static int refused(const char *what, struct det_err *err)
{
    return det_fail(err, DET_EPERM, "%s: %s", what, strerror(errno));
}

/* DIR/from as PLACE/to. */
static int show(const struct taskspec *s, const char *from, const char *to, struct det_err *err)
{
    det_cleanup(freep) char *source = det_asprintf("%s/%s", s->dir, from);
    if (mkdir(to, 0700) < 0 || mount(source, to, NULL, MS_BIND, NULL) < 0)
        return refused(to, err);
    return 0;
}

static int own_directory(const struct taskspec *s, struct det_err *err)
{
    det_cleanup(freep) char *options = det_asprintf("size=16m,mode=0700,uid=%u,gid=%u",
                                                    (unsigned)s->uid, (unsigned)s->gid);
    const char *users = PLACE "/pythonuserbase";
    if (mkdir(PLACE, 0755) < 0 && errno != EEXIST)
        return refused(PLACE, err);
    if (mount("tmpfs", PLACE, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0)
        return refused(PLACE, err);
    int rc = show(s, "info", PLACE "/info", err);
    if (rc == 0)
        rc = show(s, "work", PLACE "/workdir", err);
    if (rc == 0 && (mkdir(users, 0700) < 0 || chown(users, s->uid, s->gid) < 0))
        rc = refused(users, err);
    if (rc < 0)
        umount2(PLACE, MNT_DETACH);
    return rc;
}

/* The descriptor of the task's directory leads through the mounts of the namespace that was left:
 * getcwd() of who stands there finds no way up. The same directory by its path leads through
 * these. */
static int reopen_directory(struct taskspec *s, struct det_err *err)
{
    struct stat before, now;
    det_cleanup(det_closep) int fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &now) < 0 || fstat(s->dirfd, &before) < 0)
        return refused(s->dir, err);
    if (now.st_dev != before.st_dev || now.st_ino != before.st_ino)
        return det_fail(err, DET_ESTATE, "%s is another directory than at the start", s->dir);
    return dup3(fd, s->dirfd, O_CLOEXEC) < 0 ? refused(s->dir, err) : 0;
}

int taskns_enter(struct taskspec *s, struct det_err *err)
{
    if (geteuid() != 0)
        return det_fail(err, DET_EPERM, "the agent does not run as root");
    if (unshare(CLONE_NEWNS) < 0)
        return refused("unshare", err);
    int rc = reopen_directory(s, err); /* first, as mounts may be refused or cover its path */
    /* What the host mounts later is seen here too; what is mounted here is seen nowhere else. */
    if (rc == 0 && mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        rc = refused("mount --make-rslave /", err);
    return rc < 0 ? rc : own_directory(s, err);
}
