/* Entrypoints: what is a name of a trial, and which file it means. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "fsx.h"
#include "mem.h"
#include "model.h"
#include <fcntl.h>
#include <stdio.h>
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
    static const char *const bad[] = {"",       ":",      "a:",    ":b",    "a",
                                      "a:b:c",  "../a:b", "a/b:c", ".a:b",  "a.:b",
                                      "a..b:c", "a b:c",  "a:b c", "a;b:c", "a:b\n"};
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

static void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

/* The object that `dir`/m.c is compiled to now; the caller's until the next call. */
static const char *compiled(void)
{
    static char name[512];
    det_cleanup(freep) char *so = NULL;
    if (model_compile("./m.c", false, &so, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(access(so, R_OK), 0);
    snprintf(name, sizeof name, "%s", so);
    return name;
}

static void assert_same(const char *as)
{
    assert_string_equal(compiled(), as);
}

/* Another object than before; then the text of `path` is as it was, and so is the object. */
static void changes_object(const char *path, const char *text, const char *before)
{
    char first[512];
    snprintf(first, sizeof first, "%s", compiled());
    write_file(path, text);
    assert_string_not_equal(compiled(), first);
    if (before)
        write_file(path, before);
    else
        assert_int_equal(unlink(path), 0);
    assert_same(first);
}

/* Whatever the compiler reads is part of the key, whatever it is called and wherever it lies. */
static void what_is_read_is_the_key(void **state)
{
    char own[64], include[160], cache[80], first[512];
    snprintf(own, sizeof own, "%s/api", dir);
    snprintf(cache, sizeof cache, "%s/cache", dir);
    snprintf(include, sizeof include, "%s/early:%s", dir, own);
    assert_int_equal(mkdir("api", 0755) | mkdir("early", 0755) | mkdir("other", 0755), 0);
    setenv("DET_INCLUDE_DIR", include, 1);
    setenv("DET_CACHE_DIR", cache, 1);
    setenv("CPATH", "other", 1);
    write_file("api/shape.h", "#define SHAPE 1\n");
    write_file("other/late.h", "#define LATE 1\n");
    write_file("value.def", "41");
    write_file("m.c",
               "#include <shape.h>\n#include <late.h>\nint v = SHAPE + LATE +\n"
               "#include \"value.def\"\n;\n#if __has_include(\"more.h\")\nint more;\n#endif\n");
    changes_object("value.def", "42", "41");
    changes_object("api/shape.h", "#define SHAPE 2\n", "#define SHAPE 1\n");
    changes_object("other/late.h", "#define LATE 2\n", "#define LATE 1\n");
    changes_object("early/shape.h", "#define SHAPE 3\n", NULL);
    changes_object("more.h", "", NULL);
    snprintf(first, sizeof first, "%s", compiled());
    write_file("README", "not read");
    assert_same(first);
    setenv("CPATH", "api", 1); /* late.h is not there */
    char *so = NULL;
    assert_int_equal(model_compile("./m.c", true, &so, &err), DET_EINVAL);
    unsetenv("CPATH");
    unsetenv("DET_INCLUDE_DIR");
    unsetenv("DET_CACHE_DIR");
}

/* A compiler that was replaced in its place, and one with a flag of its own. */
static void the_compiler_is_part_of_the_key(void **state)
{
    char include[64], cache[80], cc[80];
    snprintf(include, sizeof include, "%s", dir);
    snprintf(cache, sizeof cache, "%s/cache", dir);
    snprintf(cc, sizeof cc, "%s/own-cc", dir);
    setenv("DET_INCLUDE_DIR", include, 1);
    setenv("DET_CACHE_DIR", cache, 1);
    setenv("DET_CC", cc, 1);
    write_file("m.c", "int v;\n");
    write_file("own-cc", "#!/bin/sh\nexec cc \"$@\"\n");
    assert_int_equal(chmod("own-cc", 0755), 0);
    char first[512];
    snprintf(first, sizeof first, "%s", compiled());
    assert_same(first);
    write_file("own-cc", "#!/bin/sh\nexec cc -mavx2 \"$@\"\n");
    assert_string_not_equal(compiled(), first);
    unsetenv("DET_CC");
    unsetenv("DET_INCLUDE_DIR");
    unsetenv("DET_CACHE_DIR");
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(entrypoints_are_parsed), T(python_comes_before_so_before_c), T(no_headers_no_compiling),
        T(what_is_read_is_the_key), T(the_compiler_is_part_of_the_key)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
