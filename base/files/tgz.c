#include "tgz.h"

#include "fsx.h"
#include <archive.h>
#include <archive_entry.h>
#include "mem.h"
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_LEN_MAX 4096
#define PIECE_BYTES  65536
#define ENTRIES_MAX  200000 /* a gzip of empty files is tiny: a limit of bytes would not hold it */

int archive_check_path(const char *path, struct det_err *err)
{
    if (!*path)
        return det_fail(err, DET_EINVAL, "an archive entry has an empty path");
    if (strlen(path) > PATH_LEN_MAX)
        return det_fail(err, DET_EINVAL, "an archive entry has a path above %d bytes: %.60s...",
                        PATH_LEN_MAX, path);
    if (*path == '/')
        return det_fail(err, DET_EINVAL, "archive entry \"%s\": the path must be relative", path);
    for (const char *part = path; *part;) {
        size_t n = strcspn(part, "/");
        if ((n == 1 && part[0] == '.') || (n == 2 && part[0] == '.' && part[1] == '.'))
            return det_fail(err, DET_EINVAL,
                            "archive entry \"%s\": \".\" and \"..\" parts are refused", path);
        part += n;
        if (n == 0)
            return det_fail(err, DET_EINVAL, "archive entry \"%s\": an empty path part", path);
        part += *part == '/';
    }
    return 0;
}

/* ---- writing ---- */

struct archive_writer {
    struct archive *a;
    archive_sink *sink;
    void *arg;
    locale_t
        utf8; /* a ZIP archive's: it says of a name that it is UTF-8 where the locale is; 0: none */
};

static int to_buf(void *arg, const void *p, size_t n)
{
    buf_add(arg, p, n);
    return 0;
}

static la_ssize_t on_bytes(struct archive *a, void *arg, const void *p, size_t n)
{
    const struct archive_writer *w = arg;
    if (w->sink(w->arg, p, n) == 0)
        return (la_ssize_t)n;
    archive_set_error(a, ECANCELED, "whom it is for takes no more");
    return -1;
}

static struct archive_writer *writer_new(void)
{
    struct archive_writer *w = det_zalloc(sizeof *w);
    w->a = archive_write_new();
    if (!w->a)
        abort();
    return w;
}

static struct archive_writer *writer_open(struct archive_writer *w, archive_sink *sink, void *arg)
{
    w->sink = sink;
    w->arg = arg;
    archive_write_set_bytes_in_last_block(w->a, 1);
    if (archive_write_open(w->a, w, NULL, on_bytes, NULL) != ARCHIVE_OK)
        abort();
    return w;
}

static struct archive_writer *new_tgz(void)
{
    struct archive_writer *w = writer_new();
    if (archive_write_add_filter_gzip(w->a) != ARCHIVE_OK ||
        archive_write_set_format_pax_restricted(w->a) != ARCHIVE_OK)
        abort();
    /* Equal files make equal archives. */
    archive_write_set_filter_option(w->a, "gzip", "timestamp", NULL);
    return w;
}

static struct archive_writer *new_zip(void)
{
    struct archive_writer *w = writer_new();
    if (archive_write_set_format_zip(w->a) != ARCHIVE_OK)
        abort();
    w->utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    return w;
}

struct archive_writer *archive_writer_create(struct buf *out)
{
    return writer_open(new_tgz(), to_buf, out);
}

struct archive_writer *archive_writer_create_to(bool zip, archive_sink *sink, void *arg)
{
    struct archive_writer *w = zip ? new_zip() : new_tgz();
    if (zip)
        archive_write_set_format_option(w->a, "zip", "compression-level", "1");
    else
        archive_write_set_filter_option(w->a, "gzip", "compression-level", "1");
    return writer_open(w, sink, arg);
}

static struct archive_entry *entry_of(const struct archive_file *f)
{
    struct archive_entry *e = archive_entry_new();
    if (!e)
        abort();
    archive_entry_set_pathname(e, f->path);
    archive_entry_set_filetype(e, f->is_dir ? AE_IFDIR : AE_IFREG);
    archive_entry_set_perm(e, f->mode & 0777);
    archive_entry_set_mtime(e, f->mtime_s, 0);
    archive_entry_set_size(e, f->is_dir ? 0 : (la_int64_t)f->len);
    return e;
}

