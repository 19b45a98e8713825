/* What the tables say of the rows' members, and a value as text and back. */
#include "rowtable.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static const size_t row_sizes[ROW_KIND_COUNT] = {
    [ROW_AGENT] = sizeof(struct row_agent),
    [ROW_STORE] = sizeof(struct row_store),
    [ROW_EXPERIMENT] = sizeof(struct row_experiment),
    [ROW_SEARCH_SNAPSHOT] = sizeof(struct row_search_snapshot),
    [ROW_SEARCH_EVENT] = sizeof(struct row_search_event),
    [ROW_TRIAL] = sizeof(struct row_trial),
    [ROW_ALLOCATION] = sizeof(struct row_allocation),
};

static void check_size(const struct row_column *c)
{
    bool is_integer = c->type >= COL_I64 && c->type <= COL_I64_OR_NEG;
    bool is_state = c->type >= COL_EXP_STATE;
    size_t want = c->type == COL_BOOL ? sizeof(bool) : is_state ? sizeof(enum exp_state) : 8;
    assert_true(c->size == want || (is_integer && c->size == sizeof(int)));
}

/* Each member once, of the size that its type wants. */
static void test_members(void **state)
{
    for (enum row_kind k = 0; k < ROW_KIND_COUNT; k++) {
        const struct row_table *t = &row_tables[k];
        char seen[sizeof(union row_any)] = {0};
        assert_in_range(t->n, 1, ROW_COLUMNS_MAX);
        for (size_t i = 0; i < t->n; i++) {
            check_size(&t->v[i]);
            assert_true(t->v[i].at + t->v[i].size <= row_sizes[k]);
            for (size_t b = 0; b < t->v[i].size; b++)
                assert_int_equal(seen[t->v[i].at + b]++, 0);
        }
    }
}

static void test_written(void **state)
{
    const struct row_column *v[ROW_COLUMNS_MAX];
    assert_int_equal(rowtable_written(ROW_TRIAL, false, v), 6);
    assert_string_equal(v[0]->name, "id");
    assert_string_equal(v[1]->name, "state");
    assert_int_equal(rowtable_written(ROW_TRIAL, true, v), 13);
    assert_string_equal(v[6]->name, "experiment_id");
    assert_string_equal(v[9]->name, "hparams");
    assert_int_equal(rowtable_written(ROW_SEARCH_EVENT, false, v), 2);
}

static const struct row_column *column(enum row_kind k, const char *name)
{
    for (size_t i = 0; i < row_tables[k].n; i++)
        if (strcmp(row_tables[k].v[i].name, name) == 0)
            return &row_tables[k].v[i];
    fail_msg("no column %s", name);
    return NULL;
}

/* text: NULL where the value is SQL's null. */
static void check_text(enum row_kind k, const char *name, const void *row, const char *text)
{
    char num[ROW_TEXT_MAX];
    const struct row_column *c = column(k, name);
    const char *got = rowtable_text(c, row, num);
    union row_any back;
    memset(&back, 0x55, sizeof back);
    if (text)
        assert_string_equal(got, text);
    else
        assert_null(got);
    if (c->type == COL_TIME && got)
        return; /* read as microseconds */
    assert_true(rowtable_put(c, &back, got));
    assert_memory_equal((char *)&back + c->at, (const char *)row + c->at, c->size);
}

