/* may.h as a table: who, on whose work, which rights. */
#include "may.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

enum { ANN = 2, BOB = 3, CLARA = 4 };
static const struct may_who admin = {1, true, false}, ann = {ANN, false, false},
                            bob = {BOB, false, false}, clara = {CLARA, false, false},
                            no_user = {0, false, false}, anns_token = {ANN, false, true},
                            admins_token = {1, true, true};
/* Ann's experiment in Clara's workspace, Ann's workspace, nobody's template, the cluster. */
static const struct may_what exp = {
    .owner_id = ANN, .host_id = CLARA, .name = "experiment 7", .owner = "ann", .place = "shop"};
static const struct may_what place = {
    .owner_id = ANN, .host_id = ANN, .name = "workspace 2", .owner = "ann", .place = "lab"};
static const struct may_what orphan = {.host_id = CLARA, .name = "template t", .place = "shop"};
static const struct may_what cluster = {0};

enum {
    ANYBODY = RIGHT_OPEN | RIGHT_SEE | RIGHT_CREATE | RIGHT_FOUND,
    OWN = RIGHT_OPERATE | RIGHT_EDIT | RIGHT_DELETE | RIGHT_MOVE | RIGHT_REPORT | RIGHT_ACCOUNT |
          RIGHT_PLACE,
};

static void test_table(void **state)
{
    static const struct {
        const char *what;
        enum may_mode mode;
        const struct may_who *who;
        const struct may_what *on;
        unsigned rights;
    } cases[] = {
        {"an administrator, on anybody's", MAY_OWNER, &admin, &exp, RIGHT_ALL},
        {"an administrator, on the cluster", MAY_BASIC, &admin, &cluster, RIGHT_ALL},
        {"the owner", MAY_OWNER, &ann, &exp, ANYBODY | OWN},
        {"the owner, basic", MAY_BASIC, &ann, &exp, ANYBODY | OWN},
        {"another", MAY_OWNER, &bob, &exp, ANYBODY},
        {"another, basic", MAY_BASIC, &bob, &exp, ANYBODY | RIGHT_OPERATE | RIGHT_EDIT},
        {"the workspace's owner, on others' work in it", MAY_OWNER, &clara, &exp,
         ANYBODY | RIGHT_PLACE | RIGHT_GRANT},
        {"the workspace's owner", MAY_OWNER, &ann, &place, ANYBODY | OWN | RIGHT_GRANT},
        {"another, on a workspace", MAY_BASIC, &bob, &place, ANYBODY | RIGHT_OPERATE | RIGHT_EDIT},
        {"anybody, on nobody's", MAY_OWNER, &ann, &orphan, ANYBODY},
        {"anybody, on the cluster", MAY_OWNER, &ann, &cluster, ANYBODY},
        {"the owner, by a token", MAY_OWNER, &anns_token, &exp, (ANYBODY | OWN) & ~RIGHT_ACCOUNT},
        {"an administrator, by a token", MAY_OWNER, &admins_token, &exp,
         RIGHT_ALL & ~RIGHT_ACCOUNT},
        {"nobody (user 0), on nobody's", MAY_OWNER, &no_user, &orphan, ANYBODY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (may_rights(cases[i].mode, cases[i].who, cases[i].on) != cases[i].rights)
            fail_msg("%s: %#x, not %#x", cases[i].what,
                     may_rights(cases[i].mode, cases[i].who, cases[i].on), cases[i].rights);
}

/* Each role on another's experiment, by each setting; and on what is its holder's own. */
static void test_roles(void **state)
{
    enum { EDITOR = RIGHT_CREATE | RIGHT_OPERATE | RIGHT_EDIT };
    static const struct {
        const char *role;
        unsigned more; /* beyond seeing */
    } cases[] = {
        {"Viewer", 0},
        {"EditorRestricted", EDITOR},
        {"Editor", EDITOR | RIGHT_DELETE | RIGHT_MOVE},
        {"WorkspaceAdmin", EDITOR | RIGHT_DELETE | RIGHT_MOVE | RIGHT_PLACE | RIGHT_GRANT},
        {"WorkspaceCreator", RIGHT_FOUND},
        {"ClusterAdmin", RIGHT_ALL},
    };
    assert_int_equal(roles_n, sizeof cases / sizeof cases[0]);
    for (size_t i = 0; i < roles_n; i++) {
        const struct role *r = &roles[0];
        while (strcmp(r->name, cases[i].role))
            r++;
        assert_ptr_equal(role_find(r->id), r);
        struct may_what his = exp, own = place;
        his.granted = own.granted = roles_rights((uint64_t)1 << r->id | 1);
        unsigned more = cases[i].more | RIGHT_OPEN | RIGHT_SEE;
        unsigned tends = OWN & ~(unsigned)(RIGHT_DELETE | RIGHT_MOVE);
        assert_int_equal(may_rights(MAY_RBAC, &bob, &his), more);
        assert_int_equal(may_rights(MAY_OWNER, &bob, &his), more | ANYBODY);
        assert_int_equal(may_rights(MAY_RBAC, &ann, &own),
                         more | tends | RIGHT_CREATE | RIGHT_GRANT);
    }
    assert_int_equal(roles_rights(0), 0);
    assert_null(role_find(99));
}

static void test_refusals_say_what_and_who_may(void **state)
{
    struct det_err err;
    assert_int_equal(may(MAY_OWNER, &ann, RIGHT_DELETE, &exp, &err), 0);
    assert_int_equal(may(MAY_OWNER, &bob, RIGHT_DELETE, &exp, &err), DET_EPERM);
    assert_string_equal(err.text,
                        "you may not delete experiment 7: it belongs to ann; its owner or "
                        "an administrator, or who has the role Editor in workspace "
                        "\"shop\", may");
    assert_int_equal(may(MAY_OWNER, &bob, RIGHT_OPERATE, &exp, &err), DET_EPERM);
    assert_non_null(strstr(err.text, "the role EditorRestricted in"));
    assert_int_equal(may(MAY_OWNER, &bob, RIGHT_REPORT, &exp, &err), DET_EPERM);
    assert_null(strstr(err.text, "role"));
    assert_int_equal(may(MAY_OWNER, &bob, RIGHT_EDIT, &orphan, &err), DET_EPERM);
    assert_string_equal(err.text, "you may not change template t; an administrator, or who has the "
                                  "role EditorRestricted in workspace \"shop\", may");
    assert_int_equal(may(MAY_OWNER, &bob, RIGHT_CLUSTER, &cluster, &err), DET_EPERM);
    assert_string_equal(err.text, "only an administrator may do this; ask one");
    assert_int_equal(may(MAY_RBAC, &bob, RIGHT_FOUND, &cluster, &err), DET_EPERM);
    assert_non_null(strstr(err.text, "the role WorkspaceCreator"));
    assert_int_equal(may(MAY_OWNER, &anns_token, RIGHT_ACCOUNT, &exp, &err), DET_EPERM);
    assert_non_null(strstr(err.text, "det user login"));
}

/* No right asked is no right had: not even an administrator's. */
static void test_no_right_is_refused(void **state)
{
    struct det_err err;
    assert_int_equal(may(MAY_OWNER, &admin, 0, &exp, &err), DET_EPERM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_roles),
        cmocka_unit_test(test_refusals_say_what_and_who_may),
        cmocka_unit_test(test_no_right_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