static int fail_archive(const struct archive_writer *w, const char *path, struct det_err *err)
{
    return det_fail(err, DET_EIO, "archive \"%s\": %s", path, archive_error_string(w->a));
}

/* In a locale of its own, if its name is of that: other programs take unmarked letters for those of
 * an old PC. */
static int write_header(struct archive_writer *w, struct archive_entry *e, const char *path)
{
    locale_t before = w->utf8 ? uselocale(w->utf8) : (locale_t)0;
    if (before && mbstowcs(NULL, path, 0) == (size_t)-1) {
        uselocale(before);
        before = (locale_t)0;
    }
    int ok = archive_write_header(w->a, e);
    if (before)
        uselocale(before);
    return ok;
}

static int add_header(struct archive_writer *w, const struct archive_file *f, struct det_err *err)
{
    int rc = archive_check_path(f->path, err);
    if (rc < 0)
        return rc;
    struct archive_entry *e = entry_of(f);
    int ok = write_header(w, e, f->path);
    archive_entry_free(e);
    /* A warning: the locale does not know the name's letters; it was written as bytes. */
    return ok == ARCHIVE_OK || ok == ARCHIVE_WARN ? 0 : fail_archive(w, f->path, err);
}

int archive_writer_add(struct archive_writer *w, const struct archive_file *f, struct det_err *err)
{
    int rc = add_header(w, f, err);
    if (rc < 0 || f->is_dir || f->len == 0)
        return rc;
    return archive_write_data(w->a, f->data, f->len) == (la_ssize_t)f->len
               ? 0
               : fail_archive(w, f->path, err);
}

int archive_writer_add_fd(struct archive_writer *w, const struct archive_file *f, int fd,
                          struct det_err *err)
{
    char piece[PIECE_BYTES];
    int rc = add_header(w, f, err);
    for (size_t left = f->len; rc == 0 && left > 0;) {
        ssize_t n = read(fd, piece, left < sizeof piece ? left : sizeof piece);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return det_fail(err, DET_EIO, "read %s: %s", f->path,
                            n < 0 ? strerror(errno) : "it is shorter than it was");
        if (archive_write_data(w->a, piece, (size_t)n) != n)
            rc = fail_archive(w, f->path, err);
        left -= (size_t)n;
    }
    return rc;
}

int archive_writer_end(struct archive_writer *w, struct det_err *err)
{
    int rc = 0;
    if (archive_write_close(w->a) != ARCHIVE_OK)
        rc = det_fail(err, DET_EIO, "archive: %s", archive_error_string(w->a));
    archive_write_free(w->a);
    if (w->utf8)
        freelocale(w->utf8);
    free(w);
    return rc;
}

/* ---- reading ---- */

struct reading {
    struct archive *a;
    size_t bytes_left;
    size_t entries;
    struct buf data;
};

static void reading_finish(struct reading *r)
{
    archive_read_free(r->a);
    buf_finish(&r->data);
}

static const char *archive_reason(struct archive *a)
{
    const char *s = archive_error_string(a);
    return s ? s : "unknown format";
}

/* The whole content of the entry at hand into r->data. */
static int read_data(struct reading *r, const char *path, struct det_err *err)
{
    char chunk[16384];
    buf_clear(&r->data);
    for (;;) {
        la_ssize_t n = archive_read_data(r->a, chunk, sizeof chunk);
        if (n == 0)
            return 0;
        if (n < 0)
            return det_fail(err, DET_EINVAL, "archive entry \"%s\": %s", path,
                            archive_reason(r->a));
        if ((size_t)n > r->bytes_left)
            return det_fail(err, DET_ETOOBIG, "archive: the unpacked files are too large at \"%s\"",
                            path);
        r->bytes_left -= (size_t)n;
        buf_add(&r->data, chunk, (size_t)n);
    }
}

/* The entry's path without a leading "./" and a trailing "/"; NULL for the root itself. */
static char *plain_path(const char *path)
{
    while (path[0] == '.' && path[1] == '/')
        path += 2;
    size_t n = strlen(path);
    if (n > 1 && path[n - 1] == '/')
        n--;
    if (n == 0 || (n == 1 && path[0] == '.'))
        return NULL;
    return det_strndup(path, n);
}

static int check_kind(struct archive_entry *e, const char *path, struct det_err *err)
{
    mode_t type = archive_entry_filetype(e);
    if ((type == AE_IFREG || type == AE_IFDIR) && !archive_entry_hardlink(e))
        return 0;
    return det_fail(err, DET_EINVAL,
                    "archive entry \"%s\": only files and directories are accepted, no links",
                    path);
}

