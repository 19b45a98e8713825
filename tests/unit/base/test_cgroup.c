/* What is written where, in a tree of files that stands for the kernel's; and, where there is one
 * that may be written to, in the kernel's own. */
#include "cgroup.h"

#include "fsx.h"
#include "mem.h"
#include "uuid.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEMPLATE "/tmp/det-cgroup-XXXXXX"
static char top[sizeof TEMPLATE];

static void lay(const char *dir, const char *file, const char *text)
{
    det_cleanup(freep) char *path = det_asprintf("%s/%s", dir, file);
    assert_int_equal(fsx_write_atomic(AT_FDCWD, path, text, strlen(text), 0600, NULL), 0);
}

static void lay_group(const char *dir, const char *controllers, const char *below)
{
    assert_int_equal(fsx_mkdirs(AT_FDCWD, dir, 0755, NULL), 0);
    lay(dir, "cgroup.procs", "");
    lay(dir, "cgroup.controllers", controllers);
    lay(dir, "cgroup.subtree_control", below);
}

static void is_there(const char *dir, const char *file, const char *text)
{
    det_cleanup(freep) char *path = det_asprintf("%s/%s", dir, file);
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    assert_int_equal(fsx_read_file(AT_FDCWD, path, 4096, &b, NULL), 0);
    assert_string_equal(buf_str(&b), text);
}

static int begin(void **state)
{
    memcpy(top, TEMPLATE, sizeof top);
    return mkdtemp(top) ? 0 : -1;
}

static int end(void **state)
{
    return fsx_remove_tree(AT_FDCWD, top, NULL);
}

static void place_is(const char *mountinfo, const char *cgroup, const char *wanted)
{
    det_cleanup(freep) char *place = cgroup_place(mountinfo, cgroup);
    det_cleanup(freep) char *full = wanted ? det_asprintf("%s%s", top, wanted) : NULL;
    if (full)
        assert_string_equal(place, full);
    else
        assert_null(place);
}

static void test_place(void **state)
{
    det_cleanup(freep) char *mounts =
        det_asprintf("25 1 0:23 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
                     "26 1 0:22 / %s rw,relatime shared:4 - cgroup2 cgroup2 rw\n",
                     top);
    det_cleanup(freep) char *slice = det_asprintf("%s/system.slice", top);
    place_is("", "0::/\n", NULL);
    place_is("26 - cgroup2 x\n", "0::/\n", NULL);
    place_is(mounts, "", NULL);
    place_is(mounts, "9:pids:/x\n", NULL);
    place_is(mounts, "0::/../elsewhere\n", NULL);
    place_is(mounts, "0::/\n", "/det-tasks");
    place_is(mounts, "9:pids:/x\n0::/\n", "/det-tasks");
    place_is(mounts, "0::/system.slice/det-agent.service\n",
             "/system.slice/det-agent.service/det-tasks");
    lay_group(slice, "memory pids cpu\n", "memory pids\n"); /* from now on it may be written to */
    place_is(mounts, "0::/system.slice/det-agent.service\n", "/system.slice/det-tasks");
}

static void test_open(void **state)
{
    unsigned held = 77;
    struct det_err err = {0};
    det_cleanup(freep) char *tasks = det_asprintf("%s/det-tasks", top);
    lay_group(top, "cpuset cpu io memory hugetlb pids\n", "memory pids\n");
    lay_group(tasks, "cpu memory pids\n", "");
    lay(tasks, "memory.max", "max\n");
    assert_int_equal(cgroup_open(tasks, 2000, &held, &err), 0);
    assert_int_equal(held, CGROUP_ALL);
    /* A file keeps what stood behind: the last controller is seen. */
    is_there(top, "cgroup.subtree_control", "+cpury pids\n");
    is_there(tasks, "cgroup.subtree_control", "+cpusry");
    is_there(tasks, "memory.max", "1900");
}

