#include "agents.h"

#include "agents_event.h"
#include "auth.h"
#include "buf.h"
#include "clk.h"
#include "db.h"
#include "db_tasks.h"
#include "driver.h"
#include "lives.h"
#include "log.h"
#include "map.h"
#include "masterconf.h"
#include "mem.h"
#include "shell.h"
#include "strays.h"
#include "uuid.h"
#include "vec.h"
#include "waits.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Starts that share one read of their experiment's row. Not all of a batch: the model definition is
 * in each of their orders. */
enum { STARTS_PER_READ = 64 };
/* A host owes some for each of its slots, containers and stores; this many nobody will read. */
enum { ORDERS_MAX = 1 << 16 };
enum { GPUS_OLD_MS = 60000 }; /* figures of before say nothing of now */

struct order {
    struct order *next;
    struct link *link; /* NULL: forgotten while its query ran */
    int64_t seq;
    bool ready;
    struct buf line;
    json_t *store;   /* of a look at a store, until ready */
    struct buf task; /* of a start, until ready: JSON without its last brace */
    char *alloc_id, *container;
    int64_t exp_id, owner_id;
    struct order *shares; /* the next that waits for the same row */
};

enum { BOOTS_PAST = 4 };

struct link { /* one agent, also while it is away */
    struct agents *agents;
    char *id;
    char boot[UUID_STR_MAX];
    char past[BOOTS_PAST][UUID_STR_MAX]; /* that others have followed, the last one first */
    int64_t seen;                        /* highest event taken; -1: none of this boot */
    int64_t next_seq;                    /* of orders */
    struct order *head, **tail;
    size_t orders; /* that wait */
    struct http_stream *stream;
    uint64_t taken;        /* by the stream, at the last beat */
    int64_t took_ms;       /* when it last took anything, or nothing waited */
    int64_t dial_by_ms;    /* no stream yet: gone after this; 0: not waiting */
    bool here;             /* the core was told hello and not yet lost */
    bool beats;            /* it says so when it has nothing to say */
    int64_t heard_ms;      /* when it last said anything */
    bool is_apart;         /* its clock from ours, by the last exchange that could tell */
    double ahead_s;        /* then: how far it is ahead */
    struct link_gpu *gpus; /* as it said last */
    size_t gpus_n;
    int64_t gpus_ms;
};

struct agents {
    struct shell *sh;
    struct map *links;
    uv_timer_t beat;
    int64_t beat_ms;            /* when the timer last fired */
    VEC(struct order *) starts; /* of the batch: their row is yet to be asked for */
    bool stopped;
};

static void on_beat(uv_timer_t *t);

struct agents *agents_create(struct shell *sh)
{
    struct agents *a = det_zalloc(sizeof *a);
    a->sh = sh;
    a->links = map_create();
    uv_timer_init(sh->loop, &a->beat);
    a->beat.data = a;
    uv_timer_start(&a->beat, on_beat, LINK_HEARTBEAT_MS, LINK_HEARTBEAT_MS);
    return a;
}

/* Orders. */

static void order_free(struct order *o)
{
    buf_finish(&o->line);
    buf_finish(&o->task);
    json_decref(o->store);
    free(o->alloc_id);
    free(o->container);
    free(o);
}

static struct order *order_next(struct link *l)
{
    struct order *o = l->head;
    l->head = o->next;
    if (!l->head)
        l->tail = &l->head;
    l->orders--;
    return o;
}

static void orders_forget(struct link *l)
{
    while (l->head) {
        struct order *o = order_next(l);
        if (o->ready)
            order_free(o);
        else
            o->link = NULL; /* its query's callback frees it */
    }
}

/* A slow line's rest waits for the stream's wake. */
static void orders_flush(struct link *l)
{
    while (l->stream && !http_stream_is_full(l->stream) && l->head && l->head->ready) {
        struct order *o = order_next(l);
        http_stream_write(l->stream, o->line.p, o->line.len);
        order_free(o);
    }
}

/* The link, if the agent is here: one that is away is owed nothing until it says hello. */
static struct link *link_here(const struct agents *a, const char *id)
{
    struct link *l = map_get(a->links, id);
    return l && l->here && !a->stopped ? l : NULL;
}