typedef int archive_fn(void *arg, const struct archive_file *f, struct det_err *err);

static int one_entry(struct reading *r, struct archive_entry *e, archive_fn *fn, void *arg,
                     struct det_err *err)
{
    const char *raw = archive_entry_pathname(e);
    if (!raw || !*raw)
        return det_fail(err, DET_EINVAL, "an archive entry has no readable path");
    if (++r->entries > ENTRIES_MAX)
        return det_fail(err, DET_ETOOBIG, "archive: more than %d entries", ENTRIES_MAX);
    det_cleanup(freep) char *path = plain_path(raw);
    if (!path)
        return 0;
    int rc = archive_check_path(path, err);
    if (rc == 0)
        rc = check_kind(e, path, err);
    if (rc == 0)
        rc = read_data(r, path, err);
    if (rc < 0)
        return rc;
    struct archive_file f = {
        .path = path,
        .is_dir = archive_entry_filetype(e) == AE_IFDIR,
        .mode = archive_entry_perm(e) & 0777,
        .mtime_s = archive_entry_mtime(e),
        .data = buf_str(&r->data),
        .len = r->data.len,
    };
    return fn(arg, &f, err);
}

int archive_read(const void *tgz, size_t len, size_t bytes_max, archive_fn *fn, void *arg,
                 struct det_err *err)
{
    det_cleanup(reading_finish) struct reading r = {.bytes_left = bytes_max};
    r.a = archive_read_new();
    if (!r.a)
        abort();
    archive_read_support_filter_gzip(r.a);
    archive_read_support_format_tar(r.a);
    if (archive_read_open_memory(r.a, tgz, len) != ARCHIVE_OK)
        return det_fail(err, DET_EINVAL, "not a .tar.gz archive: %s", archive_reason(r.a));
    for (;;) {
        struct archive_entry *e;
        int ok = archive_read_next_header(r.a, &e);
        if (ok == ARCHIVE_EOF)
            return 0;
        /* A warning is about a name's character set: the path checks decide. */
        if (ok != ARCHIVE_OK && ok != ARCHIVE_WARN)
            return det_fail(err, DET_EINVAL, "not a .tar.gz archive: %s", archive_reason(r.a));
        int rc = one_entry(&r, e, fn, arg, err);
        if (rc != 0)
            return rc;
    }
}

/* ---- extracting ---- */

/* Creates the file anew: what stood there, a link too, is unlinked and never written through. */
static int create_file(int parent, const char *name, const struct archive_file *f,
                       struct det_err *err)
{
    if (unlinkat(parent, name, 0) < 0 && errno != ENOENT)
        return det_fail_errno(err, DET_EIO, errno, "replace %s", f->path);
    det_cleanup(det_closep) int fd =
        openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return det_fail_errno(err, DET_EIO, errno, "create %s", f->path);
    int rc = fsx_write_all(fd, f->data, f->len, err);
    if (rc < 0)
        return det_wrap(err, rc, "write %s", f->path);
    struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_sec = f->mtime_s}};
    if (fchmod(fd, f->mode & 0777) < 0 || futimens(fd, times) < 0)
        return det_fail_errno(err, DET_EIO, errno, "attributes of %s", f->path);
    return 0;
}

static int extract_one(void *arg, const struct archive_file *f, struct det_err *err)
{
    int dirfd = *(int *)arg;
    if (f->is_dir)
        return fsx_mkdirs(dirfd, f->path, (f->mode & 0777) | 0700, err);
    const char *slash = strrchr(f->path, '/');
    if (!slash)
        return create_file(dirfd, f->path, f, err);
    det_cleanup(freep) char *dir = det_strndup(f->path, (size_t)(slash - f->path));
    int rc = fsx_mkdirs(dirfd, dir, 0755, err);
    if (rc < 0)
        return rc;
    det_cleanup(det_closep) int parent = fsx_open_beneath(dirfd, dir, O_PATH | O_DIRECTORY, 0, err);
    if (parent < 0)
        return parent;
    return create_file(parent, slash + 1, f, err);
}

int archive_extract(const void *tgz, size_t len, size_t bytes_max, int dirfd, struct det_err *err)
{
    return archive_read(tgz, len, bytes_max, extract_one, &dirfd, err);
}
