/* What debuggers print of a process, in a line a stack. */
#include "stackfold.h"

#include "buf.h"
#include "mem.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static void keep(void *arg, const char *line)
{
    buf_add_str(arg, line);
}

static void assert_folds(const char *const *lines, size_t n, const char *want)
{
    struct buf out = BUF_INIT;
    struct stackfold *f = stackfold_create(NULL, NULL);
    for (size_t i = 0; i < n; i++)
        stackfold_add(f, lines[i]);
    stackfold_end(f, keep, &out);
    assert_string_equal(buf_str(&out), want);
    stackfold_destroy(f);
    buf_finish(&out);
}

static void of_gdb(void **state)
{
    static const char *const lines[] = {
        "[New LWP 12]\n",
        "[Thread debugging using libthread_db enabled]\n",
        "0x00007f01 in __poll () from /lib/libc.so.6\n",
        "\n",
        "Thread 3 (Thread 0x7f (LWP 13) \"w\"):\n",
        "#0  0x00007f01 in futex_wait (x=1, y=<optimized out>) at ../nptl/futex.h:146\n",
        "#1  worker (arg=0x0) at pool.c:12\n",
        "\n",
        "Thread 2 (Thread 0x7f (LWP 12) \"w\"):\n",
        "#0  0x00007f02 in futex_wait (x=2, y=<optimized out>) at ../nptl/futex.h:146\n",
        "#1  worker (arg=0x1) at pool.c:12\n",
        "\n",
        "Thread 1 (Thread 0x7f (LWP 11) \"python3\"):\n",
        "#0  0x00007f01 in __poll () from /lib/libc.so.6\n",
        "#1  0x00000000 in ?? ()\n",
        "#2  0x00005501 in main (argc=1, argv=0x7ff) at a.c:3\n",
        "[Inferior 1 (process 11) detached]\n",
    };
    assert_folds(lines, DET_ARRAY_LEN(lines),
                 "1 thread: __poll < ?? < main (a.c:3)\n"
                 "2 threads: futex_wait (futex.h:146) < worker (pool.c:12)\n");
}

static bool is_users(void *arg, const char *file)
{
    (void)arg;
    return strcmp(file, "model_def.c") == 0 || strcmp(file, "src/net.c") == 0;
}

static void assert_place(const char *text, const char *want)
{
    struct stackfold *f = stackfold_create(is_users, NULL);
    det_cleanup(freep) char *copy = det_strdup(text);
    for (char *rest = copy, *line; (line = strsep(&rest, "|"));)
        stackfold_add(f, line);
    const char *place = stackfold_place(f);
    assert_string_equal(place ? place : "", want);
    stackfold_destroy(f);
}

/* The main thread's innermost line; another's only where that has none. */
static void of_the_users(void **state)
{
#define MAIN "Thread 1 (LWP 1):|#0  0x7f in poll () at ./nptl/poll.c:29|"
#define OWN                                                                                        \
    "#1  0x7f in deep (x=\") at \") at ./model_def.c:10|#2  train_batch () at ./model_def.c:50|"
#define OTHER "Thread 2 (LWP 2):|#0  work () at src/net.c:7|"
    assert_place(MAIN OWN, "model_def.c, line 10, in deep");
    assert_place(OTHER MAIN OWN, "model_def.c, line 10, in deep");
    assert_place(OTHER MAIN, "src/net.c, line 7, in work");
    assert_place("TID 1:|#0 0x1 a () at src/net.c:7|TID 2:|#0 0x1 b () at src/net.c:8|",
                 "src/net.c, line 7, in a");
    assert_place(MAIN "#1  f () at ./nptl/model_def.c:3|#2  g () at /x/model_def.c:3|", "");
    assert_place(MAIN "#1  f () at model_def.c|#2  g () at :3|#3  h () at |", "");
    assert_place("", "");
}

static void of_eu_stack(void **state)
{
    static const char *const lines[] = {"PID 5 - process\n",
                                        "TID 5:\n",
                                        "#0  0x00007f01 __poll\n",
                                        "#1  0x00007f02 main - /usr/bin/x\n",
                                        "TID 6:\n",
                                        "#0  0x00007f01 __poll\n"};
    assert_folds(lines, DET_ARRAY_LEN(lines), "1 thread: __poll < main\n1 thread: __poll\n");
}

static void what_cannot_be_read(void **state)
{
    static const char *const lines[] = {"ptrace: Operation not permitted.\n", "\n", "No stack.\n"};
    assert_folds(lines, DET_ARRAY_LEN(lines), "ptrace: Operation not permitted.\nNo stack.\n");
    assert_folds(NULL, 0, "");
}

/* However many threads, frames and letters there are. */
static void bounded(void **state)
{
    char name[1024], head[] = "Thread 1 (LWP 1):\n";
    struct buf out = BUF_INIT;
    struct stackfold *f = stackfold_create(NULL, NULL);
    for (int t = 0; t < 1000; t++) {
        stackfold_add(f, head);
        for (int i = 0; i < 100; i++) {
            snprintf(name, sizeof name, "#%d  0x1 in t%d_%0900d ()\n", i, t, i);
            stackfold_add(f, name);
        }
    }
    stackfold_add(f, "#");
    stackfold_add(f, "#5");
    stackfold_add(f, "#5 ");
    stackfold_add(f, "#5 0x");
    stackfold_end(f, keep, &out);
    assert_true(out.len < 64 * 24 * 100);
    assert_non_null(strstr(buf_str(&out), "936 threads with further stacks\n"));
    stackfold_destroy(f);
    buf_finish(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_gdb), cmocka_unit_test(of_eu_stack), cmocka_unit_test(of_the_users),
        cmocka_unit_test(what_cannot_be_read), cmocka_unit_test(bounded)};
    return cmocka_run_group_tests_name("stackfold", tests, NULL, NULL);
}
