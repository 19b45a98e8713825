/* Who a store is: a file in its root that holds a random id. A root without it, or with another
 * one, is not the store: its file system is not mounted there, or another one is. */
#include "failpoint.h"
#include "fsx.h"
#include "mem.h"
#include "storage.h"
#include "storage_impl.h"
#include "storeplace.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define MARKER_BYTES_MAX 4096

/* 0 with the id; DET_ENOENT: there is none; DET_EPERM: it may not be read; else another code. */
static int read_marker(int fd, char id[UUID_STR_MAX], struct det_err *err)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    int rc = fsx_read_file(fd, STORAGE_MARKER, MARKER_BYTES_MAX, &b, err);
    if (rc < 0)
        return rc;
    JSON_OWN j = json_parse(buf_str(&b), b.len, err);
    const char *text = json_str(j, "id", "");
    if (!uuid_is_valid(text))
        return det_fail(err, DET_ECORRUPT, "%s holds no id of a store", STORAGE_MARKER);
    snprintf(id, UUID_STR_MAX, "%s", text);
    return 0;
}

/* ---- looking ---- */

static bool holds_checkpoint(int fd, const char *uuid)
{
    struct stat st;
    det_cleanup(freep) char *gone = storage_hidden_name(uuid, STORAGE_GONE_SUFFIX);
    return storage_check_uuid(uuid, NULL) == 0 &&
           (fstatat(fd, uuid, &st, AT_SYMLINK_NOFOLLOW) == 0 ||
            fstatat(fd, gone, &st, AT_SYMLINK_NOFOLLOW) == 0);
}

static bool holds_any(int fd, const json_t *known)
{
    for (size_t i = 0; i < json_array_size(known); i++)
        if (holds_checkpoint(fd, json_string_value(json_array_get(known, i))))
            return true;
    return false;
}

