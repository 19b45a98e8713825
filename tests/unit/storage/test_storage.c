/* The checkpoint stores: publishing whole or not at all, hostile names, hashes, leftovers. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>

#include "clk.h"
#include "fsx.h"
#include "storage.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define UUID "0b0e6a3c-5d0a-4c5e-9d3c-6a8f1c2d3e4f"

static char root[] = "/tmp/det-storage-XXXXXX";
static struct storage *store;
static struct det_err err;

static int setup(void **state)
{
    memcpy(root + sizeof root - 7, "XXXXXX", 6);
    if (!mkdtemp(root))
        return -1;
    JSON_OWN config =
        json_make("{s:s,s:s,s:s}", "type", "shared_fs", "host_path", root, "storage_path", "ckpts");
    return storage_open(config, &store, &err);
}

static int teardown(void **state)
{
    storage_close(store);
    return fsx_remove_tree(AT_FDCWD, root, &err);
}

static void put(const char *dir, const char *name, const char *text)
{
    det_cleanup(freep) char *path = det_asprintf("%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

/* In place of the C library's: what a disk says of a portion (sync_file_range(2)). */
static int disk_says;

int sync_file_range(int fd, off_t at, off_t bytes, unsigned flags)
{
    errno = disk_says;
    return disk_says && flags & SYNC_FILE_RANGE_WAIT_AFTER ? -1 : 0;
}

static char *begun(void)
{
    char *tmp = NULL;
    assert_int_equal(storage_begin(store, UUID, &tmp, &err), 0);
    det_cleanup(freep) char *code = det_asprintf("%s/code", tmp);
    assert_int_equal(mkdir(code, 0755), 0);
    put(tmp, "metadata.json", "{}");
    put(code, "model_def.c", "int x;\n");
    return tmp;
}

static void publish_is_all_or_nothing(void **state)
{
    det_cleanup(freep) char *tmp = begun();
    assert_int_equal(storage_exists(store, UUID, &err), DET_ENOENT);
    assert_int_equal(storage_publish(store, UUID, &err), 0);
    assert_int_equal(storage_exists(store, UUID, &err), 0);
    assert_int_not_equal(access(tmp, F_OK), 0);
    char *again = NULL;
    assert_int_equal(storage_begin(store, UUID, &again, &err), DET_EEXIST);
    JSON_OWN list = storage_list(store, UUID, &err);
    assert_int_equal(json_object_size(list), 3);
    assert_int_equal(json_int(list, "code/model_def.c", -1), 7);
    assert_int_equal(json_int(list, "code/", -1), 0);
}

static void what_a_crash_left_is_replaced(void **state)
{
    det_cleanup(freep) char *one = begun();
    det_cleanup(freep) char *two = NULL;
    assert_int_equal(storage_begin(store, UUID, &two, &err), 0);
    det_cleanup(freep) char *old = det_asprintf("%s/metadata.json", two);
    assert_int_not_equal(access(old, F_OK), 0);
    assert_int_equal(storage_abort(store, UUID, &err), 0);
    assert_int_equal(storage_abort(store, UUID, &err), 0);
    assert_int_equal(storage_publish(store, UUID, &err), DET_ENOENT);
}

static void hostile_names_are_refused(void **state)
{
    static const char *const bad[] = {"", ".", "..", "../x", "a/b", "a b", "x\n", "/etc"};
    char *path = NULL;
    for (size_t i = 0; i < DET_ARRAY_LEN(bad); i++) {
        assert_int_equal(storage_begin(store, bad[i], &path, &err), DET_EINVAL);
        assert_int_equal(storage_delete(store, bad[i], &err), DET_EINVAL);
        assert_int_equal(storage_get(store, bad[i], &path, &err), DET_EINVAL);
        assert_int_equal(strstr(err.text, "not a path") != NULL, strchr(bad[i], '/') != NULL);
        assert_null(storage_path(store, bad[i]));
    }
}

