#include "expsearch.h"

#include "clk.h"
#include "wire.h"

#include <stdio.h>
#include <string.h>

/* ---- Columns ---- */

static const struct {
    const char *name, *kind;
} columns[] = {
    {"id", "number"},
    {"forkedFrom", "number"},
    {"numTrials", "number"},
    {"progress", "number"},
    {"duration", "number"},
    {"checkpointCount", "number"},
    {"checkpointSize", "number"},
    {"searcherMetricsVal", "number"},
    {"projectId", "number"},
    {"name", "text"},
    {"description", "text"},
    {"searcherType", "text"},
    {"searcherMetric", "text"},
    {"resourcePool", "text"},
    {"user", "text"},
    {"archived", "text"},
    {"externalExperimentId", "text"},
    {"externalTrialId", "text"},
    {"state", "state"},
    {"tags", "tags"},
    {"startTime", "time"},
    {"endTime", "time"},
};

static int no_column(const char *name, struct det_err *err)
{
    return det_fail(err, DET_EINVAL,
                    "\"%.100s\" is no column: one of an experiment as \"name\", \"hp.NAME\", or "
                    "\"GROUP.METRIC.STAT\" with last, min, max or mean",
                    name);
}

/* "validation.a.b.min": the group is up to the first dot, the statistic from the last one on. */
static int metric_column(const char *name, json_t **ret, struct det_err *err)
{
    static const char *const stats[] = {"last", "min", "max", "mean"};
    const char *first = strchr(name, '.'), *last = strrchr(name, '.');
    if (!first || first == name || last < first + 2)
        return no_column(name, err);
    for (size_t i = 0; i < DET_ARRAY_LEN(stats); i++)
        if (!strcmp(last + 1, stats[i])) {
            *ret = json_make("{s:s,s:o,s:o,s:s}", "kind", "metric", "group",
                             json_lossy(name, (size_t)(first - name)), "name",
                             json_lossy(first + 1, (size_t)(last - first - 1)), "stat", stats[i]);
            return 0;
        }
    return no_column(name, err);
}

int expsearch_column(const char *name, const char *location, json_t **ret, struct det_err *err)
{
    bool is_hp = location && !strcmp(location, "LOCATION_TYPE_HYPERPARAMETERS");
    for (size_t i = 0; !is_hp && i < DET_ARRAY_LEN(columns); i++)
        if (!strcmp(columns[i].name, name)) {
            *ret = json_make("{s:s,s:s}", "kind", columns[i].kind, "name", name);
            return 0;
        }
    bool has_prefix = !strncmp(name, "hp.", 3);
    const char *hp = has_prefix ? name + 3 : name;
    if (!is_hp && !has_prefix)
        return metric_column(name, ret, err);
    if (!*hp)
        return no_column(name, err);
    *ret = json_make("{s:s,s:s}", "kind", "hp", "name", hp);
    return 0;
}

/* ---- Fields ---- */

static const char *const operators[] = {"contains", "notContains", "=",  "!=",      ">",
                                        ">=",       "<",           "<=", "isEmpty", "notEmpty"};

static bool is_one_of(const char *s, const char *const *of, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(s, of[i]))
            return true;
    return false;
}

static bool is_about_emptiness(const char *op)
{
    return !strcmp(op, "isEmpty") || !strcmp(op, "notEmpty");
}

/* Which operators a kind has: text is not less than text, and a number contains nothing. */
static bool has_operator(const char *kind, const char *op)
{
    static const char *const of_text[] = {"contains", "notContains", "=",
                                          "!=",       "isEmpty",     "notEmpty"};
    bool is_of_text = is_one_of(op, of_text, DET_ARRAY_LEN(of_text));
    if (!strcmp(kind, "text") || !strcmp(kind, "tags"))
        return is_of_text;
    if (!strcmp(kind, "state"))
        return !strcmp(op, "=") || !strcmp(op, "!=");
    if (!strcmp(kind, "number") || !strcmp(kind, "time"))
        return !strstr(op, "ontains");
    return true;
}

/* What is shown as QUEUED to RUNNING is stored as ACTIVE. */
static bool is_of_active(const char *state)
{
    static const char *const of[] = {"QUEUED", "PULLING", "STARTING", "RUNNING"};
    return is_one_of(state, of, DET_ARRAY_LEN(of));
}

static int state_value(const char *text, const char *where, json_t **ret, struct det_err *err)
{
    char full[64];
    int number;
    const char *bare = strncmp(text, "STATE_", 6) ? text : text + 6;
    snprintf(full, sizeof full, "STATE_%.40s", bare);
    if (wire_enum_text(full, where, wire_exp_state, &number, err) < 0)
        return DET_EINVAL;
    *ret = json_string(bare);
    return 0;
}

