/*
 * The URI of a request from any bytes: its path, looked up in the real table of routes, and its
 * query, read by all that handlers read it with. Each parameter is taken or answered, not both and
 * not neither; what is taken is within its type; and values that are escaped are read as they were.
 */
#include "api_util.h"
#include "clk.h"
#include "http_conn.h"
#include "mem.h"
#include "periods.h"
#include "routes.h"
#include "runports.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { VALUES_MAX = 64 };

static void require(bool ok)
{
    if (!ok)
        abort();
}

/* ---- the path ---- */

static enum http_method method_of(const char *text)
{
    static const char *const names[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
    for (int i = 0; i < HTTP_METHOD_COUNT; i++)
        if (strcmp(names[i], text) == 0)
            return (enum http_method)i;
    abort();
}

static const struct http_router *all_routes(void)
{
    static struct http_router router;
    static struct http_route *routes;
    if (routes)
        return &router;
    routes = det_zalloc(routes_count * sizeof *routes);
    for (size_t i = 0; i < routes_count; i++) {
        routes[i].method = method_of(routes_all[i].method);
        routes[i].pattern = routes_all[i].pattern;
        require(http_router_add(&router, &routes[i], NULL) == 0);
    }
    return &router;
}

static void check_path(const char *uri)
{
    det_cleanup(freep) char *path = det_strndup(uri, strcspn(uri, "?"));
    for (int i = 0; i < HTTP_METHOD_COUNT; i++) {
        struct http_match m;
        int rc = http_router_find(all_routes(), (enum http_method)i, path, &m);
        require((rc == 0) == (m.entry != NULL));
        for (int k = 0; rc == 0 && k < m.n; k++)
            require(m.entry->var[k] || strcmp(m.entry->seg[k], m.seg[k]) == 0);
        http_match_finish(&m);
    }
}

/* ---- the query ---- */

/* A request whose answers go nowhere: as one that the server has answered already. */
static void begin(struct http_conn *c, char *uri)
{
    static char nobody;
    *c = (struct http_conn){.uri = uri, .mhd = (struct MHD_Connection *)&nobody, .forced = true};
    c->req.conn = c;
}

static void end(struct http_conn *c)
{
    while (c->chunks) {
        struct http_chunk *k = c->chunks;
        c->chunks = k->next;
        free(k);
    }
}

/* `taken` is what a reader returned: false where it has answered. */
static bool check_answer(struct http_conn *c, bool taken)
{
    require(taken == c->forced);
    c->forced = true;
    return taken;
}

static json_t *list_of(const char *text)
{
    json_t *j = json_parse(text, strlen(text), NULL);
    require(json_array_size(j) > 0);
    return j;
}

static void check_lists(struct http_conn *c)
{
    const char *text;
    size_t i;
    json_t *one;
    if (check_answer(c, api_query_ints(&c->req, "experimentIds", &text)) && text) {
        JSON_OWN j = list_of(text);
        json_array_foreach(j, i, one) require(json_is_integer(one));
    }
    if (check_answer(c, api_query_strings(&c->req, "labels", &text)) && text) {
        JSON_OWN j = list_of(text);
        json_array_foreach(j, i, one) require(json_is_string(one));
    }
    if (check_answer(c,
                     api_query_enums(&c->req, "states", wire_exp_state, strlen("STATE_"), &text)) &&
        text)
        json_decref(list_of(text));
}

static void check_numbers(struct http_conn *c)
{
    struct db_page page;
    int64_t number, time_us, again_us;
    int flag, order;
    char when[CLK_RFC3339_MAX];
    if (check_answer(c, api_page(&c->req, wire_trial_sort, &page)))
        require(page.limit >= -2);
    check_answer(c, api_query_i64(&c->req, "limit", 7, &number));
    if (check_answer(c, api_query_flag(&c->req, "archived", &flag)))
        require(flag >= -1 && flag <= 1);
    if (check_answer(c, api_query_enum(&c->req, "orderBy", wire_order_by, &order)))
        require(*wire_name_of(wire_order_by, order));
    if (check_answer(c, api_query_time(&c->req, "timestampAfter", &time_us)) && time_us) {
        clk_format(time_us, when);
        require(clk_parse(when, &again_us, NULL) == 0 && again_us == time_us);
    }
}

/* What is taken comes back as it was written. */
static void check_ports(struct http_conn *c)
{
    struct runports p, again;
    if (runports_read(&p, http_query(&c->req, "ports"), NULL) < 0)
        return;
    det_cleanup(buf_finish) struct buf text = BUF_INIT;
    runports_write(&text, &p);
    require(text.len < RUNPORTS_STR_MAX);
    require(runports_read(&again, text.len ? buf_str(&text) : NULL, NULL) == 0);
    require(memcmp(&p, &again, sizeof p) == 0);
}

/* What is taken stands in order, from the one date to the other, each written as it was read. */
static void check_periods(struct http_conn *c, bool by_month)
{
    const char *start = http_query(&c->req, "startDate"), *end = http_query(&c->req, "endDate");
    char first[PERIOD_TEXT_MAX], last[PERIOD_TEXT_MAX], after[PERIOD_TEXT_MAX];
    struct periods p;
    if (periods_parse(by_month, start, end, &p, NULL) < 0)
        return;
    require(p.n >= 1 && p.n <= PERIODS_MAX);
    period_text(&p, 0, first);
    period_text(&p, p.n - 1, last);
    require(strcmp(first, start) == 0 && strcmp(last, end) == 0);
    period_first_day(&p, 0, first);
    period_first_day(&p, p.n, after);
    require(strcmp(first, after) < 0);
}

static void add_escaped(struct buf *out, const char *key, const char *value)
{
    buf_addf(out, "%s%s=", out->len > 1 ? "&" : "", key);
    for (; *value; value++)
        buf_addf(out, "%%%02X", (unsigned char)*value);
}

/* Under the other spelling of its name. */
static void check_again(const char *const *values, size_t n)
{
    struct http_conn c;
    const char *again[VALUES_MAX];
    struct buf uri = BUF_INIT;
    buf_add_str(&uri, "?");
    for (size_t i = 0; i < n; i++)
        add_escaped(&uri, "some_labels", values[i]);
    begin(&c, (char *)buf_str(&uri));
    require(http_query_all(&c.req, "someLabels", again, VALUES_MAX) == n);
    for (size_t i = 0; i < n; i++)
        require(strcmp(values[i], again[i]) == 0);
    end(&c);
    buf_finish(&uri);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_conn c;
    const char *values[VALUES_MAX];
    det_cleanup(freep) char *uri = det_strndup((const char *)data, size);
    check_path(uri);
    begin(&c, uri);
    check_lists(&c);
    check_numbers(&c);
    check_ports(&c);
    check_periods(&c, false);
    check_periods(&c, true);
    size_t n = http_query_all(&c.req, "labels", values, VALUES_MAX);
    check_again(values, n);
    end(&c);
    return 0;
}