static void damage_is_named(void **state)
{
    det_cleanup(freep) char *tmp = begun();
    assert_int_equal(storage_publish(store, UUID, &err), 0);
    det_cleanup(freep) char *dir = storage_path(store, UUID);
    JSON_OWN skip = json_make("{s:b}", "metadata.json", 1);
    json_t *sums = storage_hash_dir(dir, skip, &err);
    JSON_OWN metadata = json_make("{s:o}", STORAGE_HASHES, sums);
    assert_int_equal(json_object_size(sums), 1);
    assert_int_equal(storage_verify_dir(dir, metadata, &err), 0);
    put(dir, "code/model_def.c", "int y;\n");
    assert_int_equal(storage_verify_dir(dir, metadata, &err), DET_ECORRUPT);
    assert_non_null(strstr(err.text, "code/model_def.c: its xxh128 is"));
    json_set(sums, "state_dict.pth", json_string("00"));
    put(dir, "code/model_def.c", "int x;\n");
    assert_int_equal(storage_verify_dir(dir, metadata, &err), DET_ECORRUPT);
    assert_non_null(strstr(err.text, "state_dict.pth is missing"));
    json_set(metadata, STORAGE_HASHES, json_null()); /* another program's */
    assert_int_equal(storage_verify_dir(dir, metadata, &err), 0);
}

/* What was written before STORAGE_HASHES is checked by what it has. */
static void damage_of_older_ones_is_named(void **state)
{
    det_cleanup(freep) char *tmp = begun();
    assert_int_equal(storage_publish(store, UUID, &err), 0);
    det_cleanup(freep) char *dir = storage_path(store, UUID);
    const char *sum = "7c725f30854a46033dd94f728ac6b08caf10845993cd3ed48e40079cdb0a76a6";
    JSON_OWN older = json_make("{s:{s:s}}", "sha256", "code/model_def.c", sum);
    put(dir, "code/model_def.c", "int x;\n");
    assert_int_equal(storage_verify_dir(dir, older, &err), 0);
    put(dir, "code/model_def.c", "int y;\n");
    assert_int_equal(storage_verify_dir(dir, older, &err), DET_ECORRUPT);
    assert_non_null(strstr(err.text, "code/model_def.c: its sha256 is"));
}

static void delete_is_idempotent(void **state)
{
    det_cleanup(freep) char *tmp = begun();
    assert_int_equal(storage_publish(store, UUID, &err), 0);
    assert_int_equal(storage_delete_glob(store, UUID, "code/*", &err), 0);
    JSON_OWN list = storage_list(store, UUID, &err);
    assert_int_equal(json_object_size(list), 2);
    assert_int_equal(storage_delete(store, UUID, &err), 0);
    assert_int_equal(storage_delete(store, UUID, &err), 0);
    assert_int_equal(storage_exists(store, UUID, &err), DET_ENOENT);
}

static void sweep_takes_leftovers_only(void **state)
{
    det_cleanup(freep) char *tmp = begun();
    assert_int_equal(storage_sweep(store, 3600, &err), 0);
    assert_int_equal(access(tmp, F_OK), 0);
    assert_int_equal(storage_sweep(store, 0, &err), 0);
    assert_int_not_equal(access(tmp, F_OK), 0);
}

static void sweep_goes_by_age(void **state)
{
    det_cleanup(freep) char *tmp = begun();
    int64_t two_hours_ago = clk_wall_us() / 1000000 - 7200;
    struct timespec at[2] = {{.tv_sec = two_hours_ago}, {.tv_sec = two_hours_ago}};
    assert_int_equal(utimensat(AT_FDCWD, tmp, at, 0), 0);
    assert_int_equal(storage_sweep(store, 10800, &err), 0);
    assert_int_equal(access(tmp, F_OK), 0);
    assert_int_equal(storage_sweep(store, 3600, &err), 0);
    assert_int_not_equal(access(tmp, F_OK), 0);
}

static void configurations_are_checked(void **state)
{
    static const char *const bad[] = {
        "{\"type\":\"s3\",\"bucket\":\"b\"}",
        "{\"type\":\"shared_fs\",\"host_path\":\"rel\"}",
        "{\"type\":\"shared_fs\",\"host_path\":\"/tmp\",\"storage_path\":\"../etc\"}",
        "{\"type\":\"shared_fs\",\"host_path\":\"/tmp/a\",\"storage_path\":\"/tmp/ab\"}",
        "{\"type\":\"directory\"}",
        "{}",
    };
    struct storage *s = NULL;
    for (size_t i = 0; i < DET_ARRAY_LEN(bad); i++) {
        JSON_OWN config = json_parse(bad[i], strlen(bad[i]), &err);
        assert_true(storage_open(config, &s, &err) < 0);
        assert_non_null(strstr(err.text, "checkpoint_storage"));
    }
}

static void all_lies_below_the_root(void **state)
{
    JSON_OWN config =
        json_make("{s:s,s:s,s:s}", "type", "shared_fs", "host_path", "/", "storage_path", root);
    struct storage *s = NULL;
    assert_int_equal(storage_open(config, &s, &err), 0);
    storage_close(s);
    json_set(config, "storage_path", json_string(root + 1));
    assert_int_equal(storage_open(config, &s, &err), 0);
    storage_close(s);
}

