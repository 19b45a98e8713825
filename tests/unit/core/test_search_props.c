/* usage: test-core-search_props [ROUNDS]
 * Properties of every searcher over thousands of random configurations, metrics, orders of events
 * and exits: it never gets stuck, never goes over its budget, decides the same twice, and a
 * snapshot taken anywhere, or its events read back from the log, continue to the same bytes. */
#include "world.h"

#include "rng.h"
#include "searcher.h"
#include <math.h>
#include <stdio.h>

static uint32_t rounds = 250;

struct model { /* a trial as the core has it */
    char id[UUID_STR_MAX];
    int64_t op, last_op; /* op 0: none to do */
    bool closing, ended, invalid;
};
struct trip {
    struct mt19937 rng;
    struct search_conf conf;
    struct search *s, *twin; /* the twin comes from a snapshot now and then */
    VEC(struct model) trials;
    size_t open, invalid;
    bool shut;
};

static uint64_t pick(struct trip *t, uint64_t n)
{
    return mt19937_bounded(&t->rng, n - 1);
}

static void choose(struct trip *t, const json_t *space)
{
    static const double divisors[] = {1.5, 2, 3, 4, 7.5, 1e6};
    t->conf = (struct search_conf){
        .kind = (enum search_kind)pick(t, SEARCH_CUSTOM),
        .max_length = 1 + (int64_t)pick(t, pick(t, 2) ? 20 : 100000),
        .max_trials = 1 + (int64_t)pick(t, 40),
        .max_concurrent = (int64_t)pick(t, 12),
        .seed = mt19937_u32(&t->rng),
        .space = space,
        .larger_is_better = pick(t, 2),
        .stop_once = pick(t, 2),
        .divisor = divisors[pick(t, DET_ARRAY_LEN(divisors))],
        .num_rungs = 1 + (int64_t)pick(t, 7),
        .max_rungs = 1 + (int64_t)pick(t, 7),
        .mode = (enum search_mode)pick(t, SEARCH_MODE_COUNT),
    };
}

static struct search *create(const struct trip *t)
{
    struct search *s = NULL;
    struct det_err err = {0};
    if (search_create(&t->conf, &s, &err) < 0)
        fail_msg("%s", err.text);
    return s;
}

static char *bytes(const struct search *s)
{
    JSON_OWN j = search_snapshot(s);
    return json_text(j);
}

static struct model *find(struct trip *t, const char *id)
{
    for (size_t i = 0; i < t->trials.n; i++)
        if (strcmp(t->trials.v[i].id, id) == 0)
            return &t->trials.v[i];
    return NULL;
}

static void apply(struct trip *t, const struct search_op *op)
{
    struct model *m = find(t, op->request_id);
    assert_false(t->shut);
    if (op->kind == SEARCH_CREATE) {
        assert_null(m);
        struct model fresh = {0};
        memcpy(fresh.id, op->request_id, UUID_STR_MAX);
        vec_push(&t->trials, fresh);
        t->open++;
    } else if (op->kind == SEARCH_VALIDATE_AFTER) {
        assert_true(m && !m->ended && m->op == 0);
        assert_true(op->length >= m->last_op && op->length <= t->conf.max_length);
        m->op = m->last_op = op->length;
    } else if (op->kind == SEARCH_CLOSE) {
        assert_true(m && !m->closing);
        m->closing = true;
    } else {
        assert_int_equal(t->open, 0);
        t->shut = true;
    }
}

/* The twin hears what the log would hold. */
static void tell(struct trip *t, const struct search_event *ev)
{
    struct search_ops a = {0}, b = {0};
    JSON_OWN logged = search_event_to_json(ev);
    det_cleanup(freep) char *text = json_text(logged);
    JSON_OWN read = json_parse(text, strlen(text), NULL);
    struct search_event again;
    assert_int_equal(search_event_from_json(read, &again, NULL), 0);
    if (pick(t, 4) == 0) {
        JSON_OWN snap = search_snapshot(t->s);
        search_destroy(t->twin);
        t->twin = create(t);
        assert_int_equal(search_restore(t->twin, snap, NULL), 0);
    }
    search_step(t->s, ev, &a);
    search_step(t->twin, &again, &b);
    assert_true(search_ops_digest(&a) == search_ops_digest(&b));
    det_cleanup(freep) char *x = bytes(t->s), *y = bytes(t->twin);
    assert_string_equal(x, y);
    assert_true(search_progress(t->s) >= 0 && search_progress(t->s) <= 1);
    for (size_t i = 0; i < a.ops.n; i++)
        apply(t, &a.ops.v[i]);
    search_ops_finish(&a);
    search_ops_finish(&b);
}

