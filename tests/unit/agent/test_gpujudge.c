/* Which slots may have tasks, by what is seen of their GPUs. */
#include "gpujudge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define GIB ((uint64_t)1 << 30)

static struct gpu_past past;
static struct gpu_verdict last;
static uint64_t now_ms;

static int setup(void **state)
{
    past = (struct gpu_past){0};
    now_ms = 1000;
    last = (struct gpu_verdict){.state = LINK_SLOT_UNSEEN, .text = "not looked at yet"};
    return 0;
}

static struct gpu_sight idle(void)
{
    return (struct gpu_sight){.mem_total = 80 * GIB, .mem_used = GIB / 2};
}

static struct gpu_sight with(int pid, const char *name, bool is_ours, bool is_hidden)
{
    struct gpu_sight s = idle();
    s.processes[0] = (struct gpu_process){pid, 30 * GIB, is_ours, is_hidden, ""};
    snprintf(s.processes[0].name, sizeof s.processes[0].name, "%s", name);
    s.processes_n = 1;
    s.mem_used = 30 * GIB;
    return s;
}

static enum link_slot_state look(struct gpu_sight s, bool has_task)
{
    last = gpu_judge(&past, &s, has_task, now_ms, &last);
    return last.state;
}

static void says(const char *text)
{
    if (!strstr(last.text, text))
        fail_msg("\"%s\" is not in \"%s\"", text, last.text);
}

static void an_idle_one_is_usable(void **state)
{
    assert_int_equal(look(idle(), false), LINK_SLOT_USABLE);
    assert_string_equal(last.text, "");
}

static void a_task_of_ours_is_no_harm(void **state)
{
    assert_int_equal(look(with(7, "python", true, false), true), LINK_SLOT_USABLE);
    assert_int_equal(look(with(7, "python", true, false), true), LINK_SLOT_USABLE);
}

static void a_foreign_process_is_named_at_the_second_look(void **state)
{
    look(idle(), false);
    assert_int_equal(look(with(4242, "python", false, false), false), LINK_SLOT_USABLE);
    assert_int_equal(look(with(4242, "python", false, false), false), LINK_SLOT_FOREIGN);
    says("held by process 4242 (python) that is none of ours");
    assert_int_equal(look(with(4243, "ollama", false, false), false), LINK_SLOT_FOREIGN);
    says("4243 (ollama)");
    assert_int_equal(look(idle(), false), LINK_SLOT_USABLE);
    assert_int_equal(look(with(1, "x", false, false), false), LINK_SLOT_USABLE);
}

/* Beside a task too: it is told, and nothing is killed for it. */
static void a_foreign_process_beside_a_task_is_named(void **state)
{
    struct gpu_sight s = with(7, "python", true, false);
    s.processes[1] = (struct gpu_process){.pid = 99, .name = "miner"};
    s.processes[2] = (struct gpu_process){.pid = 98, .name = "miner"};
    s.processes_n = 3;
    look(s, true);
    assert_int_equal(look(s, true), LINK_SLOT_FOREIGN);
    says("process 99 (miner) and 1 more that are none of ours");
}

/* One that comes and goes beside it is no news. */
static void the_first_named_stays_named_while_it_is_there(void **state)
{
    struct gpu_sight s = with(99, "miner", false, false), more = with(7, "smi", false, false);
    look(s, true);
    assert_int_equal(look(s, true), LINK_SLOT_FOREIGN);
    struct gpu_verdict first = last;
    more.processes[1] = s.processes[0];
    more.processes_n = 2;
    assert_int_equal(look(more, true), LINK_SLOT_FOREIGN);
    assert_string_equal(last.text, first.text);
    more.processes_n = 1;
    assert_int_equal(look(more, true), LINK_SLOT_FOREIGN);
    says("process 7 (smi)");
    more.processes[0].is_ours = true; /* its number is another's now */
    more.processes[1] = (struct gpu_process){.pid = 8, .name = "x"};
    more.processes_n = 2;
    look(more, true);
    says("process 8 (x)");
    snprintf(more.processes[1].name, sizeof more.processes[1].name, "y"); /* it has exec'd */
    look(more, true);
    says("process 8 (y)");
}

