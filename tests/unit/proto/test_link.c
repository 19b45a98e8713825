#include "agentlink.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static int decode_events(const char *text, struct link_events *e, struct det_err *err)
{
    return link_events_decode(text, strlen(text), e, err);
}

static json_t *round_trip_event(const struct link_event *ev, struct link_events *back)
{
    json_t *arr = json_array();
    json_array_append_new(arr, link_event_json(ev));
    JSON_OWN body = link_events_json("boot-1", arr, NULL);
    det_cleanup(freep) char *text = json_text(body);
    struct det_err err = {0};
    if (decode_events(text, back, &err) < 0)
        fail_msg("%s", err.text);
    return back->json;
}

static void test_hello(void **state)
{
    struct link_slot slots[] = {{0, LINK_CPU, "Xeon", "", -1, -1},
                                {3, LINK_CUDA, "H100", "GPU-7", 2, 0}};
    struct link_task tasks[] = {
        {.alloc = "1.a.1", .container = "c-1", .state = LINK_RUNNING},
        {.alloc = "1.b.2",
         .container = "c-2",
         .state = LINK_ENDED,
         .exit = {LINK_EXITED, 3, 0, 1, "rank 1 exited with code 3", NULL, NULL}}};
    struct link_event ev = {.seq = 1,
                            .kind = LINK_EV_HELLO,
                            .hello = {"0.27.0", "gpus", "10.0.0.2", slots, 2, tasks, 2}};
    struct link_events e;
    const json_t *body = round_trip_event(&ev, &e);
    const json_t *said = json_arr(json_array_get(json_arr(body, "events"), 0), "slots");
    assert_int_equal(e.n, 1);
    const struct link_hello *h = &e.v[0].hello;
    assert_string_equal(e.boot, "boot-1");
    assert_string_equal(h->pool, "gpus");
    assert_int_equal(h->slots_n, 2);
    assert_int_equal(h->slots[1].type, LINK_CUDA);
    assert_string_equal(h->slots[1].uuid, "GPU-7");
    assert_true(h->slots[0].island == -1 && h->slots[0].numa == -1);
    assert_true(h->slots[1].island == 2 && h->slots[1].numa == 0);
    assert_null(json_object_get(json_array_get(said, 0), "island")); /* not known: not said */
    assert_int_equal(h->tasks[0].state, LINK_RUNNING);
    assert_int_equal(h->tasks[1].exit.code, 3);
    assert_int_equal(h->tasks[1].exit.rank, 1);
    assert_string_equal(h->tasks[1].exit.text, "rank 1 exited with code 3");
    link_events_finish(&e);
}

static void test_slots_that_are_not_usable(void **state)
{
    struct link_slot_sight unfit[] = {{3, LINK_SLOT_FOREIGN, "held by process 4242 (python)"}};
    struct link_event hello = {
        .seq = 1,
        .kind = LINK_EV_HELLO,
        .hello = {.version = "1", .addr = "a", .judges = true, .unfit = unfit, .unfit_n = 1}};
    struct link_event slot = {.seq = 2, .kind = LINK_EV_SLOT, .sight = {3, LINK_SLOT_AILING, NULL}};
    struct link_events e;
    round_trip_event(&hello, &e);
    assert_true(e.v[0].hello.judges);
    assert_int_equal(e.v[0].hello.unfit_n, 1);
    assert_int_equal(e.v[0].hello.unfit[0].slot, 3);
    assert_int_equal(e.v[0].hello.unfit[0].state, LINK_SLOT_FOREIGN);
    assert_string_equal(e.v[0].hello.unfit[0].text, "held by process 4242 (python)");
    link_events_finish(&e);
    hello.hello.judges = false; /* an older agent */
    hello.hello.unfit_n = 0;
    round_trip_event(&hello, &e);
    assert_false(e.v[0].hello.judges);
    link_events_finish(&e);
    round_trip_event(&slot, &e);
    assert_int_equal(e.v[0].sight.slot, 3);
    assert_int_equal(e.v[0].sight.state, LINK_SLOT_AILING);
    assert_string_equal(e.v[0].sight.text, "");
    link_events_finish(&e);
}