static int wrong_type(const char *where, const char *wanted, struct det_err *err)
{
    return det_fail(err, DET_EINVAL, "%s.value: expected %s", where, wanted);
}

static int time_value(const json_t *v, const char *where, json_t **ret, struct det_err *err)
{
    int64_t us;
    char whole[32];
    if (!json_is_string(v))
        return wrong_type(where, "a time as 2026-03-05T00:00:00Z", err);
    const char *text = json_string_value(v);
    if (strlen(text) == strlen("2026-03-05")) {
        snprintf(whole, sizeof whole, "%sT00:00:00Z", text);
        text = whole;
    }
    if (clk_parse(text, &us, err) < 0)
        return det_wrap(err, DET_EINVAL, "%s.value", where);
    *ret = json_real((double)us / 1e6);
    return 0;
}

/* The value as its column has it: a number, a text, a time in seconds. */
static int field_value(const char *kind, const json_t *v, const char *where, json_t **ret,
                       struct det_err *err)
{
    if (!strcmp(kind, "time"))
        return time_value(v, where, ret, err);
    if (!strcmp(kind, "number") && !json_is_number(v))
        return wrong_type(where, "a number", err);
    if (!strcmp(kind, "state"))
        return json_is_string(v) ? state_value(json_string_value(v), where, ret, err)
                                 : wrong_type(where, "the name of a state", err);
    if (!json_is_number(v) && !json_is_string(v) && !json_is_boolean(v))
        return wrong_type(where, "a text or a number", err);
    bool is_text = !strcmp(kind, "text") || !strcmp(kind, "tags");
    if (is_text && !json_is_string(v)) {
        det_cleanup(freep) char *text = json_text(v);
        *ret = json_string(text);
        return 0;
    }
    *ret = json_incref((json_t *)v);
    return 0;
}

struct reader {
    json_t *leaves; /* borrowed */
    struct det_err *err;
};

/* A member that must be text. NULL: told. */
static const char *text_of(const json_t *node, const char *key, const char *where,
                           struct det_err *err)
{
    const json_t *v = json_object_get(node, key);
    if (json_is_string(v))
        return json_string_value(v);
    det_ignore(
        det_fail(err, DET_EINVAL, v ? "%s.%s: expected a text" : "%s.%s is required", where, key),
        "told by NULL");
    return NULL;
}

static int read_field(struct reader *r, const json_t *node, const char *where, json_t **ret)
{
    const char *name = text_of(node, "columnName", where, r->err);
    const char *op = name ? text_of(node, "operator", where, r->err) : NULL;
    JSON_OWN leaf = NULL;
    if (!op)
        return DET_EINVAL;
    if (!is_one_of(op, operators, DET_ARRAY_LEN(operators)))
        return det_fail(
            r->err, DET_EINVAL,
            "%s.operator: \"%.40s\" is none of contains, notContains, =, !=, >, >=, <, <=, "
            "isEmpty, notEmpty",
            where, op);
    if (expsearch_column(name, json_str(node, "location", NULL), &leaf, r->err) < 0)
        return det_wrap(r->err, DET_EINVAL, "%s.columnName", where);
    const char *kind = json_str(leaf, "kind", "");
    if (!has_operator(kind, op))
        return det_fail(r->err, DET_EINVAL, "%s.operator: \"%s\" is not for the column \"%.100s\"",
                        where, op, name);
    json_t *value = NULL;
    if (!is_about_emptiness(op) &&
        field_value(kind, json_object_get(node, "value"), where, &value, r->err) < 0)
        return DET_EINVAL;
    if (!strcmp(kind, "state") && is_of_active(json_string_value(value)))
        json_set(leaf, "kind", json_string("shown"));
    json_set(leaf, "op", json_string(op));
    json_set(leaf, "value", value);
    if (json_array_size(r->leaves) >= EXPSEARCH_FIELDS_MAX)
        return det_fail(r->err, DET_EINVAL, "%s: more than %d fields", where, EXPSEARCH_FIELDS_MAX);
    *ret = json_integer((json_int_t)json_array_size(r->leaves));
    json_array_append(r->leaves, leaf);
    return 0;
}

/* ---- Groups ---- */

static int read_node(struct reader *r, const json_t *node, const char *where, int depth,
                     json_t **ret);

