/* The copy of the code in a checkpoint: nothing that happens to that directory costs a local run
 * its checkpoint. */
#include "fake_trial.h"
#include "fsx.h"
#include "loop_impl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct dir {
    char path[64];
    char *code, *store;
};

static int setup(void **state)
{
    struct dir *d = det_zalloc(sizeof *d);
    strncpy(d->path, "/tmp/det-code-XXXXXX", sizeof d->path - 1);
    assert_non_null(mkdtemp(d->path));
    d->code = det_asprintf("%s/code", d->path);
    d->store = det_asprintf("%s/store", d->path);
    assert_int_equal(mkdir(d->code, 0755), 0);
    assert_int_equal(mkdir(d->store, 0755), 0);
    *state = d;
    return 0;
}

static int teardown(void **state)
{
    struct dir *d = *state;
    det_ignore(fsx_remove_tree(AT_FDCWD, d->path, NULL), "the test is over");
    free(d->code);
    free(d->store);
    free(d);
    return 0;
}

static void make_deep(const struct dir *d)
{
    struct buf b = BUF_INIT;
    buf_add_str(&b, d->code);
    for (int i = 0; i < 70; i++)
        buf_add_str(&b, "/d");
    assert_int_equal(fsx_mkdirs(AT_FDCWD, buf_str(&b), 0755, NULL), 0);
    buf_finish(&b);
}

/* Whether the store's one checkpoint is whole, and whether it has the code. */
static void look(const struct dir *d, bool *ret_whole, bool *ret_code)
{
    *ret_whole = *ret_code = false;
    DIR *s = opendir(d->store);
    for (struct dirent *e; (e = readdir(s));) {
        det_cleanup(freep) char *meta = det_asprintf("%s/%s/metadata.json", d->store, e->d_name);
        det_cleanup(freep) char *code = det_asprintf("%s/%s/code", d->store, e->d_name);
        if (e->d_name[0] == '.')
            continue;
        *ret_whole = access(meta, F_OK) == 0;
        *ret_code = access(code, F_OK) == 0;
    }
    closedir(s);
}

static void a_local_run_does_without(void **state)
{
    struct dir *d = *state;
    struct fake f;
    bool whole, code;
    struct det_err err = {0};
    make_deep(d);
    fake_init(&f);
    f.config.checkpoint_dir = det_strdup(d->store);
    f.config.code_dir = det_strdup(d->code);
    f.config.max_length = 2;
    assert_int_equal(fake_run(&f, &err), 0);
    look(d, &whole, &code);
    assert_true(whole);
    assert_false(code);
    fake_finish(&f);
}

/* load_data.json of the store's one checkpoint. Caller frees. */
static json_t *load_data(const struct dir *d)
{
    json_t *found = NULL;
    DIR *s = opendir(d->store);
    for (struct dirent *e; (e = readdir(s));) {
        det_cleanup(buf_finish) struct buf text = BUF_INIT;
        det_cleanup(freep) char *file = det_asprintf("%s/%s/load_data.json", d->store, e->d_name);
        if (fsx_read_file(AT_FDCWD, file, 10000, &text, NULL) == 0)
            found = json_parse(text.p, text.len, NULL);
    }
    closedir(s);
    return found;
}

static void what_signs_in_stays_out(void **state)
{
    struct dir *d = *state;
    struct fake f;
    struct det_err err = {0};
    fake_init(&f);
    f.config.checkpoint_dir = det_strdup(d->store);
    f.config.max_length = 2;
    f.config.experiment_config = json_make("{s:s,s:{s:{s:s,s:s}}}", "name", "n", "environment",
                                           "registry_auth", "username", "u", "password", "hunter2");
    assert_int_equal(fake_run(&f, &err), 0);
    JSON_OWN j = load_data(d);
    const json_t *config = json_obj(j, "experiment_config");
    const json_t *auth = json_obj(json_obj(config, "environment"), "registry_auth");
    assert_string_equal(json_str(config, "name", ""), "n");
    assert_string_equal(json_str(auth, "username", ""), "u");
    assert_string_equal(json_str(auth, "password", ""), "(hidden)");
    auth = json_obj(json_obj(f.config.experiment_config, "environment"), "registry_auth");
    assert_string_equal(json_str(auth, "password", ""), "hunter2"); /* the trial's own stays */
    fake_finish(&f);
}

