/*
 * The long poll of a custom search's client. Its events are asked of the core as an event of their
 * own: the answer leaves after the commit of all that led to it, so that no client hears of what a
 * crash could still undo.
 */
#include "waits_impl.h"

#include "clk.h"
#include "core.h"
#include "db_exp_read.h"
#include "driver.h"
#include "mem.h"
#include "shell.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct ask { /* lives as long as the request */
    struct waits *owner;
    struct http_req *req;
    int64_t exp_id, until_ms;
};

static void key_of(int64_t exp_id, char out[40])
{
    snprintf(out, 40, "search %" PRId64, exp_id);
}

static void reply_events(struct ask *a, const char *events)
{
    struct buf b = BUF_INIT;
    buf_addf(&b, "{\"searcherEvents\":%s}", events);
    http_reply_buf(a->req, 200, &b);
    buf_finish(&b);
}

/* The core has forgotten the experiments that have ended: the client, who may come at any time
 * later, learns from the row how. */
static void on_ended(void *arg, const struct db_result *r)
{
    struct ask *a = arg;
    if (db_rc(r) < 0) {
        http_fail_err(a->req, db_error(r));
    } else if (db_rows(r) == 0) {
        http_fail(a->req, DET_ENOENT, "experiment %" PRId64 " not found", a->exp_id);
    } else if (db_is_null(r, 0, 0) || strcmp(db_text(r, 0, 0), "custom") != 0) {
        http_fail(a->req, DET_ESTATE,
                  "experiment %" PRId64 " has no custom searcher (searcher.name: custom)",
                  a->exp_id);
    } else {
        det_cleanup(freep) char *events = core_inactive_event(db_text(r, 0, 1));
        reply_events(a, events);
    }
}

static void on_events(void *arg, const struct core_reply *r)
{
    struct ask *a = arg;
    int64_t left = a->until_ms - clk_mono_ms();
    if (r->code == DET_ENOENT) {
        db_exp_searcher(a->owner->sh->db, a->exp_id, on_ended, a);
    } else if (r->code < 0) {
        http_fail(a->req, r->code, "%s", core_reply_text(r));
    } else if (strcmp(r->data, "[]") == 0 && left > 0) {
        char key[40];
        key_of(a->exp_id, key);
        wait_add(a->owner, WAIT_SEARCH, a->req, key, NULL, left)->arg = a;
    } else {
        reply_events(a, r->data);
    }
}

static void ask_events(struct ask *a)
{
    struct core_event ev = {.kind = CORE_EV_SEARCH_EVENTS, .exp_id = a->exp_id};
    driver_post(a->owner->sh->driver, &ev, on_events, a);
}

void waits_search(struct waits *o, struct http_req *req, int64_t exp_id, int64_t timeout_ms)
{
    struct ask *a = http_mem(req, sizeof *a);
    *a = (struct ask){o, req, exp_id, clk_mono_ms() + timeout_ms};
    ask_events(a);
}

void waits_on_search(struct waits *o, int64_t exp_id)
{
    char key[40];
    struct wait *next;
    key_of(exp_id, key);
    for (struct wait *w = map_get(o->by_alloc, key); w; w = next) {
        next = w->next;
        struct ask *a = w->arg;
        wait_end(w);
        ask_events(a);
    }
}
