/* The retention policy: hand-worked cases, then thousands of random ones against its definition. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>

#include "gc_policy.h"
#include "rng.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define NONE ((double)NAN)

/* In order of reports: trial, steps, metric; then which stay, as '1' and '0'. */
struct policy_case {
    const char *name;
    struct gc_keep keep;
    struct gc_checkpoint v[6];
    const char *stay;
};

#define CK(uuid, trial, steps, us, metric, held)                                                   \
    {                                                                                              \
        uuid, trial, steps, us, metric, held, 0                                                    \
    }

static const struct policy_case cases[] = {
    {"the defaults keep the latest and the best of each trial",
     {0, 1, 1, true},
     {CK("a", 1, 10, 1, 0.5, 0), CK("b", 1, 20, 2, 0.3, 0), CK("c", 1, 30, 3, 0.4, 0),
      CK("d", 2, 10, 4, 0.1, 0)},
     "0111"},
    {"larger is better the other way round",
     {0, 1, 0, false},
     {CK("a", 1, 10, 1, 0.5, 0), CK("b", 1, 20, 2, 0.3, 0), CK("c", 1, 30, 3, 0.4, 0)},
     "100"},
    {"the experiment's best are over all trials",
     {2, 0, 0, true},
     {CK("a", 1, 10, 1, 0.5, 0), CK("b", 1, 20, 2, 0.3, 0), CK("c", 2, 10, 3, 0.1, 0),
      CK("d", 2, 20, 4, 0.9, 0)},
     "0110"},
    {"without a metric nothing is best",
     {5, 5, 1, true},
     {CK("a", 1, 10, 1, NONE, 0), CK("b", 1, 20, 2, NONE, 0), CK("c", 1, 30, 3, 0.4, 0)},
     "001"},
    {"of equal ones the earlier is better",
     {1, 0, 0, true},
     {CK("b", 1, 20, 2, 0.3, 0), CK("a", 1, 10, 1, 0.3, 0), CK("c", 2, 5, 3, 0.3, 0)},
     "010"},
    {"who is held stays",
     {0, 0, 0, true},
     {CK("a", 1, 10, 1, 0.5, GC_HELD_USE), CK("b", 1, 20, 2, 0.3, 0)},
     "10"},
    {"infinite metrics have their place",
     {0, 1, 0, true},
     {CK("a", 1, 10, 1, -HUGE_VAL, 0), CK("b", 1, 20, 2, 0.3, 0), CK("c", 1, 30, 3, HUGE_VAL, 0)},
     "100"},
};

static void hand_worked(void **state)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct policy_case k = cases[i];
        size_t n = strlen(k.stay);
        gc_policy(k.v, n, &k.keep);
        for (size_t j = 0; j < n; j++)
            if ((k.v[j].why != 0) != (k.stay[j] == '1'))
                fail_msg("%s: %s %s", k.name, k.v[j].uuid, gc_why_text(k.v[j].why));
    }
}

static bool better(const struct gc_checkpoint *a, const struct gc_checkpoint *b, bool smaller)
{
    double x = smaller ? a->metric : -a->metric, y = smaller ? b->metric : -b->metric;
    if (x != y)
        return x < y;
    return a->trial_id != b->trial_id ? a->trial_id < b->trial_id : a->steps < b->steps;
}

/* The definition, counted out: how many are in front of c. */
static bool stays(const struct gc_checkpoint *v, size_t n, size_t c, const struct gc_keep *k)
{
    int64_t newer = 0, trial = 0, exp = 0;
    for (size_t i = 0; i < n; i++) {
        bool same = v[i].trial_id == v[c].trial_id;
        newer += same && v[i].steps > v[c].steps;
        bool ahead = !isnan(v[i].metric) && i != c && better(&v[i], &v[c], k->smaller_is_better);
        trial += same && ahead;
        exp += ahead;
    }
    if (v[c].held || newer < k->trial_latest)
        return true;
    return !isnan(v[c].metric) && (trial < k->trial_best || exp < k->experiment_best);
}

static void as_defined(void **state)
{
    enum { MAX = 24 };
    struct mt19937 r;
    mt19937_seed(&r, 7);
    for (int round = 0; round < 5000; round++) {
        struct gc_checkpoint v[MAX];
        char uuids[MAX][24];
        size_t n = mt19937_bounded(&r, MAX);
        struct gc_keep k = {(int64_t)mt19937_bounded(&r, 3), (int64_t)mt19937_bounded(&r, 3),
                            (int64_t)mt19937_bounded(&r, 3), mt19937_bounded(&r, 1)};
        for (size_t i = 0; i < n; i++) {
            snprintf(uuids[i], sizeof uuids[i], "u%zu", i);
            uint64_t m = mt19937_bounded(&r, 7);
            v[i] = (struct gc_checkpoint){.uuid = uuids[i],
                                          .trial_id = 1 + (int64_t)mt19937_bounded(&r, 3),
                                          .steps = (int64_t)i, /* no two reports are the same */
                                          .metric = m == 7 ? NONE : (double)m,
                                          .held = mt19937_bounded(&r, 9) ? 0 : GC_HELD_SOURCE};
        }
        gc_policy(v, n, &k);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(v[i].why != 0, stays(v, n, i, &k));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(hand_worked), cmocka_unit_test(as_defined)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
