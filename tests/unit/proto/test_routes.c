/* routes.h and openapi.yaml say the same: every route has its operation, and the other way round.
 */
#include "fsx.h"
#include "routes.h"
#include "yamljson.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <ctype.h>
#include <fcntl.h>
#include <string.h>

static json_t *doc;

static int load(void **state)
{
    struct det_err err;
    struct buf text = BUF_INIT;
    int rc = fsx_read_file(AT_FDCWD, DET_SOURCE "/proto/openapi.yaml", 4 << 20, &text, &err);
    if (rc == 0)
        rc = yamljson_parse(buf_str(&text), text.len, &doc, &err);
    if (rc < 0)
        print_error("%s\n", err.text);
    buf_finish(&text);
    return rc;
}

static int unload(void **state)
{
    json_decref(doc);
    return 0;
}

static const char *lower(const char *s, char *out, size_t n)
{
    size_t i = 0;
    for (; s[i] && i + 1 < n; i++)
        out[i] = (char)tolower((unsigned char)s[i]);
    out[i] = '\0';
    return out;
}

static const json_t *operation_of(const struct route_info *r)
{
    char method[16];
    json_t *path = json_object_get(json_object_get(doc, "paths"), r->pattern);
    return json_object_get(path, lower(r->method, method, sizeof method));
}

static void test_every_route_has_its_operation(void **state)
{
    char auth[16];
    for (size_t i = 0; i < routes_count; i++) {
        const struct route_info *r = &routes_all[i];
        const json_t *op = operation_of(r);
        if (!op)
            fail_msg("%s %s: not in openapi.yaml", r->method, r->pattern);
        assert_string_equal(json_str(op, "operationId", ""), r->name);
        assert_string_equal(json_str(op, "x-auth", ""), lower(r->auth, auth, sizeof auth));
        assert_non_null(json_obj(op, "responses"));
    }
}

static void test_every_operation_has_its_route(void **state)
{
    const char *pattern, *method;
    json_t *path, *op;
    size_t n = 0;
    json_object_foreach(json_object_get(doc, "paths"), pattern, path)
    {
        json_object_foreach(path, method, op)
        {
            bool found = false;
            for (size_t i = 0; i < routes_count; i++)
                found = found || operation_of(&routes_all[i]) == op;
            if (!found)
                fail_msg("%s %s: not in routes.h", method, pattern);
            n++;
        }
    }
    assert_int_equal(n, routes_count);
}

/* Variables of a pattern are its path parameters. */
static void test_path_parameters(void **state)
{
    for (size_t i = 0; i < routes_count; i++) {
        size_t vars = 0, named = 0, k;
        json_t *p;
        for (const char *c = routes_all[i].pattern; *c; c++)
            vars += *c == '{';
        json_array_foreach(json_arr(operation_of(&routes_all[i]), "parameters"), k,
                           p) if (!strcmp(json_str(p, "in", ""), "path"))
        {
            named++;
            assert_non_null(strstr(routes_all[i].pattern, json_str(p, "name", "?")));
        }
        assert_int_equal(vars, named);
    }
}

static void refs(const json_t *j)
{
    const char *key;
    json_t *v;
    size_t i;
    if (json_is_array(j))
        json_array_foreach(j, i, v) refs(v);
    json_object_foreach((json_t *)j, key, v)
    {
        if (strcmp(key, "$ref")) {
            refs(v);
            continue;
        }
        const char *name = strrchr(json_string_value(v), '/') + 1;
        const json_t *parts = json_object_get(doc, "components");
        if (!json_object_get(json_object_get(parts, "schemas"), name) &&
            !json_object_get(json_object_get(parts, "responses"), name))
            fail_msg("%s: there is no such schema", json_string_value(v));
    }
}

static void test_references(void **state)
{
    refs(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_route_has_its_operation),
        cmocka_unit_test(test_every_operation_has_its_route),
        cmocka_unit_test(test_path_parameters),
        cmocka_unit_test(test_references),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