static void too_much_is_said(void **state)
{
    struct dir *d = *state;
    struct det_err err = {0};
    det_cleanup(freep) char *to = det_asprintf("%s/copy", d->path);
    make_deep(d);
    assert_int_equal(loop_copy_code(d->code, to, d->store, &err), DET_ETOOBIG);
    assert_non_null(strstr(err.text, "nested deeper"));
    assert_non_null(strstr(err.text, d->code));
}

/* The linker puts this one in the copy's way: "cache" is gone as soon as it was looked at. */
int __real_fstatat64(int dir, const char *name, struct stat *st, int flags);
int __wrap_fstatat64(int dir, const char *name, struct stat *st, int flags);

int __wrap_fstatat64(int dir, const char *name, struct stat *st, int flags)
{
    int rc = __real_fstatat64(dir, name, st, flags);
    if (strcmp(name, "cache") == 0)
        assert_int_equal(unlinkat(dir, name, S_ISDIR(st->st_mode) ? AT_REMOVEDIR : 0), 0);
    return rc;
}

static void copies_what_is_left(const struct dir *d)
{
    struct det_err err = {0};
    det_cleanup(freep) char *to = det_asprintf("%s/copy", d->path);
    det_cleanup(freep) char *other = det_asprintf("%s/other", to);
    int rc = loop_copy_code(d->code, to, d->store, &err);
    if (rc < 0)
        fail_msg("%s", err.text);
    assert_int_equal(access(other, F_OK), 0);
}

static void a_directory_that_vanishes_is_passed_over(void **state)
{
    struct dir *d = *state;
    det_cleanup(freep) char *cache = det_asprintf("%s/cache", d->code);
    det_cleanup(freep) char *other = det_asprintf("%s/other", d->code);
    assert_int_equal(mkdir(cache, 0755), 0);
    assert_int_equal(mkdir(other, 0755), 0);
    copies_what_is_left(d);
}

static void a_file_that_vanishes_is_passed_over(void **state)
{
    struct dir *d = *state;
    det_cleanup(freep) char *cache = det_asprintf("%s/cache", d->code);
    det_cleanup(freep) char *other = det_asprintf("%s/other", d->code);
    assert_int_equal(fsx_write_atomic(AT_FDCWD, cache, "x", 1, 0644, NULL), 0);
    assert_int_equal(fsx_write_atomic(AT_FDCWD, other, "x", 1, 0644, NULL), 0);
    copies_what_is_left(d);
}

/* Somebody's working directory may hold anything; what cannot be code must not cost the state. */
static void what_has_no_name_is_passed_over(void **state)
{
    struct dir *d = *state;
    det_cleanup(freep) char *odd = det_asprintf("%s/caf\xe9", d->code);
    det_cleanup(freep) char *other = det_asprintf("%s/other", d->code);
    assert_int_equal(fsx_write_atomic(AT_FDCWD, odd, "x", 1, 0644, NULL), 0);
    assert_int_equal(mkdir(other, 0755), 0);
    copies_what_is_left(d);
    det_cleanup(freep) char *copy = det_asprintf("%s/copy/caf\xe9", d->path);
    assert_int_equal(access(copy, F_OK), -1);
}

/* As lost+found, or a colleague's. root may read all, so another user copies. */
static void what_is_not_ours_is_passed_over(void **state)
{
    struct dir *d = *state;
    uid_t user = geteuid();
    det_cleanup(freep) char *file = det_asprintf("%s/secret", d->code);
    det_cleanup(freep) char *dir = det_asprintf("%s/lost+found", d->code);
    det_cleanup(freep) char *other = det_asprintf("%s/other", d->code);
    assert_int_equal(fsx_write_atomic(AT_FDCWD, file, "x", 1, 0, NULL), 0);
    assert_int_equal(mkdir(dir, 0), 0);
    assert_int_equal(mkdir(other, 0755), 0);
    assert_int_equal(chmod(d->path, 0777), 0);
    assert_true(user != 0 || seteuid(65534) == 0);
    copies_what_is_left(d);
    assert_true(user != 0 || seteuid(0) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        T(a_local_run_does_without),
        T(what_signs_in_stays_out),
        T(too_much_is_said),
        T(a_directory_that_vanishes_is_passed_over),
        T(a_file_that_vanishes_is_passed_over),
        T(what_has_no_name_is_passed_over),
        T(what_is_not_ours_is_passed_over),
    };
    return cmocka_run_group_tests_name("loop_code", tests, NULL, NULL);
}
