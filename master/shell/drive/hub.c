#include "hub.h"

#include "map.h"
#include "mem.h"

#include <stdbool.h>

struct topic {
    char *task_id;
    struct hub_watch *first;
    int walking; /* notify runs: freed entries are only marked */
};
struct hub_watch {
    struct hub *hub;
    struct topic *topic;
    struct hub_watch *next;
    void (*fn)(void *arg);
    void *arg;
    bool dead;
};
struct hub {
    struct map *topics;
};

struct hub *hub_create(void)
{
    struct hub *h = det_zalloc(sizeof *h);
    h->topics = map_create();
    return h;
}

void hub_destroy(struct hub *h)
{
    if (!h)
        return;
    map_destroy(h->topics);
    free(h);
}

struct hub_watch *hub_watch(struct hub *h, const char *task_id, void (*fn)(void *arg), void *arg)
{
    struct topic *t = map_get(h->topics, task_id);
    if (!t) {
        t = det_zalloc(sizeof *t);
        t->task_id = det_strdup(task_id);
        map_put(h->topics, task_id, t);
    }
    struct hub_watch *w = det_alloc(sizeof *w);
    *w = (struct hub_watch){.hub = h, .topic = t, .next = t->first, .fn = fn, .arg = arg};
    t->first = w;
    return w;
}

static void topic_sweep(struct hub *h, struct topic *t)
{
    if (t->walking)
        return;
    for (struct hub_watch **p = &t->first; *p;) {
        struct hub_watch *w = *p;
        if (w->dead) {
            *p = w->next;
            free(w);
        } else {
            p = &w->next;
        }
    }
    if (t->first)
        return;
    map_del(h->topics, t->task_id);
    free(t->task_id);
    free(t);
}

void hub_unwatch(struct hub_watch *w)
{
    if (!w)
        return;
    w->dead = true;
    topic_sweep(w->hub, w->topic);
}

void hub_notify(struct hub *h, const char *task_id)
{
    struct topic *t = map_get(h->topics, task_id);
    if (!t)
        return;
    t->walking++;
    for (struct hub_watch *w = t->first; w; w = w->next)
        if (!w->dead)
            w->fn(w->arg);
    t->walking--;
    topic_sweep(h, t);
}
