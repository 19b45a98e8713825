#include "tgz.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <archive.h>
#include <archive_entry.h>
#include "fsx.h"
#include "mem.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void test_paths(void **state)
{
    static const char *const good[] = {"a", "a/b", "..a", "a..", ".hidden", "a/b/"};
    static const char *const bad[] = {"", "/a", "..", ".", "a/..", "a/../b", "./a", "a//b", "a/."};
    struct det_err err;
    for (size_t i = 0; i < DET_ARRAY_LEN(good); i++)
        assert_int_equal(archive_check_path(good[i], &err), 0);
    for (size_t i = 0; i < DET_ARRAY_LEN(bad); i++)
        assert_int_equal(archive_check_path(bad[i], &err), DET_EINVAL);
}

static void sample(struct buf *tgz)
{
    struct det_err err;
    struct archive_writer *w = archive_writer_create(tgz);
    const struct archive_file files[] = {
        {.path = "dir", .is_dir = true, .mode = 0755, .mtime_s = 1000},
        {.path = "dir/run.sh", .mode = 06755, .mtime_s = 2000, .data = "echo hi\n", .len = 8},
        {.path = "deep/er/empty", .mode = 0644, .mtime_s = 3000, .data = "", .len = 0},
    };
    for (size_t i = 0; i < DET_ARRAY_LEN(files); i++)
        assert_int_equal(archive_writer_add(w, &files[i], &err), 0);
    const struct archive_file bad = {.path = "../x", .data = "", .len = 0};
    assert_int_equal(archive_writer_add(w, &bad, &err), DET_EINVAL);
    assert_int_equal(archive_writer_end(w, &err), 0);
}

static int note_path(void *arg, const struct archive_file *f, struct det_err *err)
{
    buf_addf(arg, "%s;", f->path);
    return 0;
}

/* Whatever the locale: letters of any script, marks that turn the direction, what is no UTF-8. */
static void test_names(void **state)
{
    static const char *const names[] = {"donn\xc3\xa9"
                                        "es/\xe5\x90\x8d.csv",
                                        "\xe2\x80\xaegnp.exe", "\xff\xfe", "plain"};
    struct det_err err;
    det_cleanup(buf_finish) struct buf tgz = BUF_INIT, seen = BUF_INIT, wanted = BUF_INIT;
    struct archive_writer *w = archive_writer_create(&tgz);
    for (size_t i = 0; i < DET_ARRAY_LEN(names); i++) {
        const struct archive_file f = {.path = names[i], .mode = 0644, .data = "x", .len = 1};
        assert_int_equal(archive_writer_add(w, &f, &err), 0);
        buf_addf(&wanted, "%s;", names[i]);
    }
    assert_int_equal(archive_writer_end(w, &err), 0);
    assert_int_equal(archive_read(tgz.p, tgz.len, 100, note_path, &seen, &err), 0);
    assert_string_equal(buf_str(&seen), buf_str(&wanted));
}

/* At most so many bytes. */
struct small_sink {
    struct buf out;
    size_t room;
};

static int to_small_sink(void *arg, const void *p, size_t n)
{
    struct small_sink *s = arg;
    if (s->out.len + n > s->room)
        return -1;
    buf_add(&s->out, p, n);
    return 0;
}

static int see_zeros(void *arg, const struct archive_file *f, struct det_err *err)
{
    assert_string_equal(f->path, "zeros");
    for (size_t i = 0; i < f->len; i++)
        assert_int_equal(((const char *)f->data)[i], 0);
    *(size_t *)arg = f->len;
    return 0;
}

/* A file by its descriptor, to somebody who takes it as it comes, or no more of it. */
static void test_sink(void **state)
{
    struct det_err err;
    size_t seen = 0;
    det_cleanup(det_closep) int fd = memfd_create("zeros", MFD_CLOEXEC);
    assert_int_equal(ftruncate(fd, 300000), 0);
    struct archive_file f = {.path = "zeros", .mode = 0644, .len = 300000};
    struct small_sink s = {.room = 1 << 20};
    struct archive_writer *w = archive_writer_create_to(false, to_small_sink, &s);
    assert_int_equal(archive_writer_add_fd(w, &f, fd, &err), 0);
    assert_int_equal(archive_writer_add_fd(w, &f, fd, &err), DET_EIO); /* it is read already */
    assert_non_null(strstr(err.text, "shorter"));
    assert_true(archive_writer_end(w, NULL) <= 0);
    buf_clear(&s.out);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    w = archive_writer_create_to(false, to_small_sink, &s);
    assert_int_equal(archive_writer_add_fd(w, &f, fd, &err), 0);
    assert_int_equal(archive_writer_end(w, &err), 0);
    assert_int_equal(archive_read(s.out.p, s.out.len, 1 << 20, see_zeros, &seen, &err), 0);
    assert_int_equal(seen, 300000);
    s.room = 0;
    lseek(fd, 0, SEEK_SET);
    w = archive_writer_create_to(true, to_small_sink, &s);
    det_ignore(archive_writer_add_fd(w, &f, fd, &err), "the next line looks");
    assert_int_equal(archive_writer_end(w, &err), DET_EIO);
    buf_finish(&s.out);
}