static void close_trial(struct trip *t, size_t k)
{
    t->trials.v[k].ended = true;
    t->open--;
    char id[UUID_STR_MAX];
    memcpy(id, t->trials.v[k].id, UUID_STR_MAX);
    tell(t, &(struct search_event){.kind = SEARCH_EV_CLOSED, .request_id = id});
}

static void exit_trial(struct trip *t, size_t k)
{
    char id[UUID_STR_MAX];
    enum search_exit why = (enum search_exit)pick(t, SEARCH_EXIT_COUNT);
    bool invalid = why == SEARCH_INVALID_HP || why == SEARCH_INIT_INVALID_HP;
    memcpy(id, t->trials.v[k].id, UUID_STR_MAX);
    t->trials.v[k].op = 0;
    t->invalid += invalid;
    tell(t, &(struct search_event){.kind = SEARCH_EV_EXITED, .request_id = id, .reason = why});
    close_trial(t, k);
}

static double metric(struct trip *t)
{
    static const double odd[] = {0, 1, 1, -INFINITY, INFINITY, NAN, 1e308, -5};
    return pick(t, 3) ? mt19937_double(&t->rng) : odd[pick(t, DET_ARRAY_LEN(odd))];
}

static void validate(struct trip *t, size_t k)
{
    char id[UUID_STR_MAX];
    struct model *m = &t->trials.v[k];
    memcpy(id, m->id, UUID_STR_MAX);
    int64_t length = m->op;
    m->op = 0;
    tell(t,
         &(struct search_event){
             .kind = SEARCH_EV_VALIDATED, .request_id = id, .length = length, .metric = metric(t)});
}

/* Ends what can end; true when something did. */
static bool reap(struct trip *t)
{
    for (size_t k = 0; k < t->trials.n; k++)
        if (!t->trials.v[k].ended && t->trials.v[k].closing && t->trials.v[k].op == 0) {
            close_trial(t, k);
            return true;
        }
    return false;
}

static int64_t budget(const struct trip *t)
{
    if (t->conf.kind == SEARCH_SINGLE)
        return 1;
    if (t->conf.kind == SEARCH_GRID)
        return 6;
    /* one trial at least in each bracket */
    int64_t least = t->conf.kind == SEARCH_ADAPTIVE_ASHA ? t->conf.max_rungs : 1;
    return t->conf.max_trials > least ? t->conf.max_trials : least;
}

static void step(struct trip *t, unsigned exits)
{
    size_t running[512], idle[512], n = 0, waits = 0;
    for (size_t k = 0; k < t->trials.n && n < 512 && waits < 512; k++)
        if (!t->trials.v[k].ended && t->trials.v[k].op)
            running[n++] = k;
        else if (!t->trials.v[k].ended)
            idle[waits++] = k;
    assert_true(n > 0); /* else it is stuck: nobody has anything to do */
    if (pick(t, 100) < exits && waits && pick(t, 3) == 0)
        exit_trial(t, idle[pick(t, waits)]);
    else if (pick(t, 100) < exits)
        exit_trial(t, running[pick(t, n)]);
    else
        validate(t, running[pick(t, n)]);
}

static void go(uint32_t seed, const json_t *space)
{
    struct trip t = {0};
    mt19937_seed(&t.rng, seed);
    choose(&t, space);
    unsigned exits = pick(&t, 3) ? (unsigned)pick(&t, 40) : 0;
    t.s = create(&t);
    t.twin = create(&t);
    tell(&t, &(struct search_event){.kind = SEARCH_EV_INITIAL});
    for (int i = 0; !t.shut; i++) {
        assert_true(i < 20000);
        if (!reap(&t))
            step(&t, i < 300 ? exits : 0);
    }
    int64_t replaced =
        t.conf.kind == SEARCH_SINGLE || t.conf.kind == SEARCH_GRID ? 0 : (int64_t)t.invalid;
    assert_true((int64_t)t.trials.n - replaced <= budget(&t));
    assert_true((int64_t)t.trials.n >= 1);
    vec_free(&t.trials);
    search_destroy(t.s);
    search_destroy(t.twin);
}

static void test_properties(void **state)
{
    static const char text[] =
        "{\"x\":{\"type\":\"double\",\"minval\":0,\"maxval\":1,\"count\":3},"
        "\"y\":{\"type\":\"categorical\",\"vals\":[1,2]},\"z\":{\"type\":\"const\",\"val\":5}}";
    JSON_OWN space = json_parse(text, sizeof text - 1, NULL);
    for (uint32_t seed = 1; seed <= rounds; seed++)
        go(seed, space);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        rounds = (uint32_t)strtoul(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_properties)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
