/* The stacks of a Python process: where the user's own code is comes first. */
#include "pystacks.h"

#include "buf.h"
#include "mem.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static const char dir[] = "/var/lib/det/tasks/1.1.abc";

static void say_place(void *arg, const char *where)
{
    buf_addf(arg, "at %s\n", where);
}

static void pass_on(void *arg, const struct logline *l)
{
    buf_add(arg, l->text, l->len);
}

static bool add(struct pystacks *p, const char *text)
{
    struct logline l = {text, strlen(text), -1, LOGLINE_UNKNOWN};
    return pystacks_line(p, dir, &l);
}

static void assert_told(struct pystacks *p, const char *want)
{
    struct buf out = BUF_INIT;
    pystacks_end(p, say_place, pass_on, &out);
    assert_string_equal(buf_str(&out), want);
    buf_finish(&out);
    assert_int_equal(pystacks_kept(p), 0);
}

#define LIBRARY                                                                                    \
    "Thread 0x00007f01 (most recent call first):\n"                                                \
    "  File \"/usr/lib/python3/dist-packages/torch/_inductor/pool.py\", line 9 in read\n"
#define LOADER                                                                                     \
    "Thread 0x00007f02 (most recent call first):\n"                                                \
    "  File \"/usr/lib/python3.11/queue.py\", line 171 in get\n"                                   \
    "  File \"/var/lib/det/tasks/1.1.abc/work/data.py\", line 7 in load\n"
#define MAIN                                                                                       \
    "Current thread 0x00007f03 (most recent call first):\n"                                        \
    "  File \"/var/lib/det/tasks/1.1.abc/work/model_def.py\", line 31 in train_batch\n"            \
    "  File \"/var/lib/det/tasks/1.1.abc/work/model_def.py\", line 90 in <module>\n"

/* Line by line, as they come. */
static void add_all(struct pystacks *p, const char *text)
{
    for (size_t n; *text; text += n) {
        n = strcspn(text, "\n") + 1;
        det_cleanup(freep) char *line = det_strndup(text, n);
        assert_true(add(p, line));
    }
}

static void the_users_own_comes_first_the_main_thread_before_others(void **state)
{
    struct pystacks *p = pystacks_create();
    add_all(p, LIBRARY "\n" LOADER "\n" MAIN);
    assert_false(add(p, "loss 0.3\n")); /* printed meanwhile */
    assert_told(
        p, "at model_def.py, line 31, in train_batch\nat data.py, line 7, in load\n" MAIN LOADER
               LIBRARY);
    add_all(p, LOADER "\n" LIBRARY "\n" MAIN);
    assert_told(
        p, "at model_def.py, line 31, in train_batch\nat data.py, line 7, in load\n" MAIN LOADER
               LIBRARY);
    add_all(p, LIBRARY);
    assert_told(p, LIBRARY);
    assert_told(p, "");
    pystacks_destroy(p);
}

static void what_is_none_goes_by(void **state)
{
    struct pystacks *p = pystacks_create();
    assert_false(add(p, "\n"));
    assert_false(add(p, "  File \"/w/model_def.py\", line 31 in f\n"));
    assert_told(p, "");
    pystacks_destroy(p);
    pystacks_destroy(NULL);
}

/* However deep a recursion is. */
static void bounded(void **state)
{
    struct pystacks *p = pystacks_create();
    int kept = 0;
    add(p, "Current thread 0x1 (most recent call first):\n");
    while (kept < 100000 && add(p, "  File \"/home/me/model.py\", line 3 in again\n"))
        kept++;
    assert_in_range(kept, 1000, 99999);
    pystacks_destroy(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_users_own_comes_first_the_main_thread_before_others),
        cmocka_unit_test(what_is_none_goes_by), cmocka_unit_test(bounded)};
    return cmocka_run_group_tests_name("pystacks", tests, NULL, NULL);
}