static int read_group(struct reader *r, const json_t *node, const char *where, int depth,
                      json_t **ret)
{
    const char *how = text_of(node, "conjunction", where, r->err);
    if (!how)
        return DET_EINVAL;
    if (strcmp(how, "and") && strcmp(how, "or"))
        return det_fail(r->err, DET_EINVAL, "%s.conjunction: \"%.40s\" is neither and nor or",
                        where, how);
    const json_t *children = json_object_get(node, "children"), *child;
    if (!json_is_array(children))
        return det_fail(r->err, DET_EINVAL, "%s.children: expected a list", where);
    if (depth >= EXPSEARCH_DEPTH_MAX)
        return det_fail(r->err, DET_EINVAL, "%s: groups nest more than %d deep", where,
                        EXPSEARCH_DEPTH_MAX);
    JSON_OWN all = json_array();
    size_t i;
    json_array_foreach(children, i, child)
    {
        char at[512];
        json_t *got = NULL;
        snprintf(at, sizeof at, "%.440s.children[%zu]", where, i);
        if (read_node(r, child, at, depth + 1, &got) < 0)
            return DET_EINVAL;
        if (got)
            json_array_append_new(all, got);
    }
    /* A group of nothing is no condition, whatever joins it. */
    *ret = json_array_size(all) ? json_make("{s:O}", how, all) : NULL;
    return 0;
}

/* *ret: NULL for no condition. */
static int read_node(struct reader *r, const json_t *node, const char *where, int depth,
                     json_t **ret)
{
    if (!json_is_object(node))
        return det_fail(r->err, DET_EINVAL, "%s: expected a group or a field", where);
    const char *kind = text_of(node, "kind", where, r->err);
    if (!kind)
        return DET_EINVAL;
    if (!strcmp(kind, "group"))
        return read_group(r, node, where, depth, ret);
    if (!strcmp(kind, "field"))
        return read_field(r, node, where, ret);
    return det_fail(r->err, DET_EINVAL, "%s.kind: \"%.40s\" is neither group nor field", where,
                    kind);
}

/* ---- The whole ---- */

static int read_filter(const char *text, json_t *ret, struct det_err *err)
{
    if (!text || !*text)
        return 0;
    JSON_OWN j = json_parse(text, strlen(text), err);
    json_t *where = NULL;
    if (!j)
        return det_wrap(err, DET_EINVAL, "filter");
    if (!json_is_object(j))
        return det_fail(err, DET_EINVAL, "filter: expected an object");
    const json_t *archived = json_object_get(j, "showArchived"),
                 *group = json_object_get(j, "filterGroup");
    if (archived && !json_is_boolean(archived) && !json_is_null(archived))
        return det_fail(err, DET_EINVAL, "filter.showArchived: expected true or false");
    struct reader r = {json_arr(ret, "leaves"), err};
    if (group && !json_is_null(group) && read_node(&r, group, "filter.filterGroup", 0, &where) < 0)
        return DET_EINVAL;
    json_set(ret, "where", where);
    json_set(ret, "archived", json_boolean(json_is_true(archived)));
    return 0;
}

/* Up to the comma after =asc or =desc: a metric's name may have commas. */
static size_t key_len(const char *text)
{
    const char *up = strstr(text, "=asc,"), *down = strstr(text, "=desc,");
    if (up && (!down || up < down))
        return (size_t)(up - text) + strlen("=asc");
    return down ? (size_t)(down - text) + strlen("=desc") : strlen(text);
}

/* "name=asc": the last "=" counts, a name may have some of its own. */
static int read_key(const char *text, size_t len, json_t *order, struct det_err *err)
{
    det_cleanup(freep) char *name = det_strndup(text, len);
    char *eq = strrchr(name, '=');
    json_t *key = NULL;
    if (!eq || (strcmp(eq, "=asc") && strcmp(eq, "=desc")))
        return det_fail(err, DET_EINVAL, "sort: \"%.100s\" is not COLUMN=asc or COLUMN=desc", name);
    bool is_down = eq[1] == 'd';
    *eq = '\0';
    JSON_OWN n = json_lossy(name, strlen(name));
    if (expsearch_column(json_string_value(n), NULL, &key, err) < 0)
        return det_wrap(err, DET_EINVAL, "sort");
    json_set(key, "down", json_boolean(is_down));
    json_array_append_new(order, key);
    if (json_array_size(order) > EXPSEARCH_KEYS_MAX)
        return det_fail(err, DET_EINVAL, "sort: more than %d columns", EXPSEARCH_KEYS_MAX);
    return 0;
}

static int read_sort(const char *text, json_t *order, struct det_err *err)
{
    for (const char *at = text ? text : ""; *at;) {
        size_t len = key_len(at);
        if (read_key(at, len, order, err) < 0)
            return DET_EINVAL;
        at += len + (at[len] == ',');
    }
    if (!json_array_size(order))
        json_array_append_new(
            order, json_make("{s:s,s:s,s:b}", "kind", "number", "name", "id", "down", 1));
    return 0;
}

int expsearch_read(const char *filter, const char *sort, json_t **ret, struct det_err *err)
{
    JSON_OWN j = json_make("{s:[],s:n,s:[],s:b}", "leaves", "where", "order", "archived", 1);
    if (read_filter(filter, j, err) < 0 || read_sort(sort, json_arr(j, "order"), err) < 0)
        return DET_EINVAL;
    *ret = json_incref(j);
    return 0;
}