static struct order *order_add(struct link *l)
{
    struct order *o = det_zalloc(sizeof *o);
    o->link = l;
    o->seq = l->next_seq++;
    *l->tail = o;
    l->tail = &o->next;
    l->orders++;
    return o;
}

static void order_ready(struct order *o)
{
    buf_add_ch(&o->line, '\n');
    o->ready = true;
    if (o->link)
        orders_flush(o->link);
    else
        order_free(o);
}

void agents_kill(struct agents *a, const struct core_kill *k)
{
    struct link *l = link_here(a, k->agent_id);
    if (!l)
        return;
    struct order *o = order_add(l);
    JSON_OWN j = link_order_json(&(struct link_order){
        .kind = LINK_SIGNAL,
        .seq = o->seq,
        .alloc = k->alloc_id,
        .container = k->container, /* an agent that never had it has to name it in its answer */
        .signal = SIGKILL});
    json_write(&o->line, j);
    order_ready(o);
}

bool agents_stacks(struct agents *a, const char *agent_id, const char *alloc_id,
                   const char *container)
{
    struct link *l = link_here(a, agent_id);
    if (!l || !l->stream)
        return false;
    struct order *o = order_add(l);
    JSON_OWN j = link_order_json(&(struct link_order){
        .kind = LINK_STACKS, .seq = o->seq, .alloc = alloc_id, .container = container});
    json_write(&o->line, j);
    order_ready(o);
    return true;
}

static void order_send_store(struct order *o, json_t *user)
{
    JSON_OWN store = det_take(o->store);
    struct link_watch w = {.place = json_str(store, "place", ""),
                           .id = json_str(store, "id", NULL),
                           .known = json_arr(store, "known"),
                           .make = json_flag(store, "make", false),
                           .user = user,
                           .owner = o->owner_id};
    JSON_OWN j =
        link_order_json(&(struct link_order){.kind = LINK_STORE, .seq = o->seq, .watch = w});
    json_write(&o->line, j);
    order_ready(o);
}

/* Who it is made as; without the row as the agent's tasks in general. */
static void on_store_row(void *arg, const struct db_result *r)
{
    JSON_OWN user = NULL;
    if (db_rc(r) == 0 && db_rows(r) == 1 && !db_is_null(r, 0, TASK_UID))
        user = json_make("{s:s, s:I, s:I}", "name", db_text(r, 0, TASK_USER), "uid",
                         (json_int_t)db_i64(r, 0, TASK_UID), "gid",
                         (json_int_t)db_i64(r, 0, TASK_GID));
    order_send_store(arg, user);
}

void agents_store(struct agents *a, const struct core_store_order *s)
{
    struct link *l = link_here(a, s->agent_id);
    if (!l)
        return;
    struct order *o = order_add(l);
    o->owner_id = s->make ? s->owner_id : 0;
    o->store = json_make("{s:s, s:b}", "place", s->place, "make", s->make);
    if (s->id)
        json_set(o->store, "id", json_string(s->id));
    if (s->known)
        json_set(o->store, "known", json_parse(s->known, strlen(s->known), NULL));
    if (s->make)
        db_task_start_row(a->sh->db, 0, s->owner_id, on_store_row, o);
    else
        order_send_store(o, NULL);
}

static void order_send_start(struct order *o)
{
    const struct link_order head = {.seq = o->seq, .alloc = o->alloc_id, .container = o->container};
    buf_add_ch(&o->task, '}');
    link_start_write(&o->line, &head, buf_str(&o->task));
    buf_finish(&o->task);
    order_ready(o);
}

static void task_add_row(struct buf *task, const struct db_result *r)
{
    if (!db_is_null(r, 0, TASK_UID)) {
        json_add_key(task, "user");
        buf_add_ch(task, '{');
        json_add_str(task, "name", db_text(r, 0, TASK_USER));
        json_add_int(task, "uid", db_i64(r, 0, TASK_UID));
        json_add_int(task, "gid", db_i64(r, 0, TASK_GID));
        buf_add_ch(task, '}');
    }
    if (!db_is_null(r, 0, TASK_CONTEXT))
        json_add_str(task, "context", db_text(r, 0, TASK_CONTEXT));
}

/* Without the row (the experiment is gone, PostgreSQL away) the task starts all the same: the agent
 * fetches the context itself. */
