/* The spool of reports: order, survival of its process, torn ends, foreign files. */
#include "mem.h"
#include "spool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[] = "/tmp/det-spool-XXXXXX";

static int setup(void **state)
{
    memcpy(path + sizeof path - 7, "XXXXXX", 6);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    return 0;
}

static int teardown(void **state)
{
    return unlink(path);
}

static struct spool *open_it(void)
{
    struct spool *s = NULL;
    assert_int_equal(spool_open(path, &s, NULL), 0);
    return s;
}

static void append(struct spool *s, int n)
{
    char seq[16], body[32];
    snprintf(seq, sizeof seq, "1.%d", n);
    snprintf(body, sizeof body, "{\"n\":%d}", n);
    struct spool_record r = {seq, "POST", "/api/v1/x", n % 2 ? body : NULL};
    assert_int_equal(spool_append(s, &r, NULL), 0);
}

static void expect(struct spool *s, int n)
{
    char seq[16];
    struct spool_record r;
    snprintf(seq, sizeof seq, "1.%d", n);
    assert_int_equal(spool_next(s, &r, NULL), 0);
    assert_string_equal(r.seq, seq);
    assert_string_equal(r.method, "POST");
    assert_int_equal(r.body[0], n % 2 ? '{' : 0);
}

static void in_order_over_restarts(void **state)
{
    struct spool *s = open_it();
    struct spool_record r;
    for (int i = 0; i < 5; i++)
        append(s, i);
    expect(s, 0);
    expect(s, 0); /* the same until it was sent */
    assert_int_equal(spool_sent(s, NULL), 0);
    expect(s, 1);
    spool_close(s);
    s = open_it();
    for (int i = 1; i < 5; i++) {
        expect(s, i);
        assert_int_equal(spool_sent(s, NULL), 0);
    }
    assert_int_equal(spool_next(s, &r, NULL), DET_ENOENT);
    assert_int_equal(spool_pending(s), 0);
    append(s, 5);
    expect(s, 5);
    spool_close(s);
}

static void one_at_a_time(void **state)
{
    struct spool *s = open_it(), *other = NULL;
    assert_int_equal(spool_open(path, &other, NULL), DET_ESTATE);
    spool_close(s);
}

/* Cut at every length: what is whole stays, the rest is gone, and appending goes on. */
static void expect_more(struct spool *s, int n)
{
    char seq[16];
    struct spool_record r;
    snprintf(seq, sizeof seq, "1.%d", n);
    assert_int_equal(spool_more(s, &r, NULL), 0);
    assert_string_equal(r.seq, seq);
}

/* What is looked at and not taken stays; what was taken goes, or is there again after a crash. */
static void several_at_a_time(void **state)
{
    struct spool *s = open_it();
    struct spool_record r;
    assert_int_equal(spool_more(s, &r, NULL), DET_ENOENT);
    for (int i = 1; i <= 5; i++)
        append(s, i);
    expect(s, 1);
    expect_more(s, 2);
    expect_more(s, 2);
    spool_take(s);
    expect_more(s, 3);
    spool_take(s);
    spool_close(s);
    s = open_it();
    expect(s, 1);
    for (int i = 2; i <= 3; i++) {
        expect_more(s, i);
        spool_take(s);
    }
    expect_more(s, 4);
    assert_int_equal(spool_sent(s, NULL), 0);
    expect(s, 4);
    expect_more(s, 5);
    spool_take(s);
    assert_int_equal(spool_more(s, &r, NULL), DET_ENOENT);
    assert_int_equal(spool_sent(s, NULL), 0);
    assert_int_equal(spool_pending(s), 0);
    spool_close(s);
}

static void torn_end(void **state)
{
    struct stat st;
    struct spool *s = open_it();
    append(s, 1);
    spool_close(s);
    assert_int_equal(stat(path, &st), 0);
    off_t one = st.st_size;
    s = open_it();
    append(s, 2);
    spool_close(s);
    assert_int_equal(stat(path, &st), 0);
    for (off_t cut = st.st_size - 1; cut >= one; cut--) {
        assert_int_equal(truncate(path, cut), 0);
        s = open_it();
        expect(s, 1);
        spool_close(s);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_size, one);
    }
    s = open_it();
    append(s, 3);
    expect(s, 1);
    det_ignore(spool_sent(s, NULL), "the next line looks");
    expect(s, 3);
    spool_close(s);
}

static void flipped_bit(void **state)
{
    struct spool *s = open_it();
    struct spool_record r;
    append(s, 1);
    spool_close(s);
    int fd = open(path, O_RDWR);
    assert_int_equal(pwrite(fd, "?", 1, 30), 1);
    close(fd);
    s = open_it();
    assert_int_equal(spool_next(s, &r, NULL), DET_ENOENT);
    spool_close(s);
}

static void foreign_file(void **state)
{
    struct spool *s = NULL;
    int fd = open(path, O_RDWR);
    assert_int_equal(write(fd, "something else entirely", 23), 23);
    close(fd);
    assert_int_equal(spool_open(path, &s, NULL), DET_ECORRUPT);
}

static void shrinks(void **state)
{
    struct stat st;
    struct spool *s = open_it();
    det_cleanup(freep) char *big = det_alloc(1000001);
    memset(big, 'x', 1000000);
    big[1000000] = 0;
    struct spool_record r = {"1.1", "POST", "/p", big};
    for (int i = 0; i < 3; i++)
        assert_int_equal(spool_append(s, &r, NULL), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(spool_next(s, &r, NULL), 0);
        assert_int_equal(strlen(r.body), 1000000);
        assert_int_equal(spool_sent(s, NULL), 0);
    }
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 16);
    append(s, 4);
    expect(s, 4);
    spool_close(s);
}

/* A crash between the two steps of shrinking: the file is short, the offset still far behind its
 * end. */
static void crash_while_shrinking(void **state)
{
    struct spool *s = open_it();
    uint64_t far = 5000;
    spool_close(s);
    int fd = open(path, O_RDWR);
    assert_int_equal(pwrite(fd, &far, sizeof far, 8), sizeof far);
    close(fd);
    s = open_it();
    append(s, 1);
    spool_close(s);
    s = open_it();
    expect(s, 1);
    spool_close(s);
}

static void in_memory(void **state)
{
    struct spool *s = NULL;
    assert_int_equal(spool_open(NULL, &s, NULL), 0);
    append(s, 1);
    expect(s, 1);
    spool_close(s);
}

static void a_full_one_is_empty_once_all_is_sent(void **state)
{
    struct spool *s = open_it();
    struct stat st;
    spool_limit(s, 100);
    assert_false(spool_is_full(s));
    int n = 0;
    while (!spool_is_full(s))
        append(s, n++);
    for (int i = 0; i < n; i++) {
        assert_true(spool_is_full(s));
        expect(s, i);
        assert_int_equal(spool_sent(s, NULL), 0);
    }
    assert_false(spool_is_full(s));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 16);
    spool_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        T(in_order_over_restarts),
        T(one_at_a_time),
        T(torn_end),
        T(flipped_bit),
        T(foreign_file),
        T(shrinks),
        T(crash_while_shrinking),
        T(a_full_one_is_empty_once_all_is_sent),
        T(several_at_a_time),
        cmocka_unit_test(in_memory),
    };
    return cmocka_run_group_tests_name("spool", tests, NULL, NULL);
}
