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
    json_array_foreach(files, i, f) if (strcmp(json_str(f, "path", ""), path) == 0) return f;
    return NULL;
}

static void packs_what_is_not_ignored(void **state)
{
    json_t *files = NULL;
    struct det_err err;
    assert_int_equal(pack_dir(dir, &files, &err), 0);
    const json_t *m = find(files, "model_def.c"), *a = find(files, "sub/deep/a.txt"),
                 *d = find(files, "sub/deep");
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

static json_t *table;

static bool lists(const json_t *names, const char *path)
{
    size_t i;
    json_t *name;
    json_array_foreach(names, i, name) if (strcmp(json_string_value(name), path) == 0) return true;
    return false;
}

/* One of detignore.json, which the Python package is tested by too. */
static void check_case(const json_t *c)
{
    json_t *files = NULL, *path;
    struct det_err err;
    const char *text = json_str(c, "ignore", NULL);
    char *ignore det_cleanup(freep) = det_asprintf("%s!.git/\n!.detignore\n", text);
    size_t i;
    put(".detignore", ignore);
    assert_int_equal(pack_dir(dir, &files, &err), 0);
    json_array_foreach(json_object_get(table, "paths"), i, path)
    {
        bool gone = !find(files, json_string_value(path));
        if (gone != lists(json_object_get(c, "ignored"), json_string_value(path)))
            fail_msg("by \"%s\", \"%s\" is %s", text, json_string_value(path),
                     gone ? "left out" : "packed");
    }
    assert_null(find(files, ".git/objects/blob"));
    assert_null(find(files, ".detignore"));
    json_decref(files);
}

static void ignores_as_gitignore_does(void **state)
{
    size_t i;
    json_t *v;
    json_array_foreach(json_object_get(table, "paths"), i, v) put(json_string_value(v), "x");
    json_array_foreach(json_object_get(table, "cases"), i, v) check_case(v);
}

static void names_a_missing_directory(void **state)
{
    json_t *files = NULL;
    struct det_err err;
    assert_true(pack_dir("/nonexistent/model", &files, &err) < 0);
    assert_non_null(strstr(err.text, "/nonexistent/model"));
}

static void link_to(const char *target, const char *name)
{
    char *full det_cleanup(freep) = det_asprintf("%s/sub/%s", dir, name);
    assert_int_equal(symlink(target, full), 0);
}

static void unlink_in_sub(const char *name)
{
    char *full det_cleanup(freep) = det_asprintf("%s/sub/%s", dir, name);
    assert_int_equal(unlink(full), 0);
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
    unlink_in_sub("caf\xe9");
}

static void refuses(const char *name, const char *what)
{
    json_t *files = NULL;
    struct det_err err;
    char *said det_cleanup(freep) =
        det_asprintf("%s/sub/%s is %s: remove it or name it in .detignore", dir, name, what);
    put(".detignore", "");
    assert_int_equal(pack_dir(dir, &files, &err), DET_EINVAL);
    assert_string_equal(err.text, said);
    put(".detignore", "sub/strange*\n");
    assert_int_equal(pack_dir(dir, &files, &err), 0);
    json_decref(files);
    unlink_in_sub(name);
}

/* A link to a file, here or elsewhere, goes as the file; nothing else is left out unsaid. */
static void takes_links_to_files(void **state)
{
    json_t *files = NULL;
    struct det_err err;
    put(".detignore", "");
    link_to("/etc/passwd", "elsewhere.txt");
    put("sub/deep/linked.txt", "hello");
    link_to("deep/linked.txt", "here.txt");
    assert_int_equal(pack_dir(dir, &files, &err), 0);
    const json_t *here = find(files, "sub/here.txt"), *elsewhere = find(files, "sub/elsewhere.txt");
    assert_string_equal(json_str(here, "content", ""), "aGVsbG8=");
    assert_int_equal(json_integer_value(json_object_get(here, "type")), 48);
    assert_true(strlen(json_str(elsewhere, "content", "")) > 0);
    json_decref(files);
    unlink_in_sub("elsewhere.txt");
    unlink_in_sub("here.txt");
    link_to("nowhere", "strange");
    refuses("strange", "a link that leads nowhere");
    link_to("deep", "strange");
    refuses("strange", "a link to a directory, and these are not sent");
    char *pipe det_cleanup(freep) = det_asprintf("%s/sub/strange", dir);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    refuses("strange", "neither a file nor a directory");
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

int main(int argc, char **argv)
{
    table = argc > 1 ? json_load_file(argv[1], 0, NULL) : NULL;
    if (!table)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packs_what_is_not_ignored), cmocka_unit_test(ignores_as_gitignore_does),
        cmocka_unit_test(names_a_missing_directory), cmocka_unit_test(names_what_has_no_name),
        cmocka_unit_test(takes_links_to_files),      cmocka_unit_test(names_what_is_too_big),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