static void on_task_row(void *arg, const struct db_result *r)
{
    struct order *next;
    for (struct order *o = arg; o; o = next) {
        next = o->shares;
        if (db_rc(r) == 0 && db_rows(r) == 1)
            task_add_row(&o->task, r);
        order_send_start(o);
    }
}

static void add_open(struct buf *out, const char *object)
{
    buf_add(out, object, strlen(object) - strlen("}"));
}

static void task_begin(struct agents *a, const struct core_start *s, struct buf *out)
{
    struct auth_claim claim = {.experiment_id = s->exp_id,
                               .trial_id = s->trial_id,
                               .run_id = s->run_id,
                               .user_id = s->owner_id,
                               .alloc_id = s->alloc_id,
                               .task_id = s->task_id};
    char token[AUTH_TOKEN_MAX];
    auth_alloc_token(a->sh->auth, &claim, token);
    add_open(out, s->task);
    json_add_key(out, "env");
    add_open(out, s->env);
    json_add_str(out, "DET_SESSION_TOKEN", token);
    json_add_str(out, "DET_CLUSTER_ID", a->sh->cluster_id);
    json_add_str(out, "DET_MASTER_ID", a->sh->master_id);
    buf_add_ch(out, '}');
    json_add_str(out, "token", token);
    json_add_int(out, "owner", s->owner_id);
    json_add_int(out, "stall_timeout_ms",
                 s->stall_timeout_s < 0 ? a->sh->conf->stall_timeout_ms
                                        : s->stall_timeout_s * 1000);
}

void agents_start(struct agents *a, const struct core_start *s)
{
    struct link *l = link_here(a, s->agent_id);
    if (!l)
        return;
    struct order *o = order_add(l);
    task_begin(a, s, &o->task);
    o->alloc_id = det_strdup(s->alloc_id);
    o->container = det_strdup(s->container);
    o->exp_id = s->exp_id;
    o->owner_id = s->owner_id;
    vec_push(&a->starts, o);
}

static int by_row(const void *a, const void *b)
{
    const struct order *x = *(struct order *const *)a, *y = *(struct order *const *)b;
    if (x->exp_id != y->exp_id)
        return x->exp_id < y->exp_id ? -1 : 1;
    return (x->owner_id > y->owner_id) - (x->owner_id < y->owner_id);
}

void agents_read_rows(struct agents *a)
{
    struct order **v = a->starts.v;
    size_t n = a->starts.n, from = 0;
    if (n > 0)
        qsort(v, n, sizeof *v, by_row);
    for (size_t i = 0; i < n; i++) {
        if (i + 1 < n && i + 1 - from < STARTS_PER_READ && by_row(&v[i], &v[i + 1]) == 0) {
            v[i]->shares = v[i + 1];
            continue;
        }
        struct order *first = v[from];
        from = i + 1;
        db_task_start_row(a->sh->db, first->exp_id, first->owner_id, on_task_row, first);
    }
    vec_free(&a->starts);
}

/* Links that end. */

static void link_lost(struct link *l)
{
    l->dial_by_ms = 0;
    orders_forget(l);
    if (!l->here || l->agents->stopped)
        return;
    l->here = false;
    log_with(LOG_WARNING, LOG_FIELDS("agent", l->id), "the link is gone");
    driver_post(l->agents->sh->driver,
                &(struct core_event){.kind = CORE_EV_AGENT_LOST, .agent_id = l->id}, NULL, NULL);
}

static void stream_drop(struct link *l)
{
    if (l->stream)
        http_stream_end(det_take(l->stream));
}

static void on_stream_wake(void *arg)
{
    struct link *l = arg;
    if (!http_stream_is_gone(l->stream)) {
        orders_flush(l);
        return;
    }
    stream_drop(l);
    link_lost(l);
}

void agents_drop(struct agents *a, const char *agent_id)
{
    struct link *l = map_get(a->links, agent_id);
    if (!l)
        return;
    stream_drop(l);
    link_lost(l);
}

static bool is_silent(const struct link *l, int64_t now_ms)
{
    return l->beats && now_ms - l->heard_ms > LINK_SILENCE_MS;
}

/* A slow line takes something between two beats; who takes nothing for long does not read. */
static bool is_deaf(struct link *l, int64_t now_ms)
{
    uint64_t taken = http_stream_taken(l->stream);
    if (taken != l->taken || !http_stream_is_full(l->stream))
        l->took_ms = now_ms;
    l->taken = taken;
    return now_ms - l->took_ms > LINK_SILENCE_MS || l->orders > ORDERS_MAX;
}

