/* Each call of the system that a store makes fails once: what it was part of says so, by name, a
 * checkpoint is whole or not there, and doing it again does it. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>

#include "fsx.h"
#include "mem.h"
#include "nth_call.h"
#include "storage.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define UUID    "0b0e6a3c-5d0a-4c5e-9d3c-6a8f1c2d3e4f"
#define CLUSTER "7d1f1c9e-2a52-4c39-8a54-1f0d8e6b7c11"

/* ---- in place of the C library's ---- */

WRAP(int, -1, fchmod, (int fd, mode_t mode), fd, mode)
WRAP(int, -1, fstat64, (int fd, struct stat *st), fd, st)
WRAP(int, -1, fstatat64, (int fd, const char *name, struct stat *st, int flags), fd, name, st,
     flags)
WRAP(int, -1, mkdirat, (int fd, const char *name, mode_t mode), fd, name, mode)
WRAP(int, -1, unlinkat, (int fd, const char *name, int flags), fd, name, flags)
WRAP(int, -1, linkat, (int a, const char *from, int b, const char *to, int flags), a, from, b, to,
     flags)
WRAP(int, -1, renameat, (int a, const char *from, int b, const char *to), a, from, b, to)
WRAP(int, -1, renameat2, (int a, const char *from, int b, const char *to, unsigned flags), a, from,
     b, to, flags)
WRAP(int, -1, dup3, (int from, int to, int flags), from, to, flags)
WRAP(DIR *, NULL, fdopendir, (int fd), fd)
WRAP(struct dirent *, NULL, readdir64, (DIR * d), d)
WRAP(off_t, -1, lseek64, (int fd, off_t at, int whence), fd, at, whence)
WRAP(ssize_t, -1, read, (int fd, void *p, size_t n), fd, p, n)
WRAP(ssize_t, -1, write, (int fd, const void *p, size_t n), fd, p, n)
WRAP(ssize_t, -1, copy_file_range, (int in, off_t *a, int out, off_t *b, size_t n, unsigned flags),
     in, a, out, b, n, flags)

int __wrap_fsync(int fd);
int __wrap_fsync(int fd) /* no disk is waited for */
{
    return fails("fsync") ? -1 : 0;
}

int sync_file_range(int fd, off_t at, off_t bytes, unsigned flags)
{
    return 0;
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd) /* which closes all the same */
{
    bool is_written = (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
    int rc = __real_close(fd);
    return fails(is_written ? "close a written one" : "close") ? -1 : rc;
}

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    return fails("open64") ? -1 : __real_open64(path, flags, mode);
}

int __real_openat64(int fd, const char *path, int flags, ...);
int __wrap_openat64(int fd, const char *path, int flags, ...);
int __wrap_openat64(int fd, const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    return fails("openat64") ? -1 : __real_openat64(fd, path, flags, mode);
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    long v[6];
    va_list ap;
    va_start(ap, number);
    for (size_t i = 0; i < DET_ARRAY_LEN(v); i++)
        v[i] = va_arg(ap, long);
    va_end(ap);
    if (number == SYS_openat2 && fails("openat2"))
        return -1;
    return __real_syscall(number, v[0], v[1], v[2], v[3], v[4], v[5]);
}

/* ---- a store, and what is done in it ---- */

static char base[40];
static char *root, *local;
static char id[UUID_STR_MAX];
static struct storage *store;
static struct det_err err;