/* An agent in a container does not see its own tasks by the driver's numbers. */
static void a_hidden_process_counts_only_while_no_task_has_the_slot(void **state)
{
    look(with(7, "", false, true), true);
    assert_int_equal(look(with(7, "", false, true), true), LINK_SLOT_USABLE);
    look(with(7, "", false, true), false);
    assert_int_equal(look(with(7, "", false, true), false), LINK_SLOT_FOREIGN);
    says("7 (of another PID namespace)");
}

static void memory_that_nobody_has_is_held(void **state)
{
    struct gpu_sight s = idle();
    look(s, false);
    s.mem_used += GPU_SLACK_BYTES;
    look(s, false);
    assert_int_equal(look(s, false), LINK_SLOT_USABLE);
    s.mem_used = 7 * GIB;
    assert_int_equal(look(s, true), LINK_SLOT_USABLE); /* a task's */
    assert_int_equal(look(s, false), LINK_SLOT_USABLE);
    assert_int_equal(look(s, false), LINK_SLOT_HELD);
    says("memory still held: about 7 of 80 GiB");
    assert_int_equal(look(idle(), false), LINK_SLOT_USABLE);
}

static void an_error_takes_it_out_at_once(void **state)
{
    struct gpu_sight s = idle();
    s.xid = 79;
    assert_int_equal(look(s, true), LINK_SLOT_AILING);
    says("XID 79: the GPU has fallen off the bus; out until it is reset");
    s = idle();
    s.ecc_uncorrected = 1;
    assert_int_equal(look(s, false), LINK_SLOT_AILING);
    says("uncorrected ECC errors");
    s = idle();
    s.remap_failed = true;
    assert_int_equal(look(s, false), LINK_SLOT_AILING);
    says("could not be remapped");
    s = idle();
    s.lost = "its driver does not answer";
    assert_int_equal(look(s, false), LINK_SLOT_AILING);
    says("its driver does not answer");
    assert_int_equal(look(idle(), false), LINK_SLOT_USABLE);
}

/* What a program did wrong ends the program. */
static void errors_of_programs_are_none_of_the_gpu(void **state)
{
    static const unsigned benign[] = {0, 13, 31, 43, 45, 63, 68, 92, 94, 109};
    for (size_t i = 0; i < sizeof benign / sizeof *benign; i++)
        assert_false(gpu_xid_is_fatal(benign[i]));
    assert_true(gpu_xid_is_fatal(79) && gpu_xid_is_fatal(48) && gpu_xid_is_fatal(119));
    assert_string_equal(gpu_xid_text(7), "an error of the GPU");
}

/* A figure that moves a little is no news. */
static void the_words_stay_while_memory_moves(void **state)
{
    struct gpu_sight s = idle();
    look(s, false);
    s.mem_used = 7 * GIB;
    look(s, false);
    look(s, false);
    struct gpu_verdict first = last;
    s.mem_used += GIB / 4;
    look(s, false);
    assert_string_equal(last.text, first.text);
}

static void end_task(void)
{
    last = gpu_settle(&past, now_ms);
    assert_int_equal(last.state, LINK_SLOT_UNSEEN);
}

/* The slot of a task that has ended is not given away before its memory was seen free. */
static void memory_of_an_ended_task_is_waited_for(void **state)
{
    struct gpu_sight s = idle();
    look(idle(), false);
    s.mem_used = 12 * GIB;
    look(s, true);
    end_task();
    assert_int_equal(look(s, false), LINK_SLOT_UNSEEN); /* nobody's process, but memory */
    now_ms += GPU_SETTLE_MS - 1;
    assert_int_equal(look(with(7, "python", true, false), false), LINK_SLOT_UNSEEN);
    assert_int_equal(look(idle(), false), LINK_SLOT_USABLE);
    assert_int_equal(past.settle_end_ms, 0);
    end_task();
    assert_int_equal(look(idle(), false), LINK_SLOT_USABLE); /* at the first look */
}

