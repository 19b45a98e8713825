/* A store has an identity: what is at its place without it is never taken for the store. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>

#include "fsx.h"
#include "mem.h"
#include "storage.h"
#include "storeplace.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define UUID "0b0e6a3c-5d0a-4c5e-9d3c-6a8f1c2d3e4f"

static char base[] = "/tmp/det-marker-XXXXXX";
static char *root, *aside; /* the store's place, and where it is renamed to: unmounted */
static char id[UUID_STR_MAX];
static struct det_err err;
static struct storage *store;

static int setup(void **state)
{
    memcpy(base + sizeof base - 7, "XXXXXX", 6);
    if (!mkdtemp(base))
        return -1;
    root = det_asprintf("%s/a/b", base);
    aside = det_asprintf("%s/aside", base);
    store = NULL;
    return 0;
}

static int teardown(void **state)
{
    storage_close(store);
    free(root);
    free(aside);
    return fsx_remove_tree(AT_FDCWD, base, &err);
}

static int open_store(const char *want)
{
    JSON_OWN config = json_make("{s:s,s:s}", "type", "directory", "container_path", root);
    storage_close(det_take(store));
    return storage_open_store(config, want, &store, &err);
}

static void publish(void)
{
    char *dir = NULL;
    assert_int_equal(storage_begin(store, UUID, &dir, &err), 0);
    free(dir);
    assert_int_equal(storage_publish(store, UUID, &err), 0);
}

static void make_and_open(void)
{
    assert_int_equal(storage_make(root, NULL, id, &err), 0);
    assert_int_equal(open_store(id), 0);
}

static enum storage_sight look(const char *want, const json_t *known)
{
    struct storage_seen seen;
    storage_look(root, want, known, &seen);
    assert_true((seen.sight == STORAGE_PRESENT) == (seen.text[0] == '\0'));
    return seen.sight;
}

/* All that touches a store refuses, and the directory in its place stays empty. */
static void all_refuse(void)
{
    char *path = NULL;
    const int away = DET_EUNAVAIL;
    assert_int_equal(storage_begin(store, "new", &path, &err), away);
    assert_int_equal(storage_exists(store, UUID, &err), away);
    assert_int_equal(storage_get(store, UUID, &path, &err), away);
    assert_int_equal(storage_delete(store, UUID, &err), away);
    assert_int_equal(storage_quarantine(store, UUID, &err), away);
    assert_int_equal(storage_restore(store, UUID, &err), away);
    assert_int_equal(storage_purge(store, UUID, &err), away);
    assert_int_equal(storage_delete_glob(store, UUID, "*", &err), away);
    assert_int_equal(storage_sweep(store, 0, &err), away);
    assert_int_equal(storage_check(store, &err), away);
    assert_int_equal(storage_follow_dir(store, "t/x", base, NULL, &err), away);
    assert_int_equal(storage_remove_tree(store, "t/x", &err), away);
    assert_null(storage_list(store, UUID, &err));
    assert_int_equal(err.code, away);
    assert_non_null(strstr(err.text, root));
    assert_non_null(strstr(err.text, "mount it there"));
    assert_int_not_equal(open_store(id), 0);
    assert_int_equal(err.code, away);
}

static void the_first_use_makes_it(void **state)
{
    char again[UUID_STR_MAX];
    assert_int_equal(look(NULL, NULL), STORAGE_ABSENT);
    make_and_open();
    assert_true(uuid_is_valid(id));
    assert_int_equal(look(id, NULL), STORAGE_PRESENT);
    assert_int_equal(storage_make(root, NULL, again, &err), 0);
    assert_string_equal(again, id);
    publish();
    assert_int_equal(storage_sweep(store, 0, &err), 0);
    assert_int_equal(look(id, NULL), STORAGE_PRESENT);
}

static void an_unmounted_one_is_away(void **state)
{
    make_and_open();
    publish();
    assert_int_equal(rename(root, aside), 0);
    all_refuse();
    assert_int_equal(access(root, F_OK), -1); /* nothing was made there */
    assert_int_equal(rename(aside, root), 0);
    assert_int_equal(open_store(id), 0);
    assert_int_equal(storage_exists(store, UUID, &err), 0);
}

static void an_empty_directory_is_not_the_store(void **state)
{
    make_and_open();
    publish();
    assert_int_equal(rename(root, aside), 0);
    assert_int_equal(mkdir(root, 0755), 0);
    assert_int_equal(look(id, NULL), STORAGE_ABSENT);
    all_refuse();
    assert_int_equal(rmdir(root), 0); /* it is still empty */
}

