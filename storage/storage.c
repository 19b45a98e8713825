#include "storage.h"

#include "failpoint.h"
#include "fsx.h"
#include "mem.h"
#include "storage_impl.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *storage_root(const struct storage *s)
{
    return s->root;
}

char *storage_path(const struct storage *s, const char *uuid)
{
    return storage_check_uuid(uuid, NULL) < 0 ? NULL : det_asprintf("%s/%s", s->root, uuid);
}

/* That a store is there for uuid, and uuid one. */
static int check_place(struct storage *s, const char *uuid, struct det_err *err)
{
    int rc = storage_check_uuid(uuid, err);
    return rc < 0 ? rc : storage_ready(s, err);
}

int storage_exists(struct storage *s, const char *uuid, struct det_err *err)
{
    struct stat st;
    int rc = check_place(s, uuid, err);
    if (rc < 0)
        return rc;
    if (fstatat(s->fd, uuid, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return storage_errno("checkpoint", s->root, uuid, err);
    if (!S_ISDIR(st.st_mode))
        return det_fail(err, DET_ECORRUPT, "checkpoint %s/%s is not a directory", s->root, uuid);
    return 0;
}

int storage_get(struct storage *s, const char *uuid, char **ret_path, struct det_err *err)
{
    int rc = storage_exists(s, uuid, err);
    if (rc < 0)
        return rc;
    *ret_path = storage_path(s, uuid);
    return 0;
}

/* ---- writing ---- */

int storage_begin(struct storage *s, const char *uuid, char **ret_path, struct det_err *err)
{
    int rc = storage_exists(s, uuid, err);
    if (rc == 0)
        return det_fail(err, DET_EEXIST, "checkpoint %s/%s exists already", s->root, uuid);
    if (rc != DET_ENOENT)
        return rc;
    if ((rc = storage_abort(s, uuid, err)) < 0)
        return rc;
    det_cleanup(freep) char *name = storage_hidden_name(uuid, STORAGE_TMP_SUFFIX);
    if (mkdirat(s->fd, name, 0755) < 0)
        return storage_errno("create", s->root, name, err);
    *ret_path = det_asprintf("%s/%s", s->root, name);
    return 0;
}

/* NFS, CephFS and others take no flags; a plain rename replaces no directory that has files. */
static int rename_new(int dirfd, const char *from, const char *to)
{
    if (renameat2(dirfd, from, dirfd, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
        return -1;
    return renameat(dirfd, from, dirfd, to);
}

int storage_publish(struct storage *s, const char *uuid, struct det_err *err)
{
    int rc = check_place(s, uuid, err);
    if (rc < 0)
        return rc;
    det_cleanup(freep) char *name = storage_hidden_name(uuid, STORAGE_TMP_SUFFIX);
    det_cleanup(freep) char *path = det_asprintf("%s/%s", s->root, name);
    det_cleanup(det_closep) int fd = fsx_open_beneath(s->fd, name, O_RDONLY | O_DIRECTORY, 0, err);
    if (fd < 0)
        return det_wrap(err, fd, "publish checkpoint in %s", s->root);
    FAILPOINT("storage.before_fsync");
    if ((rc = storage_sync_tree(fd, path, err)) < 0)
        return det_wrap(err, rc, "publish checkpoint");
    FAILPOINT("storage.before_rename");
    if (rename_new(s->fd, name, uuid) < 0)
        return storage_errno("publish checkpoint", s->root, uuid, err);
    FAILPOINT("storage.before_dir_fsync");
    if (fsync(s->fd) < 0)
        return storage_errno("fsync", s->root, "", err);
    FAILPOINT("storage.after_publish");
    return 0;
}

int storage_abort(struct storage *s, const char *uuid, struct det_err *err)
{
    int rc = check_place(s, uuid, err);
    if (rc < 0)
        return rc;
    det_cleanup(freep) char *name = storage_hidden_name(uuid, STORAGE_TMP_SUFFIX);
    rc = fsx_remove_tree(s->fd, name, err);
    return rc < 0 ? det_wrap(err, rc, "in %s", s->root) : 0;
}

/* A disk without room has some for a directory still. No fsync, which may take long: file systems
 * of this host set the room aside at the write, those of others answer at the close. */
static int write_block(const char *dir, struct det_err *err)
{
    static const char block[4096] = {'\n'};
    det_cleanup(freep) char *path = det_asprintf("%s/written", dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return storage_errno("create", dir, "written", err);
    int rc = fsx_write_all(fd, block, sizeof block, err);
    if (rc < 0)
        det_wrap(err, rc, "%s", path);
    if (close(fd) < 0 && rc == 0)
        rc = storage_errno("close", dir, "written", err);
    return rc;
}

int storage_check(struct storage *s, struct det_err *err)
{
    char uuid[UUID_STR_MAX];
    det_cleanup(freep) char *path = NULL;
    uuid_random(uuid);
    int rc = storage_begin(s, uuid, &path, err);
    if (rc < 0)
        return rc;
    rc = write_block(path, err);
    int dropped = storage_abort(s, uuid, rc < 0 ? NULL : err);
    return rc < 0 ? rc : dropped;
}
