#include "fsx.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "mem.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];
static int top = -1;

static int make_root(void **state)
{
    snprintf(root, sizeof root, "/tmp/test-fsx-XXXXXX");
    if (!mkdtemp(root))
        return -1;
    top = open(root, O_RDONLY | O_DIRECTORY);
    return 0;
}

static int remove_root(void **state)
{
    close(top);
    struct det_err err;
    int rc = fsx_remove_tree(AT_FDCWD, root, &err);
    return rc == 0 && access(root, F_OK) < 0 ? 0 : -1;
}

static void test_files(void **state)
{
    struct det_err err;
    struct buf b = BUF_INIT;
    assert_int_equal(fsx_mkdirs(top, "a/b//c/", 0755, &err), 0);
    assert_int_equal(fsx_write_atomic(top, "a/b/f", "hello", 5, 0600, &err), 0);
    assert_int_equal(fsx_write_atomic(top, "a/b/f", "again", 5, 0640, &err), 0);
    struct stat st;
    assert_int_equal(fstatat(top, "a/b/f", &st, 0), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(fsx_read_file(top, "a/b/f", 5, &b, &err), 0);
    assert_string_equal(b.p, "again");
    assert_int_equal(fsx_read_file(top, "a/b/f", 4, &b, &err), DET_ETOOBIG);
    assert_int_equal(fsx_read_file(top, "none", 4, &b, &err), DET_ENOENT);
    assert_int_equal(fsx_read_file(AT_FDCWD, "/proc/self/comm", 100, &b, &err), 0);
    det_cleanup(freep) char *abs = det_asprintf("%s/x/y", root);
    assert_int_equal(fsx_mkdirs(AT_FDCWD, abs, 0755, &err), 0);
    int fd = fsx_open_dir(top, "x/y", &err);
    assert_true(fd >= 0);
    close(fd);
    buf_finish(&b);
}

static void test_beneath(void **state)
{
    struct det_err err;
    struct buf b = BUF_INIT;
    assert_int_equal(symlinkat("/etc", top, "out"), 0);
    assert_int_equal(symlinkat("../../etc", top, "up"), 0);
    static const char *const paths[] = {"../x", "/etc/passwd", "out/passwd", "up/passwd"};
    for (size_t i = 0; i < DET_ARRAY_LEN(paths); i++) {
        assert_int_equal(fsx_open_beneath(top, paths[i], O_RDONLY, 0, &err), DET_EINVAL);
        assert_int_equal(fsx_read_file(top, paths[i], 100000, &b, &err), DET_EINVAL);
        assert_int_equal(fsx_write_atomic(top, paths[i], "x", 1, 0600, &err), DET_EINVAL);
        assert_true(fsx_mkdirs(top, paths[i], 0755, &err) < 0);
    }
    assert_int_equal(fsx_mkdirs(top, "out", 0755, &err), DET_EINVAL);
    buf_finish(&b);
}

/* Behind a link, and on another mount, may be what hangs. */
static void test_within(void **state)
{
    assert_int_equal(mkdirat(top, "in", 0700) | mkdirat(top, "in/dir", 0700), 0);
    assert_int_equal(symlinkat("dir", top, "in/link"), 0);
    assert_true(fsx_is_within(top, "in/dir"));
    assert_false(fsx_is_within(top, "in/none"));
    assert_false(fsx_is_within(top, "in/link"));
    assert_false(fsx_is_within(top, "in/link/."));
    assert_false(fsx_is_within(top, "../"));
    det_cleanup(det_closep) int host = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(host >= 0);
    assert_false(fsx_is_within(host, "proc/sys"));
}

static void test_remove_keeps_targets(void **state)
{
    struct det_err err;
    assert_int_equal(fsx_mkdirs(top, "keep", 0755, &err), 0);
    assert_int_equal(fsx_write_atomic(top, "keep/f", "x", 1, 0600, &err), 0);
    assert_int_equal(fsx_mkdirs(top, "gone/sub", 0755, &err), 0);
    assert_int_equal(symlinkat("../keep", top, "gone/link"), 0);
    assert_int_equal(fchmodat(top, "gone/sub", 0, 0), 0);
    assert_int_equal(fsx_remove_tree(top, "gone/", &err), 0);
    assert_int_equal(faccessat(top, "gone", F_OK, 0), -1);
    assert_int_equal(faccessat(top, "keep/f", F_OK, 0), 0);
    assert_int_equal(fsx_remove_tree(top, "gone", &err), 0);
    assert_int_equal(fsx_remove_tree(top, "no/such/parent", &err), 0);
    assert_int_equal(fsx_remove_tree(top, "keep/..", &err), DET_EINVAL);
    assert_int_equal(fsx_remove_tree(top, ".", &err), DET_EINVAL);
}

static void test_remove_deep(void **state)
{
    struct det_err err;
    struct buf path = BUF_INIT;
    for (int i = 0; i < 300; i++)
        buf_add_str(&path, i ? "/d" : "d");
    assert_int_equal(fsx_mkdirs(top, path.p, 0755, &err), 0);
    assert_int_equal(fsx_remove_tree(top, "d", &err), 0);
    assert_int_equal(faccessat(top, "d", F_OK, 0), -1);
    buf_finish(&path);
}

static int note(void *arg, const char *path, bool is_dir, uint64_t bytes, struct det_err *err)
{
    buf_addf(arg, "%s=%d ", path, (int)bytes);
    if (strcmp(path, "w/pass/") == 0)
        return FSX_SKIP;
    return strcmp(path, "w/stop") == 0 ? 7 : 0;
}

static void test_walk(void **state)
{
    struct det_err err;
    struct buf b = BUF_INIT;
    assert_int_equal(fsx_mkdirs(top, "walk/w/b/c", 0755, &err), 0);
    assert_int_equal(fsx_write_atomic(top, "walk/w/b/f", "abc", 3, 0600, &err), 0);
    assert_int_equal(fsx_write_atomic(top, "walk/w/a", "", 0, 0600, &err), 0);
    assert_int_equal(symlinkat("a", top, "walk/w/link"), 0);
    assert_int_equal(fsx_mkdirs(top, "walk/w/pass/by", 0755, &err), 0);
    int fd = fsx_open_dir(top, "walk", &err);
    assert_int_equal(fsx_walk(fd, note, &b, &err), 0);
    assert_string_equal(b.p, "w/=0 w/a=0 w/b/=0 w/b/c/=0 w/b/f=3 w/pass/=0 ");
    buf_clear(&b);
    assert_int_equal(fsx_walk_all(fd, note, &b, &err), 0);
    assert_string_equal(b.p, "w/=0 w/a=0 w/b/=0 w/b/c/=0 w/b/f=3 w/link=0 w/pass/=0 ");
    assert_int_equal(fsx_write_atomic(top, "walk/w/stop", "", 0, 0600, &err), 0);
    assert_int_equal(fsx_walk(fd, note, &b, &err), 7);
    close(fd);
    buf_finish(&b);
}

/* A memfd is on a file system of its own, from which copy_file_range() copies nowhere. */
static void test_copy_rest(void **state)
{
    struct det_err err = {0};
    static const char text[] = "from one file system to another";
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    det_cleanup(det_closep) int in = memfd_create("in", MFD_CLOEXEC);
    det_cleanup(det_closep) int out = openat(top, "out", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(fsx_write_all(in, text, strlen(text), &err), 0);
    assert_int_equal(lseek(in, 5, SEEK_SET), 5);
    int rc = fsx_copy_rest(in, out, &err);
    if (rc < 0)
        fail_msg("%s", err.text);
    assert_int_equal(fsx_read_file(top, "out", 100, &b, &err), 0);
    assert_string_equal(buf_str(&b), text + 5);
    det_cleanup(det_closep) int closed = openat(top, "out", O_RDONLY | O_CLOEXEC);
    assert_int_equal(lseek(in, 0, SEEK_SET), 0);
    assert_int_equal(fsx_copy_rest(in, closed, &err), DET_EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_files, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_beneath, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_within, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_remove_keeps_targets, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_remove_deep, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_walk, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_copy_rest, make_root, remove_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
