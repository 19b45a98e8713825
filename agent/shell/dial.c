#include "dial.h"

#include "clk.h"
#include "log.h"
#include "uuid.h"

#include <stdio.h>
#include <string.h>

#define PAUSE_FIRST_MS 50
#define PAUSE_MAX_MS   3000
#define POST_MS        10000

struct dial {
    struct client_uv *http;
    struct host *host;
    char *events_path, *orders_path;
    struct client_uv_call *post, *stream;
    uv_timer_t timer;              /* armed: nothing is sent until it fires */
    uv_timer_t beat;               /* says that we live when there is nothing else to say */
    int closing;                   /* timers not yet closed */
    int64_t sent_us, sent_wall_us; /* when the last request went: monotonic, wall */
    uint64_t pause_ms;
    bool was_greeted; /* a hello was acknowledged since the link was last down */
    char *said_down;  /* the reason that the log has; NULL: it is up */
    struct life *life;
    void (*on_change)(void *arg);
    void *arg;
};

static void post_news(struct dial *d);
static void post_batch(struct dial *d);

static void on_timer(uv_timer_t *t)
{
    post_news(container_of(t, struct dial, timer));
}

static uint64_t next_pause(struct dial *d)
{
    unsigned jitter;
    char hex[9];
    random_hex(hex, 4);
    jitter = (unsigned)strtoul(hex, NULL, 16);
    d->pause_ms = d->pause_ms ? d->pause_ms * 2 : PAUSE_FIRST_MS;
    if (d->pause_ms > PAUSE_MAX_MS)
        d->pause_ms = PAUSE_MAX_MS;
    return d->pause_ms / 2 + jitter % (d->pause_ms / 2 + 1);
}

/* The link is down: both exchanges end; after a pause a hello goes first. */
static void drop_link(struct dial *d, const struct det_err *err, bool new_boot)
{
    char boot[UUID_STR_MAX];
    client_uv_cancel(d->post);
    client_uv_cancel(d->stream);
    d->post = d->stream = NULL;
    if (!d->said_down || strcmp(d->said_down, err->text) != 0)
        log_warning("the link to the master is down: %s", err->text);
    free(d->said_down);
    d->said_down = det_strdup(err->text);
    uuid_random(boot);
    if (new_boot)
        host_hello(d->host, boot);
    else if (d->was_greeted)
        host_hello(d->host, NULL);
    d->was_greeted = false;
    host_set_clock(d->host, NULL); /* the next one to answer may be another master */
    uv_timer_start(&d->timer, on_timer, next_pause(d), 0);
}

static int on_order(void *arg, const char *line, size_t len, struct det_err *err)
{
    struct dial *d = arg;
    struct link_order o;
    int rc = link_order_decode(line, len, &o, err);
    d->pause_ms = 0;
    if (rc == 0) {
        host_on_order(d->host, &o);
        link_order_finish(&o);
        d->on_change(d->arg);
        return 0;
    }
    log_error("an order of the master: %s", err->text);
    JSON_OWN j = json_parse(line, len, NULL);
    const char *alloc = json_str(j, "alloc", ""), *container = json_str(j, "container", "");
    if (strcmp(json_str(j, "order", ""), "start") == 0 && link_id_is_valid(alloc) &&
        link_id_is_valid(container)) {
        host_refuse(d->host, alloc, container, err->text);
        d->on_change(d->arg);
    }
    return 0;
}

static void on_stream_end(void *arg, int rc, const struct client_resp *resp,
                          const struct det_err *e)
{
    struct dial *d = arg;
    struct det_err err = *e;
    d->stream = NULL;
    if (rc == 0)
        det_fail(&err, DET_EUNAVAIL, "the master ended the stream of orders");
    drop_link(d, &err, false);
}

static void open_stream(struct dial *d)
{
    det_cleanup(freep) char *query = det_asprintf("boot=%s&after=0", host_boot(d->host));
    struct client_req req = {.method = "GET", .path = d->orders_path, .query = query};
    d->stream = client_uv_stream(d->http, &req, LINK_SILENCE_MS, on_order, on_stream_end, d);
}

/* True when it just was. */
static bool take_greeting(struct dial *d)
{
    if (!host_is_greeted(d->host) || d->was_greeted)
        return false;
    d->was_greeted = true;
    log_info("connected to the master");
    free(det_take(d->said_down));
    open_stream(d);
    return true;
}

