/* Slot use: who had how many slots, and for how long; as JSON, and as CSV for spreadsheets. */
#include "api_handlers.h"
#include "api_util.h"
#include "buf.h"
#include "db_doc.h"
#include "db_task_read.h"
#include "periods.h"
#include "shell.h"

#include <inttypes.h>
#include <string.h>

enum { ROWS_MAX = 100000 };

struct use_call {
    struct http_req *req;
    struct periods periods;
    void (*write)(const struct use_call *c, struct buf *out, const struct db_result *r);
    bool is_csv;
};

static const struct wire_name period_names[] = {
    {"RESOURCE_ALLOCATION_AGGREGATION_PERIOD_UNSPECIFIED", 0},
    {"RESOURCE_ALLOCATION_AGGREGATION_PERIOD_DAILY", 1},
    {"RESOURCE_ALLOCATION_AGGREGATION_PERIOD_MONTHLY", 2},
    {NULL, 0}};

/* ---- CSV ---- */

/* RFC 4180, but for the ends of lines, which are those of Determined. People may have set what a
 * spreadsheet would run: there it is to be a text. */
static void csv_field(struct buf *out, const char *text, bool is_last)
{
    bool is_plain = text[strcspn(text, ",\"\r\n")] == '\0';
    if (!is_plain)
        buf_add_ch(out, '"');
    if (*text && strchr("=+-@\t\r", *text))
        buf_add_ch(out, '\'');
    for (const char *c = text; *c; c++) {
        if (*c == '"')
            buf_add_ch(out, '"');
        buf_add_ch(out, *c);
    }
    buf_add_str(out, is_plain ? "" : "\"");
    buf_add_str(out, is_last ? "\n" : ",");
}

static void csv_columns(struct buf *out, const struct db_result *r, int row, const int *cols,
                        size_t n)
{
    for (size_t i = 0; i < n; i++)
        csv_field(out, db_text(r, row, cols[i]), i + 1 == n);
}

/* The labels, as the field of a run has them: "a,b". */
static void csv_labels(struct buf *out, const struct db_result *r, int row)
{
    det_cleanup(buf_finish) struct buf text = BUF_INIT;
    JSON_OWN labels =
        json_parse(db_text(r, row, USE_RUN_LABELS), db_text_len(r, row, USE_RUN_LABELS), NULL);
    size_t i;
    json_t *label;
    json_array_foreach(labels, i, label)
        buf_addf(&text, "%s%s", i ? "," : "", json_string_value(label));
    csv_field(out, buf_str(&text), false);
}

static void write_sums_csv(const struct use_call *c, struct buf *out, const struct db_result *r)
{
    static const int cols[] = {USE_KIND, USE_KEY, USE_PERIOD, USE_SECONDS};
    buf_add_str(out, "aggregation_type,aggregation_key,date,seconds\n");
    for (int i = 0; i < db_rows(r); i++)
        csv_columns(out, r, i, cols, DET_ARRAY_LEN(cols));
}

static void write_runs_csv(const struct use_call *c, struct buf *out, const struct db_result *r)
{
    static const int before[] = {USE_RUN_EXP, USE_RUN_KIND, USE_RUN_USERNAME},
                     after[] = {USE_RUN_SLOTS, USE_RUN_START, USE_RUN_END, USE_RUN_LIFE};
    buf_add_str(out, "experiment_id,kind,username,labels,slots,start_time,end_time,seconds\n");
    for (int i = 0; i < db_rows(r); i++) {
        for (size_t k = 0; k < DET_ARRAY_LEN(before); k++)
            csv_field(out, db_text(r, i, before[k]), false);
        csv_labels(out, r, i);
        csv_columns(out, r, i, after, DET_ARRAY_LEN(after));
    }
}

static void write_allocations_csv(const struct use_call *c, struct buf *out,
                                  const struct db_result *r)
{
    static const int cols[] = {USE_RUN_ALLOC, USE_RUN_KIND, USE_RUN_USERNAME, USE_RUN_WORKSPACE,
                               USE_RUN_EXP,   USE_RUN_POOL, USE_RUN_SLOTS,    USE_RUN_START,
                               USE_RUN_END,   USE_RUN_LIFE};
    buf_add_str(out, "allocation_id,task_type,username,workspace_name,experiment_id,resource_pool,"
                     "slots,start_time,end_time,seconds\n");
    for (int i = 0; i < db_rows(r); i++)
        csv_columns(out, r, i, cols, DET_ARRAY_LEN(cols));
}

/* ---- JSON ---- */

static void write_runs(const struct use_call *c, struct buf *out, const struct db_result *r)
{
    buf_add_str(out, "{\"resourceEntries\":");
    db_put_rows(out, r);
    buf_add_ch(out, '}');
}

/* {key: seconds} of the rows of the period from *row on that sum by `kind`; *row goes past them. */
static json_t *sums_by(const char *kind, const char *period, const struct db_result *r, int *row)
{
    json_t *by = json_object();
    for (; *row < db_rows(r) && !strcmp(db_text(r, *row, USE_PERIOD), period) &&
           !strcmp(db_text(r, *row, USE_KIND), kind);
         ++*row)
        json_set(by, db_text(r, *row, USE_KEY), json_real(db_f64(r, *row, USE_SECONDS)));
    return by;
}

