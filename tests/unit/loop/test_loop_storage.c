/* A place that takes no checkpoints: known before the trial is made, with what to do about it. */
#include "fake_trial.h"
#include "fsx.h"
#include "mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/det-room-XXXXXX";
static int writes_fail, folders_fail; /* errno; 0: they do not */

ssize_t __real_write(int fd, const void *p, size_t n);
ssize_t __wrap_write(int fd, const void *p, size_t n);
int __real_mkdirat(int dir, const char *name, mode_t mode);
int __wrap_mkdirat(int dir, const char *name, mode_t mode);

ssize_t __wrap_write(int fd, const void *p, size_t n)
{
    struct stat st;
    if (!writes_fail || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return __real_write(fd, p, n);
    errno = writes_fail;
    return -1;
}

int __wrap_mkdirat(int dir, const char *name, mode_t mode)
{
    if (!folders_fail || name[0] != '.')
        return __real_mkdirat(dir, name, mode);
    errno = folders_fail;
    return -1;
}

static void fails(const char *system, const char *remedy)
{
    struct fake f;
    struct det_err err = {0};
    fake_init(&f);
    f.config.checkpoint_dir = det_strdup(root);
    f.config.max_length = 4;
    assert_true(fake_run(&f, &err) < 0);
    assert_string_equal(buf_str(&f.trace), "destroy"); /* and nothing was made */
    assert_non_null(strstr(err.text, "checkpoints cannot be kept: "));
    assert_non_null(strstr(err.text, root));
    assert_non_null(strstr(err.text, system));
    assert_non_null(strstr(err.text, remedy));
    assert_non_null(strstr(err.text, "--checkpoint-dir"));
    fake_finish(&f);
}

static void each_with_its_remedy(void **state)
{
    static const struct {
        int number;
        const char *remedy;
    } cases[] = {{ENOSPC, "make room"}, {EDQUOT, "quota"}, {EFBIG, "ulimit -f"}, {EIO, "dmesg"}};
    for (size_t i = 0; i < DET_ARRAY_LEN(cases); i++) {
        writes_fail = cases[i].number;
        fails(strerror(cases[i].number), cases[i].remedy);
    }
    writes_fail = 0;
    folders_fail = EACCES;
    fails("Permission denied", "it must be able to write there");
    folders_fail = EROFS;
    fails("Read-only file system", "mounted read-only");
    folders_fail = 0;
}

/* What was tried leaves nothing, whether it went well or not. */
static void leaves_nothing(void **state)
{
    writes_fail = ENOSPC;
    fails("No space left", "make room");
    writes_fail = 0;
    DIR *d = opendir(root);
    for (struct dirent *e; (e = readdir(d));)
        assert_true(strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0);
    closedir(d);
}

/* Full only later: the same words. And none for what is no matter of a disk. */
static double fills_up(int64_t b)
{
    writes_fail = b == 3 ? ENOSPC : writes_fail;
    return 0;
}

static void full_while_it_trains(void **state)
{
    struct fake f;
    struct det_err err = {0};
    fake_init(&f);
    f.config.checkpoint_dir = det_strdup(root);
    f.config.max_length = 4;
    f.loss = fills_up;
    int rc = fake_run(&f, &err);
    writes_fail = 0;
    assert_true(rc < 0);
    assert_non_null(strstr(err.text, "checkpoint after 4 batches: "));
    assert_non_null(strstr(err.text, "No space left on device"));
    assert_non_null(strstr(err.text, "make room"));
    fake_finish(&f);
}

static void fails_to_save(const char *why, int sys, bool advised)
{
    struct fake f;
    struct det_err err = {0};
    fake_init(&f);
    f.config.checkpoint_dir = det_strdup(root);
    f.config.max_length = 4;
    f.fail_save = DET_EINVAL;
    f.fail_save_text = why;
    f.fail_save_sys = sys;
    assert_int_equal(fake_run(&f, &err), DET_EINVAL);
    assert_non_null(strstr(err.text, "save was told to fail"));
    assert_int_equal(strstr(err.text, "another place") != NULL, advised);
    fake_finish(&f);
}

/* A file of the trial's own that is missing would be missing with another store too. */
static void other_failures(void **state)
{
    fails_to_save("", 0, false);
    fails_to_save(": open vocabulary.txt", ENOENT, false);
    fails_to_save(": open /root/vocabulary.txt", EACCES, false);
    fails_to_save(": write", ENOSPC, true);
    fails_to_save(": the book says: No space left on device", 0, false); /* words decide nothing */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_with_its_remedy),
        cmocka_unit_test(leaves_nothing),
        cmocka_unit_test(full_while_it_trains),
        cmocka_unit_test(other_failures),
    };
    if (!mkdtemp(root))
        return 1;
    int failed = cmocka_run_group_tests_name("loop_storage", tests, NULL, NULL);
    det_ignore(fsx_remove_tree(AT_FDCWD, root, NULL), "the test is over");
    return failed;
}