static void test_gpus(void **state)
{
    static const char head[] = "{\"boot\":\"b\",\"protocol\":1,\"events\":[],\"gpus\":";
    static const char *const refused[] = {"{}}",
                                          "7}",
                                          "[7]}",
                                          "[{}]}",
                                          "[{\"slot\":-1}]}",
                                          "[{\"slot\":0,\"util_percent\":101}]}",
                                          "[{\"slot\":0,\"mem_used\":\"x\"}]}",
                                          "[{\"slot\":0,\"idle_s\":-1}]}"};
    struct link_gpu g = {3, 42, 1 << 20, 1 << 30, 55, 312500, 1980, -1, 700};
    struct link_events e;
    struct det_err err;
    JSON_OWN one = link_gpu_json(&g);
    det_cleanup(freep) char *said = json_text(one);
    det_cleanup(freep) char *text = det_asprintf("%s[%s]}", head, said);
    assert_int_equal(decode_events(text, &e, &err), 0);
    assert_int_equal(e.gpus_n, 1);
    assert_memory_equal(&e.gpus[0], &g, sizeof g);
    link_events_finish(&e);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        det_cleanup(freep) char *bad = det_asprintf("%s%s", head, refused[i]);
        assert_int_equal(decode_events(bad, &e, &err), DET_EINVAL);
        assert_non_null(strstr(err.text, "gpus"));
    }
}

static void test_exit(void **state)
{
    struct link_event ev = {
        .seq = 9,
        .kind = LINK_EV_EXIT,
        .task = {"1.a.1",
                 "c-1",
                 LINK_ENDED,
                 {LINK_STALLED, 0, 9, 0, NULL, "KeyError: 'lr'", "a.py, line 3, in f"}}};
    struct link_events e;
    round_trip_event(&ev, &e);
    assert_int_equal(e.v[0].seq, 9);
    assert_int_equal(e.v[0].task.state, LINK_ENDED);
    assert_int_equal(e.v[0].task.exit.reason, LINK_STALLED);
    assert_int_equal(e.v[0].task.exit.signal, 9);
    assert_string_equal(e.v[0].task.exit.text, "");
    assert_string_equal(e.v[0].task.exit.exception, "KeyError: 'lr'");
    assert_string_equal(e.v[0].task.exit.at, "a.py, line 3, in f");
    link_events_finish(&e);
}

static void test_marks(void **state)
{
    struct link_mark marks[] = {{"prepared", 17, 3, ""}, {"stalled", 18, 0, "rank 1"}};
    struct link_event ev = {.seq = 1,
                            .kind = LINK_EV_STATE,
                            .task = {.alloc = "1.a.1",
                                     .container = "c-1",
                                     .state = LINK_RUNNING,
                                     .marks = marks,
                                     .marks_n = 2}};
    struct link_events e;
    round_trip_event(&ev, &e);
    assert_int_equal(e.v[0].task.marks_n, 2);
    assert_string_equal(e.v[0].task.marks[0].kind, "prepared");
    assert_int_equal(e.v[0].task.marks[0].duration_us, 3);
    assert_int_equal(e.v[0].task.marks[1].at_us, 18);
    assert_string_equal(e.v[0].task.marks[1].detail, "rank 1");
    link_events_finish(&e);
    struct link_task ended = ev.task;
    ended.state = LINK_ENDED;
    ended.exit = (struct link_exit){.rank = -1, .text = ""};
    ev = (struct link_event){
        .seq = 1, .hello = {.version = "1", .addr = "10.0.0.1", .tasks = &ended, .tasks_n = 1}};
    round_trip_event(&ev, &e);
    assert_int_equal(e.v[0].hello.tasks[0].marks_n, 2);
    assert_string_equal(e.v[0].hello.tasks[0].marks[1].detail, "rank 1");
    link_events_finish(&e);
}

