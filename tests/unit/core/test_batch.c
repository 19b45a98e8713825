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
        batch_event_destroy(d.event);
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

/* An experiment's kill is in hand, and sent: the row of its trial, or of another kind. */
static size_t begin_kill(int64_t id, enum core_effect_kind kind)
{
    batch_post(&b, &(struct core_event){.kind = CORE_EV_EXP_KILL, .exp_id = id}, &asker);
    batch_turn(&b, w.now_ms);
    EXPECT(BATCH_DO_STEP, BATCH_DO_COMMIT);
    size_t i = 0;
    while (i < b.effects.n && b.effects.v[i].kind != kind)
        i++;
    assert_true(i < b.effects.n);
    return i;
}

static void doubt(size_t row, enum batch_doubt why)
{
    const struct batch_told t = {BATCH_DOUBTED, b.is_singly ? row : b.effects.n, "odd", why};
    batch_tell(&b, &t, w.now_ms, 1);
}

static void again(void)
{
    assert_int_equal(b.state, BATCH_HELD);
    w.now_ms = batch_turn_ms(&b);
    batch_turn(&b, w.now_ms);
    EXPECT(BATCH_DO_COMMIT);
}

/* So long until it is sent without the row; 0: it is not, but ends. */
static int64_t doubted_for(size_t row, enum batch_doubt why)
{
    int64_t from = w.now_ms;
    for (doubt(row, why); b.state == BATCH_HELD; doubt(row, why)) {
        assert_true(b.effects.v[row].kind != CORE_NOTHING);
        again();
        assert_true(b.is_singly);
    }
    if (b.state == BATCH_OVER)
        return 0;
    assert_int_equal(b.effects.v[row].kind, CORE_NOTHING);
    assert_false(b.is_overdue); /* deadlines follow from what is sent now */
    EXPECT(BATCH_DO_COMMIT);
    return w.now_ms - from;
}

static void commit(void)
{
    tell(BATCH_COMMITTED);
    while (next() != BATCH_DO_NOTHING)
        ;
    assert_int_equal(b.state, BATCH_IDLE);
}

static int64_t new_run(void)
{
    int64_t id = world_create(&w, "{}");
    world_run(&w, id);
    return id;
}

/* What alone fails for a while is parked, the sooner the less it may pass; each next one without
 * another of its kind between costs twice the time. */
static void test_doubted(void **state)
{
    world_hello(&w, "a", 5, NULL, 0);
    int64_t ids[5];
    for (int i = 0; i < 5; i++)
        ids[i] = new_run();
    int64_t first = doubted_for(begin_kill(ids[0], CORE_SAVE_TRIAL), BATCH_ODD);
    assert_true(first > 0);
    assert_int_equal(world_trial(&w, ids[0]).state, TRIAL_STOPPING_ERROR);
    commit();
    assert_true(doubted_for(begin_kill(ids[1], CORE_SAVE_TRIAL), BATCH_ODD) >= 2 * first - 200);
    commit();
    begin_kill(ids[2], CORE_SAVE_TRIAL);
    commit();
    assert_true(doubted_for(begin_kill(ids[3], CORE_SAVE_TRIAL), BATCH_LATE) >= 4 * 15000);
    commit();
    w.now_ms += 3600000; /* long ago */
    assert_int_equal(doubted_for(begin_kill(ids[4], CORE_SAVE_TRIAL), BATCH_ODD), first);
    commit();
}

/* A row for which the server always lacks memory, or cannot read its disk, is not sent for ever. */
static void test_strained(void **state)
{
    world_hello(&w, "a", 5, NULL, 0);
    int64_t id = new_run(), other = new_run();
    int64_t ms = doubted_for(begin_kill(id, CORE_SAVE_TRIAL), BATCH_STRAINED);
    assert_in_range(ms, 5 * 60000, 6 * 60000);
    assert_int_equal(world_trial(&w, id).state, TRIAL_STOPPING_ERROR);
    commit();
    assert_true(doubted_for(begin_kill(other, CORE_SAVE_TRIAL), BATCH_STRAINED) >= 2 * 5 * 60000);
    commit();
}

/* Of a row's statement, once the limit of time was met, and until the batch is another. */
static void test_limit(void **state)
{
    world_hello(&w, "a", 5, NULL, 0);
    size_t row = begin_kill(new_run(), CORE_SAVE_TRIAL);
    for (int i = 0; i < 2; i++) {
        doubt(row, i ? BATCH_STRAINED : BATCH_ODD);
        again();
        assert_true(b.is_singly);
        assert_int_equal(batch_limit_ms(&b), 0);
    }
    doubt(row, BATCH_LATE);
    again();
    assert_int_equal(batch_limit_ms(&b), BATCH_SINGLY_MS);
    assert_true(doubted_for(row, BATCH_LATE) > 0);
    assert_int_equal(batch_limit_ms(&b), 0);
    commit();
    begin_kill(new_run(), CORE_SAVE_TRIAL);
    assert_int_equal(batch_limit_ms(&b), 0);
    commit();
}

/* What always meets the limit of time: about a minute, with that of the whole batch. */
static void test_late(void **state)
{
    world_hello(&w, "a", 5, NULL, 0);
    int64_t ms = doubted_for(begin_kill(new_run(), CORE_SAVE_TRIAL), BATCH_LATE);
    assert_in_range(ms, BATCH_SINGLY_MS, BATCH_SINGLY_MS + 1000);
    commit();
}

