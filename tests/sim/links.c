/* The two ends of an agent's link, as agent/shell/dial.c and shell/hosts/agents.c are: the agent
 * posts its events and has a stream of orders; the master takes each event once, and acknowledges
 * what is committed. The words on it are the real ones. */
#include "agents_event.h"
#include "host.h"
#include "sim.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

struct post {
    uint64_t number, life; /* of the master that it goes to */
    int master;
    char *body;
};
struct answer {
    uint64_t post;
    int64_t ack;
    int rc;
};

static void post_free(struct post *p)
{
    free(p->body);
    free(p);
}

void links_msg_free(struct msg *msg)
{
    if (msg->kind == M_POST)
        post_free(msg->data);
    else if (msg->kind == M_ORPHAN)
        sim_driver_orphan_free(msg->data);
    else
        free(msg->data);
}

static struct msg to_agent(const struct sim_host *h, enum msg_kind kind)
{
    return (struct msg){.kind = kind, .index = h->index, .conn = h->dial.conn};
}

/* ---- the agent's end ---- */

/* It tries its masters in turn: one that was replaced and does not know it yet may answer first. */
static int choose_master(struct sim *m)
{
    int other = (m->leader + 1 + (int)sim_random(m, MASTERS - 1)) % MASTERS;
    return sim_master_serves(m, &m->masters[other]) && sim_random(m, 2) ? other : m->leader;
}

/* The master hears of it, or notices silence. */
void links_close(struct sim *m, struct sim_host *h)
{
    struct msg down = to_agent(h, M_LINK_DOWN);
    down.task = (uint64_t)h->dial.master;
    if (h->dial.has_stream)
        sim_later(m, (int64_t)sim_random(m, SILENCE_MS), down);
    h->dial = (struct sim_dial){.conn = ++m->next_conn, .master = h->dial.master};
}

void links_dial(struct sim *m, struct sim_host *h, int64_t in_ms)
{
    h->dial.is_paused = true;
    sim_later(m, in_ms, to_agent(h, M_DIAL));
}

static void down(struct sim *m, struct sim_host *h, bool new_boot, int64_t in_ms)
{
    bool was_greeted = h->dial.is_greeted;
    char boot[UUID_STR_MAX];
    links_close(m, h);
    if (new_boot)
        host_hello(h->agent, hosts_boot(m, boot));
    else if (was_greeted)
        host_hello(h->agent, NULL);
    links_dial(m, h, in_ms);
    hosts_perform(m, h);
}

void links_down(struct sim *m, int index, int64_t in_ms)
{
    struct sim_host *h = &m->hosts[index];
    if (h->agent)
        down(m, h, false, in_ms);
}

static int64_t pause_of(struct sim *m)
{
    return 50 + (int64_t)sim_random(m, 3000);
}

static void send_post(struct sim *m, const struct sim_host *h, char *body)
{
    struct post *p = det_alloc(sizeof *p);
    *p = (struct post){h->dial.post, m->masters[h->dial.master].life, h->dial.master, body};
    struct msg msg = to_agent(h, M_POST);
    msg.data = p;
    sim_later(m, 1 + (int64_t)sim_random(m, 30), msg);
}

/* Also one that says nothing but what was sent before. */
static void post(struct sim *m, struct sim_host *h)
{
    struct msg late = to_agent(h, M_POST_LATE);
    char *body = host_batch(h->agent);
    late.task = h->dial.post = ++m->next_token;
    if (sim_chance(m, 10))
        send_post(m, h, det_strdup(body));
    send_post(m, h, body);
    sim_later(m, SILENCE_MS, late);
}

void links_step(struct sim *m, struct sim_host *h)
{
    if (h->agent && !h->dial.is_paused && !h->dial.post && host_has_news(h->agent))
        post(m, h);
}

static void on_dial(struct sim *m, struct sim_host *h)
{
    h->dial.is_paused = false;
    h->dial.master = choose_master(m);
    links_step(m, h);
}

static bool wants_new_boot(int rc)
{
    return rc == DET_ESTALE || rc == DET_EINVAL || rc == DET_EEXIST || rc == DET_ESTATE;
}