static void put(const char *dir, const char *name, const char *text)
{
    det_cleanup(freep) char *path = det_asprintf("%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static void make_dir(const char *above, const char *name)
{
    det_cleanup(freep) char *path = det_asprintf("%s/%s", above, name);
    assert_int_equal(fsx_mkdirs(AT_FDCWD, path, 0755, &err), 0);
}

static int open_store(void)
{
    JSON_OWN config = json_make("{s:s,s:s}", "type", "directory", "container_path", root);
    storage_close(det_take(store));
    return storage_open_store(config, id, &store, &err);
}

static void begin_checkpoint(void)
{
    det_cleanup(freep) char *tmp = NULL;
    assert_int_equal(storage_begin(store, UUID, &tmp, &err), 0);
    make_dir(tmp, "code");
    put(tmp, "metadata.json", "{\"det_cluster\": \"theirs\"}");
    put(tmp, "code/model_def.c", "int x;\n");
}

static void publish_checkpoint(void)
{
    begin_checkpoint();
    assert_int_equal(storage_publish(store, UUID, &err), 0);
}

static void put_aside(void)
{
    publish_checkpoint();
    assert_int_equal(storage_quarantine(store, UUID, &err), 0);
}

/* Beside it: a cluster's folder of TensorBoard files, which is none. */
static void publish_among_others(void)
{
    publish_checkpoint();
    make_dir(root, CLUSTER "/tensorboard");
}

static void write_events(void)
{
    assert_int_equal(chmod(root, 01777), 0);
    make_dir(local, "events");
    put(local, "events/tfevents.1", "one");
    put(local, "text", "two");
}

static void make_place(void)
{
    make_dir(root, "place/of/events");
    put(root, "place/of/events/tfevents.1", "one");
}

static void do_nothing(void)
{
}

static int run_begin(void)
{
    det_cleanup(freep) char *tmp = NULL;
    return storage_begin(store, UUID, &tmp, &err);
}

/* Published is published, though it was not told: the caller finds it there. */
static int run_publish(void)
{
    int rc = storage_publish(store, UUID, &err);
    return rc == DET_ENOENT && !countdown && storage_exists(store, UUID, NULL) == 0 ? 0 : rc;
}

static void find_whole(void)
{
    JSON_OWN list = storage_list(store, UUID, &err);
    assert_int_equal(json_int(list, "code/model_def.c", -1), 7);
    assert_int_equal(json_object_size(list), 3);
}

static int run_delete(void)
{
    return storage_delete(store, UUID, &err);
}

static int run_glob(void)
{
    return storage_delete_glob(store, UUID, "**/*.c", &err);
}

static int run_quarantine(void)
{
    return storage_quarantine(store, UUID, &err);
}

static int run_restore(void)
{
    return storage_restore(store, UUID, &err);
}

static int run_purge(void)
{
    return storage_purge(store, UUID, &err);
}

static int run_sweep(void)
{
    return storage_sweep(store, 0, &err);
}

static void find_none(void)
{
    JSON_OWN names = storage_names(store, &err);
    assert_int_equal(json_array_size(names), 0);
    det_cleanup(freep) char *tmp = det_asprintf("%s/.%s.tmp", root, UUID);
    assert_int_not_equal(access(tmp, F_OK), 0);
}

static void find_no_code(void)
{
    JSON_OWN list = storage_list(store, UUID, &err);
    assert_int_equal(json_object_size(list), 2);
    assert_null(json_object_get(list, "code/model_def.c"));
}

/* All that is there, or an error: what is not in the list is held to be gone. */
static int run_names(void)
{
    JSON_OWN names = storage_names(store, &err);
    if (names) {
        assert_int_equal(json_array_size(names), 1);
        assert_string_equal(json_str(json_array_get(names, 0), "uuid", ""), UUID);
    }
    return names ? 0 : err.code;
}

/* Of no cluster is only what says so. */
static int run_describe(void)
{
    JSON_OWN j = storage_describe(store, UUID, false, &err);
    if (j) {
        assert_int_equal(json_object_size(json_obj(j, "resources")), 3);
        assert_string_equal(json_str(json_obj(j, "metadata"), STORAGE_CLUSTER, ""), "theirs");
    }
    return j ? 0 : err.code;
}

static int run_list(void)
{
    JSON_OWN list = storage_list(store, UUID, &err);
    if (list)
        assert_int_equal(json_object_size(list), 3);
    return list ? 0 : err.code;
}

static int run_hash(void)
{
    det_cleanup(freep) char *dir = storage_path(store, UUID);
    JSON_OWN sums = storage_hash_dir(dir, NULL, &err);
    if (!sums)
        return err.code;
    assert_int_equal(json_object_size(sums), 2);
    JSON_OWN metadata = json_make("{s:O}", STORAGE_HASHES, sums);
    return storage_verify_dir(dir, metadata, &err);
}

static int run_follow(void)
{
    return storage_follow_dir(store, "place/of/events", local, NULL, &err);
}

static void find_followed(void)
{
    struct stat st;
    det_cleanup(freep) char *copy = det_asprintf("%s/place/of/events/events/tfevents.1", root);
    det_cleanup(freep) char *shared = det_asprintf("%s/place/of", root);
    assert_int_equal(stat(copy, &st), 0);
    assert_int_equal(st.st_size, 3);
    assert_int_equal(stat(shared, &st), 0);
    assert_true(S_ISDIR(st.st_mode));
}

static int run_remove(void)
{
    return storage_remove_tree(store, "place/of", &err);
}

static void find_removed(void)
{
    det_cleanup(freep) char *of = det_asprintf("%s/place/of", root);
    assert_int_not_equal(access(of, F_OK), 0);
}

static int run_make(void)
{
    char made[UUID_STR_MAX] = "", again[UUID_STR_MAX] = "";
    det_cleanup(freep) char *place = det_asprintf("%s/other/place", base);
    int rc = storage_make(place, NULL, made, &err);
    int kept = countdown;
    countdown = 0;
    if (rc == 0) { /* the marker has the id that was told */
        assert_int_equal(storage_make(place, NULL, again, &err), 0);
        assert_string_equal(made, again);
    }
    countdown = kept;
    return rc;
}

static int run_open(void)
{
    return open_store();
}

static int run_check(void)
{
    return storage_check(store, &err);
}

static const struct job {
    const char *name;
    void (*prepare)(void);
    int (*run)(void);
    void (*look)(void);
    const char *lenient; /* a call whose failure it may pass over */
} jobs[] = {
    {"begin", begin_checkpoint, run_begin, do_nothing, NULL},
    {"publish", begin_checkpoint, run_publish, find_whole, NULL},
    {"delete", publish_checkpoint, run_delete, find_none, NULL},
    {"delete what was begun", begin_checkpoint, run_delete, find_none, NULL},
    {"delete files", publish_checkpoint, run_glob, find_no_code, NULL},
    {"quarantine", publish_checkpoint, run_quarantine, do_nothing, NULL},
    {"restore", put_aside, run_restore, find_whole, NULL},
    {"purge", put_aside, run_purge, find_none, NULL},
    {"sweep", begin_checkpoint, run_sweep, find_none, NULL},
    {"names", publish_among_others, run_names, do_nothing, NULL},
    {"describe", publish_checkpoint, run_describe, do_nothing, NULL},
    {"list", publish_checkpoint, run_list, do_nothing, NULL},
    {"hashes", publish_checkpoint, run_hash, do_nothing, NULL},
    {"follow", write_events, run_follow, find_followed, NULL},
    {"remove a tree", make_place, run_remove, find_removed, NULL},
    {"make", do_nothing, run_make, do_nothing, "close a written one"},
    {"open", do_nothing, run_open, do_nothing, NULL},
    {"check", do_nothing, run_check, find_none, NULL},
};

/* In memory where that is to be had: 30,000 names come and go, each through a disk's journal. */
static void raise_store(void)
{
    snprintf(base, sizeof base, "%s/det-storage-nth-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    assert_non_null(mkdtemp(base));
    root = det_asprintf("%s/store", base);
    local = det_asprintf("%s/local", base);
    assert_int_equal(storage_make(root, NULL, id, &err), 0);
    assert_int_equal(open_store(), 0);
}

static void raze_store(void)
{
    countdown = 0;
    if (!root)
        return;
    storage_close(det_take(store));
    assert_int_equal(fsx_remove_tree(AT_FDCWD, base, &err), 0);
    free(det_take(root));
    free(det_take(local));
}

/* There is another way to do it, or it is done again. */
static bool has_other_way(const char *name, int error)
{
    static const char *const ways[] = {"openat2", "renameat2", "copy_file_range"};
    static const char *const again[] = {"read", "write", "openat2", "copy_file_range"};
    for (size_t i = 0; error == ENOSYS && i < DET_ARRAY_LEN(ways); i++)
        if (strcmp(name, ways[i]) == 0)
            return true;
    for (size_t i = 0; error == EINTR && i < DET_ARRAY_LEN(again); i++)
        if (strcmp(name, again[i]) == 0)
            return true;
    return false;
}

/* What was read needs no good end; a root of which nothing is known is opened anew. */
static bool may_pass(const struct job *j, const char *name)
{
    return strcmp(name, "close") == 0 || strcmp(name, "fstat64") == 0 ||
           (j->lenient && strcmp(name, j->lenient) == 0);
}

static void judge(const struct job *j, int n, int rc)
{
    if (has_other_way(struck, says) ? rc < 0 : rc == 0 && !may_pass(j, struck))
        fail_msg("%s: the call %d, %s, says \"%s\", and it ends with %d (%s)", j->name, n, struck,
                 strerror(says), rc, err.text);
    if (rc < 0 && (rc != err.code || !strstr(err.text, strerror(says))))
        fail_msg("%s: the call %d, %s, says \"%s\", and the error is %d, \"%s\"", j->name, n,
                 struck, strerror(says), err.code, err.text);
}

/* Whether a call failed: there were so many. */
static bool try_nth(const struct job *j, int n)
{
    raise_store();
    j->prepare();
    err = (struct det_err){0};
    struck = NULL;
    countdown = n;
    int rc = j->run();
    countdown = 0;
    if (struck)
        judge(j, n, rc);
    int again = rc < 0 ? j->run() : rc;
    if (again < 0)
        fail_msg("%s: not again after the call %d, %s: %s", j->name, n, struck ? struck : "none",
                 err.text);
    j->look();
    raze_store();
    return struck;
}

static int teardown(void **state)
{
    raze_store();
    return 0;
}

static void try_all(int error)
{
    says = error;
    for (size_t i = 0; i < DET_ARRAY_LEN(jobs); i++) {
        int n = 1;
        while (try_nth(&jobs[i], n))
            n++;
        assert_in_range(n, 3, 500);
    }
}

static void a_disk_fails(void **state)
{
    try_all(EIO);
}

static void a_call_is_not_there(void **state)
{
    try_all(ENOSYS);
}

static void a_call_is_interrupted(void **state)
{
    try_all(EINTR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_disk_fails, teardown),
        cmocka_unit_test_teardown(a_call_is_not_there, teardown),
        cmocka_unit_test_teardown(a_call_is_interrupted, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