static void quarantine_keeps_the_files(void **state)
{
    free(begun());
    assert_int_equal(storage_publish(store, UUID, &err), 0);
    JSON_OWN before = storage_list(store, UUID, &err);
    for (int again = 0; again < 2; again++)
        assert_int_equal(storage_quarantine(store, UUID, &err), 0);
    assert_int_equal(storage_exists(store, UUID, &err), DET_ENOENT);
    assert_int_equal(storage_sweep(store, 0, &err), 0);
    for (int again = 0; again < 2; again++)
        assert_int_equal(storage_restore(store, UUID, &err), 0);
    JSON_OWN after = storage_list(store, UUID, &err);
    assert_true(json_equal(before, after));
    assert_int_equal(storage_quarantine(store, UUID, &err), 0);
    for (int again = 0; again < 2; again++)
        assert_int_equal(storage_purge(store, UUID, &err), 0);
    assert_int_equal(storage_restore(store, UUID, &err), DET_ENOENT);
    assert_non_null(strstr(err.text, UUID));
}

static void purge_takes_what_was_never_put_aside(void **state)
{
    free(begun());
    assert_int_equal(storage_publish(store, UUID, &err), 0);
    assert_int_equal(storage_purge(store, UUID, &err), 0);
    assert_int_equal(storage_exists(store, UUID, &err), DET_ENOENT);
}

static void globs_match_at_every_depth(void **state)
{
    free(begun());
    assert_int_equal(storage_publish(store, UUID, &err), 0);
    assert_int_equal(storage_delete_glob(store, UUID, "**/*.json", &err), 0);
    JSON_OWN left = storage_list(store, UUID, &err);
    assert_null(json_object_get(left, "metadata.json"));
    assert_non_null(json_object_get(left, "code/model_def.c"));
    assert_int_equal(storage_delete_glob(store, UUID, "**/*.c", &err), 0);
    JSON_OWN none = storage_list(store, UUID, &err);
    assert_null(json_object_get(none, "code/model_def.c"));
}

static void holds(const char *name, const char *text)
{
    struct buf b = BUF_INIT;
    det_cleanup(freep) char *path = det_asprintf("%s/c/tensorboard/%s", storage_root(store), name);
    int rc = fsx_read_file(AT_FDCWD, path, 1000, &b, &err);
    if (text) {
        assert_int_equal(rc, 0);
        assert_string_equal(buf_str(&b), text);
    } else {
        assert_int_equal(rc, DET_ENOENT);
    }
    buf_finish(&b);
}

static int follow(const char *place, const char *but)
{
    det_cleanup(freep) char *local = det_asprintf("%s/local", root);
    return storage_follow_dir(store, place, local, but, &err);
}

