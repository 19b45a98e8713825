#include "master_audit.h"

#include "buf.h"
#include "mem.h"
#include "show.h"
#include "table.h"

#include <inttypes.h>
#include <stdio.h>

static struct {
    const char *user, *operation, *since, *before;
    int64_t limit;
} o = {.limit = 100};

const struct opt master_audit_opts[] = {
    {"user", 0, OPT_STR, &o.user, "NAME", "only what this user did"},
    {"operation", 0, OPT_STR, &o.operation, "NAME",
     "only this: delete_experiment, patch_user, ..."},
    {"since", 0, OPT_STR, &o.since, "TIME", "not before: 2026-01-31T08:00:00Z"},
    {"before", 0, OPT_STR, &o.before, "ENTRY", "only older than this one, as 12.345"},
    {"limit", 0, OPT_COUNT, &o.limit, "N", "how many, the newest (100)"},
    {0},
};

static void query_add(struct buf *path, const char *name, const char *value)
{
    if (!value)
        return;
    det_cleanup(freep) char *escaped = cli_escaped(value);
    buf_addf(path, "&%s=%s", name, escaped);
}

static void entry_add(struct table *t, const json_t *e)
{
    const json_t *status = json_object_get(e, "status"), *detail = json_object_get(e, "detail");
    table_cell(t, "%s", show_time(json_str(e, "time", NULL)));
    table_cell(t, "%s", json_str(e, "username", ""));
    table_cell(t, "%s", json_str(e, "address", ""));
    if (json_is_integer(status))
        table_cell(t, "%" PRId64, (int64_t)json_integer_value(status));
    else
        table_cell(t, "?");
    table_cell(t, "%s %s", json_str(e, "method", ""), json_str(e, "path", ""));
    det_cleanup(freep) char *text = json_is_null(detail) ? NULL : json_text(detail);
    table_cell(t, "%s", text ? text : "");
}

/* A whole page may have another behind it. */
static void tell_of_more(const json_t *entries)
{
    size_t n = json_array_size(entries);
    if (n > 0 && (int64_t)n == o.limit)
        fprintf(stderr, "older ones may follow: --before %s\n",
                json_str(json_array_get(entries, n - 1), "id", ""));
}

int master_audit(struct cli *c, struct det_err *err)
{
    static const char *const heads[] = {"TIME", "USER", "FROM", ">STATUS", "WHAT", ""};
    det_cleanup(buf_finish) struct buf path = BUF_INIT;
    buf_addf(&path, "/master/audit?limit=%" PRId64, o.limit);
    query_add(&path, "username", o.user);
    query_add(&path, "operation", o.operation);
    query_add(&path, "since", o.since);
    query_add(&path, "before", o.before);
    JSON_OWN answer = NULL;
    if (cli_get(c, &answer, err, "%s", buf_str(&path)) < 0)
        return CLI_FAILED;
    if (cli_print_json(c, answer))
        return 0;
    struct table *t = table_create(heads, DET_ARRAY_LEN(heads));
    size_t i;
    json_t *e;
    json_array_foreach(json_arr(answer, "entries"), i, e) entry_add(t, e);
    table_print(t, "nobody changed anything");
    tell_of_more(json_arr(answer, "entries"));
    return 0;
}
