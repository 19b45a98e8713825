/* Folders of programs that are only looked at; none is run. */
#include "pychoice.h"

#include "fsx.h"

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

static char root[] = "/tmp/det-pychoice-XXXXXX";

/* "%s/..." beneath root; one buffer for each of the last calls. */
static const char *at(const char *path)
{
    static char out[64][256];
    static int next;
    char *to = out[next++ % 64];
    snprintf(to, sizeof out[0], "%s/%s", root, path);
    return to;
}

static void put(const char *path, mode_t mode)
{
    struct det_err err;
    det_cleanup(freep) char *folder = det_strndup(path, (size_t)(strrchr(path, '/') - path));
    assert_int_equal(fsx_mkdirs(AT_FDCWD, at(folder), 0755, &err), 0);
    int fd = open(at(path), O_WRONLY | O_CREAT | O_EXCL, mode);
    assert_true(fd >= 0);
    close(fd);
}

static int setup(void **state)
{
    if (!mkdtemp(root))
        return -1;
    put("opt/bin/python3.9", 0755);
    put("opt/bin/python3", 0755);
    put("work/venv/pyvenv.cfg", 0644);
    put("work/venv/bin/x", 0755);
    put("work/env/bin/python3", 0755);
    put("conda/bin/python", 0755);
    put("empty/bin/x", 0755);
    put("closed/bin/python3", 0644);
    put("shut/venv/bin/python3", 0755);
    put("moved/bin/x", 0755);
    put("through/bin/x", 0755);
    put("round/bin/x", 0755);
    return symlink("python3", at("opt/bin/python")) | symlink("loop", at("loop")) |
           symlink("python3", at("round/bin/python3")) |
           symlink("../../shut/venv/bin/python3", at("through/bin/python3")) |
           symlink(at("opt/bin/python3"), at("work/venv/bin/python3")) |
           symlink(at("opt/bin/python3"), at("work/venv/bin/python")) |
           symlink("/nonexistent/python3.9", at("moved/bin/python3"));
}

static int teardown(void **state)
{
    return fsx_remove_tree(AT_FDCWD, root, NULL);
}

static void assert_finds(const char *wanted, const char *path, const char *exe, const char *folder)
{
    struct pychoice c;
    struct det_err err = {0};
    if (pychoice_find(wanted, path, at("work"), &c, &err) < 0)
        fail_msg("%s: %s", wanted, err.text);
    assert_string_equal(c.exe, at(exe));
    if (folder)
        assert_string_equal(c.folder, at(folder));
    else
        assert_null(c.folder);
    pychoice_finish(&c);
}

static void test_find(void **state)
{
    assert_finds("python3", at("opt/bin"), "opt/bin/python3", NULL);
    assert_finds("python3.9", at("opt/bin"), "opt/bin/python3.9", NULL);
    assert_finds(at("opt/bin/python3"), "", "opt/bin/python3", NULL);
    assert_finds(at("opt"), "", "opt/bin/python3", NULL);
    assert_finds(at("conda"), "", "conda/bin/python", NULL);
    assert_finds("venv", at("opt/bin"), "work/venv/bin/python3", "work/venv");
    assert_finds("env", "/usr/bin", "work/env/bin/python3", NULL); /* not the program */
    assert_finds("./venv", "", "work/./venv/bin/python3", "work/./venv");
    assert_finds("venv/bin/python3", "", "work/venv/bin/python3", "work/venv");
}

static void test_absent(void **state)
{
    const struct {
        const char *wanted, *says;
        int code;
    } rows[] = {
        {"python4", "there is no python4, neither on PATH nor in the model definition", DET_ENOENT},
        {at("none/bin/python3"), "/none/bin/python3", DET_ENOENT},
        {"/none/bin/python3", "/none/bin/python3; make it on this host, or name one", DET_ENOENT},
        {"./none", "there is no ./none in the model definition; correct the path", DET_ENOENT},
        {at("opt/bin/python3/x"), "/opt/bin/python3/x", DET_ENOENT},
        {at("empty"), "a folder without bin/python3", DET_ENOENT},
        {at("closed"), "cannot be run by uid ", DET_EPERM},
        {at("moved"), "its bin/python3 links to /nonexistent/python3.9", DET_ENOENT},
        {at("none/bin/python3"), "a trial's /tmp is its own", DET_ENOENT},
        /* links in a ring stand for a mount that does not answer: nobody knows what is there */
        {at("loop"), "loop: ", DET_EIO},
        {at("loop/bin/python3"), "loop/bin/python3: ", DET_EIO},
        {at("round"), "round: ", DET_EIO},
        {at("round/bin/python3"), "round/bin/python3: ", DET_EIO},
        {"../loop", "../loop: ", DET_EIO},
        {"loop", "loop: ", DET_EIO}, /* on PATH */
    };
    det_cleanup(freep) char *path = det_asprintf("%s:%s", at("opt/bin"), root);
    for (size_t i = 0; i < DET_ARRAY_LEN(rows); i++) {
        struct pychoice c;
        struct det_err err = {0};
        assert_int_equal(pychoice_find(rows[i].wanted, path, at("work"), &c, &err), rows[i].code);
        if (!strstr(err.text, rows[i].says))
            fail_msg("'%s' does not say '%s'", err.text, rows[i].says);
        pychoice_finish(&c);
    }
}

/* A folder that is closed, with a mode that would let everybody in: as on a server that knows the
 * account no more, since its ticket has expired. */
static bool looks_open;

int __real_stat64(const char *path, struct stat *st);
int __wrap_stat64(const char *path, struct stat *st);

