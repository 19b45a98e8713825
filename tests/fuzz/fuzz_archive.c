/*
 * The archive of a model definition from any bytes: tar, gzipped or not. Each entry has a path that
 * stays within; all of them together are no larger than allowed; written again and read again they
 * are the same; and unpacking them changes nothing beside the directory that it is done in.
 */
#include "fsx.h"
#include "hash.h"
#include "mem.h"
#include "tgz.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BYTES_MAX = 64 << 10 };

static void require(bool ok)
{
    if (!ok)
        abort();
}

static void check_text(const struct det_err *err)
{
    require(err->code < 0 && *err->text && memchr(err->text, 0, sizeof err->text));
}

/* What an archive holds, as a text that two equal ones share. */
struct listing {
    struct buf text;
    size_t bytes;
    struct archive_writer *copy; /* NULL: none is made */
};

/* By itself, not by what it is to check. */
static bool stays_within(const char *path)
{
    bool climbs = strcmp(path, "..") == 0 || strncmp(path, "../", 3) == 0 || strstr(path, "/../");
    size_t n = strlen(path);
    return n > 0 && *path != '/' && !climbs && (n < 3 || strcmp(path + n - 3, "/..") != 0);
}

static int on_entry(void *arg, const struct archive_file *f, struct det_err *err)
{
    struct listing *l = arg;
    char hex[HASH_HEX_MAX];
    require(stays_within(f->path) && (f->mode & ~0777u) == 0);
    require(((const char *)f->data)[f->len] == 0);
    l->bytes += f->len;
    hash_bytes(HASH_SHA256, f->data, f->is_dir ? 0 : f->len, hex);
    buf_addf(&l->text, "%s %d %o %lld %s\n", f->path, f->is_dir, (unsigned)f->mode,
             (long long)f->mtime_s, hex);
    return l->copy ? archive_writer_add(l->copy, f, err) : 0;
}

/* 0 with the listing of an archive that was taken whole; *ret_copy: the same written again. */
static int list(const void *p, size_t n, struct listing *ret, struct buf *ret_copy)
{
    struct det_err err = {0};
    *ret = (struct listing){.copy = ret_copy ? archive_writer_create(ret_copy) : NULL};
    int rc = archive_read(p, n, BYTES_MAX, on_entry, ret, &err);
    if (ret->copy)
        det_ignore(archive_writer_end(ret->copy, NULL), "whatever it says, nothing breaks");
    if (rc < 0)
        check_text(&err);
    require(ret->bytes <= BYTES_MAX);
    return rc;
}

static void check_beside(int top)
{
    DIR *d = fdopendir(dup(top));
    require(d != NULL);
    rewinddir(d);
    for (struct dirent *e; (e = readdir(d));)
        require(strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
                strcmp(e->d_name, "in") == 0);
    closedir(d);
}

static void unpack(const void *p, size_t n)
{
    struct det_err err = {0};
    char path[] = "/tmp/det-fuzz-XXXXXX";
    require(mkdtemp(path) != NULL);
    int top = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    require(top >= 0 && mkdirat(top, "in", 0700) == 0);
    int in = openat(top, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (archive_extract(p, n, BYTES_MAX, in, &err) < 0)
        check_text(&err);
    check_beside(top);
    close(in);
    close(top);
    require(fsx_remove_tree(AT_FDCWD, path, NULL) == 0);
}

/* Files cost more than all else here: a disk sees one of eight inputs. */
static bool is_unpacked(const uint8_t *data, size_t size)
{
    unsigned sum = 0;
    for (size_t i = 0; i < size; i++)
        sum += data[i];
    return sum % 8 == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct listing first, again;
    struct buf copy = BUF_INIT;
    if (list(data, size, &first, &copy) == 0) {
        require(list(copy.p, copy.len, &again, NULL) == 0);
        require(strcmp(buf_str(&first.text), buf_str(&again.text)) == 0);
        buf_finish(&again.text);
    }
    if (first.text.len > 0 && is_unpacked(data, size))
        unpack(data, size);
    buf_finish(&first.text);
    buf_finish(&copy);
    return 0;
}
