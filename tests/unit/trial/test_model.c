/* Entrypoints: what is a name of a trial, and which file it means. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "fsx.h"
#include "mem.h"
#include "model.h"
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/det-model-XXXXXX";
static struct det_err err;

static int setup(void **state)
{
    memcpy(dir + sizeof dir - 7, "XXXXXX", 6);
    return mkdtemp(dir) ? chdir(dir) : -1;
}

static int teardown(void **state)
{
    return chdir("/") | fsx_remove_tree(AT_FDCWD, dir, &err);
}

static void touch(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    close(fd);
}

static void entrypoints_are_parsed(void **state)
{
    static const char *const bad[] = {"", ":", "a:", ":b", "a", "a:b:c", "../a:b", "a/b:c", ".a:b",
                                      "a.:b", "a..b:c", "a b:c", "a:b c", "a;b:c", "a:b\n"};
    struct model_entry e;
    assert_int_equal(model_entry_parse("pkg.model_def:Trial_2", &e, &err), 0);
    assert_string_equal(e.module, "pkg.model_def");
    assert_string_equal(e.class, "Trial_2");
    for (size_t i = 0; i < DET_ARRAY_LEN(bad); i++)
        assert_int_equal(model_entry_parse(bad[i], &e, &err), DET_EINVAL);
    char longer[2 * MODEL_NAME_MAX + 8];
    memset(longer, 'a', sizeof longer);
    longer[MODEL_NAME_MAX] = ':';
    longer[sizeof longer - 1] = '\0';
    assert_int_equal(model_entry_parse(longer, &e, &err), DET_EINVAL);
}

static enum model_kind found(const char *text)
{
    struct model_entry e;
    enum model_kind kind = MODEL_PYTHON;
    det_cleanup(freep) char *path = NULL;
    assert_int_equal(model_entry_parse(text, &e, &err), 0);
    assert_int_equal(model_find(&e, &path, &kind, &err), 0);
    return kind;
}

static void python_comes_before_so_before_c(void **state)
{
    struct model_entry e;
    enum model_kind kind;
    char *path = NULL;
    assert_int_equal(model_entry_parse("pkg.m:T", &e, &err), 0);
    assert_int_equal(model_find(&e, &path, &kind, &err), DET_ENOENT);
    assert_non_null(strstr(err.text, "pkg/m.c"));
    assert_int_equal(mkdir("pkg", 0755), 0);
    touch("pkg/m.c");
    assert_int_equal(found("pkg.m:T"), MODEL_C);
    touch("pkg/m.so");
    assert_int_equal(found("pkg.m:T"), MODEL_SO);
    touch("pkg/m.py");
    assert_int_equal(found("pkg.m:T"), MODEL_PYTHON);
}

static void no_headers_no_compiling(void **state)
{
    char *so = NULL;
    touch("m.c");
    unsetenv("DET_INCLUDE_DIR");
    assert_true(model_compile("./m.c", false, &so, &err) < 0);
    assert_non_null(strstr(err.text, "DET_INCLUDE_DIR"));
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(entrypoints_are_parsed), T(python_comes_before_so_before_c), T(no_headers_no_compiling)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