int __wrap_stat64(const char *path, struct stat *st)
{
    int rc = __real_stat64(path, st);
    if (rc == 0 && looks_open)
        st->st_mode |= 0777;
    return rc;
}

static int find_shut(const char *wanted, const char *path, struct det_err *err)
{
    struct pychoice c;
    const uid_t nobody = 65534, me = geteuid();
    assert_int_equal(chmod(root, 0755) | chmod(at("shut"), 0), 0);
    if (me == 0)
        assert_int_equal(seteuid(nobody), 0);
    int rc = pychoice_find(wanted, path, at("work"), &c, err);
    if (me == 0)
        assert_int_equal(seteuid(me), 0);
    assert_int_equal(chmod(at("shut"), 0755), 0);
    pychoice_finish(&c);
    return rc;
}

/* What is there, but not for the account of the trial: the folder that is closed is named. What
 * keeps it out for a reason that may pass is no reason to say that it is not there. */
static void test_closed(void **state)
{
    const struct {
        const char *wanted, *path, *says;
        int code;
    } rows[] = {
        {at("shut/venv"), "", "which may not enter ", DET_EPERM},
        {at("through/bin/python3"), "", "which may not enter ", DET_EPERM},
        {at("through"), "", "links to ", DET_ENOENT},
        {"python3.9", at("shut/venv/bin"), "there is no python3.9", DET_ENOENT},
    };
    for (size_t i = 0; i < DET_ARRAY_LEN(rows); i++) {
        struct det_err err = {0};
        assert_int_equal(find_shut(rows[i].wanted, rows[i].path, &err), rows[i].code);
        assert_non_null(strstr(err.text, rows[i].says));
        if (rows[i].code == DET_EPERM)
            assert_non_null(strstr(err.text, "/shut;"));
        looks_open = true;
        assert_int_equal(find_shut(rows[i].wanted, rows[i].path, &err), DET_EIO);
        looks_open = false;
        assert_non_null(strstr(err.text, "Permission denied"));
    }
}

static json_t *env_of(const char *path)
{
    json_t *env = json_object();
    json_set(env, "PATH", json_string(path));
    json_set(env, "PYTHONHOME", json_string("/elsewhere"));
    return env;
}

/* A virtual environment's folder comes first, where it is on PATH already too; another one's only
 * where it is not. */
static void test_apply(void **state)
{
    const struct {
        const char *wanted;
        bool is_venv, is_first, lacks;
    } rows[] = {
        {at("opt"), false, true, false},
        {at("work/venv"), true, true, false},
        {at("conda"), false, true, true}, /* python3 would be another */
        {"/usr/bin/env", false, false, true},
    };
    for (size_t i = 0; i < DET_ARRAY_LEN(rows); i++) {
        struct pychoice c;
        JSON_OWN env = env_of("/usr/bin:/bin");
        assert_int_equal(pychoice_find(rows[i].wanted, "", "/", &c, NULL), 0);
        pychoice_apply(&c, env);
        assert_string_equal(json_str(env, "DET_PYTHON_EXECUTABLE", ""), c.exe);
        assert_null(json_object_get(env, "PYTHONHOME"));
        assert_int_equal(strncmp(json_str(env, "PATH", ""), root, strlen(root)) == 0,
                         rows[i].is_first);
        assert_int_equal(json_object_get(env, "VIRTUAL_ENV") != NULL, rows[i].is_venv);
        assert_int_equal(pychoice_lacks_names(&c, env), rows[i].lacks);
        pychoice_finish(&c);
    }
}

/* Without the folder that is a virtual environment's, its file is the same as the system's. */
static void test_links_are_others(void **state)
{
    struct pychoice c;
    JSON_OWN env = env_of(at("work/venv/bin"));
    assert_int_equal(pychoice_find(at("opt/bin/python3"), "", "/", &c, NULL), 0);
    assert_true(pychoice_lacks_names(&c, env));
    pychoice_finish(&c);
}

static void test_names(void **state)
{
    struct pychoice c = {.exe = det_strdup("/a b/it's")};
    struct det_err err;
    det_cleanup(buf_finish) struct buf text = BUF_INIT;
    det_cleanup(det_closep) int dir = open(root, O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < 2; i++) /* also over those of before */
        assert_int_equal(pychoice_write_names(&c, dir, "names", &err), 0);
    assert_int_equal(fsx_read_file(dir, "names/python", 4096, &text, &err), 0);
    assert_string_equal(buf_str(&text), "#!/bin/sh\nexec '/a b/it'\\''s' \"$@\"\n");
    assert_int_equal(access(at("names/python3"), X_OK), 0);
    pychoice_finish(&c);
}

static char *hook(const char *path, const char *name)
{
    JSON_OWN before = env_of("/none");
    JSON_OWN after = env_of(path);
    json_set(before, "DET_PYTHON_EXECUTABLE", json_string("/agents/own"));
    if (name)
        json_set(after, "DET_PYTHON_EXECUTABLE", json_string(name));
    return pychoice_of_hook(before, after);
}

static void test_hook(void **state)
{
    assert_null(hook("/none", "/agents/own"));
    assert_null(hook(at("empty/bin"), "/agents/own"));
    assert_null(hook("/none", NULL)); /* it was taken back */
    det_cleanup(freep) char *activated = hook(at("work/venv/bin"), "/agents/own");
    assert_string_equal(activated, at("work/venv/bin/python3"));
    det_cleanup(freep) char *named = hook(at("work/venv/bin"), "python3.9");
    assert_string_equal(named, "python3.9");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_absent),
        cmocka_unit_test(test_closed),
        cmocka_unit_test(test_apply),
        cmocka_unit_test(test_links_are_others),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_hook),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
