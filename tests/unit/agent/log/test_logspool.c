/* The spool of a log: what a crash, a full disk or a call that fails once leaves of it is whole
 * lines, each once, and what is missing is told. */
#include "logspool.h"

#include "nth_call.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- in place of the C library's ---- */

static bool disk_is_full;

WRAP(int, -1, fstat64, (int fd, struct stat *st), fd, st)
WRAP(int, -1, ftruncate64, (int fd, off_t size), fd, size)
WRAP(int, -1, fallocate64, (int fd, int mode, off_t from, off_t n), fd, mode, from, n)
WRAP(ssize_t, -1, pread64, (int fd, void *p, size_t n, off_t at), fd, p, n, at)

int __real_openat64(int dirfd, const char *path, int flags, mode_t mode);
int __wrap_openat64(int dirfd, const char *path, int flags, mode_t mode);
int __wrap_openat64(int dirfd, const char *path, int flags, mode_t mode)
{
    return fails("openat64") ? -1 : __real_openat64(dirfd, path, flags, mode);
}

/* A disk takes a part of what does not fit. */
ssize_t __real_pwrite64(int fd, const void *p, size_t n, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *p, size_t n, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *p, size_t n, off_t at)
{
    if (disk_is_full && n < 20) {
        errno = ENOSPC;
        return -1;
    }
    if (fails("pwrite64"))
        return -1;
    return __real_pwrite64(fd, p, disk_is_full ? n / 2 : n, at);
}

/* ---- a spool and who reads it ---- */

#define LINES_MAX 64

struct desk {
    char path[32];
    struct logspool *spool;
    int64_t first; /* the number of the next line that who opens it adds */
    size_t n;
    char got[LINES_MAX][128]; /* the texts that arrived, in order */
    int64_t offset;           /* of the last one: what comes again has arrived before */
};

static int try_open(struct desk *d, struct det_err *err)
{
    struct logspool_origin o = {"3.x", "3.x.1", "c", "agent-0"};
    return logspool_open(AT_FDCWD, d->path, &o, d->first += 100, &d->spool, err);
}

static void begin(struct desk *d)
{
    *d = (struct desk){.path = "/tmp/det-logspool-XXXXXX"};
    close(mkstemp(d->path));
    assert_int_equal(try_open(d, NULL), 0);
}

static void reopen(struct desk *d)
{
    logspool_close(d->spool);
    assert_int_equal(try_open(d, NULL), 0);
}

static void end(struct desk *d)
{
    logspool_close(d->spool);
    unlink(d->path);
}

static void add(struct desk *d, const char *text)
{
    char line[128];
    struct logline l = {.text = line, .rank = -1};
    l.len = (size_t)snprintf(line, sizeof line, "%s\n", text);
    logspool_add(d->spool, "stdout", 0, &l);
}

static void take(struct desk *d, const json_t *line)
{
    if (json_int(line, "offset", -1) <= d->offset)
        return;
    assert_true(d->n < LINES_MAX);
    snprintf(d->got[d->n], sizeof d->got[0], "%s", json_str(line, "log", "no log"));
    d->got[d->n][strcspn(d->got[d->n], "\n")] = '\0';
    d->n++;
    d->offset = json_int(line, "offset", -1);
}

/* One batch, as the master would have it: whole JSON. False: there is none any more. */
static bool ship(struct desk *d)
{
    det_cleanup(buf_finish) struct buf body = BUF_INIT;
    struct det_err err;
    uint64_t bytes = 0;
    if (logspool_batch(d->spool, &body, &bytes, &err) < 0) {
        assert_non_null(strstr(err.text, "read the log spool"));
        return true;
    }
    if (bytes == 0) {
        assert_int_equal(body.len, 0);
        return false;
    }
    JSON_OWN j = json_loadb(body.p, body.len, 0, NULL);
    assert_non_null(j);
    for (size_t i = 0; i < json_array_size(json_object_get(j, "logs")); i++)
        take(d, json_array_get(json_object_get(j, "logs"), i));
    logspool_sent(d->spool, bytes);
    return true;
}

static void ship_all(struct desk *d)
{
    int tries = 0;
    while (ship(d))
        assert_true(++tries < LINES_MAX);
}

