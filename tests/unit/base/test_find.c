/* A PATH of two folders, with programs that say by their exit status whether they have torch. */
#include "find.h"

#include "fsx.h"
#include "mem.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char root[] = "/tmp/det-find-XXXXXX";
static char *first, *second, *path;

static void put(const char *folder, const char *name, const char *text, mode_t mode)
{
    det_cleanup(freep) char *file = det_asprintf("%s/%s", folder, name);
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL, mode);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static int setup(void **state)
{
    if (!mkdtemp(root))
        return -1;
    first = det_asprintf("%s/first", root);
    second = det_asprintf("%s/second", root);
    path = det_asprintf("%s::bin:%s", first, second);
    return mkdir(first, 0755) | mkdir(second, 0755);
}

static int teardown(void **state)
{
    free(first);
    free(second);
    free(path);
    return fsx_remove_tree(AT_FDCWD, root, NULL);
}

static void assert_found(char *got, const char *folder, const char *name)
{
    det_cleanup(freep) char *found = got;
    det_cleanup(freep) char *want = det_asprintf("%s/%s", folder, name);
    assert_non_null(found);
    assert_string_equal(found, want);
}

static void test_on_path(void **state)
{
    det_cleanup(freep) char *folder = det_asprintf("%s/one", first);
    assert_int_equal(mkdir(folder, 0755), 0);
    put(first, "two", "", 0644);
    put(second, "one", "", 0755);
    put(second, "two", "", 0755);
    assert_found(find_on_path(path, "one"), second, "one"); /* the folder is no program */
    assert_found(find_on_path(path, "two"), second, "two"); /* nor is what cannot be run */
    assert_null(find_on_path(path, "three"));
    assert_null(find_on_path("", "sh"));
    assert_found(find_on_path(path, "./sh"), ".", "sh");
    assert_found(find_on_path(NULL, "env"), "/usr/bin", "env");
    assert_int_equal(chdir(second), 0);
    assert_null(find_on_path(".:", "one"));
}

static void test_beside(void **state)
{
    char exe[4096];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    assert_true(n > 0);
    exe[n] = '\0';
    char *slash = strrchr(exe, '/');
    *slash = '\0';
    assert_found(find_beside(slash + 1, X_OK), exe, slash + 1);
    assert_null(find_beside("no such program", F_OK));
}

static void test_python(void **state)
{
    put(first, "bare", "#!/bin/sh\nexit 1\n", 0755);
    put(first, "python3", "#!/bin/sh\nexit 1\n", 0755);
    put(second, "python3", "#!/bin/sh\nexit 0\n", 0755);
    assert_found(find_python(path, "bare"), first, "bare"); /* who names one gets it */
    assert_null(find_python(path, "absent"));
    assert_found(find_python(second, NULL), second, "python3");
    char *system = find_python(first, ""); /* one without torch on PATH hides no other */
    assert_int_equal(system != NULL, find_has_torch("/usr/bin/python3"));
    if (system)
        assert_found(system, "/usr/bin", "python3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_on_path),
        cmocka_unit_test(test_beside),
        cmocka_unit_test(test_python),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