/* One period, in the order in which rows come: by the names of what is summed by. */
static json_t *entry_of(const struct periods *p, const char *period, const struct db_result *r,
                        int *row)
{
    json_t *e = json_make("{s:s, s:s, s:f, s:{}}", "periodStart", period, "period",
                          period_names[p->by_month ? 2 : 1].name, "seconds", 0.0, "byAgentLabel");
    json_set(e, "byExperimentLabel", sums_by("experiment_label", period, r, row));
    json_set(e, "byResourcePool", sums_by("resource_pool", period, r, row));
    JSON_OWN total = sums_by("total", period, r, row);
    if (json_object_get(total, ""))
        json_object_set(e, "seconds", json_object_get(total, ""));
    json_set(e, "byUsername", sums_by("username", period, r, row));
    json_set(e, "byWorkspace", sums_by("workspace", period, r, row));
    return e;
}

/* Each period, those without use too. */
static void write_sums(const struct use_call *c, struct buf *out, const struct db_result *r)
{
    char period[PERIOD_TEXT_MAX];
    JSON_OWN entries = json_array();
    int row = 0;
    for (size_t i = 0; i < c->periods.n; i++) {
        period_text(&c->periods, i, period);
        json_array_append_new(entries, entry_of(&c->periods, period, r, &row));
    }
    buf_add_str(out, "{\"resourceEntries\":");
    json_write(out, entries);
    buf_add_ch(out, '}');
}

/* ---- requests ---- */

static void on_rows(void *arg, const struct db_result *r)
{
    const struct use_call *c = arg;
    if (db_timed_out(r)) {
        http_fail(c->req, DET_ETIMEOUT, "so much cannot be read in 10 s: ask for less time");
        return;
    }
    if (api_failed(c->req, r))
        return;
    if (db_rows(r) > ROWS_MAX) {
        http_fail(c->req, DET_EINVAL, "the answer has more than %d rows: ask for less time",
                  ROWS_MAX);
        return;
    }
    struct buf out = BUF_INIT;
    c->write(c, &out, r);
    if (c->is_csv)
        http_reply_with(c->req,
                        &(struct http_answer){.status = 200,
                                              .content_type = "text/csv; charset=utf-8",
                                              .disposition = "attachment"},
                        buf_str(&out), out.len);
    else
        http_reply_buf(c->req, 200, &out);
    buf_finish(&out);
}

static struct use_call *use_call(struct http_req *req)
{
    struct use_call *c = http_mem(req, sizeof *c);
    *c = (struct use_call){.req = req};
    return c;
}

static bool is_given(struct http_req *req, const char *name)
{
    const char *text = http_query(req, name);
    return text && *text;
}

static void ask_runs(struct shell *sh, struct use_call *c)
{
    int64_t after_us, before_us;
    if (!api_query_time(c->req, "timestampAfter", &after_us) ||
        !api_query_time(c->req, "timestampBefore", &before_us))
        return;
    const char *lacks = !is_given(c->req, "timestampAfter")    ? "timestampAfter"
                        : !is_given(c->req, "timestampBefore") ? "timestampBefore"
                                                               : NULL;
    if (lacks)
        http_fail(c->req, DET_EINVAL,
                  "query parameter %s: expected a time, as 2026-01-31T08:00:00Z", lacks);
    else if (before_us < after_us)
        http_fail(c->req, DET_EINVAL, "timestampBefore: it is before timestampAfter");
    else /* 0 is no time there */
        db_use_runs(sh->db, after_us + !after_us, before_us + !before_us, ROWS_MAX + 1, on_rows, c);
}

static void ask_sums(struct shell *sh, struct use_call *c)
{
    struct det_err err;
    int period;
    char from[PERIOD_TEXT_MAX], until[PERIOD_TEXT_MAX];
    if (!api_query_enum(c->req, "period", period_names, &period))
        return;
    if (period == 0) {
        http_fail(c->req, DET_EINVAL, "query parameter period: expected %s or %s",
                  period_names[1].name, period_names[2].name);
        return;
    }
    if (periods_parse(period == 2, http_query(c->req, "startDate"), http_query(c->req, "endDate"),
                      &c->periods, &err) < 0) {
        http_fail_err(c->req, &err);
        return;
    }
    period_first_day(&c->periods, 0, from);
    period_first_day(&c->periods, c->periods.n, until);
    db_use_sums(sh->db, from, until, c->periods.by_month, ROWS_MAX + 1, on_rows, c);
}

void api_resource_allocation_raw(struct shell *sh, struct http_req *req)
{
    struct use_call *c = use_call(req);
    c->write = write_runs;
    ask_runs(sh, c);
}

void api_resource_allocation_aggregated(struct shell *sh, struct http_req *req)
{
    struct use_call *c = use_call(req);
    c->write = write_sums;
    ask_sums(sh, c);
}

void api_download_allocation_raw(struct shell *sh, struct http_req *req)
{
    struct use_call *c = use_call(req);
    c->write = write_runs_csv;
    c->is_csv = true;
    ask_runs(sh, c);
}

void api_download_allocations_csv(struct shell *sh, struct http_req *req)
{
    struct use_call *c = use_call(req);
    c->write = write_allocations_csv;
    c->is_csv = true;
    ask_runs(sh, c);
}

void api_download_allocation_aggregated(struct shell *sh, struct http_req *req)
{
    struct use_call *c = use_call(req);
    c->write = write_sums_csv;
    c->is_csv = true;
    ask_sums(sh, c);
}