/* The descriptor follows what is mounted anew. */
static void a_store_that_comes_back_is_used(void **state)
{
    make_and_open();
    assert_int_equal(rename(root, aside), 0);
    assert_int_equal(storage_ready(store, &err), DET_EUNAVAIL);
    assert_int_equal(mkdir(root, 0755), 0);
    det_cleanup(freep) char *from = det_asprintf("%s/%s", aside, STORAGE_MARKER);
    det_cleanup(freep) char *to = det_asprintf("%s/%s", root, STORAGE_MARKER);
    assert_int_equal(rename(from, to), 0); /* a copy of the store, at the same place */
    publish();
    assert_int_equal(storage_exists(store, UUID, &err), 0);
    det_cleanup(freep) char *path = det_asprintf("%s/%s", root, UUID);
    assert_int_equal(access(path, F_OK), 0);
}

static void another_one_is_not_the_store(void **state)
{
    char other[UUID_STR_MAX];
    make_and_open();
    assert_int_equal(rename(root, aside), 0);
    assert_int_equal(storage_make(root, NULL, other, &err), 0);
    assert_string_not_equal(other, id);
    assert_int_equal(look(id, NULL), STORAGE_OTHER);
    assert_int_equal(storage_ready(store, &err), DET_EUNAVAIL);
    assert_non_null(strstr(err.text, other));
    assert_int_equal(look(NULL, NULL), STORAGE_PRESENT); /* to whom knows none */
}

/* Checkpoints of before there were markers. */
static void what_holds_known_checkpoints_is_adopted(void **state)
{
    JSON_OWN known = json_make("[s,s]", "no-such", UUID);
    JSON_OWN strange = json_make("[s,s]", "../x", "other");
    assert_int_equal(storage_make(root, known, id, &err), DET_ENOENT);
    assert_int_equal(access(root, F_OK), -1);
    assert_int_equal(open_store(NULL), 0);
    publish();
    assert_int_equal(look(NULL, strange), STORAGE_ABSENT);
    assert_int_equal(storage_make(root, strange, id, &err), DET_ENOENT);
    assert_int_equal(look(NULL, known), STORAGE_KNOWN);
    assert_int_equal(storage_quarantine(store, UUID, &err), 0); /* put aside, and there */
    assert_int_equal(look(NULL, known), STORAGE_KNOWN);
    assert_int_equal(storage_make(root, known, id, &err), 0);
    assert_int_equal(look(id, known), STORAGE_PRESENT);
}

static void a_marker_that_is_none_is_told(void **state)
{
    make_and_open();
    det_cleanup(freep) char *path = det_asprintf("%s/%s", root, STORAGE_MARKER);
    static const char *const bad[] = {"", "{", "{\"id\": \"x\"}", "{\"id\": 7}", "[]"};
    for (size_t i = 0; i < DET_ARRAY_LEN(bad); i++) {
        assert_int_equal(fsx_write_atomic(AT_FDCWD, path, bad[i], strlen(bad[i]), 0644, &err), 0);
        assert_int_equal(look(id, NULL), STORAGE_ABSENT);
        assert_int_equal(storage_ready(store, &err), DET_EUNAVAIL);
        assert_int_equal(storage_make(root, NULL, id, &err) < 0, 1);
    }
}

static void a_local_run_needs_none(void **state)
{
    assert_int_equal(open_store(NULL), 0);
    publish();
    assert_int_equal(storage_ready(store, &err), 0);
    assert_int_equal(look(NULL, NULL), STORAGE_ABSENT);
}

static void places_have_one_name(void **state)
{
    static const struct {
        const char *config, *place;
    } rows[] = {
        {"{\"type\":\"shared_fs\",\"host_path\":\"/a//b/\"}", "/a/b"},
        {"{\"type\":\"shared_fs\",\"host_path\":\"/a/./b\",\"storage_path\":\"c/\"}", "/a/b/c"},
        {"{\"type\":\"shared_fs\",\"host_path\":\"/a/b/\",\"storage_path\":\"/a/b/c\"}", "/a/b/c"},
        {"{\"type\":\"shared_fs\",\"host_path\":\"/\"}", "/"},
        {"{\"type\":\"directory\",\"container_path\":\"/a/.b/...\"}", "/a/.b/..."},
    };
    for (size_t i = 0; i < DET_ARRAY_LEN(rows); i++) {
        det_cleanup(freep) char *place = NULL;
        JSON_OWN config = json_parse(rows[i].config, strlen(rows[i].config), &err);
        assert_int_equal(storeplace_of(config, &place, &err), 0);
        assert_string_equal(place, rows[i].place);
    }
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(the_first_use_makes_it),
        T(an_unmounted_one_is_away),
        T(an_empty_directory_is_not_the_store),
        T(a_store_that_comes_back_is_used),
        T(another_one_is_not_the_store),
        T(what_holds_known_checkpoints_is_adopted),
        T(a_marker_that_is_none_is_told),
        T(a_local_run_needs_none),
        T(places_have_one_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
