/* The schedule, and what is recorded. */
#include "profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum profile_action profile_action(const struct profile_schedule *s, int64_t step)
{
    int64_t round = s->wait + s->warmup + s->active;
    step -= s->skip_first;
    if (step < 0 || (s->repeat > 0 && step / round >= s->repeat))
        return PROFILE_NONE;
    int64_t at = step % round;
    if (at < s->wait)
        return PROFILE_NONE;
    if (at < s->wait + s->warmup)
        return PROFILE_WARMUP;
    return at + 1 < round ? PROFILE_RECORD : PROFILE_RECORD_AND_SAVE;
}

static uint32_t intern_text(struct profile *p, const char *text)
{
    if (!text)
        return 0;
    void *known = map_get(p->text_ids, text);
    if (known)
        return (uint32_t)(uintptr_t)known;
    vec_push(&p->texts, det_strdup(text));
    map_put(p->text_ids, text, (void *)(uintptr_t)p->texts.n);
    return (uint32_t)p->texts.n;
}

const char *profile_text(const struct profile *p, uint32_t id)
{
    return id ? p->texts.v[id - 1] : NULL;
}

static void add_event(struct profile *p, const struct profile_event *e)
{
    p->full = p->events.n >= PROFILE_EVENTS_MAX;
    if (!p->full)
        vec_push(&p->events, *e);
}

static void on_span(struct span_listener *self, const struct span *s)
{
    struct profile *p = (struct profile *)self;
    if (!p->recording || p->full || s->start_ns < p->start_ns)
        return; /* the last: it began before the recording did */
    const struct profile_event e = {.cat = s->cat,
                                    .tid = s->tid,
                                    .name = intern_text(p, s->name),
                                    .detail = intern_text(p, p->shapes ? s->detail : NULL),
                                    .start_ns = s->start_ns,
                                    .end_ns = s->end_ns};
    add_event(p, &e);
}

static void on_count(struct span_listener *self, const char *name, int64_t value, int64_t at_ns)
{
    struct profile *p = (struct profile *)self;
    if (!p->recording || p->full || !p->memory || value == p->last_value)
        return;
    p->last_value = value;
    const struct profile_event e = {.count = true,
                                    .name = intern_text(p, name),
                                    .start_ns = at_ns,
                                    .end_ns = at_ns,
                                    .value = value};
    add_event(p, &e);
}

void profile_init(struct profile *p, const struct profile_schedule *s, bool shapes, bool memory,
                  bool waits)
{
    *p = (struct profile){.listener = {.on_span = on_span, .on_count = on_count, .waits = waits},
                          .schedule = *s,
                          .shapes = shapes,
                          .memory = memory};
    p->text_ids = map_create();
    p->last_value = -1;
}

static void set_listening(struct profile *p, bool on)
{
    if (on && !p->listening)
        span_listen(&p->listener);
    else if (!on && p->listening)
        span_unlisten(&p->listener);
    p->listening = on;
}

void profile_finish(struct profile *p)
{
    set_listening(p, false);
    for (size_t i = 0; i < p->texts.n; i++)
        free(p->texts.v[i]);
    vec_free(&p->texts);
    vec_free(&p->events);
    map_destroy(p->text_ids);
    p->text_ids = NULL;
}

static void forget_events(struct profile *p)
{
    p->events.n = 0;
    p->full = false;
    p->last_value = -1;
}

/* Off the list while its own fields change: listeners are called from other threads too. */
void profile_start(struct profile *p)
{
    enum profile_action a = profile_action(&p->schedule, p->step);
    bool was_recording = p->recording;
    set_listening(p, false);
    p->recording = a >= PROFILE_RECORD;
    if (p->recording && !was_recording) {
        forget_events(p); /* what a run before had, that was cut short */
        p->start_ns = p->step_start_ns = span_now_ns();
    }
    set_listening(p, a != PROFILE_NONE);
}

/* The span of one whole batch: from where the last one ended. */
static void tell_step(struct profile *p)
{
    char name[40];
    snprintf(name, sizeof name, "ProfilerStep#%lld", (long long)p->step);
    span_tell(SPAN_STEP, name, NULL, p->step_start_ns);
    p->step_start_ns = span_now_ns();
}

bool profile_step(struct profile *p)
{
    bool whole = profile_action(&p->schedule, p->step) == PROFILE_RECORD_AND_SAVE;
    if (p->recording)
        tell_step(p);
    p->step++;
    if (whole)
        set_listening(p, false);
    else
        profile_start(p);
    return whole;
}

void profile_next(struct profile *p)
{
    forget_events(p);
    p->recording = false;
    profile_start(p);
}

bool profile_stop(struct profile *p)
{
    bool cut = p->recording && p->events.n > 0;
    set_listening(p, false);
    p->recording = false;
    return cut;
}

static int by_place(const void *a, const void *b)
{
    const struct profile_event *x = a, *y = b;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return x->end_ns > y->end_ns ? -1 : x->end_ns < y->end_ns;
}

void profile_sort(struct profile *p)
{
    if (p->events.n)
        qsort(p->events.v, p->events.n, sizeof *p->events.v, by_place);
}
