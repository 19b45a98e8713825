#include "waits_impl.h"

#include "clk.h"
#include "core.h"
#include "driver.h"
#include "map.h"
#include "mem.h"
#include "shell.h"
#include "vec.h"

#include <string.h>

#define STOPPING "the master is stopping; try again"
enum { GATHER_TIMEOUT_MS = 600000, PREEMPT_MAX_MS = 600000, PEERS_MAX = 4096 };

struct waits *waits_create(struct shell *sh)
{
    struct waits *w = det_zalloc(sizeof *w);
    w->sh = sh;
    w->by_alloc = map_create();
    return w;
}

static void wait_free(struct wait *w)
{
    free(w->alloc_id);
    free(w->name);
    json_decref(w->data);
    free(w);
}

static void on_timer_closed(uv_handle_t *h)
{
    wait_free(h->data);
}

/* Off the list; the request is answered by the caller. */
struct http_req *wait_end(struct wait *w)
{
    struct http_req *req = w->req;
    w->owner->open--;
    if (w->next)
        w->next->prev = w->prev;
    if (w->prev)
        w->prev->next = w->next;
    else if (w->next)
        map_put(w->owner->by_alloc, w->alloc_id, w->next);
    else
        map_del(w->owner->by_alloc, w->alloc_id);
    if (w->timed)
        uv_close((uv_handle_t *)&w->timer, on_timer_closed);
    else
        wait_free(w);
    return req;
}

static void on_timeout(uv_timer_t *t)
{
    struct wait *w = t->data;
    enum wait_kind kind = w->kind;
    bool stopping = w->owner->stopping;
    struct http_req *req = wait_end(w);
    if (stopping)
        http_fail(req, DET_EUNAVAIL, STOPPING);
    else if (kind == WAIT_PREEMPT)
        http_reply(req, 200, "{\"preempt\":false}");
    else if (kind == WAIT_SEARCH)
        http_reply(req, 200, "{\"searcherEvents\":[]}");
    else
        http_fail(req, DET_ETIMEOUT, "not all peers came within %d s", GATHER_TIMEOUT_MS / 1000);
}

struct wait *wait_add(struct waits *o, enum wait_kind kind, struct http_req *req,
                      const char *alloc_id, const char *name, int64_t timeout_ms)
{
    struct wait *w = det_zalloc(sizeof *w);
    w->owner = o;
    w->kind = kind;
    w->req = req;
    w->alloc_id = det_strdup(alloc_id);
    w->name = det_strdup(name);
    http_is_poll(req);
    o->open++;
    w->next = map_put(o->by_alloc, alloc_id, w);
    if (w->next)
        w->next->prev = w;
    if (timeout_ms > 0 || o->stopping) {
        w->timed = true;
        uv_timer_init(o->sh->loop, &w->timer);
        w->timer.data = w;
        uv_timer_start(&w->timer, on_timeout, o->stopping ? 0 : (uint64_t)timeout_ms, 0);
    }
    return w;
}

bool waits_has_ranks(const struct waits *o, const char *alloc_id)
{
    const struct wait *w = map_get(o->by_alloc, alloc_id);
    while (w && w->kind != WAIT_PREEMPT)
        w = w->next;
    return w != NULL;
}

void waits_stop(struct waits *o)
{
    VEC(struct wait *) firsts = {0};
    const char *id;
    void *v;
    if (!o)
        return;
    o->stopping = true;
    for (size_t it = 0; map_next(o->by_alloc, &it, &id, &v);)
        vec_push(&firsts, v);
    for (size_t i = 0; i < firsts.n; i++)
        for (struct wait *w = firsts.v[i], *next; w; w = next) {
            next = w->next;
            http_fail(wait_end(w), DET_EUNAVAIL, STOPPING);
        }
    vec_free(&firsts);
}

void waits_destroy(struct waits *o)
{
    if (!o)
        return;
    map_destroy(o->by_alloc);
    free(o);
}

size_t waits_open(const struct waits *o)
{
    return o->open;
}

/* Preemption. */

void waits_preempt(struct waits *o, struct http_req *req, const char *alloc_id, int64_t timeout_ms)
{
    struct core_alloc_view a;
    bool known = core_alloc_get(driver_core(o->sh->driver), alloc_id, &a);
    if (known && a.preempt)
        http_reply(req, 200, "{\"preempt\":true}");
    else if (!known || timeout_ms <= 0)
        http_reply(req, 200, "{\"preempt\":false}");
    else
        wait_add(o, WAIT_PREEMPT, req, alloc_id, NULL,
                 timeout_ms > PREEMPT_MAX_MS ? PREEMPT_MAX_MS : timeout_ms);
}

void waits_on_preempt(struct waits *o, const char *alloc_id)
{
    struct wait *next;
    for (struct wait *w = map_get(o->by_alloc, alloc_id); w; w = next) {
        next = w->next;
        if (w->kind == WAIT_PREEMPT)
            http_reply(wait_end(w), 200, "{\"preempt\":true}");
    }
}

/* Rendezvous. */

struct arrival { /* the core's answer to "it has arrived" */
    struct waits *owner;
    char *alloc_id, *container;
};

