/* Folders that one account made before another needs them; it takes root. */
#include "owncache.h"

#include "fsx.h"
#include "mem.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char root[] = "/tmp/det-owncache-XXXXXX";

static struct stat at(const char *path)
{
    struct stat st;
    det_cleanup(freep) char *whole = det_asprintf("%s/%s", root, path);
    assert_int_equal(lstat(whole, &st), 0);
    return st;
}

static int own(enum owncache of, char **path, struct det_err *err)
{
    return owncache_make(root, of, 1900000001, 1900000000, path, err);
}

static void test_each_has_its_own(void **state)
{
    struct det_err err;
    mode_t mask = umask(077);
    assert_int_equal(owncache_prepare(root, &err), 0);
    umask(mask);
    for (int i = 0; i < 2; i++) { /* it is there the second time */
        char *path = NULL;
        assert_int_equal(own(OWNCACHE_PYTHON, &path, &err), 0);
        assert_string_equal(path + strlen(root), "/python/1900000001");
        free(path);
        path = NULL;
        assert_int_equal(own(OWNCACHE_MODELS, &path, &err), 0);
        assert_string_equal(path + strlen(root), "/models/1900000001");
        free(path);
    }
    assert_int_equal(at("python").st_uid, 0);
    assert_int_equal(at("python").st_mode & 07777, 0711);
    assert_int_equal(at("python/1900000001").st_uid, 1900000001);
    assert_int_equal(at("python/1900000001").st_gid, 1900000000);
    assert_int_equal(at("python/1900000001").st_mode & 07777, 0700);
    assert_int_equal(at("models").st_uid, 0);
    assert_int_equal(at("models/1900000001").st_uid, 1900000001);
}

static void refused(void)
{
    char *path = NULL;
    struct det_err err;
    assert_int_equal(owncache_prepare(root, &err), DET_EPERM);
    assert_int_equal(own(OWNCACHE_PYTHON, &path, &err), DET_EPERM);
    assert_non_null(strstr(err.text, "/python is no folder of root's alone; remove it"));
    assert_null(path);
}

static void test_what_others_made_is_not_used(void **state)
{
    det_cleanup(freep) char *folder = det_asprintf("%s/python", root);
    assert_int_equal(mkdir(folder, 0755), 0);
    assert_int_equal(chown(folder, 1900000002, 1900000000), 0);
    refused();
    assert_int_equal(chown(folder, 0, 0), 0);
    assert_int_equal(chmod(folder, 0777), 0);
    refused();
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(symlink("/", folder), 0);
    refused();
    assert_int_equal(at("python").st_mode & S_IFMT, S_IFLNK);
}

static int setup(void **state)
{
    memset(root + strlen(root) - 6, 'X', 6);
    return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
    return fsx_remove_tree(AT_FDCWD, root, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_has_its_own, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_others_made_is_not_used, setup, teardown),
    };
    return geteuid() == 0 ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
