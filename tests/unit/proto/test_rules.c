/* rules.h: every route has a rule that fits it; what a rule finds in a body. */
#include "rules.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

static const struct route_info *route(size_t id)
{
    return &routes_all[id]; /* both tables come from ROUTES, in its order */
}

static void test_every_route_has_a_rule(void **state)
{
    assert_int_equal(ROUTE_COUNT, routes_count);
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        unsigned right = rules_all[i].right;
        if (!right || (right & (right - 1)))
            fail_msg("%s: has no rule of one right in rules.h, so nobody may ask it",
                     route(i)->name);
    }
}

/* A route without a token is open, and no other; what only administrators reach is the cluster's.
 */
static void test_rules_fit_the_tokens(void **state)
{
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        if (!strcmp(route(i)->auth, "NONE") != (rules_all[i].right == RIGHT_OPEN))
            fail_msg("%s: RIGHT_OPEN goes with NONE in routes.h", route(i)->name);
        bool cluster = rules_all[i].right == RIGHT_CLUSTER;
        if (!strcmp(route(i)->auth, "ADMIN") ? !cluster
                                             : !strcmp(route(i)->auth, "USER") && cluster)
            fail_msg(
                "%s: RIGHT_CLUSTER goes with ADMIN in routes.h, or with ANY where tasks ask too",
                route(i)->name);
    }
}

/* What does not read asks for more than to see; searches by POST, and a person's own settings, are
 * named. */
static void test_writes_take_more_than_seeing(void **state)
{
    static const char *const reads[] = {
        "preview_search",    "get_model_def_file", "preview_hp_search",       "logout",
        "search_groups",     "search_roles",       "search_roles_assignable", "get_roles_by_id",
        "post_user_setting", "reset_user_setting", "make_login_link"};
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        bool named = false;
        for (size_t k = 0; k < sizeof reads / sizeof reads[0]; k++)
            named = named || !strcmp(route(i)->name, reads[k]);
        if (strcmp(route(i)->method, "GET") && !named && rules_all[i].right == RIGHT_SEE)
            fail_msg("%s %s: asks only for RIGHT_SEE", route(i)->method, route(i)->pattern);
    }
}

static void test_paths_have_what_rules_name(void **state)
{
    char var[80];
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        const struct rule *r = &rules_all[i];
        bool about = r->subject != SUBJECT_NONE && r->subject != SUBJECT_ASKS;
        if (about != (*r->where != 0))
            fail_msg("%s: a subject and where it is named go together", route(i)->name);
        snprintf(var, sizeof var, "{%s}", r->where);
        if (about && *r->where != '.' && !strstr(route(i)->pattern, var))
            fail_msg("%s: %s has no %s", route(i)->name, route(i)->pattern, var);
    }
}

static void test_ids_of_bodies(void **state)
{
    static const struct {
        struct rule rule;
        const char *body, *ids; /* NULL: refused */
    } cases[] = {
        {{0, SUBJECT_CKPT, ".checkpointUuids[]"},
         "{\"checkpointUuids\":[\"a\",\"b\"]}",
         "[\"a\",\"b\"]"},
        {{0, SUBJECT_CKPT, ".checkpointUuids[]"}, "{\"checkpoint_uuids\":[\"a\"]}", "[\"a\"]"},
        {{0, SUBJECT_CKPT, ".checkpointUuids[]"}, "{}", "[]"},
        {{0, SUBJECT_CKPT, ".checkpointUuids[]"}, "{\"checkpointUuids\":[1]}", NULL},
        {{0, SUBJECT_CKPT, ".checkpointUuids[]"}, "{\"checkpointUuids\":\"a\"}", NULL},
        {{0, SUBJECT_CKPT, ".checkpoints[].uuid"},
         "{\"checkpoints\":[{\"uuid\":\"a\"},{}]}",
         "[\"a\"]"},
        {{0, SUBJECT_CKPT, ".checkpoints[].uuid"}, "{\"checkpoints\":[\"a\"]}", NULL},
        {{0, SUBJECT_EXP, ".id"}, "{\"id\":\"7\"}", "[\"7\"]"},
        {{0, SUBJECT_EXP, ".id"}, "{\"id\":7}", "[\"7\"]"},
        {{0, SUBJECT_EXP, ".id"}, "{\"id\":0}", "[]"},
        {{0, SUBJECT_EXP, ".id"}, "{\"id\":\"x\"}", NULL},
        {{0, SUBJECT_EXP, ".id"}, "[]", NULL},
        {{0, SUBJECT_TASK, ".[].taskId"},
         "[{\"taskId\":\"1.t\"},{\"task_id\":\"2.t\"}]",
         "[\"1.t\",\"2.t\"]"},
        {{0, SUBJECT_TRIAL, ".batches[].labels.trialId"},
         "{\"batches\":[{\"labels\":{\"trialId\":3}},{\"labels\":null}]}",
         "[\"3\"]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct det_err err;
        JSON_OWN body = json_parse(cases[i].body, strlen(cases[i].body), NULL);
        JSON_OWN ids = json_array();
        int rc = rule_ids(&cases[i].rule, body, ids, &err);
        det_cleanup(freep) char *text = json_text(ids);
        assert_int_equal(rc, cases[i].ids ? 0 : DET_EINVAL);
        if (cases[i].ids)
            assert_string_equal(text, cases[i].ids);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_route_has_a_rule),
        cmocka_unit_test(test_rules_fit_the_tokens),
        cmocka_unit_test(test_writes_take_more_than_seeing),
        cmocka_unit_test(test_paths_have_what_rules_name),
        cmocka_unit_test(test_ids_of_bodies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