static void on_answer(struct sim *m, struct sim_host *h, const struct answer *a)
{
    if (a->post != h->dial.post)
        return;
    h->dial.post = 0;
    if (a->rc < 0) {
        down(m, h, wants_new_boot(a->rc), pause_of(m));
        return;
    }
    host_on_ack(h->agent, a->ack);
    if (host_is_greeted(h->agent) && !h->dial.is_greeted) {
        h->dial.is_greeted = h->dial.has_stream = true;
        sim_later(m, 1 + (int64_t)sim_random(m, 20), to_agent(h, M_STREAM));
    }
    hosts_perform(m, h);
}

static void on_order(struct sim *m, struct sim_host *h, const char *line)
{
    struct link_order o;
    struct det_err err = {0};
    if (hosts_cut_down(m, h->index))
        return;
    if (sim_chance(m, 10)) {
        hosts_break(m, h->index);
        return;
    }
    if (link_order_decode(line, strlen(line), &o, &err) < 0)
        sim_fail(m, "%s cannot read an order: %s", h->id, err.text);
    host_on_order(h->agent, &o);
    link_order_finish(&o);
    hosts_perform(m, h);
}

/* ---- the master's end ---- */

static struct sim_link *link_of(struct sim_master *s, const struct sim_host *h)
{
    return &s->links[h->index];
}

static void forget_orders(struct sim_link *l)
{
    for (size_t i = 0; i < l->orders.n; i++)
        free(l->orders.v[i]);
    vec_free(&l->orders);
}

void links_end(const struct sim *m, struct sim_master *s)
{
    for (int i = 0; i < m->hosts_n; i++) {
        forget_orders(&s->links[i]);
        s->links[i] = (struct sim_link){.seen = -1, .next_seq = 1};
    }
}

static void begin_boot(struct sim_link *l, const char *boot)
{
    forget_orders(l);
    memmove(l->past[1], l->past[0], sizeof l->past - sizeof l->past[0]);
    memcpy(l->past[0], l->boot, sizeof l->boot);
    snprintf(l->boot, sizeof l->boot, "%s", boot);
    l->stream = 0;
    l->seen = -1;
    l->next_seq = 1;
}

static void greet(struct sim *m, struct sim_master *s, const struct sim_host *h)
{
    struct sim_link *l = link_of(s, h);
    struct msg by = to_agent(h, M_DIAL_BY);
    by.task = (uint64_t)s->index;
    forget_orders(l);
    l->stream = 0;
    l->here = true;
    l->dial_by_ms = m->now_ms + SILENCE_MS;
    sim_later(m, SILENCE_MS, by);
}

static void lose(struct sim *m, struct sim_master *s, const struct sim_host *h)
{
    struct sim_link *l = link_of(s, h);
    struct core_event ev = {.kind = CORE_EV_AGENT_LOST, .agent_id = h->id};
    forget_orders(l);
    l->stream = 0;
    l->dial_by_ms = 0;
    if (l->here)
        sim_master_post(m, s, &ev, (struct waiter){.host = -1});
    l->here = false;
}

/* An agent of before says neither of what it cannot do. */
static int take_event(struct sim *m, struct sim_master *s, const struct sim_host *h,
                      struct link_event *e)
{
    struct sim_link *l = link_of(s, h);
    struct core_event ev;
    if (l->seen >= 0 && e->seq <= l->seen)
        return 0;
    if (l->seen >= 0 && e->seq != l->seen + 1)
        return DET_ESTALE;
    l->seen = e->seq;
    if (e->kind == LINK_EV_HELLO)
        greet(m, s, h);
    e->hello.looks &= h->looks;
    agents_event_init(&ev, h->id, e, 0);
    sim_master_post(m, s, &ev, (struct waiter){.host = -1});
    agents_event_finish(&ev);
    return 0;
}

static bool is_past(const struct sim_link *l, const char *boot)
{
    for (size_t i = 0; i < DET_ARRAY_LEN(l->past); i++)
        if (strcmp(l->past[i], boot) == 0)
            return true;
    return false;
}