static void link_beat(struct link *l, int64_t now_ms)
{
    static const char line[] = "{\"order\":\"heartbeat\"}\n";
    if (l->stream && (is_deaf(l, now_ms) || is_silent(l, now_ms))) {
        stream_drop(l);
        link_lost(l);
    } else if (l->stream && !http_stream_is_full(l->stream)) {
        http_stream_write(l->stream, line, sizeof line - 1);
    } else if (l->dial_by_ms && now_ms > l->dial_by_ms) {
        link_lost(l); /* said hello and never came for its orders */
    }
}

static void on_beat(uv_timer_t *t)
{
    struct agents *a = t->data;
    const char *id;
    void *v;
    int64_t now_ms = clk_mono_ms();
    bool is_late = now_ms - a->beat_ms > 2 * LINK_HEARTBEAT_MS; /* we stood still, not they */
    a->beat_ms = now_ms;
    for (size_t it = 0; map_next(a->links, &it, &id, &v);) {
        struct link *l = v;
        if (is_late)
            l->heard_ms = l->took_ms = now_ms;
        link_beat(l, now_ms);
    }
}

/* POST events. */

static struct link *link_of(struct agents *a, const char *id)
{
    struct link *l = map_get(a->links, id);
    if (l)
        return l;
    l = det_zalloc(sizeof *l);
    l->agents = a;
    l->id = det_strdup(id);
    l->seen = -1;
    l->next_seq = 1;
    l->tail = &l->head;
    map_put(a->links, id, l);
    return l;
}

static void link_new_boot(struct link *l, const char *boot)
{
    stream_drop(l);
    orders_forget(l);
    memmove(l->past[1], l->past[0], sizeof l->past - sizeof l->past[0]);
    memcpy(l->past[0], l->boot, sizeof l->boot);
    snprintf(l->boot, sizeof l->boot, "%s", boot);
    l->seen = -1;
    l->next_seq = 1;
    l->is_apart = false;
}

static void link_hello(struct link *l, const struct link_hello *h)
{
    if (h->left_out > 0)
        log_with(LOG_WARNING, LOG_FIELDS("agent", l->id),
                 "%zu of its slots are of a type that this master does not know, and are left out: "
                 "upgrade the master",
                 h->left_out);
    stream_drop(l);
    orders_forget(l);
    l->here = true;
    l->dial_by_ms = clk_mono_ms() + LINK_SILENCE_MS;
}

/* Decides nothing (I10): its marks are told by our clock, times of its logs beside ours. Said when
 * it begins and when it is over. */
static void link_clock(struct link *l, const struct link_events *in)
{
    if (!in->has_clock)
        return;
    bool was = l->is_apart;
    l->is_apart = clockdiff_is_apart(&in->clock, was);
    l->ahead_s = clockdiff_s(&in->clock);
    if (l->is_apart && !was)
        log_with(LOG_WARNING, LOG_FIELDS("agent", l->id),
                 "its clock is %.1f s %s ours: times of its logs are told so; synchronise both "
                 "hosts (chrony, systemd-timesyncd)",
                 l->ahead_s < 0 ? -l->ahead_s : l->ahead_s, l->ahead_s < 0 ? "behind" : "ahead of");
    else if (was && !l->is_apart)
        log_with(LOG_INFO, LOG_FIELDS("agent", l->id), "its clock agrees with ours");
}

double agents_clock_ahead_s(const struct agents *a, const char *id)
{
    const struct link *l = map_get(a->links, id);
    return l && l->here && l->is_apart ? l->ahead_s : 0;
}

static void link_gpus(struct link *l, const struct link_events *in)
{
    if (!in->gpus)
        return;
    free(l->gpus);
    l->gpus = det_memdup(in->gpus, (in->gpus_n + 1) * sizeof *l->gpus);
    l->gpus_n = in->gpus_n;
    l->gpus_ms = clk_mono_ms();
}

bool agents_gpu(const struct agents *a, const char *id, int slot, struct link_gpu *ret)
{
    const struct link *l = map_get(a->links, id);
    if (!l || !l->here || clk_mono_ms() - l->gpus_ms > GPUS_OLD_MS)
        return false;
    for (size_t i = 0; i < l->gpus_n; i++)
        if (l->gpus[i].slot == slot) {
            *ret = l->gpus[i];
            return true;
        }
    return false;
}

