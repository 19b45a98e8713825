/* What a model directory packs to. */
#include "pack.h"

#include "fsx.h"
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/test-pack-XXXXXX";

static void put(const char *path, const char *text)
{
    char *full det_cleanup(freep) = det_asprintf("%s/%s", dir, path);
    assert_int_equal(fsx_write_atomic(AT_FDCWD, full, text, strlen(text), 0640, NULL), 0);
}

static void make(const char *path)
{
    char *full det_cleanup(freep) = det_asprintf("%s/%s", dir, path);
    assert_int_equal(fsx_mkdirs(AT_FDCWD, full, 0755, NULL), 0);
}

static int set_up(void **state)
{
    assert_non_null(mkdtemp(dir));
    make("sub/deep");
    make(".git/objects");
    make("__pycache__");
    make("data");
    put("model_def.c", "int x;");
    put("sub/deep/a.txt", "hello");
    put("sub/skip.log", "no");
    put(".git/objects/blob", "no");
    put("__pycache__/m.pyc", "no");
    put("data/big.bin", "no");
    put(".detignore", "# comment\n*.log\ndata/\n");
    return 0;
}

static int tear_down(void **state)
{
    return fsx_remove_tree(AT_FDCWD, dir, NULL);
}

static const json_t *find(const json_t *files, const char *path)
{
    size_t i;
    json_t *f;
    json_array_foreach(files, i, f)
        if (strcmp(json_str(f, "path", ""), path) == 0)
            return f;
    return NULL;
}

static void packs_what_is_not_ignored(void **state)
{
    json_t *files = NULL;
    struct det_err err;
    assert_int_equal(pack_dir(dir, &files, &err), 0);
    const json_t *m = find(files, "model_def.c"), *a = find(files, "sub/deep/a.txt"), *d = find(files, "sub/deep");
    assert_non_null(m);
    assert_non_null(a);
    assert_non_null(d);
    assert_string_equal(json_str(a, "content", ""), "aGVsbG8=");
    assert_int_equal(json_int(m, "type", 0), 48);
    assert_int_equal(json_int(d, "type", 0), 53);
    assert_int_equal(json_int(m, "mode", 0), S_IFREG | 0640);
    assert_null(find(files, "sub/skip.log"));
    assert_null(find(files, ".git"));
    assert_null(find(files, "__pycache__"));
    assert_null(find(files, "data/big.bin"));
    assert_null(find(files, "data"));
    assert_null(find(files, ".detignore"));
    json_decref(files);
}

/* What stays of the files below, by .detignore. */
static void ignores_as_gitignore_does(void **state)
{
    static const char *const paths[] = {"model_def.c", "sub/skip.log", "sub/deep/a.txt", "data/big.bin"};
    static const struct {
        const char *ignore, *left; /* a letter each, in the order above */
    } cases[] = {
        {"*\n!*/\n!*.c\n", "m"},
        {"*.log\n!skip.log\n", "msad"},
        {"!skip.log\n*.log\n", "mad"},
        {"sub/\n!sub/deep/a.txt\n", "md"},
        {"**/deep\n", "msd"},
        {"sub/**\n", "md"},
        {"sub/**/a.txt\n", "msd"},
        {"**/sub/*.log  \n", "mad"},
        {"/a.txt\n/data\n", "msa"},
        {"sub/*.txt\n", "msad"},
        {"\\!x\n!.git/\n!.detignore\n", "msad"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *files = NULL;
        struct det_err err;
        char left[8] = "", *end = left;
        put(".detignore", cases[i].ignore);
        assert_int_equal(pack_dir(dir, &files, &err), 0);
        for (size_t k = 0; k < 4; k++)
            if (find(files, paths[k]))
                *end++ = "msad"[k];
        assert_string_equal(left, cases[i].left);
        assert_null(find(files, ".git/objects/blob"));
        assert_null(find(files, ".detignore"));
        json_decref(files);
    }
}

static void names_a_missing_directory(void **state)
{
    json_t *files = NULL;
    struct det_err err;
    assert_true(pack_dir("/nonexistent/model", &files, &err) < 0);
    assert_non_null(strstr(err.text, "/nonexistent/model"));
}

static void names_what_has_no_name(void **state)
{
    json_t *files = NULL;
    struct det_err err = {0};
    put(".detignore", "");
    put("sub/caf\xe9", "x");
    assert_int_equal(pack_dir(dir, &files, &err), DET_EINVAL);
    assert_non_null(strstr(err.text, "caf\xe9: a name that is not UTF-8"));
    put(".detignore", "sub/caf*\n");
    assert_int_equal(pack_dir(dir, &files, &err), 0);
    json_decref(files);
}

static void names_what_is_too_big(void **state)
{
    json_t *files = NULL;
    struct det_err err;
    char *big det_cleanup(freep) = det_asprintf("%s/sub/big.bin", dir);
    put("sub/big.bin", "");
    assert_int_equal(truncate(big, (off_t)PACK_BYTES_MAX + 1), 0);
    assert_int_equal(pack_dir(dir, &files, &err), DET_ETOOBIG);
    assert_non_null(strstr(err.text, "sub/big.bin"));
    assert_non_null(strstr(err.text, ".detignore"));
    assert_int_equal(unlink(big), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packs_what_is_not_ignored),
        cmocka_unit_test(ignores_as_gitignore_does),
        cmocka_unit_test(names_a_missing_directory),
        cmocka_unit_test(names_what_has_no_name),
        cmocka_unit_test(names_what_is_too_big),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