/* 400 and 409: the master's idea of our numbers differs, or another agent has our name. */
static bool wants_new_boot(int rc)
{
    return rc == DET_ESTALE || rc == DET_EINVAL || rc == DET_EEXIST || rc == DET_ESTATE;
}

/* By our wall clock as it was when the request went: it may have been set since. */
static void compare_clocks(struct dial *d, const struct link_times *master)
{
    int64_t heard_us = d->sent_wall_us + clk_mono_us() - d->sent_us;
    struct clockdiff diff =
        clockdiff_of(d->sent_wall_us, master->got_us, master->answered_us, heard_us);
    host_set_clock(d->host, link_clock_json(&diff));
}

static int on_answer(struct dial *d, const struct client_resp *resp, int64_t *ret_ack,
                     struct det_err *err)
{
    struct link_ack a;
    int rc = link_ack_decode(buf_str(&resp->body), resp->body.len, &a, err);
    if (rc == 0)
        rc = life_take(d->life, &a, host_count(d->host).known > 0, err);
    if (rc == 0)
        host_set_seen(d->host, life_seen(d->life));
    if (rc == 0 && a.has_clock)
        compare_clocks(d, &a.clock);
    *ret_ack = a.ack;
    link_ack_finish(&a);
    return rc;
}

static bool may_post(const struct dial *d)
{
    return !d->post && !uv_is_active((const uv_handle_t *)&d->timer);
}

static void on_posted(void *arg, int rc, const struct client_resp *resp, const struct det_err *e)
{
    struct dial *d = arg;
    struct det_err err = *e;
    int64_t ack = 0;
    d->post = NULL;
    if (rc == 0)
        rc = on_answer(d, resp, &ack, &err);
    if (rc < 0) {
        drop_link(d, &err, wants_new_boot(rc));
        return;
    }
    host_on_ack(d->host, ack);
    bool is_new = take_greeting(d);
    d->on_change(d->arg);
    post_news(d);
    if (is_new && may_post(d))
        post_batch(d); /* the clock: the hello came before there was anything to compare */
}

static void post_batch(struct dial *d)
{
    det_cleanup(freep) char *body = host_batch(d->host);
    struct client_req req = {
        .method = "POST", .path = d->events_path, .body = body, .timeout_ms = POST_MS};
    d->sent_us = clk_mono_us();
    d->sent_wall_us = clk_wall_us();
    d->post = client_uv_start(d->http, &req, on_posted, d);
}

static void post_news(struct dial *d)
{
    if (may_post(d) && host_has_news(d->host))
        post_batch(d);
}

static void on_beat(uv_timer_t *t)
{
    struct dial *d = container_of(t, struct dial, beat);
    life_sync(d->life);
    if (d->stream && may_post(d))
        post_batch(d);
}

struct dial *dial_create(uv_loop_t *loop, struct client_uv *http, struct host *host,
                         struct life *life, const char *agent_id, void (*on_change)(void *arg),
                         void *arg)
{
    struct dial *d = det_zalloc(sizeof *d);
    *d =
        (struct dial){.http = http, .host = host, .life = life, .on_change = on_change, .arg = arg};
    d->events_path = det_asprintf("/agent/v1/%s/events", agent_id);
    d->orders_path = det_asprintf("/agent/v1/%s/orders", agent_id);
    uv_timer_init(loop, &d->timer);
    uv_timer_init(loop, &d->beat);
    uv_timer_start(&d->beat, on_beat, LINK_BEAT_MS, LINK_BEAT_MS);
    host_set_seen(host, life_seen(life));
    host_hello(host, NULL);
    post_news(d);
    return d;
}

static void on_closed(uv_handle_t *h)
{
    struct dial *d = h->data;
    if (--d->closing > 0)
        return;
    free(d->events_path);
    free(d->orders_path);
    free(d->said_down);
    free(d);
}

void dial_close(struct dial *d)
{
    if (!d)
        return;
    client_uv_cancel(d->post);
    client_uv_cancel(d->stream);
    d->timer.data = d->beat.data = d;
    d->closing = 2;
    uv_close((uv_handle_t *)&d->timer, on_closed);
    uv_close((uv_handle_t *)&d->beat, on_closed);
}

void dial_kick(struct dial *d)
{
    post_news(d);
}