static int note(void *arg, const struct archive_file *f, struct det_err *err)
{
    buf_addf(arg, "%s:%d:%o:%d:%.*s;", f->path, f->is_dir, f->mode, (int)f->mtime_s, (int)f->len,
             (const char *)f->data);
    return 0;
}

static void test_round_trip(void **state)
{
    struct det_err err;
    struct buf tgz = BUF_INIT, again = BUF_INIT, seen = BUF_INIT;
    sample(&tgz);
    sample(&again);
    assert_int_equal(tgz.len, again.len);
    assert_memory_equal(tgz.p, again.p, tgz.len);
    assert_int_equal(archive_read(tgz.p, tgz.len, 8, note, &seen, &err), 0);
    assert_string_equal(seen.p, "dir:1:755:1000:;dir/run.sh:0:755:2000:echo hi\n;"
                                "deep/er/empty:0:644:3000:;");
    assert_int_equal(archive_read(tgz.p, tgz.len, 7, note, &seen, &err), DET_ETOOBIG);
    for (size_t cut = 0; cut < tgz.len - 8; cut += 7)
        assert_true(archive_read(tgz.p, cut, 100, note, &seen, &err) <= 0);
    assert_int_equal(archive_read("rubbish", 7, 100, note, &seen, &err), DET_EINVAL);
    buf_finish(&tgz);
    buf_finish(&again);
    buf_finish(&seen);
}

struct hostile {
    const char *path, *hardlink, *symlink;
    mode_t type;
};

static la_ssize_t on_bytes(struct archive *a, void *arg, const void *p, size_t n)
{
    buf_add(arg, p, n);
    return (la_ssize_t)n;
}

/* What only an attacker writes, so the writer under test cannot. */
static void hostile_archive(struct buf *out, const struct hostile *h, size_t bytes)
{
    struct archive *a = archive_write_new();
    archive_write_add_filter_gzip(a);
    archive_write_set_format_pax(a);
    archive_write_open(a, out, NULL, on_bytes, NULL);
    struct archive_entry *e = archive_entry_new();
    archive_entry_set_pathname(e, h->path);
    archive_entry_set_filetype(e, h->type);
    archive_entry_set_perm(e, 0644);
    archive_entry_set_size(e, (la_int64_t)bytes);
    if (h->hardlink)
        archive_entry_set_hardlink(e, h->hardlink);
    if (h->symlink)
        archive_entry_set_symlink(e, h->symlink);
    archive_write_header(a, e);
    static char zeros[1 << 16];
    for (size_t left = bytes; left;) {
        size_t n = left < sizeof zeros ? left : sizeof zeros;
        archive_write_data(a, zeros, n);
        left -= n;
    }
    archive_entry_free(e);
    archive_write_free(a);
}

static void test_hostile(void **state)
{
    static const struct hostile cases[] = {
        {"../x", NULL, NULL, AE_IFREG},          {"/abs", NULL, NULL, AE_IFREG},
        {"a/../../x", NULL, NULL, AE_IFREG},     {"link", NULL, "/etc/passwd", AE_IFLNK},
        {"hard", "/etc/passwd", NULL, AE_IFREG}, {"fifo", NULL, NULL, AE_IFIFO},
        {"dev", NULL, NULL, AE_IFCHR},
    };
    struct det_err err;
    for (size_t i = 0; i < DET_ARRAY_LEN(cases); i++) {
        struct buf tgz = BUF_INIT, seen = BUF_INIT;
        hostile_archive(&tgz, &cases[i], 0);
        assert_int_equal(archive_read(tgz.p, tgz.len, 1000, note, &seen, &err), DET_EINVAL);
        assert_int_equal(seen.len, 0);
        buf_finish(&tgz);
        buf_finish(&seen);
    }
}