static void memory_that_an_ended_task_keeps_is_held_from_the_deadline_on(void **state)
{
    struct gpu_sight s = with(77, "python", true, false);
    s.processes[0].mem_bytes = 12 * GIB;
    look(idle(), false);
    end_task();
    look(s, false);
    now_ms += GPU_SETTLE_MS;
    assert_int_equal(look(s, false), LINK_SLOT_HELD);
    assert_string_equal(
        last.text, "memory of an ended task is still held: about 12 GiB by process 77 (python)");
    s.processes[0].mem_bytes = 9 * GIB;
    assert_int_equal(look(s, false), LINK_SLOT_HELD);
    says("about 12 GiB"); /* what moves is no news */
    s.processes_n = 0;
    assert_int_equal(look(s, false), LINK_SLOT_HELD);
    says("about 30 of 80 GiB");
    assert_int_equal(look(idle(), false), LINK_SLOT_USABLE);
    s.processes_n = 1;
    s.processes[0].mem_bytes = 0;
    look(s, false); /* it was not waited for: seen twice */
    assert_int_equal(last.state, LINK_SLOT_USABLE);
    look(s, false);
    assert_string_equal(last.text, "memory of an ended task is still held by process 77 (python)");
}

static void what_else_is_wrong_is_said_while_it_settles(void **state)
{
    struct gpu_sight s = idle();
    look(idle(), false);
    end_task();
    s.lost = "the GPU has fallen off the bus";
    assert_int_equal(look(s, false), LINK_SLOT_AILING);
    end_task();
    look(with(99, "miner", false, false), false);
    assert_int_equal(look(with(99, "miner", false, false), false), LINK_SLOT_FOREIGN);
    look(idle(), false);
    end_task();
    look(with(99, "", false, true), false); /* may be the task's */
    assert_int_equal(look(with(99, "", false, true), false), LINK_SLOT_UNSEEN);
    now_ms += GPU_SETTLE_MS;
    look(with(99, "", false, true), false);
    assert_int_equal(look(with(99, "", false, true), false), LINK_SLOT_FOREIGN);
}

/* Each time that one comes again soon, the slot is given back later. */
static void processes_that_come_and_go_keep_the_slot(void **state)
{
    int changes = 0;
    look(idle(), false);
    for (int i = 0; i < 2000; i++, now_ms += 2000) { /* six seconds each, six seconds apart */
        enum link_slot_state before = last.state;
        look(i % 6 < 3 ? with(100 + i / 6, "x", false, false) : idle(), false);
        changes += before != last.state;
    }
    assert_int_equal(changes, 2 + 1); /* taken, given back, taken */
    look(idle(), false);
    assert_int_equal(last.state, LINK_SLOT_FOREIGN);
    says("come and go, last 43");
    now_ms += GPU_CALM_MS;
    assert_int_equal(look(idle(), false), LINK_SLOT_USABLE);
    for (int i = 0; i < 8; i++) { /* ever longer, to a bound */
        look(with(7, "x", false, false), false);
        assert_int_equal(look(with(7, "x", false, false), false), LINK_SLOT_FOREIGN);
        now_ms += i < 5 ? (uint64_t)GPU_CALM_MS * 2 << i : GPU_CALM_MS_MAX;
        now_ms -= 1;
        assert_int_equal(look(idle(), false), LINK_SLOT_FOREIGN);
        now_ms += 1;
        assert_int_equal(look(idle(), false), LINK_SLOT_USABLE);
    }
    now_ms += GPU_AGAIN_MS;
    look(with(7, "x", false, false), false);
    look(with(7, "x", false, false), false);
    assert_int_equal(look(idle(), false), LINK_SLOT_USABLE); /* at once, as the first time */
}

#define T(f) cmocka_unit_test_setup(f, setup)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(an_idle_one_is_usable),
        T(a_task_of_ours_is_no_harm),
        T(a_foreign_process_is_named_at_the_second_look),
        T(a_foreign_process_beside_a_task_is_named),
        T(the_first_named_stays_named_while_it_is_there),
        T(a_hidden_process_counts_only_while_no_task_has_the_slot),
        T(memory_that_nobody_has_is_held),
        T(an_error_takes_it_out_at_once),
        T(errors_of_programs_are_none_of_the_gpu),
        T(the_words_stay_while_memory_moves),
        T(processes_that_come_and_go_keep_the_slot),
        T(memory_of_an_ended_task_is_waited_for),
        T(memory_that_an_ended_task_keeps_is_held_from_the_deadline_on),
        T(what_else_is_wrong_is_said_while_it_settles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
