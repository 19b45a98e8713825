#include "logring.h"

#include "mem.h"

#include <string.h>

struct logring_watch {
    struct logring *ring;
    struct logring_watch *prev, *next;
    void (*fn)(void *arg);
    void *arg;
};

struct logring {
    struct logring_line v[LOGRING_LINES_MAX]; /* line id at id % LINES_MAX */
    int64_t first, end;
    size_t bytes;
    struct logring_watch *watches;
};

struct logring *logring_create(void)
{
    return det_zalloc(sizeof(struct logring));
}

static void drop_oldest(struct logring *r)
{
    struct logring_line *l = &r->v[r->first++ % LOGRING_LINES_MAX];
    r->bytes -= strlen(l->text);
    free(l->text);
    l->text = NULL;
}

void logring_destroy(struct logring *r)
{
    if (!r)
        return;
    while (r->first < r->end)
        drop_oldest(r);
    free(r);
}

void logring_add(void *arg, const struct log_record *record)
{
    struct logring *r = arg;
    size_t n = strlen(record->text);
    while (r->first < r->end &&
           (r->end - r->first == LOGRING_LINES_MAX || r->bytes + n > LOGRING_BYTES_MAX))
        drop_oldest(r);
    r->v[r->end++ % LOGRING_LINES_MAX] = (struct logring_line){
        .wall_us = record->wall_us, .level = record->level, .text = det_strdup(record->text)};
    r->bytes += n;
    struct logring_watch *next;
    for (struct logring_watch *w = r->watches; w; w = next) {
        next = w->next;
        w->fn(w->arg);
    }
}

int64_t logring_first(const struct logring *r)
{
    return r->first;
}

int64_t logring_end(const struct logring *r)
{
    return r->end;
}

const struct logring_line *logring_at(const struct logring *r, int64_t id)
{
    return &r->v[id % LOGRING_LINES_MAX];
}

struct logring_watch *logring_watch(struct logring *r, void (*fn)(void *arg), void *arg)
{
    struct logring_watch *w = det_alloc(sizeof *w);
    *w = (struct logring_watch){.ring = r, .next = r->watches, .fn = fn, .arg = arg};
    if (w->next)
        w->next->prev = w;
    r->watches = w;
    return w;
}

void logring_unwatch(struct logring_watch *w)
{
    if (!w)
        return;
    if (w->prev)
        w->prev->next = w->next;
    else
        w->ring->watches = w->next;
    if (w->next)
        w->next->prev = w->prev;
    free(w);
}