struct ack {
    struct shell *sh;
    struct http_req *req;
    int64_t seq, got_us;
};

static json_t *times_json(int64_t got_us)
{
    return link_times_json(&(struct link_times){got_us, clk_wall_us()});
}

static void reply_ack(const struct ack *k)
{
    JSON_OWN j = json_make("{s:I, s:o, s:o}", "ack", (json_int_t)k->seq, "life",
                           lives_json(k->sh->lives), "clock", times_json(k->got_us));
    det_cleanup(freep) char *text = json_text(j);
    http_reply(k->req, 200, text);
}

static void on_acked(void *arg, const struct core_reply *r)
{
    struct ack *k = arg;
    if (r->code)
        http_fail(k->req, r->code, "%s", core_reply_text(r));
    else
        reply_ack(k);
}

static int event_take(struct link *l, const struct link_event *e, struct det_err *err)
{
    if (l->seen >= 0 && e->seq <= l->seen)
        return 0; /* a repeat */
    if (l->seen >= 0 && e->seq != l->seen + 1)
        return det_fail(err, DET_ESTALE, "events skip from %" PRId64 " to %" PRId64, l->seen,
                        e->seq);
    l->seen = e->seq;
    if (e->kind == LINK_EV_UNKNOWN)
        return 0;
    if (e->kind == LINK_EV_HELLO)
        link_hello(l, &e->hello);
    else if (e->kind == LINK_EV_EXIT)
        strays_on_exit(l->agents->sh, l->id, &e->task);
    struct core_event ev;
    agents_event_init(&ev, l->id, e, l->is_apart ? (int64_t)(l->ahead_s * 1e6) : 0);
    /* What was tried for them is a guess where they speak for themselves. */
    if (ev.kind == CORE_EV_AGENT_STATE && waits_has_ranks(l->agents->sh->waits, ev.task.alloc))
        ev.task.unreached.text = NULL;
    driver_post(l->agents->sh->driver, &ev, NULL, NULL);
    agents_event_finish(&ev);
    return 0;
}

/* What a process that is gone had sent may come late: the link is of the one that followed it. */
static bool is_past(const struct link *l, const char *boot)
{
    for (size_t i = 0; i < BOOTS_PAST; i++)
        if (strcmp(l->past[i], boot) == 0)
            return true;
    return false;
}

static int events_take(struct agents *a, const char *id, const struct link_events *in,
                       struct link **ret, struct det_err *err)
{
    struct link *l = *ret = link_of(a, id);
    bool other = strcmp(in->boot, l->boot) != 0;
    if (other && l->stream && !http_stream_is_gone(l->stream))
        return det_fail(err, DET_ESTALE, "another live agent has the id %s", id);
    if (other && is_past(l, in->boot))
        return det_fail(err, DET_ESTALE, "another start of agent %s has followed this one", id);
    if (other)
        link_new_boot(l, in->boot);
    l->heard_ms = clk_mono_ms();
    l->beats = in->beats;
    link_clock(l, in);
    link_gpus(l, in);
    int rc = 0;
    for (size_t i = 0; i < in->n && rc == 0; i++)
        rc = event_take(l, &in->v[i], err);
    return rc;
}

static void fail_request(struct http_req *req, const struct det_err *err)
{
    if (err->code == DET_EUNIMPL)
        http_fail_upgrade(req, err->text);
    else
        http_fail_err(req, err);
}

/* No events: the agent lives. That needs no database. */
static bool take_beat(const char *id, const struct link_events *in, struct ack *k)
{
    struct link *l = map_get(k->sh->agents->links, id);
    if (in->n > 0 || !l || !l->here || strcmp(l->boot, in->boot) != 0)
        return false;
    l->heard_ms = clk_mono_ms();
    l->beats = in->beats;
    link_clock(l, in);
    link_gpus(l, in);
    k->seq = l->seen < 0 ? 0 : l->seen;
    reply_ack(k);
    return true;
}

/* Only a hello begins anything; what follows one is of the same life. */
static int judge_life(struct shell *sh, const char *id, const struct link_events *in,
                      struct det_err *err)
{
    for (size_t i = 0; i < in->n; i++)
        if (in->has_seen && in->v[i].kind == LINK_EV_HELLO)
            return lives_judge(sh->lives, id, &in->seen, in->v[i].hello.tasks_n > 0, err);
    return 0;
}

