/* The rules of a batch that tests/sim does not reach: how they stop. And the order of it all. */
#include "world.h"

#include "batch.h"

static struct world w;
static struct batch b;
static int asker;

static enum batch_do_kind next(void)
{
    struct batch_do d = batch_next(&b);
    if (d.kind == BATCH_DO_STEP) {
        d.event->ev.now_ms = w.now_ms;
        d.event->ev.request = d.event->whose ? 7 : 0;
        core_step(w.core, &d.event->ev, &b.effects);
    }
    if (d.event)
        batch_event_free(d.event);
    return d.kind;
}

static void expect(size_t n, const enum batch_do_kind *kinds)
{
    for (size_t i = 0; i < n; i++)
        assert_int_equal(next(), kinds[i]);
    assert_int_equal(next(), BATCH_DO_NOTHING);
}
#define EXPECT(...)                                                                                \
    expect(sizeof((enum batch_do_kind[]){__VA_ARGS__}) / sizeof(enum batch_do_kind),               \
           (enum batch_do_kind[]){__VA_ARGS__})

static int setup(void **state)
{
    world_init(&w, NULL);
    batch_init(&b, w.core, 2);
    batch_begin(&b, &(struct core_effects)CORE_EFFECTS_INIT);
    EXPECT(BATCH_DO_END);
    return 0;
}

static int teardown(void **state)
{
    batch_finish(&b);
    world_finish(&w);
    return 0;
}

static bool ask(void)
{
    return batch_post(&b, &(struct core_event){.kind = CORE_EV_TICK}, &asker);
}

static void tell(enum batch_answer answer)
{
    batch_tell(&b, &(struct batch_told){.answer = answer}, w.now_ms, 1);
}

static void test_done(void **state)
{
    assert_int_equal(batch_turn_ms(&b), INT64_MAX);
    for (int i = 0; i < 3; i++)
        assert_false(ask());
    assert_int_equal(batch_turn_ms(&b), 0);
    batch_turn(&b, w.now_ms);
    EXPECT(BATCH_DO_STEP, BATCH_DO_STEP, BATCH_DO_COMMIT);
    assert_false(b.is_numbered); /* two answers, no row */
    assert_int_equal(batch_turn_ms(&b), INT64_MAX);
    tell(BATCH_COMMITTED);
    EXPECT(BATCH_DO_PERFORM, BATCH_DO_PERFORM, BATCH_DO_END);
    assert_int_equal(b.number, 0);
    assert_int_equal(batch_turn_ms(&b), 0); /* the third */
}

/* What waits is refused, what nobody waits for is kept, the batch is sent again. */
static void test_away(void **state)
{
    ask();
    batch_turn(&b, w.now_ms);
    EXPECT(BATCH_DO_STEP, BATCH_DO_COMMIT);
    ask();
    batch_post(&b, &(struct core_event){.kind = CORE_EV_TICK}, NULL);
    batch_db(&b, false, w.now_ms);
    assert_int_equal(batch_turn_ms(&b), 0);
    tell(BATCH_AWAY);
    assert_true(ask());
    batch_turn(&b, w.now_ms);
    EXPECT(BATCH_DO_REFUSE, BATCH_DO_REFUSE);
    assert_int_equal(b.queued, 1);
    batch_turn(&b, w.now_ms + 1000);
    assert_int_equal(next(), BATCH_DO_NOTHING);
    assert_int_equal(batch_turn_ms(&b), INT64_MAX);
    batch_db(&b, true, w.now_ms + 2000);
    batch_turn(&b, w.now_ms + 2000);
    EXPECT(BATCH_DO_COMMIT);
}

static void test_stop_held(void **state)
{
    ask();
    batch_turn(&b, w.now_ms);
    EXPECT(BATCH_DO_STEP, BATCH_DO_COMMIT);
    tell(BATCH_AWAY);
    batch_stop(&b);
    assert_int_equal(batch_turn_ms(&b), 0);
    EXPECT(BATCH_DO_FORGET);
    assert_true(ask());
    batch_turn(&b, w.now_ms);
    EXPECT(BATCH_DO_REFUSE);
}

/* Of what is in flight the answers go out, and no order. */
static void test_stop_in_flight(void **state)
{
    struct core_event ev = {.kind = CORE_EV_EXP_KILL, .exp_id = 1};
    world_hello(&w, "a", 1, NULL, 0);
    world_create(&w, "{}");
    world_run(&w, 1);
    batch_post(&b, &ev, &asker);
    batch_turn(&b, w.now_ms);
    EXPECT(BATCH_DO_STEP, BATCH_DO_COMMIT);
    assert_true(b.is_numbered);
    batch_stop(&b);
    tell(BATCH_COMMITTED);
    EXPECT(BATCH_DO_PERFORM, BATCH_DO_END);
    assert_int_equal(b.number, 1);
}

static void test_canceled(void **state)
{
    ask();
    batch_turn(&b, w.now_ms);
    EXPECT(BATCH_DO_STEP, BATCH_DO_COMMIT);
    tell(BATCH_CANCELED);
    assert_int_equal(next(), BATCH_DO_NOTHING);
    assert_int_equal(b.state, BATCH_OVER);
}

static void test_broken(void **state)
{
    ask();
    batch_turn(&b, w.now_ms);
    EXPECT(BATCH_DO_STEP, BATCH_DO_COMMIT);
    tell(BATCH_BROKEN);
    EXPECT(BATCH_DO_DIE);
    assert_true(b.is_stopping);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_done, setup, teardown),
        cmocka_unit_test_setup_teardown(test_away, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stop_held, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stop_in_flight, setup, teardown),
        cmocka_unit_test_setup_teardown(test_canceled, setup, teardown),
        cmocka_unit_test_setup_teardown(test_broken, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
