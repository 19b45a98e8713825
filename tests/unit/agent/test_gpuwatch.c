/* The watch of the GPUs, over an NVML whose host a file describes (fake_nvml.c). Each test waits
 * for what it wants to be told, and looks again at once: no time is waited for. */
#include "gpuwatch.h"

#include "fake_nvml.h"
#include "mem.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/test-gpuwatch-XXXXXX"; /* the agent's */
static char state_path[64], errors_path[64];
static uv_loop_t loop;
static struct slots slots;
static struct gpuwatch *watch;
static uv_prepare_t alive; /* the watch alone would not keep the loop */
static bool task_on[LINK_SLOTS_MAX];
static struct {
    struct gpu_verdict v;
    struct gpu_sight s;
    int looks;
} told[8];

static void describe(const char *text)
{
    char tmp[80];
    snprintf(tmp, sizeof tmp, "%s.new", state_path);
    FILE *f = fopen(tmp, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(rename(tmp, state_path), 0);
}

static void on_prepare(uv_prepare_t *p)
{
}

static bool has_task(void *arg, int slot)
{
    return task_on[slot];
}

static void on_slot(void *arg, int slot, const struct gpu_verdict *v, const struct gpu_sight *s)
{
    told[slot].v = *v;
    told[slot].s = *s;
    told[slot].looks++;
}

static void on_looked(void *arg)
{
}

static void begin(const char *host)
{
    const struct gpuwatch_handlers h = {has_task, on_slot, on_looked, NULL};
    struct det_err err;
    setenv("FAKE_NVML", host, 1);
    memset(told, 0, sizeof told);
    memset(task_on, 0, sizeof task_on);
    uv_loop_init(&loop);
    uv_prepare_init(&loop, &alive);
    uv_prepare_start(&alive, on_prepare);
    assert_int_equal(slots_find("auto", &slots, &err), 0);
    watch = gpuwatch_create(&loop, &slots, dir, &h);
    assert_non_null(watch);
}

static void close_watch(void)
{
    gpuwatch_close(watch);
    uv_close((uv_handle_t *)&alive, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    slots_finish(&slots);
}

/* Its thread goes on for a moment: the next test is not to have it beside its own. */
static void end_driver(void)
{
    while (fake_nvml_counts.open > 0)
        uv_sleep(1);
}

static void end(void)
{
    close_watch();
    end_driver();
}

/* Looks until it is told so; the test's own limit of time ends it otherwise. */
static void until(int slot, enum link_slot_state state, const char *text)
{
    while (told[slot].v.state != state || !strstr(told[slot].v.text, text)) {
        gpuwatch_kick(watch);
        uv_sleep(1);
        uv_run(&loop, UV_RUN_NOWAIT);
    }
}

static void look_again(int slot)
{
    for (int n = told[slot].looks; told[slot].looks < n + 2;) {
        gpuwatch_kick(watch);
        uv_sleep(1);
        uv_run(&loop, UV_RUN_NOWAIT);
    }
}

static void figures_are_told(void **state)
{
    describe("a mem 2048\n");
    begin("w2");
    assert_int_equal(told[0].v.state, LINK_SLOT_UNSEEN);
    until(0, LINK_SLOT_USABLE, "");
    until(1, LINK_SLOT_USABLE, "");
    assert_true(told[0].s.mem_used == (uint64_t)2048 << 20);
    assert_true(told[0].s.utilisation == 42 && told[0].s.power_w == 312.5);
    assert_true(told[0].s.temperature_c == 55 && told[0].s.sm_mhz == 1980);
    assert_true(told[0].s.mem_mhz == 3201);
    assert_true(told[1].s.utilisation == GPU_UNKNOWN); /* not of an instance */
    end();
}

static void a_foreign_process_is_named(void **state)
{
    char text[64];
    pid_t pid = fork();
    if (pid == 0) {
        execlp("sleep", "sleep", "600", NULL);
        _exit(1);
    }
    snprintf(text, sizeof text, "b pid %d\n", (int)pid);
    describe(text);
    begin("ww");
    until(0, LINK_SLOT_USABLE, "");
    until(1, LINK_SLOT_FOREIGN, "(sleep) that is none of ours");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    until(1, LINK_SLOT_USABLE, "");
    end();
}

/* By its environment. */
static void a_task_of_ours_is_known(void **state)
{
    char text[64], work[64];
    snprintf(work, sizeof work, "%s/alloc/work", dir);
    pid_t pid = fork();
    if (pid == 0) {
        setenv("DET_WORKDIR", work, 1);
        execlp("sleep", "sleep", "600", NULL);
        _exit(1);
    }
    snprintf(text, sizeof text, "a pid %d\n", (int)pid);
    describe(text);
    begin("w");
    task_on[0] = true;
    while (told[0].s.processes_n == 0 || !told[0].s.processes[0].is_ours) {
        gpuwatch_kick(watch);
        uv_sleep(1);
        uv_run(&loop, UV_RUN_NOWAIT);
    }
    look_again(0);
    assert_int_equal(told[0].v.state, LINK_SLOT_USABLE);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    end();
}

/* Looks that began before the end of the task say nothing of what it left. */
static void memory_is_free_before_the_slot_is(void **state)
{
    describe("");
    begin("ww");
    until(0, LINK_SLOT_USABLE, "");
    describe("b hang 1\n");
    gpuwatch_kick(watch);
    while (fake_nvml_counts.hanging == 0) /* the first was seen free by then */
        uv_sleep(1);
    describe("a mem 9000\nb hang 1\n");
    gpuwatch_settle(watch, 0);
    assert_int_equal(told[0].v.state, LINK_SLOT_UNSEEN);
    describe("a mem 9000\n");
    for (int n = told[1].looks; told[1].looks < n + 4; uv_run(&loop, UV_RUN_ONCE)) {
        assert_int_not_equal(told[0].v.state, LINK_SLOT_USABLE);
        gpuwatch_kick(watch);
    }
    assert_int_equal(told[1].v.state, LINK_SLOT_USABLE);
    describe("");
    until(0, LINK_SLOT_USABLE, "");
    gpuwatch_settle(watch, 0);
    while (told[0].v.state != LINK_SLOT_USABLE) /* it looks by itself */
        uv_run(&loop, UV_RUN_ONCE);
    end();
}

static void errors_take_slots_out(void **state)
{
    describe("a xid 79\nb xid 31\nc ecc 3\n");
    begin("2ww");
    until(0, LINK_SLOT_AILING, "XID 79: the GPU has fallen off the bus"); /* both instances */
    until(1, LINK_SLOT_AILING, "XID 79");
    describe("b xid 31\nc lost 1\n");
    until(3, LINK_SLOT_AILING, "the GPU has fallen off the bus");
    look_again(2);
    assert_int_equal(told[2].v.state, LINK_SLOT_USABLE); /* a program's own mistake */
    assert_int_equal(told[0].v.state, LINK_SLOT_AILING); /* until it is reset */
    describe("");
    until(3, LINK_SLOT_USABLE, "");
    end();
}

static void remember(const char *text)
{
    FILE *f = fopen(errors_path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

/* The driver tells them once; an agent that begins anew is not told again. */
static void errors_are_remembered_until_a_reset(void **state)
{
    describe("a xid 79\na joule 500\nb xid 48\n");
    begin("2w");
    until(0, LINK_SLOT_AILING, "XID 79");
    until(2, LINK_SLOT_AILING, "XID 48");
    end();
    describe("a joule 501\nb joule 7\n");
    begin("2w");
    until(0, LINK_SLOT_AILING, "XID 79: the GPU has fallen off the bus; out until it is reset");
    until(1, LINK_SLOT_AILING, "XID 79"); /* a reset is of the whole GPU */
    until(2, LINK_SLOT_AILING, "XID 48");
    end();
    describe("a joule 3\n"); /* it counts anew */
    begin("2w");
    until(0, LINK_SLOT_USABLE, "");
    until(1, LINK_SLOT_USABLE, "");
    until(2, LINK_SLOT_AILING, "XID 48");
    end();
    remember("{\"boot\":\"another\",\"gpus\":{\"GPU-b\":{\"xid\":48,\"energy_mj\":0}}}");
    begin("2w"); /* the host was booted since */
    until(2, LINK_SLOT_USABLE, "");
    end();
}

static void a_memory_that_is_no_memory_is_as_none(void **state)
{
    static const char *const texts[] = {
        "", "{", "[]", "7", "{\"gpus\":[]}", "{\"boot\":3,\"gpus\":{\"GPU-a\":79}}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        remember(texts[i]);
        describe("");
        begin("w");
        until(0, LINK_SLOT_USABLE, "");
        end();
    }
}

/* What happens to the others while NVML is begun anew is not heard: not at each look. */
static void a_lost_gpu_is_looked_for_ever_less_often(void **state)
{
    describe("a lost 1\n");
    begin("w");
    until(0, LINK_SLOT_AILING, "the GPU has fallen off the bus");
    int begins = fake_nvml_counts.begins, looks = fake_nvml_counts.looks;
    while (fake_nvml_counts.looks < looks + 64)
        look_again(0);
    begins = fake_nvml_counts.begins - begins;
    assert_in_range(begins, 1, (fake_nvml_counts.looks - looks) / 8);
    describe("");
    until(0, LINK_SLOT_USABLE, "");
    end();
}

/* The loop goes on while the driver hangs, and closing does not wait for it. */
static void a_driver_that_hangs_holds_nobody_up(void **state)
{
    describe("a hang 1\n");
    begin("w");
    while (fake_nvml_counts.hanging == 0)
        uv_sleep(1);
    for (int turns = 0; turns < 20; turns++)
        uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_not_equal(told[0].v.state, LINK_SLOT_USABLE);
    close_watch();
    assert_int_equal(fake_nvml_counts.hanging, 1);
    describe("");
    end_driver();
}

static int setup(void **state)
{
    if (!mkdtemp(dir))
        return -1;
    snprintf(state_path, sizeof state_path, "%s/state", dir);
    snprintf(errors_path, sizeof errors_path, "%s/gpu-errors.json", dir);
    setenv("FAKE_NVML_STATE", state_path, 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
    return 0;
}

static int forget(void **state)
{
    unlink(errors_path);
    return 0;
}

static int teardown(void **state)
{
    unlink(errors_path);
    return unlink(state_path) == 0 ? rmdir(dir) : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_are_told),
        cmocka_unit_test(a_foreign_process_is_named),
        cmocka_unit_test(a_task_of_ours_is_known),
        cmocka_unit_test(memory_is_free_before_the_slot_is),
        cmocka_unit_test(errors_take_slots_out),
        cmocka_unit_test_setup(errors_are_remembered_until_a_reset, forget),
        cmocka_unit_test_setup(a_memory_that_is_no_memory_is_as_none, forget),
        cmocka_unit_test_setup(a_lost_gpu_is_looked_for_ever_less_often, forget),
        cmocka_unit_test_setup(a_driver_that_hangs_holds_nobody_up, forget),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