static int take_events(struct sim *m, struct sim_master *s, const struct sim_host *h,
                       const struct link_events *in)
{
    struct sim_link *l = link_of(s, h);
    bool other = strcmp(in->boot, l->boot) != 0;
    int rc = 0;
    if (sim_store_noticed(m))
        return DET_EUNAVAIL;
    if (other && (l->stream || is_past(l, in->boot)))
        return DET_ESTALE;
    if (other)
        begin_boot(l, in->boot);
    for (size_t i = 0; i < in->n && rc == 0; i++)
        rc = take_event(m, s, h, &in->v[i]);
    return rc;
}

static void answer(struct sim *m, int host, uint64_t conn, struct answer a)
{
    if (!hosts_cut_down(m, host))
        sim_later(
            m, 1 + (int64_t)sim_random(m, 10),
            (struct msg){
                .kind = M_ANSWER, .index = host, .conn = conn, .data = det_memdup(&a, sizeof a)});
}

void links_acked(struct sim *m, const struct waiter *w)
{
    answer(m, w->host, w->conn, (struct answer){w->post, w->ack, 0});
}

void links_refused(struct sim *m, const struct waiter *w)
{
    answer(m, w->host, w->conn, (struct answer){w->post, 0, DET_EUNAVAIL});
}

/* Acknowledged once all that was posted before is committed. */
static void take(struct sim *m, struct sim_master *s, const struct sim_host *h,
                 const struct msg *msg)
{
    const struct post *p = msg->data;
    struct link_events in;
    struct det_err err = {0};
    if (link_events_decode(p->body, strlen(p->body), &in, &err) < 0)
        sim_fail(m, "the events of %s cannot be read: %s", h->id, err.text);
    int rc = take_events(m, s, h, &in);
    int64_t seen = link_of(s, h)->seen;
    link_events_finish(&in);
    if (rc < 0)
        answer(m, h->index, msg->conn, (struct answer){p->number, 0, rc});
    else
        sim_master_post(m, s, &(struct core_event){.kind = CORE_EV_TICK},
                        (struct waiter){.token = ++m->next_token,
                                        .host = h->index,
                                        .conn = msg->conn,
                                        .post = p->number,
                                        .ack = seen < 0 ? 0 : seen});
}

/* One that the agent gave up may arrive all the same. */
static void on_post(struct sim *m, struct sim_host *h, struct msg *msg)
{
    struct post *p = msg->data;
    struct sim_master *s = &m->masters[p->master];
    bool is_there = s->core && s->life == p->life;
    if (is_there && s->frozen_until > m->now_ms) {
        sim_later(m, s->frozen_until - m->now_ms + (int64_t)sim_random(m, 50), *msg);
        return;
    }
    if (is_there && !hosts_cut_up(m, h->index) && !sim_chance(m, 5))
        take(m, s, h, msg);
    else if (h->agent && msg->conn == h->dial.conn && !hosts_cut_up(m, h->index))
        down(m, h, false, pause_of(m));
    post_free(p);
}

/* A stream keeps its order. */
static void flush(struct sim *m, struct sim_host *h, struct sim_link *l)
{
    for (size_t i = 0; l->stream && i < l->orders.n; i++) {
        struct msg order = {
            .kind = M_ORDER, .index = h->index, .conn = l->stream, .data = l->orders.v[i]};
        int64_t at = m->now_ms + 1 + (int64_t)sim_random(m, 20);
        h->order_ms = at > h->order_ms ? at : h->order_ms;
        sim_later(m, h->order_ms - m->now_ms, order);
    }
    if (l->stream)
        vec_free(&l->orders);
}

static void on_stream(struct sim *m, struct sim_host *h, const struct msg *msg)
{
    struct sim_master *s = &m->masters[h->dial.master];
    struct sim_link *l = link_of(s, h);
    if (s->core && s->frozen_until > m->now_ms) {
        sim_later(m, s->frozen_until - m->now_ms, *msg);
        return;
    }
    if (!s->core || hosts_cut_up(m, h->index) || !l->here || strcmp(l->boot, host_boot(h->agent))) {
        down(m, h, false, pause_of(m));
        return;
    }
    l->stream = msg->conn;
    l->dial_by_ms = 0;
    flush(m, h, l);
}