static struct wait *wait_find(struct waits *o, enum wait_kind kind, const char *alloc_id,
                              const char *name)
{
    for (struct wait *w = map_get(o->by_alloc, alloc_id); w; w = w->next)
        if (w->kind == kind && !strcmp(w->name, name))
            return w;
    return NULL;
}

static void on_arrived(void *arg, const struct core_reply *r)
{
    struct arrival *a = arg;
    struct wait *w =
        r->code ? wait_find(a->owner, WAIT_RENDEZVOUS, a->alloc_id, a->container) : NULL;
    if (w)
        http_fail(wait_end(w), r->code, "%s", core_reply_text(r));
    free(a->alloc_id);
    free(a->container);
    free(a);
}

void waits_rendezvous(struct waits *o, struct http_req *req, const char *alloc_id,
                      const char *container_id, const char *ports)
{
    struct wait *old = wait_find(o, WAIT_RENDEZVOUS, alloc_id, container_id);
    if (old) /* who asks again has lost the connection on which it asked first */
        http_fail(wait_end(old), DET_ESTATE,
                  "container %s has asked again at the rendezvous: the later question is answered",
                  container_id);
    struct arrival *a = det_alloc(sizeof *a);
    *a = (struct arrival){o, det_strdup(alloc_id), det_strdup(container_id)};
    wait_add(o, WAIT_RENDEZVOUS, req, alloc_id, container_id, 0);
    struct core_event ev = {.kind = CORE_EV_RENDEZVOUS,
                            .alloc_id = alloc_id,
                            .container = container_id,
                            .ports = ports};
    driver_post(o->sh->driver, &ev, on_arrived, a);
}

static void rendezvous_reply(struct http_req *req, const struct core_rendezvous *r, size_t rank)
{
    JSON_OWN all = json_object();
    json_t *info = json_object(), *addresses = json_array(), *slots = json_array();
    for (size_t i = 0; i < r->n; i++) {
        json_array_append_new(addresses, json_string(r->addresses[i]));
        json_array_append_new(slots, json_integer(r->slots[i]));
    }
    json_set(info, "addresses", addresses);
    json_set(info, "rank", json_integer((json_int_t)rank));
    json_set(info, "slots", slots);
    if (r->ports)
        json_set(info, "ports", json_string(r->ports));
    json_set(all, "rendezvousInfo", info);
    struct buf b = BUF_INIT;
    json_write(&b, all);
    http_reply_buf(req, 200, &b);
}

void waits_on_rendezvous(struct waits *o, const struct core_rendezvous *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct wait *w = wait_find(o, WAIT_RENDEZVOUS, r->alloc_id, r->containers[i]);
        if (w)
            rendezvous_reply(wait_end(w), r, i);
    }
}

/* All-gather. */

static size_t gather_count(struct waits *o, const char *alloc_id)
{
    size_t n = 0;
    for (struct wait *w = map_get(o->by_alloc, alloc_id); w; w = w->next)
        n += w->kind == WAIT_GATHER;
    return n;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(struct wait *const *)a)->name, (*(struct wait *const *)b)->name);
}

/* Every peer gets the same list, ordered by request uuid. */
static void gather_end(struct waits *o, const char *alloc_id, size_t n)
{
    struct wait **all = det_reallocarray(NULL, n, sizeof *all);
    JSON_OWN body = json_object();
    json_t *data = json_array();
    size_t i = 0;
    for (struct wait *w = map_get(o->by_alloc, alloc_id); w; w = w->next)
        if (w->kind == WAIT_GATHER)
            all[i++] = w;
    qsort(all, n, sizeof(void *), by_name);
    for (i = 0; i < n; i++)
        json_array_append(data, all[i]->data);
    json_set(body, "data", data);
    det_cleanup(freep) char *text = json_text(body);
    for (i = 0; i < n; i++)
        http_reply(wait_end(all[i]), 200, text);
    free(all);
    struct core_event ev = {.kind = CORE_EV_READY, .alloc_id = alloc_id};
    driver_post(o->sh->driver, &ev, NULL, NULL);
}

void waits_all_gather(struct waits *o, struct http_req *req, const char *alloc_id,
                      const char *request_uuid, int num_peers, json_t *data)
{
    if (num_peers < 1 || num_peers > PEERS_MAX) {
        http_fail(req, DET_EINVAL, "numPeers: %d is not between 1 and %d", num_peers, PEERS_MAX);
        return;
    }
    struct wait *old = wait_find(o, WAIT_GATHER, alloc_id, request_uuid);
    if (old)
        http_fail(wait_end(old), DET_ECANCELED, "the same peer asked again");
    struct wait *w = wait_add(o, WAIT_GATHER, req, alloc_id, request_uuid, GATHER_TIMEOUT_MS);
    w->data = data ? json_incref(data) : json_null();
    w->peers = num_peers;
    size_t n = gather_count(o, alloc_id);
    if (n >= (size_t)num_peers)
        gather_end(o, alloc_id, n);
}

void waits_on_alloc_end(struct waits *o, const char *alloc_id)
{
    struct wait *next;
    for (struct wait *w = map_get(o->by_alloc, alloc_id); w; w = next) {
        next = w->next;
        if (w->kind == WAIT_PREEMPT)
            http_reply(wait_end(w), 200, "{\"preempt\":false}");
        else
            http_fail(wait_end(w), DET_ESTALE, "allocation %s has ended", alloc_id);
    }
}