static void describe_sight(struct storage_seen *s, enum storage_sight sight, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void describe_sight(struct storage_seen *s, enum storage_sight sight, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(s->text, sizeof s->text, fmt, ap);
    va_end(ap);
    s->sight = sight;
}

/* Who may not look cannot tell: the task's account may be able to. */
static void on_error(struct storage_seen *s, int rc, const char *why)
{
    describe_sight(s, rc == DET_EPERM ? STORAGE_HIDDEN : STORAGE_ABSENT, "%s", why);
}

static void look_at(int fd, const char *place, const char *id, const json_t *known,
                    struct storage_seen *ret)
{
    struct det_err err = {0};
    int rc = read_marker(fd, ret->id, &err);
    if (rc == 0 && id && strcmp(id, ret->id) != 0)
        describe_sight(ret, STORAGE_OTHER, "%s/%s has the id %s: another store is mounted there",
                       place, STORAGE_MARKER, ret->id);
    else if (rc == 0)
        describe_sight(ret, STORAGE_PRESENT, "%s", "");
    else if (rc == DET_ENOENT && holds_any(fd, known))
        describe_sight(ret, STORAGE_KNOWN, "%s holds checkpoints, and no %s", place,
                       STORAGE_MARKER);
    else if (rc == DET_ENOENT)
        describe_sight(
            ret, STORAGE_ABSENT, "%s has no %s%s", place, STORAGE_MARKER,
            id ? ": its file system is not mounted there"
            : json_array_size(known)
                ? ", nor any of the checkpoints that should be there: its file system is not "
                  "mounted there"
                : "");
    else
        on_error(ret, rc, err.text);
}

/* A disk that failed is often mounted so by the kernel; nobody can train where nothing is kept. */
static bool is_read_only(int fd)
{
    struct statvfs v;
    return fstatvfs(fd, &v) == 0 && (v.f_flag & ST_RDONLY) != 0;
}

static int open_root(const char *place, struct det_err *err)
{
    int fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        return fd;
    return det_fail_errno(err, det_code_of_errno(errno), errno, "%s", place);
}

void storage_look(const char *place, const char *id, const json_t *known, struct storage_seen *ret)
{
    struct det_err err = {0};
    *ret = (struct storage_seen){0};
    det_cleanup(det_closep) int fd = open_root(place, &err);
    if (fd < 0)
        on_error(ret, fd, err.text);
    else
        look_at(fd, place, id, known, ret);
    if (ret->sight == STORAGE_PRESENT && is_read_only(fd))
        describe_sight(ret, STORAGE_ABSENT, "%s is mounted read-only there", place);
}

/* ---- making ---- */

int storage_make_root(const char *place, struct det_err *err)
{
    int rc = fsx_mkdirs(AT_FDCWD, place, 0755, err);
    return rc < 0 ? rc : open_root(place, err);
}

/* A link replaces nothing: of several that make one, all find the same. */
static int write_marker(int fd, const char *place, char id[UUID_STR_MAX], struct det_err *err)
{
    char name[64], text[128], own[UUID_STR_MAX];
    uuid_random(own);
    snprintf(name, sizeof name, "%s.%s.new", STORAGE_MARKER, own);
    int n = snprintf(text, sizeof text, "{\"version\": 1, \"id\": \"%s\"}\n", own);
    int rc = fsx_write_atomic(fd, name, text, (size_t)n, 0644, err);
    if (rc < 0)
        return det_wrap(err, rc, "in %s", place);
    FAILPOINT("storage.before_marker");
    if (linkat(fd, name, fd, STORAGE_MARKER, 0) < 0 && errno != EEXIST)
        rc = storage_errno("create", place, STORAGE_MARKER, err);
    if (unlinkat(fd, name, 0) < 0 && rc == 0)
        rc = storage_errno("remove", place, name, err);
    if (rc == 0 && fsync(fd) < 0)
        rc = storage_errno("fsync", place, "", err);
    return rc == 0 ? read_marker(fd, id, err) : rc;
}

int storage_make(const char *place, const json_t *known, char id[UUID_STR_MAX], struct det_err *err)
{
    bool is_first = json_array_size(known) == 0;
    det_cleanup(det_closep) int fd =
        is_first ? storage_make_root(place, err) : open_root(place, err);
    if (fd < 0)
        return fd;
    int rc = read_marker(fd, id, err);
    if (rc != DET_ENOENT)
        return rc < 0 ? det_wrap(err, rc, "%s", place) : 0;
    if (!is_first && !holds_any(fd, known))
        return det_fail(err, DET_ENOENT, "%s holds none of the checkpoints that should be there",
                        place);
    return write_marker(fd, place, id, err);
}

/* ---- being sure ---- */

static int fail_away(const char *place, const char *why, struct det_err *err)
{
    return det_fail(err, DET_EUNAVAIL,
                    "checkpoint store %s is away: %s; mount it there, or, where it was moved or "
                    "made anew on purpose: det store adopt %s",
                    place, why, place);
}

/* Opened by its path each time: what was mounted since is found there, what was put in its place
 * too. The descriptor follows. */
int storage_ready(struct storage *s, struct det_err *err)
{
    struct det_err e = {0};
    struct storage_seen seen = {0};
    struct stat now, then;
    if (!s->id[0])
        return 0;
    det_cleanup(det_closep) int fd = open_root(s->root, &e);
    if (fd < 0)
        on_error(&seen, fd, e.text);
    else
        look_at(fd, s->root, s->id, NULL, &seen);
    if (seen.sight == STORAGE_HIDDEN)
        return det_fail(err, DET_EPERM, "checkpoint_storage: %s", seen.text);
    if (seen.sight != STORAGE_PRESENT)
        return fail_away(s->root, seen.text, err);
    bool same = s->fd >= 0 && fstat(fd, &now) == 0 && fstat(s->fd, &then) == 0 &&
                now.st_dev == then.st_dev && now.st_ino == then.st_ino;
    if (s->fd < 0) {
        s->fd = fd;
        fd = -1;
    } else if (!same && dup3(fd, s->fd, O_CLOEXEC) < 0) {
        return storage_errno("open", s->root, "", err);
    }
    return 0;
}

int storage_writable(struct storage *s, struct det_err *err)
{
    int rc = storage_ready(s, err);
    if (rc < 0 || !s->id[0] || !is_read_only(s->fd))
        return rc;
    return det_fail(err, DET_EUNAVAIL,
                    "checkpoint store %s is mounted read-only: the kernel's log "
                    "(dmesg) says whether its disk has failed; mount it writable",
                    s->root);
}

void storage_note_away(const char *text)
{
    const char *dir = getenv("DET_RUN_DIR");
    det_cleanup(freep) char *path = dir ? det_asprintf("%s/%s", dir, STORAGE_AWAY_FILE) : NULL;
    if (path) /* where it cannot be written the end counts as any other failure */
        det_ignore(fsx_write_atomic(AT_FDCWD, path, text, strlen(text), 0644, NULL),
                   "only the reason's kind is lost: the trial's error stays");
}

/* ---- opening ---- */

int storage_open_store(const json_t *config, const char *id, struct storage **ret,
                       struct det_err *err)
{
    det_cleanup(freep) char *root = NULL;
    int rc = storeplace_of(config, &root, err);
    if (rc < 0)
        return rc;
    det_cleanup(storage_closep) struct storage *s = det_zalloc(sizeof *s);
    s->root = det_take(root);
    s->fd = -1;
    if (id && *id) {
        snprintf(s->id, sizeof s->id, "%s", id);
        rc = storage_ready(s, err);
    } else {
        s->fd = storage_make_root(s->root, err);
        rc = s->fd < 0 ? det_wrap(err, s->fd, "checkpoint_storage") : 0;
    }
    if (rc < 0)
        return rc;
    *ret = det_take(s);
    return 0;
}

int storage_open(const json_t *config, struct storage **ret, struct det_err *err)
{
    return storage_open_store(config, NULL, ret, err);
}