static void test_bomb(void **state)
{
    static const struct hostile zeros = {"zeros", NULL, NULL, AE_IFREG};
    struct det_err err;
    struct buf tgz = BUF_INIT, seen = BUF_INIT;
    hostile_archive(&tgz, &zeros, 64 << 20);
    assert_true(tgz.len < 1 << 20);
    assert_int_equal(archive_read(tgz.p, tgz.len, 1 << 20, note, &seen, &err), DET_ETOOBIG);
    buf_finish(&tgz);
    buf_finish(&seen);
}

static void test_extract(void **state)
{
    char root[] = "/tmp/test-archive-XXXXXX";
    struct det_err err;
    struct buf tgz = BUF_INIT, b = BUF_INIT;
    sample(&tgz);
    assert_non_null(mkdtemp(root));
    int top = open(root, O_RDONLY | O_DIRECTORY);
    assert_int_equal(fsx_mkdirs(top, "dir", 0755, &err), 0);
    assert_int_equal(fsx_write_atomic(top, "victim", "safe", 4, 0644, &err), 0);
    assert_int_equal(symlinkat("../victim", top, "dir/run.sh"), 0);
    assert_int_equal(archive_extract(tgz.p, tgz.len, 1000, top, &err), 0);
    assert_int_equal(fsx_read_file(top, "victim", 10, &b, &err), 0);
    assert_string_equal(b.p, "safe"); /* the link was replaced, not written through */
    struct stat st;
    assert_int_equal(fstatat(top, "dir/run.sh", &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_int_equal(st.st_mode, S_IFREG | 0755);
    assert_int_equal(st.st_mtime, 2000);
    assert_int_equal(symlinkat("/tmp", top, "deep2"), 0);
    assert_int_equal(unlinkat(top, "deep/er/empty", 0), 0);
    assert_int_equal(fsx_remove_tree(top, "deep", &err), 0);
    assert_int_equal(symlinkat("/tmp", top, "deep"), 0);
    assert_int_equal(archive_extract(tgz.p, tgz.len, 1000, top, &err), DET_EINVAL);
    assert_int_equal(access("/tmp/er/empty", F_OK), -1);
    close(top);
    assert_int_equal(fsx_remove_tree(AT_FDCWD, root, &err), 0);
    buf_finish(&tgz);
    buf_finish(&b);
}

/* General purpose bit 11 of a local header, whose name is `name`; -1: there is none. */
static int says_utf8(const struct buf *zip, const char *name)
{
    enum { HEADER = 30, FLAGS = 6, NAME_LEN = 26 };
    size_t n = strlen(name);
    for (size_t i = 0; i + HEADER + n <= zip->len; i++) {
        const unsigned char *p = (const unsigned char *)zip->p + i;
        if (memcmp(p, "PK\3\4", 4) == 0 && (size_t)(p[NAME_LEN] | p[NAME_LEN + 1] << 8) == n &&
            memcmp(p + HEADER, name, n) == 0)
            return (p[FLAGS] | p[FLAGS + 1] << 8) >> 11 & 1;
    }
    return -1;
}

/* Else other programs read them as an old PC's letters. */
static void a_zip_says_of_names_that_they_are_utf8(void **state)
{
    struct det_err err;
    struct small_sink s = {.room = 1 << 20};
    static const char *const names[] = {"plain",
                                        "gr\xc3\xb6\xc3\x9f"
                                        "e.pth",
                                        "\xe5\x90\x8d", "bytes\xff"};
    struct archive_writer *w = archive_writer_create_to(true, to_small_sink, &s);
    for (size_t i = 0; i < DET_ARRAY_LEN(names); i++) {
        struct archive_file f = {.path = names[i], .mode = 0644, .data = "x", .len = 1};
        assert_int_equal(archive_writer_add(w, &f, &err), 0);
    }
    assert_int_equal(archive_writer_end(w, &err), 0);
    assert_int_equal(says_utf8(&s.out, names[0]), 0);
    assert_int_equal(says_utf8(&s.out, names[1]), 1);
    assert_int_equal(says_utf8(&s.out, names[2]), 1);
    assert_int_equal(says_utf8(&s.out, names[3]), 0); /* it is none */
    buf_finish(&s.out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_zip_says_of_names_that_they_are_utf8),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_sink),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_bomb),
        cmocka_unit_test(test_extract),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
