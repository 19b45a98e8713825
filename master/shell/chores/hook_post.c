#include "hook_post.h"

#include "client_uv.h"
#include "clk.h"
#include "hash.h"
#include "json.h"
#include "mem.h"
#include "webhooks.h"

#include <ifaddrs.h>
#include <inttypes.h>
#include <string.h>

enum { ANSWER_MAX = 64 << 10, NAME_MAX_BYTES = 200, LINE_MAX_BYTES = 1000 };

/* One of this host's; also where that cannot be told. */
static bool is_own(const struct sockaddr *a)
{
    struct ifaddrs *all;
    if (getifaddrs(&all) < 0)
        return true;
    const struct ifaddrs *i = all;
    while (i && !(i->ifa_addr && webhook_same_address(i->ifa_addr, a)))
        i = i->ifa_next;
    freeifaddrs(all);
    return i != NULL;
}

static bool may_dial_in(const void *arg, const struct sockaddr *a)
{
    const struct webhook_networks *nets = arg;
    return webhook_may_dial(nets, a) && (nets->is_given || !is_own(a));
}

struct hook_line {
    uv_loop_t *loop;
    struct client_uv *client; /* NULL: it could not be made, for what `wrong` says */
    char *host, *path;
    char wrong[300];
};
struct hook_post {
    struct hook_line *to;
    struct client_uv_call *call; /* NULL: it could not be begun */
    uv_timer_t late;             /* tells what failed at once */
    char why[300];
    hook_post_done *done;
    void *arg;
};

struct hook_line *hook_line_open(uv_loop_t *loop, const char *url,
                                 const struct webhook_networks *nets)
{
    struct hook_line *l = det_zalloc(sizeof *l);
    struct webhook_url u;
    struct det_err err;
    l->loop = loop;
    int rc = webhook_read_url(url, nets, &u, &err);
    if (rc == 0) {
        l->host = det_strndup(u.host, u.host_len);
        l->path = det_asprintf("/%s", u.path + (*u.path == '/'));
        det_cleanup(freep) char *base = det_strndup(url, u.base_len);
        struct client_options o = {
            .url = base, .timeout_ms = HOOK_POST_MS, .may_dial = may_dial_in, .dial_arg = nets};
        rc = client_uv_create(loop, &o, &l->client, &err);
    }
    if (rc < 0)
        snprintf(l->wrong, sizeof l->wrong, "%.250s", err.text);
    return l;
}

void hook_line_close(struct hook_line *l)
{
    if (!l)
        return;
    client_uv_close(l->client);
    free(l->host);
    free(l->path);
    free(l);
}

static void on_closed(uv_handle_t *h)
{
    free(h->data);
}

static void post_free(struct hook_post *p)
{
    uv_close((uv_handle_t *)&p->late, on_closed);
}

static void post_end(struct hook_post *p)
{
    p->done(p->arg, p->why);
    post_free(p);
}

static void on_late(uv_timer_t *t)
{
    post_end(t->data);
}

/* Neither the path, which may hold a secret, nor what the receiver says is kept. */
static void say_why(struct hook_post *p, int rc, const struct client_resp *resp)
{
    const char *host = p->to->host;
    if (resp->status)
        snprintf(p->why, sizeof p->why, "%s answered %d", host, resp->status);
    else if (rc == DET_ETIMEOUT)
        snprintf(p->why, sizeof p->why, "%s did not answer within %d s", host, HOOK_POST_MS / 1000);
    else if (rc == DET_EAUTH)
        snprintf(p->why, sizeof p->why, "the certificate of %s is not trusted", host);
    else
        snprintf(p->why, sizeof p->why, "%s cannot be reached, or may not be", host);
}

static void on_answer(void *arg, int rc, const struct client_resp *resp, const struct det_err *err)
{
    struct hook_post *p = arg;
    bool is_taken = resp->status / 100 == 2 && (rc == 0 || rc == DET_ETOOBIG); /* of what it said */
    if (!is_taken)
        say_why(p, rc, resp);
    post_end(p);
}