static void test_silent(void **state)
{
    struct link_task task = {.alloc = "1.a.1",
                             .container = "c-1",
                             .state = LINK_RUNNING,
                             .silent = {"validating", 3, 400, 70000, 600000}};
    struct link_event ev = {.seq = 1, .kind = LINK_EV_STATE, .task = task};
    struct link_events e;
    round_trip_event(&ev, &e);
    assert_string_equal(e.v[0].task.silent.phase, "validating");
    assert_int_equal(e.v[0].task.silent.rank, 3);
    assert_int_equal(e.v[0].task.silent.batches, 400);
    assert_int_equal(e.v[0].task.silent.silent_ms, 70000);
    assert_int_equal(e.v[0].task.silent.timeout_ms, 600000);
    link_events_finish(&e);
    ev = (struct link_event){.seq = 1,
                             .kind = LINK_EV_HELLO,
                             .hello = {.version = "1", .addr = "a", .tasks = &task, .tasks_n = 1}};
    round_trip_event(&ev, &e);
    assert_int_equal(e.v[0].hello.tasks[0].silent.rank, 3);
    link_events_finish(&e);
    task.silent.phase = NULL; /* as agents of before never say it */
    round_trip_event(&ev, &e);
    assert_null(e.v[0].hello.tasks[0].silent.phase);
    link_events_finish(&e);
}

static void test_unreached(void **state)
{
    struct link_task task = {.alloc = "1.a.1",
                             .container = "c-1",
                             .state = LINK_RUNNING,
                             .unreached = {"Connection refused", 20000}};
    struct link_event ev = {.seq = 1, .kind = LINK_EV_STATE, .task = task};
    struct link_events e;
    round_trip_event(&ev, &e);
    assert_string_equal(e.v[0].task.unreached.text, "Connection refused");
    assert_int_equal(e.v[0].task.unreached.for_ms, 20000);
    link_events_finish(&e);
    ev.task.unreached.text = NULL; /* as agents of before never say it */
    round_trip_event(&ev, &e);
    assert_null(e.v[0].task.unreached.text);
    link_events_finish(&e);
}

#define EVENTS(list) "{\"boot\":\"b\",\"protocol\":1,\"events\":[" list "]}"
#define HELLO(more)                                                                                \
    EVENTS("{\"seq\":1,\"type\":\"hello\",\"version\":\"1\",\"addr\":\"a\",\"tasks\":[],"          \
           "\"slots\":[]," more "}")
#define SLOT_OF(more)                                                                              \
    EVENTS("{\"seq\":1,\"type\":\"hello\",\"version\":\"1\",\"addr\":\"a\",\"tasks\":[],"          \
           "\"slots\":[{\"id\":0,\"type\":\"cuda\"," more "}]}")

#define RUNNING                                                                                    \
    "{\"seq\":1,\"type\":\"state\",\"alloc\":\"a\",\"container\":\"c\",\"state\":\"running\","
#define SILENT(rank, phase, timeout)                                                               \
    RUNNING "\"silent\":{\"rank\":" rank ",\"phase\":" phase                                       \
            ",\"batches\":1,\"silent_ms\":1,\"timeout_ms\":" timeout "}}"

