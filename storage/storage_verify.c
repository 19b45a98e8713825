/* Hashes and lists of a checkpoint's files. */
#include "fsx.h"
#include "hash.h"
#include "mem.h"
#include "storage.h"
#include "storage_impl.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct hashing {
    int fd;
    const json_t *skip;
    json_t *out;
};

/* Takes value. The names go into metadata.json and to the master, as JSON. */
static int put(json_t *object, const char *path, json_t *value, struct det_err *err)
{
    if (json_object_set_new(object, path, value) == 0)
        return 0;
    return det_fail(err, DET_EINVAL, "%s: the name of a checkpoint's file must be UTF-8", path);
}

static int hash_one(int dirfd, const char *path, char hex[HASH_HEX_MAX], struct det_err *err)
{
    det_cleanup(det_closep) int fd = fsx_open_beneath(dirfd, path, O_RDONLY, 0, err);
    if (fd < 0)
        return fd;
    int rc = hash_fd(HASH_SHA256, fd, hex, err);
    return rc < 0 ? det_wrap(err, rc, "%s", path) : 0;
}

static int hash_entry(void *arg, const char *path, bool is_dir, uint64_t bytes, struct det_err *err)
{
    struct hashing *h = arg;
    char hex[HASH_HEX_MAX];
    if (is_dir || (h->skip && json_object_get(h->skip, path)))
        return 0;
    int rc = hash_one(h->fd, path, hex, err);
    return rc < 0 ? rc : put(h->out, path, json_string(hex), err);
}

json_t *storage_hash_dir(const char *dir, const json_t *skip, struct det_err *err)
{
    det_cleanup(det_closep) int fd = fsx_open_dir(AT_FDCWD, dir, err);
    if (fd < 0)
        return NULL;
    JSON_OWN out = json_object();
    struct hashing h = {.fd = fd, .skip = skip, .out = out};
    int rc = fsx_walk(fd, hash_entry, &h, err);
    if (rc < 0) {
        det_wrap(err, rc, "hash %s", dir);
        return NULL;
    }
    return det_take(out);
}

static int verify_one(int fd, const char *path, const json_t *want, struct det_err *err)
{
    char hex[HASH_HEX_MAX];
    const char *text = json_string_value(want);
    if (!text)
        return det_fail(err, DET_ECORRUPT, "%s: its recorded sha256 is not a string", path);
    int rc = hash_one(fd, path, hex, err);
    if (rc == DET_ENOENT)
        return det_fail(err, DET_ECORRUPT, "%s is missing", path);
    if (rc < 0)
        return rc;
    if (strcmp(hex, text) != 0)
        return det_fail(err, DET_ECORRUPT, "%s: its sha256 is %s, recorded was %.64s", path, hex,
                        text);
    return 0;
}

int storage_verify_dir(const char *dir, const json_t *sha256, struct det_err *err)
{
    det_cleanup(det_closep) int fd = fsx_open_dir(AT_FDCWD, dir, err);
    if (fd < 0)
        return fd;
    const char *path;
    json_t *want;
    json_object_foreach((json_t *)sha256, path, want) {
        int rc = verify_one(fd, path, want, err);
        if (rc < 0)
            return det_wrap(err, rc, "checkpoint %s", dir);
    }
    return 0;
}

static int list_entry(void *arg, const char *path, bool is_dir, uint64_t bytes, struct det_err *err)
{
    return put(arg, path, json_integer(is_dir ? 0 : (json_int_t)bytes), err);
}

json_t *storage_list(const struct storage *s, const char *uuid, struct det_err *err)
{
    if (storage_exists(s, uuid, err) < 0)
        return NULL;
    det_cleanup(det_closep) int fd = fsx_open_beneath(s->fd, uuid, O_RDONLY | O_DIRECTORY, 0, err);
    if (fd < 0)
        return NULL;
    JSON_OWN out = json_object();
    return fsx_walk(fd, list_entry, out, err) < 0 ? NULL : det_take(out);
}