static int take_events(const char *id, const struct link_events *in, struct ack *k,
                       struct det_err *err)
{
    struct shell *sh = k->sh;
    struct link *l = NULL;
    if (take_beat(id, in, k))
        return 0;
    if (!db_is_up(sh->db))
        return det_fail(err, DET_EUNAVAIL, "PostgreSQL is not reachable; try again");
    int rc = judge_life(sh, id, in, err);
    if (rc == 0)
        rc = events_take(sh->agents, id, in, &l, err);
    if (rc < 0)
        return rc;
    k->seq = l->seen < 0 ? 0 : l->seen;
    driver_barrier(sh->driver, on_acked, k);
    return 0;
}

static void on_events(struct shell *sh, struct http_req *req)
{
    struct det_err err;
    struct link_events in;
    struct ack *k = http_mem(req, sizeof *k);
    *k = (struct ack){.sh = sh, .req = req, .got_us = clk_wall_us()};
    const char *id = http_param(req, "agent");
    if (!link_id_is_valid(id)) {
        http_fail(req, DET_EINVAL, "agent id: letters, digits, '.', '_' and '-', at most %d",
                  LINK_ID_MAX - 1);
        return;
    }
    int rc = link_events_decode(buf_str(&req->body), req->body.len, &in, &err);
    if (rc == 0) {
        rc = take_events(id, &in, k, &err);
        link_events_finish(&in);
    }
    if (rc < 0)
        fail_request(req, &err);
}

/* GET orders. */

static void on_orders(struct shell *sh, struct http_req *req)
{
    struct link *l = map_get(sh->agents->links, http_param(req, "agent"));
    const char *boot = http_query(req, "boot");
    if (!l || !boot || strcmp(boot, l->boot) || !l->here) {
        http_fail(req, DET_ESTALE, "say hello first");
        return;
    }
    stream_drop(l);
    l->dial_by_ms = 0;
    l->stream = http_stream_begin(req, "application/x-ndjson", on_stream_wake, l);
    l->took_ms = clk_mono_ms();
    log_with(LOG_INFO, LOG_FIELDS("agent", l->id), "connected");
    link_beat(l, clk_mono_ms());
    orders_flush(l);
}

/* GET stores: where a host is to have which, and what time it is here, for its doctor. */
static void on_stores(struct shell *sh, struct http_req *req)
{
    int64_t got_us = clk_wall_us();
    JSON_OWN list = json_array();
    struct core_store_view v;
    for (size_t i = 0; core_store_at(driver_core(sh->driver), i, &v); i++)
        if (v.id && v.is_used)
            json_array_append_new(list, json_make("{s:s,s:s}", "place", v.place, "id", v.id));
    JSON_OWN j = json_make("{s:O, s:o}", "stores", list, "clock", times_json(got_us));
    det_cleanup(freep) char *text = json_text(j);
    http_reply(req, 200, text);
}

const struct http_route agents_routes[] = {
    {HTTP_POST, "/agent/v1/{agent}/events", HTTP_AUTH_AGENT, on_events, LINK_BODY_MAX},
    {HTTP_GET, "/agent/v1/{agent}/orders", HTTP_AUTH_AGENT, on_orders, 0},
    {HTTP_GET, "/agent/v1/stores", HTTP_AUTH_AGENT, on_stores, 0},
};
const size_t agents_routes_n = DET_ARRAY_LEN(agents_routes);

/* The end. */

void agents_stop(struct agents *a)
{
    const char *id;
    void *v;
    a->stopped = true;
    uv_timer_stop(&a->beat);
    for (size_t it = 0; map_next(a->links, &it, &id, &v);)
        stream_drop(v);
}

static void on_beat_closed(uv_handle_t *h)
{
    free(h->data);
}

void agents_destroy(struct agents *a)
{
    if (!a)
        return;
    const char *id;
    void *v;
    for (size_t it = 0; map_next(a->links, &it, &id, &v);) {
        struct link *l = v;
        orders_forget(l);
        free(l->id);
        free(l->gpus);
        free(l);
    }
    map_destroy(a->links);
    uv_close((uv_handle_t *)&a->beat, on_beat_closed);
}
