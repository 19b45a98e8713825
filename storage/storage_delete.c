/* Taking checkpoints away: whole ones, parts of them, and what crashed writers left. */
#include "clk.h"
#include "failpoint.h"
#include "fsx.h"
#include "mem.h"
#include "storage.h"
#include "storage_impl.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int storage_delete(struct storage *s, const char *uuid, struct det_err *err)
{
    int rc = storage_abort(s, uuid, err);
    if (rc < 0)
        return rc;
    det_cleanup(freep) char *gone = storage_hidden_name(uuid, STORAGE_DEL_SUFFIX);
    /* What an earlier, interrupted delete left would make the rename fail. */
    if ((rc = fsx_remove_tree(s->fd, gone, err)) < 0)
        return det_wrap(err, rc, "in %s", s->root);
    FAILPOINT("storage.before_hide");
    if (renameat(s->fd, uuid, s->fd, gone) < 0)
        return errno == ENOENT ? 0 : storage_errno("delete checkpoint", s->root, uuid, err);
    if (fsync(s->fd) < 0)
        return storage_errno("fsync", s->root, "", err);
    FAILPOINT("storage.before_remove");
    rc = fsx_remove_tree(s->fd, gone, err);
    return rc < 0 ? det_wrap(err, rc, "delete checkpoint in %s", s->root) : 0;
}

struct doomed {
    const char *glob;
    json_t *files; /* array of paths */
};

static bool matches_glob(const char *glob, const char *path)
{
    while (fnmatch(glob, path, 0) != 0) {
        if (strncmp(glob, "**/", 3) != 0)
            return false;
        glob += 3;
    }
    return true;
}

static int collect_file(void *arg, const char *path, bool is_dir, uint64_t bytes,
                        struct det_err *err)
{
    struct doomed *d = arg;
    if (!is_dir && matches_glob(d->glob, path))
        json_array_append_new(d->files, json_string_nocheck(path));
    return 0;
}

int storage_delete_glob(struct storage *s, const char *uuid, const char *glob, struct det_err *err)
{
    int rc = storage_exists(s, uuid, err);
    if (rc < 0)
        return rc == DET_ENOENT ? 0 : rc;
    det_cleanup(det_closep) int fd = fsx_open_beneath(s->fd, uuid, O_RDONLY | O_DIRECTORY, 0, err);
    if (fd < 0)
        return fd;
    /* First gathered, so that the walk does not run over a directory that changes. */
    JSON_OWN files = json_array();
    struct doomed d = {.glob = glob, .files = files};
    if ((rc = fsx_walk(fd, collect_file, &d, err)) < 0)
        return rc;
    for (size_t i = 0; i < json_array_size(files); i++)
        if ((rc = fsx_remove_tree(fd, json_string_value(json_array_get(files, i)), err)) < 0)
            return det_wrap(err, rc, "checkpoint %s/%s", s->root, uuid);
    return 0;
}

static bool ends_in(const char *name, const char *suffix)
{
    size_t n = strlen(name), k = strlen(suffix);
    return n > k && strcmp(name + n - k, suffix) == 0;
}

static int sweep_entry(struct storage *s, const char *name, int64_t age_s, struct det_err *err)
{
    struct stat st;
    if (name[0] != '.' || !(ends_in(name, STORAGE_TMP_SUFFIX) || ends_in(name, STORAGE_DEL_SUFFIX)))
        return 0;
    if (fstatat(s->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : storage_errno("stat", s->root, name, err);
    if (!S_ISDIR(st.st_mode) || clk_wall_us() / 1000000 - st.st_mtime < age_s)
        return 0;
    int rc = fsx_remove_tree(s->fd, name, err);
    return rc < 0 ? det_wrap(err, rc, "sweep %s", s->root) : 0;
}

static void closedirp(DIR **d)
{
    if (*d)
        closedir(*d);
}

int storage_sweep(struct storage *s, int64_t age_s, struct det_err *err)
{
    int rc = storage_ready(s, err);
    if (rc < 0)
        return rc;
    int fd = openat(s->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return storage_errno("open", s->root, "", err);
    det_cleanup(closedirp) DIR *dir = fdopendir(fd);
    if (!dir) {
        close(fd);
        return storage_errno("open", s->root, "", err);
    }
    errno = 0;
    for (struct dirent *e; (e = readdir(dir)) != NULL; errno = 0)
        if ((rc = sweep_entry(s, e->d_name, age_s, err)) < 0)
            return rc;
    return errno ? storage_errno("read", s->root, "", err) : 0;
}
