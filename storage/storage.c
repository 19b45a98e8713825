#include "storage.h"

#include "failpoint.h"
#include "fsx.h"
#include "mem.h"
#include "storage_impl.h"
#include "uuid.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int storage_errno(const char *what, const char *root, const char *name, struct det_err *err)
{
    int code = errno == ENOENT                     ? DET_ENOENT
               : errno == EACCES || errno == EPERM ? DET_EPERM
                                                   : DET_EIO;
    return det_fail(err, code, "%s %s/%s: %s", what, root, name, strerror(errno));
}

static int check_uuid(const char *uuid, struct det_err *err)
{
    static const char ok[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    size_t n = uuid ? strnlen(uuid, STORAGE_UUID_MAX + 1) : 0;
    if (n == 0 || n > STORAGE_UUID_MAX || strspn(uuid, ok) != n)
        return det_fail(err, DET_EINVAL,
                        "checkpoint uuid \"%.80s\": letters, digits, '-' and '_' only%s",
                        uuid ? uuid : "",
                        uuid && strchr(uuid, '/') ? ": the name of its folder, not a path" : "");
    return 0;
}

char *storage_hidden_name(const char *uuid, const char *suffix)
{
    return det_asprintf(".%s%s", uuid, suffix);
}

/* ---- opening ---- */

static bool has_dotdot(const char *path)
{
    for (const char *p = path; (p = strstr(p, "..")) != NULL; p += 2)
        if ((p == path || p[-1] == '/') && (p[2] == '\0' || p[2] == '/'))
            return true;
    return false;
}

/* host_path, or storage_path beneath it: relative, or absolute and below host_path. */
static int shared_fs_root(const json_t *config, char **ret, struct det_err *err)
{
    const char *host = json_str(config, "host_path", "");
    const char *sub = json_str(config, "storage_path", NULL);
    size_t n = strlen(host);
    if (*host != '/')
        return det_fail(err, DET_EINVAL,
                        "checkpoint_storage.host_path: an absolute path is needed, not \"%s\"",
                        host);
    while (n > 1 && host[n - 1] == '/')
        n--;
    if (sub && *sub == '/') {
        bool below = n == 1 || (strncmp(sub, host, n) == 0 && (sub[n] == '/' || !sub[n]));
        if (!below)
            return det_fail(err, DET_EINVAL,
                            "checkpoint_storage.storage_path: %s is not below host_path %s", sub,
                            host);
        *ret = det_strdup(sub);
    } else {
        *ret = sub && *sub ? det_asprintf("%.*s/%s", n == 1 ? 0 : (int)n, host, sub)
                           : det_strndup(host, n);
    }
    if (has_dotdot(*ret))
        return det_fail(err, DET_EINVAL, "checkpoint_storage: \"..\" is refused in %s", *ret);
    return 0;
}

static int directory_root(const json_t *config, char **ret, struct det_err *err)
{
    const char *path = json_str(config, "container_path", "");
    if (*path != '/' || has_dotdot(path))
        return det_fail(err, DET_EINVAL,
                        "checkpoint_storage.container_path: an absolute path without \"..\" is "
                        "needed, not \"%s\"",
                        path);
    *ret = det_strdup(path);
    return 0;
}

static int root_of(const json_t *config, char **ret, struct det_err *err)
{
    const char *type = json_str(config, "type", "");
    if (strcmp(type, "shared_fs") == 0)
        return shared_fs_root(config, ret, err);
    if (strcmp(type, "directory") == 0)
        return directory_root(config, ret, err);
    return det_fail(err, DET_EUNIMPL,
                    "checkpoint_storage.type: \"%s\" is not supported; use shared_fs or directory",
                    type);
}

int storage_open(const json_t *config, struct storage **ret, struct det_err *err)
{
    det_cleanup(freep) char *root = NULL;
    int rc = root_of(config, &root, err);
    if (rc < 0)
        return rc;
    if ((rc = fsx_mkdirs(AT_FDCWD, root, 0755, err)) < 0)
        return det_wrap(err, rc, "checkpoint_storage");
    int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return det_fail(err, DET_EIO, "checkpoint_storage: open %s: %s", root, strerror(errno));
    struct storage *s = det_zalloc(sizeof *s);
    s->root = det_take(root);
    s->fd = fd;
    *ret = s;
    return 0;
}

void storage_close(struct storage *s)
{
    if (!s)
        return;
    close(s->fd);
    free(s->root);
    free(s);
}

const char *storage_root(const struct storage *s)
{
    return s->root;
}

char *storage_path(const struct storage *s, const char *uuid)
{
    return check_uuid(uuid, NULL) < 0 ? NULL : det_asprintf("%s/%s", s->root, uuid);
}

int storage_exists(const struct storage *s, const char *uuid, struct det_err *err)
{
    struct stat st;
    int rc = check_uuid(uuid, err);
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
    int rc = check_uuid(uuid, err);
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
    int rc = check_uuid(uuid, err);
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
