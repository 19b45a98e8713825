/* What lies in a store, as far as its names tell: for whoever compares it with what is known. */
#include "fsx.h"
#include "mem.h"
#include "storage.h"
#include "storage_impl.h"
#include "uuid.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define METADATA_BYTES_MAX ((size_t)64 << 20)

static void closedirp(DIR **d)
{
    if (*d)
        closedir(*d);
}

/* 1: <root>/<path> is there, 0: it is not; else why that cannot be told. */
static int look_up(const struct storage *s, const char *path, struct stat *ret, struct det_err *err)
{
    if (fstatat(s->fd, path, ret, AT_SYMLINK_NOFOLLOW) == 0)
        return 1;
    return errno == ENOENT || errno == ENOTDIR ? 0 : storage_errno("stat", s->root, path, err);
}

/* A cluster's folder of TensorBoard files has a uuid for its name, too (loop_tensorboard.c). */
static int is_cluster(const struct storage *s, const char *name, struct det_err *err)
{
    struct stat st;
    det_cleanup(freep) char *board = det_asprintf("%s/tensorboard", name);
    det_cleanup(freep) char *metadata = det_asprintf("%s/metadata.json", name);
    int rc = look_up(s, board, &st, err);
    if (rc <= 0)
        return rc;
    rc = look_up(s, metadata, &st, err);
    return rc < 0 ? rc : !rc;
}

/* "<uuid>", or ".<uuid>.gone" of one in quarantine. Stores hold other things too: TensorBoard's. */
static bool is_checkpoint(const char *name, char uuid[UUID_STR_MAX], bool *ret_aside)
{
    size_t skip = name[0] == '.', n = strlen(name), tail = skip ? strlen(STORAGE_GONE_SUFFIX) : 0;
    if (n != skip + UUID_STR_MAX - 1 + tail ||
        (skip && strcmp(name + n - tail, STORAGE_GONE_SUFFIX) != 0))
        return false;
    memcpy(uuid, name + skip, UUID_STR_MAX - 1);
    uuid[UUID_STR_MAX - 1] = '\0';
    *ret_aside = skip;
    return uuid_is_valid(uuid);
}

/* What cannot be looked at is an error and not left out: half a list would call the rest gone. */
static int add_name(const struct storage *s, const char *name, json_t *out, struct det_err *err)
{
    struct stat st;
    char uuid[UUID_STR_MAX];
    bool aside;
    if (!is_checkpoint(name, uuid, &aside))
        return 0;
    int rc = look_up(s, name, &st, err);
    if (rc <= 0 || !S_ISDIR(st.st_mode))
        return rc < 0 ? rc : 0;
    rc = is_cluster(s, name, err);
    if (rc == 0)
        json_array_append_new(out, json_make("{s:s, s:b, s:I, s:I}", "uuid", uuid, "aside", aside,
                                             "modified", (json_int_t)st.st_mtime, "uid",
                                             (json_int_t)st.st_uid));
    return rc < 0 ? rc : 0;
}

json_t *storage_names(struct storage *s, struct det_err *err)
{
    if (storage_ready(s, err) < 0)
        return NULL;
    int fd = openat(s->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    det_cleanup(closedirp) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        storage_errno("open", s->root, "", err);
        det_closep(&fd);
        return NULL;
    }
    JSON_OWN out = json_array();
    errno = 0;
    for (struct dirent *e; (e = readdir(dir)) != NULL; errno = 0)
        if (add_name(s, e->d_name, out, err) < 0)
            return NULL;
    if (errno) {
        storage_errno("read", s->root, "", err);
        return NULL;
    }
    return det_take(out);
}

json_t *storage_describe(struct storage *s, const char *uuid, bool is_aside, struct det_err *err)
{
    det_cleanup(freep) char *gone = storage_hidden_name(uuid, STORAGE_GONE_SUFFIX);
    if (storage_check_uuid(uuid, err) < 0 || storage_ready(s, err) < 0)
        return NULL;
    det_cleanup(det_closep) int fd =
        fsx_open_beneath(s->fd, is_aside ? gone : uuid, O_RDONLY | O_DIRECTORY, 0, err);
    if (fd < 0)
        return NULL;
    JSON_OWN files = storage_files(fd, err);
    if (!files)
        return NULL;
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    JSON_OWN metadata = NULL; /* of another program there may be none */
    int rc = fsx_read_file(fd, "metadata.json", METADATA_BYTES_MAX, &b, err);
    if (rc < 0 &&
        rc != DET_ENOENT) { /* it says of which cluster this is: not known is not "ours" */
        det_wrap(err, rc, "checkpoint %s/%s", s->root, uuid);
        return NULL;
    }
    if (rc == 0)
        metadata = json_parse(buf_str(&b), b.len, NULL);
    return json_make("{s:O, s:O}", "resources", files, "metadata",
                     json_is_object(metadata) ? metadata : json_null());
}