/* All trials of an experiment may be bad. */
static void test_doubted_twice(void **state)
{
    world_hello(&w, "a", 4, NULL, 0);
    int64_t id = world_create(&w, "{\"searcher\": {\"name\": \"random\", \"max_trials\": 4, "
                                  "\"max_concurrent_trials\": 4}}");
    for (int i = 1; i <= 4; i++)
        world_run(&w, i);
    int64_t first = doubted_for(begin_kill(id, CORE_SAVE_TRIAL), BATCH_ODD);
    assert_true(first > 0);
    assert_int_equal(b.effects.v[b.effects.n - 1].kind, CORE_SAVE_PARKED);
    size_t second = 0;
    while (b.effects.v[second].kind != CORE_SAVE_TRIAL)
        second++;
    assert_in_range(doubted_for(second, BATCH_ODD), 1, first); /* nobody else loses by it */
    for (size_t i = 0; i < b.effects.n; i++)
        assert_true(b.effects.v[i].kind != CORE_SAVE_TRIAL);
    commit();
}

/* Now this, now that: the more patient counts, from the first failure on, so it ends. */
static void test_doubted_otherwise(void **state)
{
    world_hello(&w, "a", 4, NULL, 0);
    size_t row = begin_kill(new_run(), CORE_SAVE_TRIAL);
    doubt(row, BATCH_ODD);
    again();
    int64_t from = w.now_ms;
    for (int i = 0; b.state == BATCH_IN_FLIGHT; i++) {
        doubt(row, i % 2 ? BATCH_ODD : BATCH_LATE);
        if (b.state != BATCH_HELD)
            break;
        assert_in_range(w.now_ms - from, 0, BATCH_SINGLY_MS - 1);
        w.now_ms += 2500;
        batch_turn(&b, w.now_ms);
        EXPECT(BATCH_DO_COMMIT);
    }
    assert_int_equal(w.now_ms - from, BATCH_SINGLY_MS);
    assert_int_equal(b.effects.v[row].kind, CORE_NOTHING);
    EXPECT(BATCH_DO_COMMIT);
    commit();
}

/* The server's state is nobody's fault, however long it lasts; nor is what another row's failure,
 * or none, comes between. */
static void test_not_doubted(void **state)
{
    world_hello(&w, "a", 4, NULL, 0);
    size_t row = begin_kill(new_run(), CORE_SAVE_TRIAL);
    for (int i = 0; i < 30; i++) {
        if (i % 3 < 2)
            doubt(i % 2 ? row : row + 1, BATCH_LATE);
        else
            tell(BATCH_AWAY);
        assert_int_equal(b.state, BATCH_HELD);
        w.now_ms += 300000;
        batch_turn(&b, w.now_ms);
        EXPECT(BATCH_DO_COMMIT);
    }
    commit();
}

/* Without the batch's number, or where a trial cannot even be parked, nothing can be written. */
static void test_doubted_for_all(void **state)
{
    world_hello(&w, "a", 4, NULL, 0);
    size_t row = begin_kill(new_run(), CORE_SAVE_TRIAL);
    assert_true(doubted_for(row, BATCH_ODD) > 0);
    for (row = 0; b.effects.v[row].kind != CORE_SAVE_PARKED; row++)
        ;
    assert_int_equal(doubted_for(row, BATCH_ODD), 0);
    EXPECT(BATCH_DO_DIE);
}

enum { HALF_HOUR_MS = 30 * 60000 };

/* As above, by what as a rule passes, now this, now that: it does not within half an hour. */
static void test_late_for_all(void **state)
{
    world_hello(&w, "a", 4, NULL, 0);
    size_t row = begin_kill(new_run(), CORE_SAVE_TRIAL);
    assert_true(doubted_for(row, BATCH_ODD) > 0);
    for (row = 0; b.effects.v[row].kind != CORE_SAVE_PARKED; row++)
        ;
    doubt(row, BATCH_LATE);
    int64_t from = w.now_ms;
    for (int i = 0; b.state == BATCH_HELD; i++) {
        assert_in_range(w.now_ms - from, 0, HALF_HOUR_MS);
        w.now_ms += 15000;
        batch_turn(&b, w.now_ms);
        EXPECT(BATCH_DO_COMMIT);
        doubt(i % 3 ? row : b.effects.n, i % 2 ? BATCH_LATE : BATCH_STRAINED);
    }
    assert_in_range(w.now_ms - from, HALF_HOUR_MS, HALF_HOUR_MS + 15000);
    EXPECT(BATCH_DO_DIE);
}

/* The half hour begins anew with what shows that it is not that alone. */
static void test_late_for_all_at_times(void **state)
{
    world_hello(&w, "a", 4, NULL, 0);
    size_t row = begin_kill(new_run(), CORE_SAVE_TRIAL);
    for (int i = 0; i < 30; i++) {
        if (i % 3 < 2)
            doubt(i % 2 ? row : b.effects.n, BATCH_LATE);
        else
            tell(BATCH_AWAY);
        assert_int_equal(b.state, BATCH_HELD);
        w.now_ms += HALF_HOUR_MS;
        batch_turn(&b, w.now_ms);
        EXPECT(BATCH_DO_COMMIT);
    }
    commit();
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
        cmocka_unit_test_setup_teardown(test_doubted, setup, teardown),
        cmocka_unit_test_setup_teardown(test_strained, setup, teardown),
        cmocka_unit_test_setup_teardown(test_late, setup, teardown),
        cmocka_unit_test_setup_teardown(test_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_doubted_twice, setup, teardown),
        cmocka_unit_test_setup_teardown(test_doubted_otherwise, setup, teardown),
        cmocka_unit_test_setup_teardown(test_not_doubted, setup, teardown),
        cmocka_unit_test_setup_teardown(test_doubted_for_all, setup, teardown),
        cmocka_unit_test_setup_teardown(test_late_for_all, setup, teardown),
        cmocka_unit_test_setup_teardown(test_late_for_all_at_times, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