static void test_bad_events(void **state)
{
    static const struct {
        const char *text, *says;
        int code;
    } bad[] = {
        {"", "", DET_EINVAL},
        {"[]", "object", DET_EINVAL},
        {"{\"boot\":\"b\",\"protocol\":3,\"events\":[]}", "protocol 3", DET_EUNIMPL},
        {"{\"boot\":\"b\",\"protocol\":0,\"events\":[]}", "upgrade the agent", DET_EUNIMPL},
        {"{\"boot\":\"../x\",\"protocol\":1,\"events\":[]}", "boot", DET_EINVAL},
        {"{\"boot\":\"b\",\"protocol\":1,\"events\":{}}", "events", DET_EINVAL},
        {EVENTS("3"), "events[0]", DET_EINVAL},
        {EVENTS("{\"seq\":0,\"type\":\"state\"}"), "seq", DET_EINVAL},
        {EVENTS("{\"seq\":1,\"type\":7}"), "type: '(no string)'", DET_EINVAL},
        {EVENTS("{\"seq\":1,\"type\":\"state\",\"alloc\":\"a/b\",\"container\":\"c\"}"), "alloc",
         DET_EINVAL},
        {EVENTS("{\"seq\":1,\"type\":\"exit\",\"alloc\":\"a\",\"container\":\"c\"}"), "exit",
         DET_EINVAL},
        {EVENTS("{\"seq\":1,\"type\":\"exit\",\"alloc\":\"a\",\"container\":\"c\",\"exit\":{"
                "\"reason\":\"exited\","
                "\"code\":256}}"),
         "code", DET_EINVAL},
        {EVENTS("{\"seq\":1,\"type\":\"state\",\"alloc\":\"a\",\"container\":\"c\",\"state\":"
                "\"running\"},"
                "{\"seq\":3,\"type\":\"state\",\"alloc\":\"a\",\"container\":\"c\",\"state\":"
                "\"running\"}"),
         "does not follow", DET_EINVAL},
        {EVENTS("{\"seq\":1,\"type\":\"state\",\"alloc\":\"a\",\"container\":\"c\",\"marks\":["
                "{\"kind\":\"a b\",\"at_us\":1}]}"),
         "marks[0]: kind", DET_EINVAL},
        {EVENTS(SILENT("-1", "\"training\"", "1")), "silent: rank", DET_EINVAL},
        {EVENTS(SILENT("0", "\"a b\"", "1")), "silent: phase", DET_EINVAL},
        {EVENTS(SILENT("0", "7", "1")), "silent: phase", DET_EINVAL},
        {EVENTS(SILENT("0", "\"training\"", "0")), "silent: timeout_ms", DET_EINVAL},
        {EVENTS(RUNNING "\"silent\":[]}"), "silent", DET_EINVAL},
        {EVENTS(RUNNING "\"silent\":{\"rank\":0}}"), "silent: phase", DET_EINVAL},
        {EVENTS("{\"seq\":1,\"type\":\"hello\",\"version\":\"1\",\"addr\":\"a\",\"tasks\":[],"
                "\"slots\":[{\"id\":0,"
                "\"type\":\"cpu\"},{\"id\":0,\"type\":\"cpu\"}]}"),
         "twice", DET_EINVAL},
        {EVENTS("{\"seq\":1,\"type\":\"hello\",\"version\":\"1\",\"addr\":\"a\",\"tasks\":[],"
                "\"slots\":[{\"id\":9999,"
                "\"type\":\"cpu\"}]}"),
         "slots[0]: id", DET_EINVAL},
        {SLOT_OF("\"island\":-1"), "slots[0]: island", DET_EINVAL},
        {SLOT_OF("\"island\":1024"), "slots[0]: island", DET_EINVAL},
        {SLOT_OF("\"numa\":\"0\""), "slots[0]: numa", DET_EINVAL},
        {SLOT_OF("\"numa\":1024"), "slots[0]: numa", DET_EINVAL},
        {HELLO("\"unfit\":{}"), "unfit", DET_EINVAL},
        {HELLO("\"unfit\":[7]"), "unfit[0]", DET_EINVAL},
        {HELLO("\"unfit\":[{\"slot\":1024,\"state\":\"held\"}]"), "unfit[0]: slot", DET_EINVAL},
        {HELLO("\"unfit\":[{\"slot\":1,\"state\":\"held\"},{\"slot\":1,\"state\":\"held\"}]"),
         "unfit[1]: slot 1 is there twice", DET_EINVAL},
        {EVENTS("{\"seq\":1,\"type\":\"slot\",\"slot\":-1,\"state\":\"held\"}"), "slot",
         DET_EINVAL},
        {EVENTS("{\"seq\":1,\"type\":\"slot\",\"slot\":1,\"state\":7}"), "(no string)", DET_EINVAL},
        {EVENTS("{\"seq\":1,\"type\":\"slot\",\"slot\":1,\"state\":\"held\",\"text\":7}"), "text",
         DET_EINVAL},
    };
    for (size_t i = 0; i < DET_ARRAY_LEN(bad); i++) {
        struct link_events e;
        struct det_err err = {0};
        assert_int_equal(decode_events(bad[i].text, &e, &err), bad[i].code);
        if (!strstr(err.text, bad[i].says))
            fail_msg("'%s' does not say '%s'", err.text, bad[i].says);
    }
}