/* It has ended (its number is l's), or was never begun in time. */
static void on_lost(struct sim *m, struct sim_host *h, const struct msg *msg)
{
    struct sim_master *s = &m->masters[msg->task];
    struct sim_link *l = link_of(s, h);
    bool is_late = l->dial_by_ms && l->dial_by_ms <= m->now_ms;
    if (!s->core || (msg->kind == M_LINK_DOWN ? l->stream != msg->conn : !is_late))
        return;
    if (sim_master_serves(m, s))
        lose(m, s, h);
    else
        sim_later(m, 500, *msg);
}

/* ---- orders ---- */

/* False: nobody to order is there. A master that the host has left speaks to nobody. Takes line. */
static bool add_order(struct sim *m, const struct sim_master *s, int host, char *line)
{
    struct sim_link *l = &s->links[host];
    if (!l->here) {
        free(line);
        return false;
    }
    vec_push(&l->orders, line);
    flush(m, &m->hosts[host], l);
    return m->hosts[host].dial.master == s->index;
}

static char *line_of(const struct link_order *o)
{
    JSON_OWN j = link_order_json(o);
    return json_text(j);
}

static void add_open(struct buf *out, const char *object)
{
    buf_add(out, object, strlen(object) - strlen("}"));
}

bool links_start(struct sim *m, const struct sim_master *s, const struct core_start *in)
{
    int host = hosts_find(m, in->agent_id);
    det_cleanup(buf_finish) struct buf task = BUF_INIT;
    struct buf line = BUF_INIT;
    const struct link_order o = {
        .seq = s->links[host].next_seq++, .alloc = in->alloc_id, .container = in->container};
    add_open(&task, in->task);
    json_add_key(&task, "env");
    buf_add_str(&task, in->env);
    json_add_str(&task, "token", "T");
    buf_add_ch(&task, '}');
    link_start_write(&line, &o, buf_str(&task));
    return add_order(m, s, host, buf_steal(&line));
}

bool links_kill(struct sim *m, const struct sim_master *s, const struct core_kill *in)
{
    int host = hosts_find(m, in->agent_id);
    return add_order(m, s, host,
                     line_of(&(struct link_order){.kind = LINK_SIGNAL,
                                                  .seq = s->links[host].next_seq++,
                                                  .alloc = in->alloc_id,
                                                  .container = in->container,
                                                  .signal = SIGKILL}));
}

void links_store(struct sim *m, const struct sim_master *s, const struct core_store_order *in)
{
    int host = hosts_find(m, in->agent_id);
    JSON_OWN known = in->known ? json_parse(in->known, strlen(in->known), NULL) : NULL;
    const struct link_watch w = {
        .place = in->place, .id = in->id, .known = known, .make = in->make};
    add_order(m, s, host,
              line_of(&(struct link_order){
                  .kind = LINK_STORE, .seq = s->links[host].next_seq++, .watch = w}));
}

/* ---- */

void links_on(struct sim *m, struct msg *msg)
{
    struct sim_host *h = &m->hosts[msg->index];
    bool is_own = h->agent && msg->conn == h->dial.conn;
    if (msg->kind == M_POST) {
        on_post(m, h, msg); /* takes its data */
        return;
    }
    if (msg->kind == M_LINK_DOWN || msg->kind == M_DIAL_BY)
        on_lost(m, h, msg);
    else if (is_own && msg->kind == M_DIAL)
        on_dial(m, h);
    else if (is_own && msg->kind == M_POST_LATE && msg->task == h->dial.post)
        down(m, h, false, pause_of(m));
    else if (is_own && msg->kind == M_ANSWER)
        on_answer(m, h, msg->data);
    else if (is_own && msg->kind == M_STREAM)
        on_stream(m, h, msg);
    else if (is_own && msg->kind == M_ORDER)
        on_order(m, h, msg->data);
    free(msg->data);
}