static void test_values(void **state)
{
    const struct row_experiment e = {.id = INT64_MAX,
                                     .parent_id = 3,
                                     .config = "{}",
                                     .start_us = 1500000,
                                     .state = EXP_STOPPING_KILLED,
                                     .progress = 0.1,
                                     .priority = 42,
                                     .weight = 1e300,
                                     .max_slots = 0,
                                     .queue_position = -2.5};
    check_text(ROW_EXPERIMENT, "id", &e, "9223372036854775807");
    check_text(ROW_EXPERIMENT, "parent_id", &e, "3");
    check_text(ROW_EXPERIMENT, "config", &e, "{}");
    check_text(ROW_EXPERIMENT, "start_time", &e, "1970-01-01T00:00:01.500000Z");
    check_text(ROW_EXPERIMENT, "state", &e, "STOPPING_KILLED");
    check_text(ROW_EXPERIMENT, "progress", &e, "0.10000000000000001");
    check_text(ROW_EXPERIMENT, "priority", &e, "42");
    check_text(ROW_EXPERIMENT, "weight", &e, "1.0000000000000001e+300");
    check_text(ROW_EXPERIMENT, "max_slots", &e, "0");
    check_text(ROW_EXPERIMENT, "queue_position", &e, "-2.5");
    const struct row_trial t = {.seed = -7, .state = TRIAL_PAUSED};
    check_text(ROW_TRIAL, "seed", &t, "-7");
    check_text(ROW_TRIAL, "state", &t, "PAUSED");
    const struct row_allocation a = {.state = ALLOC_PULLING, .is_ready = true};
    check_text(ROW_ALLOCATION, "state", &a, "PULLING");
    check_text(ROW_ALLOCATION, "is_ready", &a, "t");
}

static void test_nulls(void **state)
{
    const struct row_experiment e = {.progress = -1, .max_slots = -1};
    const char *const null[] = {"parent_id", "job_id",   "end_time",
                                "progress",  "priority", "max_slots"};
    for (size_t i = 0; i < sizeof null / sizeof *null; i++)
        check_text(ROW_EXPERIMENT, null[i], &e, NULL);
    check_text(ROW_EXPERIMENT, "owner_id", &e, "0");
}

static void test_time_is_read_in_microseconds(void **state)
{
    struct row_trial t = {0};
    assert_true(rowtable_put(column(ROW_TRIAL, "end_time"), &t, "1700000000000001"));
    assert_int_equal(t.end_us, 1700000000000001);
}

static void test_unknown_state(void **state)
{
    union row_any r = {0};
    assert_false(rowtable_put(column(ROW_EXPERIMENT, "state"), &r, "MOVED"));
    assert_false(rowtable_put(column(ROW_TRIAL, "state"), &r, "DELETED"));
    assert_false(rowtable_put(column(ROW_ALLOCATION, "state"), &r, "ACTIVE"));
}

/* As two statements, the one after the other, would leave it. */
static void test_update(void **state)
{
    struct row_trial t = {
        .is_new = true, .id = 1, .experiment_id = 2, .hparams = "{}", .core = "a"};
    rowtable_update(ROW_TRIAL, &t,
                    &(struct row_trial){.id = 9, .experiment_id = 9, .run_id = 3, .core = "b"});
    assert_true(t.is_new);
    assert_int_equal(t.id, 1);
    assert_int_equal(t.experiment_id, 2);
    assert_int_equal(t.run_id, 3);
    assert_string_equal(t.core, "b");
    assert_string_equal(t.hparams, "{}");
    rowtable_update(ROW_TRIAL, &t, &(struct row_trial){.hparams = "{\"a\": 1}"});
    assert_string_equal(t.hparams, "{\"a\": 1}");
}

static void test_whose(void **state)
{
    const struct row_experiment e = {.id = 5};
    const struct row_allocation a = {.experiment_id = 6};
    assert_int_equal(rowtable_exp_id(ROW_EXPERIMENT, &e), 5);
    assert_int_equal(rowtable_exp_id(ROW_ALLOCATION, &a), 6);
    assert_int_equal(rowtable_exp_id(ROW_STORE, &(struct row_store){.owner_id = 7}), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members),       cmocka_unit_test(test_written),
        cmocka_unit_test(test_values),        cmocka_unit_test(test_nulls),
        cmocka_unit_test(test_unknown_state), cmocka_unit_test(test_time_is_read_in_microseconds),
        cmocka_unit_test(test_update),        cmocka_unit_test(test_whose),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
