#include "rules.h"

#include "wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const struct rule rules_all[ROUTE_COUNT] = {
#define X(name, right, subject, where) [ROUTE_##name] = {RIGHT_##right, SUBJECT_##subject, where},
    RULES(X)
#undef X
};

bool subject_is_number(enum subject s)
{
    return s == SUBJECT_EXP || s == SUBJECT_TRIAL || s == SUBJECT_WORKSPACE ||
           s == SUBJECT_PROJECT || s == SUBJECT_USER || s == SUBJECT_VIEW || s == SUBJECT_TOKEN;
}

static int id_add(const struct rule *r, const json_t *v, json_t *ids, struct det_err *err)
{
    const char *where = r->where + 1;
    int64_t id;
    if (!subject_is_number(r->subject)) {
        if (!json_is_string(v))
            return det_fail(err, DET_EINVAL, "%s: expected a string", where);
        json_array_append(ids, (json_t *)v);
        return 0;
    }
    int rc = wire_i64(v, where, &id, err);
    if (rc == 0 && id != 0) { /* 0 is as good as not given */
        char text[24];
        snprintf(text, sizeof text, "%" PRId64, id);
        json_array_append_new(ids, json_string(text));
    }
    return rc;
}

/* j: what `at`, the rest of the path, begins at; NULL names nothing. */
static int walk_path(const struct rule *r, const json_t *j, const char *at, json_t *ids,
                     struct det_err *err)
{
    if (!j || json_is_null(j))
        return 0;
    if (!*at)
        return id_add(r, j, ids, err);
    if (!strncmp(at, "[]", 2)) {
        int rc = 0;
        for (size_t i = 0; rc == 0 && i < json_array_size(j); i++)
            rc = walk_path(r, json_array_get(j, i), at + 2, ids, err);
        return json_is_array(j) ? rc
                                : det_fail(err, DET_EINVAL, "%s: expected a list", r->where + 1);
    }
    char name[40];
    size_t n = strcspn(at + 1, ".[");
    snprintf(name, sizeof name, "%.*s", (int)n, at + 1);
    if (n == 0)
        return walk_path(r, j, at + 1, ids, err);
    if (!json_is_object(j))
        return det_fail(err, DET_EINVAL, "%s: expected an object", r->where + 1);
    return walk_path(r, wire_get(j, name), at + 1 + n, ids, err);
}

int rule_ids(const struct rule *r, const json_t *body, json_t *ids, struct det_err *err)
{
    return walk_path(r, body, r->where, ids, err);
}
