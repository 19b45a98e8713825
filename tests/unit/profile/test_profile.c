/* The profiler: torch's schedule, what is recorded when, and what the trace and the table say. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "json.h"
#include "profile.h"
#include <pthread.h>
#include <string.h>

/* As torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1) answers. */
static void the_schedule_is_torchs(void **state)
{
    static const struct profile_schedule s = {1, 1, 1, 2, 2};
    static const char want[] = "0"
                               "01RS"
                               "01RS"
                               "000";
    static const struct profile_schedule ever = {0, 0, 0, 1, 0};
    for (int64_t i = 0; want[i]; i++) {
        enum profile_action a = want[i] == '0'   ? PROFILE_NONE
                                : want[i] == '1' ? PROFILE_WARMUP
                                : want[i] == 'R' ? PROFILE_RECORD
                                                 : PROFILE_RECORD_AND_SAVE;
        assert_int_equal(profile_action(&s, i), a);
        assert_int_equal(profile_action(&ever, i), PROFILE_RECORD_AND_SAVE);
    }
}

static void inner(void)
{
    SPAN(SPAN_OP, "inner");
}

static void batch(void)
{
    SPAN(SPAN_LOOP, "batch \"quoted\"");
    inner();
    span_tell(SPAN_OP, "shaped", "float32[2, 3]", span_now_ns());
    span_count("memory", 100);
    span_count("memory", 100);
    inner();
}

static size_t count(const json_t *events, const char *ph, const char *name)
{
    size_t n = 0, i;
    json_t *e;
    json_array_foreach((json_t *)events, i, e)
    {
        n += strcmp(json_str(e, "ph", ""), ph) == 0 && strcmp(json_str(e, "name", ""), name) == 0;
    }
    return n;
}

static json_t *trace_of(struct profile *p)
{
    struct buf out = BUF_INIT;
    struct det_err err;
    profile_write_trace(p, "rank 0", 42, &out);
    json_t *j = json_parse(buf_str(&out), out.len, &err);
    assert_non_null(j);
    buf_finish(&out);
    return j;
}

static void only_active_batches_are_recorded(void **state)
{
    struct profile p;
    struct profile_schedule s = {1, 1, 1, 2, 1};
    profile_init(&p, &s, true, true, false);
    profile_start(&p);
    int saved = 0;
    for (int64_t i = 0; i < 8; i++) {
        assert_int_equal(span_on(), i >= 2 && i <= 4);
        batch();
        if (!profile_step(&p))
            continue;
        assert_int_equal(i, 4);
        JSON_OWN j = trace_of(&p);
        const json_t *events = json_arr(j, "traceEvents");
        assert_int_equal(count(events, "X", "batch \"quoted\""), 2);
        assert_int_equal(count(events, "X", "inner"), 4);
        assert_int_equal(count(events, "X", "ProfilerStep#3"), 1);
        assert_int_equal(count(events, "X", "ProfilerStep#4"), 1);
        assert_int_equal(count(events, "C", "memory"), 1);
        saved++;
        profile_next(&p);
    }
    assert_int_equal(saved, 1);
    assert_false(span_on());
    profile_finish(&p);
}

static void the_table_adds_up(void **state)
{
    struct profile p;
    profile_init(&p, &(struct profile_schedule){0, 0, 0, 1, 0}, true, true, false);
    profile_start(&p);
    batch();
    assert_true(profile_step(&p));
    struct buf out = BUF_INIT;
    profile_write_table(&p, 10, &out);
    assert_non_null(strstr(buf_str(&out), "| inner |"));
    assert_non_null(strstr(buf_str(&out), "| ProfilerStep#0 |"));
    buf_clear(&out);
    profile_write_table(&p, 1, &out);
    size_t lines = 0;
    for (const char *c = buf_str(&out); *c; c++)
        lines += *c == '\n';
    assert_int_equal(lines, 3);
    buf_finish(&out);
    profile_finish(&p);
}

/* The end of training in the middle of a round: what was recorded of it counts, once. */
static void a_round_cut_short_is_kept(void **state)
{
    const struct profile_schedule s = {.wait = 1, .active = 3};
    struct profile p;
    profile_init(&p, &s, true, false, false);
    profile_start(&p);
    batch();
    assert_false(profile_step(&p));
    assert_false(profile_stop(&p)); /* nothing is recorded yet */
    profile_start(&p);
    batch();
    assert_false(profile_step(&p));
    assert_true(profile_stop(&p));
    assert_true(p.events.n > 0);
    size_t n = p.events.n;
    batch();
    assert_true(p.events.n == n && !profile_stop(&p));
    profile_start(&p); /* a second run, in the middle of the same round */
    batch();
    assert_false(profile_step(&p));
    assert_int_equal(p.events.n, n);
    profile_finish(&p);
}

static void *in_thread(void *arg)
{
    for (int i = 0; i < 1000; i++)
        inner();
    return NULL;
}

static void threads_have_rows_of_their_own(void **state)
{
    struct profile p;
    pthread_t t[3];
    profile_init(&p, &(struct profile_schedule){0, 0, 0, 1, 0}, true, true, false);
    profile_start(&p);
    for (int i = 0; i < 3; i++)
        pthread_create(&t[i], NULL, in_thread, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    assert_true(profile_step(&p));
    JSON_OWN j = trace_of(&p);
    assert_int_equal(count(json_arr(j, "traceEvents"), "X", "inner"), 3000);
    profile_finish(&p);
}

/* One run was more than a recording holds; the one after it is another. */
static void a_full_recording_ends_with_its_run(void **state)
{
    static struct profile p; /* still on the list of listeners where a check fails */
    struct profile_schedule s = {0, 0, 0, 9, 0};
    profile_init(&p, &s, true, true, false);
    profile_start(&p);
    batch();
    p.full = true;
    size_t texts = p.texts.n, events = p.events.n;
    span_tell(SPAN_OP, "more", NULL, span_now_ns());
    assert_int_equal(p.events.n, events);
    assert_int_equal(p.texts.n, texts); /* a name for each of its steps would gather for ever */
    assert_true(profile_stop(&p));
    profile_start(&p);
    batch();
    assert_int_equal(p.events.n, events);
    JSON_OWN j = trace_of(&p);
    assert_true(json_is_false(json_object_get(j, "truncated")));
    profile_finish(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_schedule_is_torchs),
        cmocka_unit_test(only_active_batches_are_recorded),
        cmocka_unit_test(the_table_adds_up),
        cmocka_unit_test(a_round_cut_short_is_kept),
        cmocka_unit_test(a_full_recording_ends_with_its_run),
        cmocka_unit_test(threads_have_rows_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