/* In Slack's markup three characters mean something. */
static void add_escaped(struct buf *b, const char *s, size_t most)
{
    for (size_t i = 0; s[i] && i < most; i++)
        if (s[i] == '&')
            buf_add_str(b, "&amp;");
        else if (s[i] == '<' || s[i] == '>')
            buf_add_str(b, s[i] == '<' ? "&lt;" : "&gt;");
        else
            buf_add_ch(b, s[i]);
}

static void say_experiment(struct buf *b, const json_t *e)
{
    buf_addf(b, "Experiment %" PRId64 " (", json_int(e, "id", 0));
    add_escaped(b, json_str(e, "name", ""), NAME_MAX_BYTES);
    buf_add_str(b, ") of ");
    add_escaped(b, json_str(e, "workspace", ""), NAME_MAX_BYTES);
    buf_add_str(b, " / ");
    add_escaped(b, json_str(e, "project", ""), NAME_MAX_BYTES);
    buf_addf(b, " is %s after %" PRId64 " s.", json_str(e, "state", ""),
             json_int(e, "duration", 0));
}

static void say_log(struct buf *b, const json_t *l)
{
    buf_add_str(b, "A line of the log of task ");
    add_escaped(b, json_str(l, "task_id", ""), NAME_MAX_BYTES);
    buf_add_str(b, ": ");
    add_escaped(b, json_str(l, "triggering_log", ""), LINE_MAX_BYTES);
}

/* What Slack shows. New reference. */
static json_t *slack_of(const char *payload)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    JSON_OWN j = json_parse(payload, strlen(payload), NULL);
    const json_t *data = json_obj(j, "event_data"), *e = json_obj(data, "experiment"),
                 *l = json_obj(data, "task_log");
    if (e)
        say_experiment(&b, e);
    else if (l)
        say_log(&b, l);
    else
        buf_add_str(&b, "A test of this webhook: det-master reaches it.");
    return json_make("{s:o}", "text", json_lossy(b.p, b.len));
}

static void post_start(struct hook_post *p, const struct hook_event *e)
{
    char stamp[100], sign[100 + HASH_HEX_MAX], hex[HASH_HEX_MAX];
    int64_t now_s = clk_wall_us() / 1000000;
    det_cleanup(buf_finish) struct buf signed_text = BUF_INIT;
    JSON_OWN slack = strcmp(e->type, "SLACK") == 0 ? slack_of(e->payload) : NULL;
    det_cleanup(freep) char *body = slack ? json_text(slack) : det_strdup(e->payload);
    buf_addf(&signed_text, "%" PRId64 ",%s", now_s, body);
    hash_hmac(e->key, signed_text.p, signed_text.len, hex);
    snprintf(stamp, sizeof stamp, "X-Determined-AI-Signature-Timestamp: %" PRId64, now_s);
    snprintf(sign, sizeof sign, "X-Determined-AI-Signature: %s", hex);
    const char *headers[] = {stamp, sign, NULL};
    struct client_req req = {.path = p->to->path,
                             .headers = headers,
                             .body = body,
                             .answer_max = ANSWER_MAX,
                             .once = true};
    p->call = client_uv_start(p->to->client, &req, on_answer, p);
}

struct hook_post *hook_post(struct hook_line *to, const struct hook_event *e, hook_post_done *done,
                            void *arg)
{
    struct hook_post *p = det_zalloc(sizeof *p);
    *p = (struct hook_post){.to = to, .done = done, .arg = arg};
    uv_timer_init(to->loop, &p->late);
    p->late.data = p;
    if (to->client) {
        post_start(p, e);
    } else {
        snprintf(p->why, sizeof p->why, "%s", to->wrong);
        uv_timer_start(&p->late, on_late, 0, 0);
    }
    return p;
}

void hook_post_cancel(struct hook_post *p)
{
    if (!p)
        return;
    if (p->call)
        client_uv_cancel(p->call);
    post_free(p);
}