static void test_open_refused(void **state)
{
    unsigned held = 77;
    struct det_err err = {0};
    det_cleanup(freep) char *tasks = det_asprintf("%s/det-tasks", top);
    det_cleanup(freep) char *nowhere = det_asprintf("%s/no/det-tasks", top);
    assert_int_equal(cgroup_open(nowhere, 0, &held, &err), DET_EPERM);
    assert_int_equal(held, 0);
    lay_group(top, "hugetlb pids\n", "pids\n");
    lay_group(tasks, "pids\n", "pids\n");
    lay(tasks, "memory.max", "4096\n");
    assert_int_equal(cgroup_open(tasks, 2000, &held, &err), DET_ENOENT);
    assert_int_equal(held, CGROUP_PIDS);
    assert_ptr_equal(strstr(err.text, "memory, cpu: not offered by "), err.text);
    assert_null(strstr(err.text, "pids"));
    is_there(tasks, "memory.max", "4096\n");
}

static void test_make(void **state)
{
    const struct cgroup_limits l = {.memory_bytes = 64 << 20, .pids = 32, .cpu_weight = 200};
    const struct cgroup_limits none = {0};
    static const char *const files[] = {"memory.max", "memory.swap.max", "memory.oom.group",
                                        "pids.max", "cpu.weight"};
    static const char *const texts[] = {"67108864", "0", "1", "32", "200"};
    det_cleanup(freep) char *group = cgroup_path(top, "x");
    lay_group(group, "", "");
    for (size_t i = 0; i < DET_ARRAY_LEN(files); i++)
        lay(group, files[i], "");
    det_cleanup(freep) char *free_one = cgroup_make(top, "x", &none);
    is_there(group, "memory.max", "");
    is_there(group, "memory.oom.group", "1");
    is_there(group, "pids.max", "");
    det_cleanup(freep) char *made = cgroup_make(top, "x", &l);
    assert_string_equal(made, group);
    assert_string_equal(free_one, group);
    for (size_t i = 0; i < DET_ARRAY_LEN(files); i++)
        is_there(group, files[i], texts[i]);
    assert_null(cgroup_make(top, "y", &l)); /* a directory without the kernel's files */
    assert_null(cgroup_make(NULL, "x", &l));
}

static void test_count(void **state)
{
    lay(top, "memory.events", "low 0\noom 2\noom_kill 12\noom_group_kill 9\n");
    assert_int_equal(cgroup_count(top, "memory.events", "oom_kill"), 12);
    assert_int_equal(cgroup_count(top, "memory.events", "oom"), 2);
    assert_int_equal(cgroup_count(top, "memory.events", "kill"), -1);
    assert_int_equal(cgroup_count(top, "pids.events", "max"), -1);
}

/* ---- the kernel's own ---- */

static void join_and_wait(const char *members)
{
    FILE *f = fopen(members, "w");
    if (!f || fputs("0", f) < 0 || fclose(f) != 0)
        _exit(1);
    alarm(20);
    for (;;)
        pause();
}

/* Of a kernel that has cgroup.kill. */
static void test_kill(void **state)
{
    char id[UUID_STR_MAX];
    int status = 0;
    uuid_random(id);
    det_cleanup(freep) char *tasks = cgroup_own_place();
    det_cleanup(freep) char *path = cgroup_make(tasks, id, &(struct cgroup_limits){.pids = 32});
    det_cleanup(freep) char *file = path ? det_asprintf("%s/cgroup.kill", path) : NULL;
    cgroup_kill(NULL);
    if (!file || access(file, W_OK) < 0) {
        cgroup_remove(path);
        cgroup_remove(tasks);
        skip();
    }
    det_cleanup(freep) char *members = det_asprintf("%s/cgroup.procs", path);
    pid_t pid = fork();
    if (pid == 0)
        join_and_wait(members);
    do
        cgroup_kill(path); /* until it has joined */
    while (waitpid(pid, &status, WNOHANG) == 0 && poll(NULL, 0, 2) == 0);
    cgroup_remove(path);
    assert_int_not_equal(access(path, F_OK), 0);
    cgroup_remove(tasks);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_place, begin, end),
        cmocka_unit_test_setup_teardown(test_open, begin, end),
        cmocka_unit_test_setup_teardown(test_open_refused, begin, end),
        cmocka_unit_test_setup_teardown(test_make, begin, end),
        cmocka_unit_test_setup_teardown(test_count, begin, end),
        cmocka_unit_test(test_kill),
    };
    return cmocka_run_group_tests_name("cgroup", tests, NULL, NULL);
}