static bool has(const struct desk *d, const char *text)
{
    for (size_t i = 0; i < d->n; i++)
        if (strcmp(d->got[i], text) == 0)
            return true;
    return false;
}

static bool is_loss_told(const struct desk *d)
{
    for (size_t i = 0; i < d->n; i++)
        if (strstr(d->got[i], "are lost"))
            return true;
    return false;
}

static off_t size_of(const struct desk *d)
{
    struct stat st;
    assert_int_equal(stat(d->path, &st), 0);
    return st.st_size;
}

static void append_raw(const struct desk *d, const char *text)
{
    FILE *f = fopen(d->path, "a");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

/* ---- the cases ---- */

static void half_a_line_of_a_crash_is_cut(void **state)
{
    (void)state;
    struct desk d;
    begin(&d);
    add(&d, "first");
    append_raw(&d, "{\"log\": \"ha");
    reopen(&d);
    add(&d, "second");
    ship_all(&d);
    assert_int_equal(d.n, 2);
    assert_string_equal(d.got[0], "first");
    assert_string_equal(d.got[1], "second");
    assert_int_equal(size_of(&d), 0); /* sent whole */
    end(&d);
}

static void lines_that_a_full_disk_takes_in_part_are_counted(void **state)
{
    (void)state;
    struct desk d;
    begin(&d);
    add(&d, "before");
    disk_is_full = true;
    add(&d, "lost");
    add(&d, "lost");
    disk_is_full = false;
    add(&d, "after");
    ship_all(&d);
    assert_int_equal(d.n, 3);
    assert_string_equal(d.got[1], "after");
    assert_non_null(strstr(d.got[2], "2 lines before this one are lost"));
    end(&d);
}

/* The line that tells of the loss is lost too: the next one tells. */
static void a_loss_is_told_when_there_is_room(void **state)
{
    (void)state;
    struct desk d;
    begin(&d);
    disk_is_full = true;
    add(&d, "lost");
    disk_is_full = false;
    says = ENOSPC;
    countdown = 2; /* the line is written, and not what tells of the loss */
    add(&d, "first");
    assert_int_equal(countdown, 0);
    add(&d, "second");
    ship_all(&d);
    assert_int_equal(d.n, 3);
    assert_string_equal(d.got[1], "second");
    assert_non_null(strstr(d.got[2], "1 lines before this one are lost"));
    end(&d);
}

/* No line comes after it: the end of the output tells. */
static void a_loss_at_the_end_is_told(void **state)
{
    (void)state;
    struct desk d;
    begin(&d);
    add(&d, "before");
    disk_is_full = true;
    add(&d, "lost");
    disk_is_full = false;
    logspool_end(d.spool);
    ship_all(&d);
    assert_int_equal(d.n, 2);
    assert_non_null(strstr(d.got[1], "1 lines before this one are lost"));
    end(&d);
}

static void what_exceeds_the_limit_is_left_out_but_its_end(void **state)
{
    (void)state;
    struct desk d;
    begin(&d);
    logspool_limit(d.spool, 1);
    add(&d, "kept");
    for (int i = 0; i < 66; i++)
        add(&d, i < 2 ? "left out" : i < 65 ? "near the end" : "the end");
    ship_all(&d);
    assert_int_equal(d.n, 2);
    assert_non_null(strstr(d.got[1], "log truncated"));
    d.n = 0;
    logspool_end(d.spool);
    det_cleanup(buf_finish) struct buf body = BUF_INIT;
    uint64_t bytes;
    assert_int_equal(logspool_batch(d.spool, &body, &bytes, NULL), 0);
    assert_non_null(strstr(buf_str(&body), "66 lines ("));
    assert_non_null(strstr(buf_str(&body), "the last 64 of them"));
    assert_null(strstr(buf_str(&body), "left out\\n"));
    assert_non_null(strstr(buf_str(&body), "the end\\n"));
    logspool_end(d.spool); /* there is nothing more to say */
    assert_int_equal(logspool_unsent(d.spool), bytes);
    end(&d);
}

/* What was sent is given back to the disk, and not sent again by who opens the spool after. */
static void what_was_sent_becomes_a_hole(void **state)
{
    (void)state;
    struct desk d;
    struct stat st;
    char text[8000];
    memset(text, 'x', sizeof text);
    begin(&d);
    struct logline l = {.text = text, .len = sizeof text, .rank = -1};
    for (int i = 0; i < 2250; i++)
        logspool_add(d.spool, "stdout", 0, &l);
    for (uint64_t sent = 0, bytes; sent < (uint64_t)16 << 20; sent += bytes) {
        det_cleanup(buf_finish) struct buf body = BUF_INIT;
        assert_int_equal(logspool_batch(d.spool, &body, &bytes, NULL), 0);
        assert_in_range(bytes, 1, 1 << 20);
        logspool_sent(d.spool, bytes);
    }
    uint64_t left = logspool_unsent(d.spool);
    assert_int_equal(stat(d.path, &st), 0);
    assert_true((uint64_t)st.st_blocks * 512 < (uint64_t)4 << 20);
    reopen(&d);
    assert_int_equal(logspool_unsent(d.spool), left);
    assert_false(logspool_is_full(d.spool));
    end(&d);
}

static void a_file_that_was_cut_behind_our_back_says_so(void **state)
{
    (void)state;
    struct desk d;
    struct det_err err;
    det_cleanup(buf_finish) struct buf body = BUF_INIT;
    uint64_t bytes;
    begin(&d);
    add(&d, "gone");
    assert_int_equal(truncate(d.path, 3), 0);
    assert_int_equal(logspool_batch(d.spool, &body, &bytes, &err), DET_EIO);
    assert_string_equal(err.text, "read the log spool: it is cut");
    end(&d);
}

/* The life of a spool over which a crash goes. What was added is there, in order, or told. */
static void live(struct desk *d)
{
    struct det_err err = {.text = ""};
    *d = (struct desk){.path = "/tmp/det-logspool-XXXXXX"};
    close(mkstemp(d->path));
    if (try_open(d, &err) < 0) {
        assert_non_null(strstr(err.text, "open the log spool"));
        assert_int_equal(try_open(d, NULL), 0);
    }
    add(d, "one");
    add(d, "two");
    ship_all(d);
    add(d, "three");
    append_raw(d, "ha");
    logspool_close(d->spool);
    if (try_open(d, NULL) < 0)
        assert_int_equal(try_open(d, NULL), 0);
    ship_all(d);
    add(d, "four");
    add(d, "five");
    logspool_end(d->spool);
    ship_all(d);
    end(d);
}

/* Who crashes tells nothing of the line that was lost just before. */
static void check_life(const struct desk *d, bool may_lose)
{
    static const char *const added[] = {"one", "two", "three", "four", "five"};
    size_t missing = 0;
    for (size_t i = 0; i < DET_ARRAY_LEN(added); i++)
        missing += !has(d, added[i]);
    assert_in_range(missing, 0, may_lose);
    assert_int_equal(is_loss_told(d), missing > 0 && has(d, "three"));
    assert_int_equal(d->n, 5 - missing + is_loss_told(d));
}

static void each_call_that_fails_once(void **state)
{
    (void)state;
    static const int said[] = {EIO, EINTR};
    for (size_t k = 0; k < DET_ARRAY_LEN(said); k++)
        for (int nth = 1;; nth++) {
            struct desk d;
            countdown = nth;
            says = said[k];
            struck = NULL;
            live(&d);
            if (countdown > 0) {
                countdown = 0;
                assert_true(nth > 15); /* so many calls there are */
                break;
            }
            check_life(&d, says == EIO && strcmp(struck, "pwrite64") == 0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(half_a_line_of_a_crash_is_cut),
        cmocka_unit_test(lines_that_a_full_disk_takes_in_part_are_counted),
        cmocka_unit_test(a_loss_is_told_when_there_is_room),
        cmocka_unit_test(a_loss_at_the_end_is_told),
        cmocka_unit_test(what_exceeds_the_limit_is_left_out_but_its_end),
        cmocka_unit_test(what_was_sent_becomes_a_hole),
        cmocka_unit_test(a_file_that_was_cut_behind_our_back_says_so),
        cmocka_unit_test(each_call_that_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
