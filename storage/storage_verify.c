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
static int put_name(json_t *object, const char *path, json_t *value, struct det_err *err)
{
    if (json_object_set_new(object, path, value) == 0)
        return 0;
    return det_fail(err, DET_EINVAL, "%s: the name of a checkpoint's file must be UTF-8", path);
}

static int hash_one(int dirfd, const char *path, enum hash_kind kind, char hex[HASH_HEX_MAX],
                    struct det_err *err)
{
    det_cleanup(det_closep) int fd = fsx_open_beneath(dirfd, path, O_RDONLY, 0, err);
    if (fd < 0)
        return fd;
    int rc = hash_fd(kind, fd, hex, err);
    return rc < 0 ? det_wrap(err, rc, "%s", path) : 0;
}

static int hash_entry(void *arg, const char *path, bool is_dir, uint64_t bytes, struct det_err *err)
{
    struct hashing *h = arg;
    char hex[HASH_HEX_MAX];
    if (is_dir || (h->skip && json_object_get(h->skip, path)))
        return 0;
    int rc = hash_one(h->fd, path, HASH_XXH128, hex, err);
    return rc < 0 ? rc : put_name(h->out, path, json_string(hex), err);
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

/* The keys of metadata.json. */
static const struct kind {
    const char *name;
    enum hash_kind kind;
} kinds[] = {{STORAGE_HASHES, HASH_XXH128}, {"sha256", HASH_SHA256}};

static int verify_one(int fd, const char *path, const struct kind *k, const json_t *want,
                      struct det_err *err)
{
    char hex[HASH_HEX_MAX];
    const char *text = json_string_value(want);
    if (!text)
        return det_fail(err, DET_ECORRUPT, "%s: its recorded %s is not a string", path, k->name);
    int rc = hash_one(fd, path, k->kind, hex, err);
    if (rc == DET_ENOENT)
        return det_fail(err, DET_ECORRUPT, "%s is missing", path);
    if (rc < 0)
        return rc;
    if (strcmp(hex, text) != 0)
        return det_fail(err, DET_ECORRUPT, "%s: its %s is %s, recorded was %.64s", path, k->name,
                        hex, text);
    return 0;
}

static int verify_kind(int fd, const struct kind *k, const json_t *hashes, struct det_err *err)
{
    const char *path;
    json_t *want;
    json_object_foreach((json_t *)hashes, path, want)
    {
        int rc = verify_one(fd, path, k, want, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int storage_verify_dir(const char *dir, const json_t *metadata, struct det_err *err)
{
    det_cleanup(det_closep) int fd = fsx_open_dir(AT_FDCWD, dir, err);
    if (fd < 0)
        return fd;
    for (size_t i = 0; i < DET_ARRAY_LEN(kinds); i++) {
        int rc = verify_kind(fd, &kinds[i], json_obj(metadata, kinds[i].name), err);
        if (rc < 0)
            return det_wrap(err, rc, "checkpoint %s", dir);
    }
    return 0;
}

static int list_entry(void *arg, const char *path, bool is_dir, uint64_t bytes, struct det_err *err)
{
    return put_name(arg, path, json_integer(is_dir ? 0 : (json_int_t)bytes), err);
}

json_t *storage_files(int fd, struct det_err *err)
{
    JSON_OWN out = json_object();
    return fsx_walk(fd, list_entry, out, err) < 0 ? NULL : det_take(out);
}

json_t *storage_list(struct storage *s, const char *uuid, struct det_err *err)
{
    if (storage_exists(s, uuid, err) < 0)
        return NULL;
    det_cleanup(det_closep) int fd = fsx_open_beneath(s->fd, uuid, O_RDONLY | O_DIRECTORY, 0, err);
    return fd < 0 ? NULL : storage_files(fd, err);
}