#define TASK(more)                                                                                 \
    "{\"seq\":1,\"order\":\"start\",\"alloc\":\"a\",\"container\":\"c\",\"task\":{\"task_id\":"    \
    "\"1.a\","                                                                                     \
    "\"kind\":\"TRIAL\",\"run_id\":2,\"token\":\"t\"" more "}}"
#define GOOD ",\"entrypoint\":\"m:T\",\"env\":{\"A\":\"b\"}"

static void test_start(void **state)
{
    const char *text =
        TASK(GOOD ",\"slots\":[1,0],\"node\":1,\"nodes\":2,\"slot_counts\":[4,2],"
                  "\"user\":{\"name\":\"u\",\"uid\":7,\"gid\":8},\"stall_timeout_ms\":5000,"
                  "\"python\":{\"interpreter\":\"/opt/venv\"}");
    struct link_order o;
    struct link_spec s;
    struct det_err err = {0};
    if (link_order_decode(text, strlen(text), &o, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(o.kind, LINK_START);
    assert_int_equal(link_spec_decode(o.task, &s, &err), 0);
    assert_int_equal(s.slots[0], 1);
    assert_int_equal(s.slot_counts[0], 4);
    assert_true(s.has_user);
    assert_int_equal(s.uid, 7);
    assert_int_equal(s.stall_timeout_ms, 5000);
    assert_string_equal(s.interpreter, "/opt/venv");
    assert_null(s.context);
    det_cleanup(freep) char *task = json_text(o.task);
    det_cleanup(buf_finish) struct buf line = BUF_INIT;
    link_start_write(&line, &o, task);
    assert_string_equal(buf_str(&line), text);
    link_spec_finish(&s);
    link_order_finish(&o);
}

static void test_bad_orders(void **state)
{
    static const char *const bad[][2] = {
        {"{", ""},
        {"{\"seq\":1}", "order"},
        {"{\"seq\":1,\"order\":\"signal\",\"alloc\":\"a\",\"signal\":\"HUP\"}", "'HUP'"},
        {TASK(GOOD), "slots"},
        {TASK(GOOD ",\"slots\":[\"1\"]"), "slots[0]"},
        {TASK(GOOD ",\"slots\":[1],\"slot_counts\":[2]"), "slot_counts[0]"},
        {TASK(GOOD ",\"slots\":[1],\"nodes\":2"), "slot_counts"},
        {TASK(GOOD ",\"slots\":[1],\"node\":1"), "node"},
        {TASK(",\"slots\":[],\"env\":{}"), "entrypoint"},
        {TASK(",\"slots\":[],\"env\":{},\"entrypoint\":[]"), "entrypoint"},
        {TASK(",\"slots\":[],\"env\":{\"A\":1},\"entrypoint\":\"x\""), "env.A"},
        {TASK(",\"slots\":[],\"env\":{\"A=\":\"\"},\"entrypoint\":\"x\""), "'A='"},
        {TASK(GOOD ",\"slots\":[],\"user\":{\"name\":\"u\",\"uid\":-1,\"gid\":0}"), "uid"},
        {TASK(GOOD ",\"slots\":[],\"python\":\"x\""), "python: "},
        {TASK(GOOD ",\"slots\":[],\"python\":{\"interpreter\":7}"), "python: interpreter"},
        {TASK(GOOD ",\"slots\":[],\"python\":{\"requirements\":[7]}"), "python: requirements"},
        {TASK(GOOD ",\"slots\":[],\"python\":{\"requirements\":\"a\"}"), "python: requirements"},
        {TASK(GOOD ",\"slots\":[],\"python\":{\"system_site_packages\":1}"), "python: system_"},
        {TASK(GOOD ",\"slots\":[],\"python\":{\"interpreter\":\"\"}"),
         "python: interpreter: empty"},
    };
    for (size_t i = 0; i < DET_ARRAY_LEN(bad); i++) {
        struct link_order o;
        struct det_err err = {0};
        assert_int_equal(link_order_decode(bad[i][0], strlen(bad[i][0]), &o, &err), DET_EINVAL);
        if (!strstr(err.text, bad[i][1]))
            fail_msg("'%s' does not say '%s'", err.text, bad[i][1]);
    }
}

static void test_signal_and_unknown(void **state)
{
    struct link_order o = {.kind = LINK_SIGNAL, .seq = 4, .alloc = "a", .signal = SIGKILL}, back;
    JSON_OWN j = link_order_json(&o);
    det_cleanup(freep) char *text = json_text(j);
    assert_int_equal(link_order_decode(text, strlen(text), &back, NULL), 0);
    assert_int_equal(back.signal, SIGKILL);
    link_order_finish(&back);
    o = (struct link_order){.kind = LINK_STACKS, .seq = 5, .alloc = "a", .container = "c"};
    JSON_OWN look = link_order_json(&o);
    det_cleanup(freep) char *looked = json_text(look);
    assert_int_equal(link_order_decode(looked, strlen(looked), &back, NULL), 0);
    assert_int_equal(back.kind, LINK_STACKS);
    assert_string_equal(back.container, "c");
    link_order_finish(&back);
    const char *whose = "{\"seq\":5,\"order\":\"stacks\",\"alloc\":\"a\"}";
    assert_int_equal(link_order_decode(whose, strlen(whose), &back, NULL), DET_EINVAL);
    const char *later = "{\"seq\":5,\"order\":\"sing\"}";
    assert_int_equal(link_order_decode(later, strlen(later), &back, NULL), 0);
    assert_int_equal(back.kind, LINK_ORDER_UNKNOWN);
    link_order_finish(&back);
    struct link_ack ack;
    assert_int_equal(link_ack_decode("{\"ack\":7}", 9, &ack, NULL), 0);
    assert_int_equal(ack.ack, 7);
    assert_false(ack.has_life);
    link_ack_finish(&ack);
    struct link_life life = {"c1", "n1", 3, 40, 5, 6};
    JSON_OWN answer = json_make("{s:i, s:o}", "ack", 8, "life", link_life_json(&life));
    det_cleanup(freep) char *said = json_text(answer);
    assert_int_equal(link_ack_decode(said, strlen(said), &ack, NULL), 0);
    assert_true(ack.has_life && ack.life.epoch == 3 && ack.life.batch == 40 && ack.life.trial == 6);
    link_ack_finish(&ack);
    json_set(json_obj(answer, "life"), "exp", json_integer(LINK_IDS_MAX + 1));
    det_cleanup(freep) char *wild = json_text(answer);
    assert_int_equal(link_ack_decode(wild, strlen(wild), &ack, NULL), DET_EINVAL);
}

static int clock_of(const char *clock, struct link_events *e, struct det_err *err)
{
    det_cleanup(freep) char *text =
        det_asprintf("{\"boot\": \"b\", \"protocol\": 2, \"events\": [], \"clock\": %s}", clock);
    return decode_events(text, e, err);
}

static void test_clock(void **state)
{
    const struct clockdiff d = {-3000000, INT64_MAX / 2};
    JSON_OWN j = link_clock_json(&d);
    det_cleanup(freep) char *text = json_text(j);
    struct link_events e;
    struct det_err err = {0};
    assert_int_equal(clock_of(text, &e, &err), 0);
    assert_true(e.has_clock);
    assert_memory_equal(&e.clock, &d, sizeof d);
    link_events_finish(&e);
    static const char *const bad[] = {"1", "{}", "{\"least_us\": 2, \"most_us\": 1}",
                                      "{\"least_us\": 0, \"most_us\": 9223372036854775807}"};
    for (size_t i = 0; i < DET_ARRAY_LEN(bad); i++) {
        assert_int_equal(clock_of(bad[i], &e, &err), DET_EINVAL);
        assert_non_null(strstr(err.text, "clock"));
    }
    struct link_ack a;
    static const char ack[] = "{\"ack\": 7, \"clock\": {\"got_us\": 5, \"answered_us\": 6}}";
    assert_int_equal(link_ack_decode(ack, strlen(ack), &a, &err), 0);
    assert_true(a.has_clock && a.clock.got_us == 5 && a.clock.answered_us == 6);
    link_ack_finish(&a);
    static const char worse[] = "{\"ack\": 7, \"clock\": {\"got_us\": -5, \"answered_us\": 6}}";
    assert_int_equal(link_ack_decode(worse, strlen(worse), &a, &err), DET_EINVAL);
}

/* Refused, it would come again for ever: it is taken for the host's, and uses up no restart. */
static void test_a_reason_of_a_newer_agent(void **state)
{
    static const char *const refused[] = {"{\"reason\":7}", "{\"reason\":null}", "{}"};
    struct link_exit x;
    struct det_err err = {0};
    JSON_OWN j = json_make("{s:s,s:i,s:s}", "reason", "eaten", "rank", 1, "text", "by a dog");
    assert_int_equal(link_exit_decode(j, &x, &err), 0);
    assert_int_equal(x.reason, LINK_START_FAILED);
    assert_int_equal(x.rank, 1);
    assert_string_equal(x.text, "by a dog");
    for (size_t i = 0; i < DET_ARRAY_LEN(refused); i++) {
        JSON_OWN bad = json_parse(refused[i], strlen(refused[i]), NULL);
        assert_int_equal(link_exit_decode(bad, &x, &err), DET_EINVAL);
    }
}

static const char *const newer =
    "{\"boot\":\"b\",\"protocol\":1,\"events\":["
    "{\"seq\":1,\"type\":\"hello\",\"version\":\"9\",\"addr\":\"a\",\"slots\":["
    "{\"id\":0,\"type\":\"tpu\"},{\"id\":1,\"type\":\"cuda\"}],"
    "\"tasks\":[{\"alloc\":\"a\",\"container\":\"c\",\"state\":\"resting\"}],"
    "\"unfit\":[{\"slot\":1,\"state\":\"melted\",\"text\":\"hot\"}]},"
    "{\"seq\":2,\"type\":\"weather\",\"of\":[\"rain\"]},"
    "{\"seq\":3,\"type\":\"store\",\"place\":\"/s\",\"state\":\"sunk\",\"text\":\"wet\"},"
    "{\"seq\":4,\"type\":\"slot\",\"slot\":1,\"state\":\"frozen\"}]}";

/* No master of before would ever be rid of it. */
static void test_names_of_a_newer_agent(void **state)
{
    struct link_events e;
    struct det_err err = {0};
    if (decode_events(newer, &e, &err) < 0)
        fail_msg("%s", err.text);
    const struct link_hello *h = &e.v[0].hello;
    assert_int_equal(h->slots_n, 1);
    assert_int_equal(h->slots[0].id, 1);
    assert_int_equal(h->left_out, 1);
    assert_int_equal(h->tasks[0].state, LINK_RUNNING);
    assert_int_equal(h->unfit[0].state, LINK_SLOT_AILING);
    assert_string_equal(h->unfit[0].text, "hot");
    assert_int_equal(e.v[1].kind, LINK_EV_UNKNOWN);
    assert_int_equal(e.v[1].seq, 2);
    assert_int_equal(e.v[2].store.state, LINK_STORE_FAILED);
    assert_string_equal(e.v[2].store.text, "wet");
    assert_int_equal(e.v[3].sight.state, LINK_SLOT_AILING);
    link_events_finish(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_reason_of_a_newer_agent),
        cmocka_unit_test(test_names_of_a_newer_agent),
        cmocka_unit_test(test_clock),
        cmocka_unit_test(test_hello),
        cmocka_unit_test(test_gpus),
        cmocka_unit_test(test_exit),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_silent),
        cmocka_unit_test(test_unreached),
        cmocka_unit_test(test_slots_that_are_not_usable),
        cmocka_unit_test(test_bad_events),
        cmocka_unit_test(test_start),
        cmocka_unit_test(test_bad_orders),
        cmocka_unit_test(test_signal_and_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
