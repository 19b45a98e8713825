/* Query parameters, checked. */
#include "api_util.h"
#include "clk.h"
#include <string.h>

#define VALUES_MAX 1000

static bool refuse_query(struct http_req *req, const struct det_err *err)
{
    http_fail_err(req, err);
    return false;
}

bool api_query_i64(struct http_req *req, const char *name, int64_t fallback, int64_t *ret)
{
    struct det_err err;
    return http_query_i64(req, name, fallback, ret, &err) == 0 || refuse_query(req, &err);
}

bool api_query_flag(struct http_req *req, const char *name, int *ret)
{
    struct det_err err;
    bool v = false;
    const char *text = http_query(req, name);
    if (text && *text && http_query_bool(req, name, false, &v, &err) < 0)
        return refuse_query(req, &err);
    *ret = text && *text ? v : -1;
    return true;
}

bool api_query_time(struct http_req *req, const char *name, int64_t *ret)
{
    struct det_err err;
    const char *text = http_query(req, name);
    *ret = 0;
    if (text && *text && clk_parse(text, ret, &err) < 0) {
        det_wrap(&err, DET_EINVAL, "query parameter %s", name);
        return refuse_query(req, &err);
    }
    return true;
}

bool api_query_enum(struct http_req *req, const char *name, const struct wire_name *names, int *ret)
{
    struct det_err err;
    const char *text = http_query(req, name);
    *ret = 0;
    if (text && *text && wire_enum_text(text, name, names, ret, &err) < 0)
        return refuse_query(req, &err);
    return true;
}

bool api_page(struct http_req *req, const struct wire_name *sorts, struct db_page *ret)
{
    int order = 0;
    *ret = (struct db_page){0};
    if (!api_query_i64(req, "offset", 0, &ret->offset) ||
        !api_query_i64(req, "limit", 0, &ret->limit) ||
        (sorts && !api_query_enum(req, "sortBy", sorts, &ret->sort)) ||
        !api_query_enum(req, "orderBy", wire_order_by, &order))
        return false;
    if (ret->limit < -2) {
        http_fail(req, DET_EINVAL, "query parameter limit: a number, or -1 for all");
        return false;
    }
    ret->desc = order == 2;
    return true;
}

/* All values, or false (answered) when there are too many. */
static bool read_values(struct http_req *req, const char *name, const char *ret[VALUES_MAX],
                        size_t *n)
{
    const char *all[VALUES_MAX + 1];
    *n = http_query_all(req, name, all, VALUES_MAX + 1);
    if (*n > VALUES_MAX) {
        http_fail(req, DET_EINVAL, "query parameter %s: at most %d values", name, VALUES_MAX);
        return false;
    }
    memcpy(ret, all, *n * sizeof *ret);
    return true;
}

/* Takes list; *ret stays NULL for an empty one. */
static bool as_text(struct http_req *req, json_t *list, const char **ret)
{
    det_cleanup(freep) char *text = json_text(list);
    *ret = json_array_size(list) ? http_strdup(req, text) : NULL;
    json_decref(list);
    return true;
}

bool api_query_strings(struct http_req *req, const char *name, const char **ret)
{
    const char *v[VALUES_MAX];
    size_t n;
    if (!read_values(req, name, v, &n))
        return false;
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        if (*v[i])
            json_array_append_new(list, json_lossy(v[i], strlen(v[i])));
    return as_text(req, list, ret);
}

/* Appends what the text of one value means. */
typedef int add_fn(json_t *list, const char *text, const char *name, const void *arg,
                   struct det_err *err);

static bool query_list(struct http_req *req, const char *name, add_fn *add, const void *arg,
                       const char **ret)
{
    const char *v[VALUES_MAX];
    struct det_err err;
    size_t n;
    if (!read_values(req, name, v, &n))
        return false;
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        if (add(list, v[i], name, arg, &err) < 0) {
            json_decref(list);
            return refuse_query(req, &err);
        }
    return as_text(req, list, ret);
}

static int add_int(json_t *list, const char *text, const char *name, const void *arg,
                   struct det_err *err)
{
    (void)arg;
    JSON_OWN j = json_lossy(text, strlen(text));
    int64_t number;
    int rc = wire_i64(j, name, &number, err);
    if (rc == 0)
        json_array_append_new(list, json_integer(number));
    return rc;
}

bool api_query_ints(struct http_req *req, const char *name, const char **ret)
{
    return query_list(req, name, add_int, NULL, ret);
}

/* Filters look at what is stored: what an ACTIVE one is shown as counts as ACTIVE. */
static const char *map_state(const char *state)
{
    static const char *const shown[] = {"QUEUED", "PULLING", "STARTING", "RUNNING"};
    for (size_t i = 0; i < DET_ARRAY_LEN(shown); i++)
        if (!strcmp(shown[i], state))
            return "ACTIVE";
    return state;
}

struct enums {
    const struct wire_name *names;
    size_t prefix_len;
};

static int add_enum(json_t *list, const char *text, const char *name, const void *arg,
                    struct det_err *err)
{
    const struct enums *e = arg;
    int number;
    int rc = wire_enum_text(text, name, e->names, &number, err);
    if (rc < 0)
        return rc;
    json_array_append_new(
        list, e->prefix_len ? json_string(map_state(wire_name_of(e->names, number) + e->prefix_len))
                            : json_integer(number));
    return 0;
}

bool api_query_enums(struct http_req *req, const char *name, const struct wire_name *names,
                     size_t prefix_len, const char **ret)
{
    struct enums e = {names, prefix_len};
    return query_list(req, name, add_enum, &e, ret);
}