/* A size limit stops the write half way, as a full disk does; the message must name the file. */
static void failed_write_names_the_path(void **state)
{
    det_cleanup(freep) char *local = det_asprintf("%s/local", root);
    assert_int_equal(mkdir(local, 0755), 0);
    put(local, "a.tfevents", "123456789 123456789 123456789");
    struct rlimit old, low = {.rlim_cur = 10};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    low.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    int rc = follow("c/tensorboard", NULL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(rc, DET_EIO);
    assert_non_null(strstr(err.text, "c/tensorboard/a.tfevents"));
}

static void a_growing_file_is_followed(void **state)
{
    det_cleanup(freep) char *local = det_asprintf("%s/local", root);
    det_cleanup(freep) char *sub = det_asprintf("%s/sub", local);
    assert_int_equal(follow("c/tensorboard", NULL), 0); /* nothing there yet */
    assert_int_equal(mkdir(local, 0755) | mkdir(sub, 0755), 0);
    put(local, "a.tfevents", "one ");
    put(sub, "b", "b");
    assert_int_equal(follow("c/tensorboard", "tfevents"), 0);
    holds("sub/b", "b");
    holds("a.tfevents", NULL);
    assert_int_equal(follow("c/tensorboard", NULL), 0);
    holds("a.tfevents", "one ");
    put(local, "a.tfevents", "one two");
    for (int i = 0; i < 2; i++)
        assert_int_equal(follow("c/tensorboard", NULL), 0);
    holds("a.tfevents", "one two");
    assert_int_equal(follow("../x", NULL), DET_EINVAL);
    assert_int_equal(follow("/etc", NULL), DET_EINVAL);
    assert_int_equal(follow("", NULL), DET_EINVAL);
    assert_int_equal(storage_remove_tree(store, "c/nothing/here", &err), 0);
    assert_int_equal(storage_remove_tree(store, "c/tensorboard", &err), 0);
    holds("a.tfevents", NULL);
    assert_int_equal(storage_remove_tree(store, "c/../../x", &err), DET_EINVAL);
    assert_int_equal(storage_remove_tree(store, "c", &err), DET_EINVAL);
}

/* fsync does not repeat what a portion was told; a store that knows no portions has fsync. */
static void an_error_of_the_disk_counts(void **state)
{
    char *tmp det_cleanup(freep) = begun();
    uint64_t before = storage_synced_bytes();
    disk_says = EIO;
    assert_int_equal(storage_publish(store, UUID, &err), DET_EIO);
    assert_int_equal(storage_exists(store, UUID, &err), DET_ENOENT);
    disk_says = ENOSYS;
    assert_int_equal(storage_publish(store, UUID, &err), 0);
    assert_int_equal(storage_synced_bytes(), before);
    assert_int_equal(storage_abort(store, UUID, &err), 0);
    disk_says = 0;
}

static void a_name_must_be_text(void **state)
{
    det_cleanup(freep) char *dir = begun();
    put(dir, "caf\xe9", "x");
    assert_null(storage_hash_dir(dir, NULL, &err));
    assert_int_equal(err.code, DET_EINVAL);
    assert_non_null(strstr(err.text, "must be UTF-8"));
    assert_int_equal(storage_publish(store, UUID, &err), 0);
    assert_null(storage_list(store, UUID, &err));
}

/* What is no checkpoint is not listed; what was put aside is, and what is being written is not. */
static void names_are_listed(void **state)
{
    static const char *const others[] = {"tensorboard",
                                         ".x.gone",
                                         "0b0e6a3c",
                                         ".det-store.d",
                                         "2b0e6a3c-5d0a-4c5e-9d3c-6a8f1c2d3e4f",
                                         "2b0e6a3c-5d0a-4c5e-9d3c-6a8f1c2d3e4f/tensorboard"};
    det_cleanup(freep) char *dir = det_asprintf("%s/ckpts", root);
    det_cleanup(freep) char *tmp = begun();
    for (size_t i = 0; i < DET_ARRAY_LEN(others); i++) {
        det_cleanup(freep) char *path = det_asprintf("%s/%s", dir, others[i]);
        assert_int_equal(mkdir(path, 0755), 0);
    }
    put(dir, "1b0e6a3c-5d0a-4c5e-9d3c-6a8f1c2d3e4f", "a file");
    JSON_OWN none = storage_names(store, &err);
    assert_int_equal(json_array_size(none), 0);
    for (int aside = 0; aside < 2; aside++) {
        assert_int_equal(
            aside ? storage_quarantine(store, UUID, &err) : storage_publish(store, UUID, &err), 0);
        JSON_OWN names = storage_names(store, &err);
        const json_t *one = json_array_get(names, 0);
        assert_int_equal(json_array_size(names), 1);
        assert_string_equal(json_str(one, "uuid", ""), UUID);
        assert_int_equal(json_flag(one, "aside", !aside), aside);
        assert_int_equal(json_int(one, "uid", -1), geteuid());
        assert_true(clk_wall_us() / 1000000 - json_int(one, "modified", 0) < 60);
        JSON_OWN all = storage_describe(store, UUID, aside, &err);
        assert_int_equal(json_int(json_obj(all, "resources"), "code/model_def.c", -1), 7);
        assert_true(json_is_object(json_object_get(all, "metadata")));
        assert_null(storage_describe(store, UUID, !aside, &err));
    }
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(publish_is_all_or_nothing),     T(what_a_crash_left_is_replaced),
        T(hostile_names_are_refused),     T(damage_is_named),
        T(damage_of_older_ones_is_named), T(delete_is_idempotent),
        T(sweep_takes_leftovers_only),    T(sweep_goes_by_age),
        T(configurations_are_checked),    T(all_lies_below_the_root),
        T(quarantine_keeps_the_files),    T(purge_takes_what_was_never_put_aside),
        T(globs_match_at_every_depth),    T(a_growing_file_is_followed),
        T(failed_write_names_the_path),   T(an_error_of_the_disk_counts),
        T(a_name_must_be_text),           T(names_are_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
