/* What the master has not heard, or not said that it has. */
#include "gpujudge.h"
#include "host_impl.h"

#include <string.h>

#define BATCH_BYTES_MAX ((size_t)3 << 20) /* below LINK_BODY_MAX, frame included */

static int64_t post_event(struct host *h, json_t *event, bool is_hello)
{
    json_set(event, "seq", json_integer(h->next_seq));
    struct host_mail m = {.seq = h->next_seq++, .event = event, .is_hello = is_hello};
    vec_push(&h->outbox, m);
    return m.seq;
}

static struct link_task link_task_of(const struct host_task *t)
{
    return (struct link_task){.alloc = t->alloc,
                              .container = t->container,
                              .state = host_state_told(t->state),
                              .exit = t->exit,
                              .silent = t->silent,
                              .unreached = t->unreached};
}

/* Into what tells of it. */
static void write_marks(const struct host_task *t, json_t *to)
{
    json_t *marks = json_array();
    for (size_t i = t->marks_acked; i < t->marks.n; i++)
        json_array_append(marks, t->marks.v[i]);
    json_set(to, "marks", marks);
}

/* What is not known yet goes with the event that makes its number. */
static void add_marks(struct host_task *t, json_t *event, int64_t seq)
{
    if (t->marks_acked == t->marks.n)
        return;
    write_marks(t, event);
    t->marks_told = t->marks.n;
    t->marks_seq = seq;
}

int64_t host_tell(struct host *h, enum link_event_kind kind, struct host_task *t)
{
    struct link_event e = {.kind = kind, .task = link_task_of(t)};
    json_t *j = link_event_json(&e);
    add_marks(t, j, h->next_seq);
    t->has_silence_news = false;
    return post_event(h, j, false);
}

/* What it was told to look at before counts no more: the master says it anew. */
void host_on_store(struct host *h, const struct link_store *s)
{
    struct link_event e = {.kind = LINK_EV_STORE, .store = *s};
    if (h->is_greeted)
        post_event(h, link_event_json(&e), false);
}

static struct host_sight *sight_of(struct host *h, int slot)
{
    for (size_t i = 0; i < h->sights.n; i++)
        if (h->sights.v[i].is.slot == slot)
            return &h->sights.v[i];
    vec_push(&h->sights, ((struct host_sight){.is = {slot, LINK_SLOT_USABLE, NULL}}));
    return &h->sights.v[h->sights.n - 1];
}

/* One event of a slot is on its way at a time: while the master is away, what is news each second
 * does not pile up. Before the first hello there is nobody to tell: that says it. */
static void tell_sight(struct host *h, struct host_sight *x)
{
    if (!x->has_news || x->seq > 0 || h->hello_seq == 0)
        return;
    struct link_event e = {.kind = LINK_EV_SLOT, .sight = x->is};
    x->seq = post_event(h, link_event_json(&e), false);
    x->has_news = false;
}

static void tell_sights_after(struct host *h, int64_t acked)
{
    for (size_t i = 0; i < h->sights.n; i++) {
        struct host_sight *x = &h->sights.v[i];
        if (x->seq <= acked)
            x->seq = 0;
        tell_sight(h, x);
    }
}

/* The hello that comes says them all; events that were never sent are no more. */
static void forget_news(struct host *h)
{
    for (size_t i = 0; i < h->sights.n; i++) {
        struct host_sight *x = &h->sights.v[i];
        x->has_news = false;
        if (x->seq >= h->next_seq)
            x->seq = 0;
    }
}

void host_sees(struct host *h, const struct link_slot_sight *s)
{
    struct host_sight *x = sight_of(h, s->slot);
    const char *text = s->text ? s->text : "";
    if (x->is.text && x->is.state == s->state && strcmp(x->is.text, text) == 0)
        return;
    char *copy = det_strdup(text);
    free((char *)x->is.text);
    x->is.text = copy;
    x->is.state = s->state;
    x->has_news = true;
    tell_sight(h, x);
}

bool host_is_unseen(const struct host *h, int slot)
{
    for (size_t i = 0; i < h->sights.n; i++)
        if (h->sights.v[i].is.slot == slot)
            return h->sights.v[i].is.state == LINK_SLOT_UNSEEN;
    return false;
}

/* Not one that waits for an acknowledgement: the exit that follows gives the slot back. */
bool host_unsee(struct host *h, int slot)
{
    for (size_t i = 0; i < h->sights.n; i++) {
        struct host_sight *x = &h->sights.v[i];
        if (x->is.slot != slot)
            continue;
        x->seq = 0;
        host_sees(h, &(struct link_slot_sight){slot, LINK_SLOT_UNSEEN, GPU_UNSETTLED});
        tell_sight(h, x);
        return true;
    }
    return false;
}

static void outbox_cut(struct host *h, size_t n)
{
    while (h->outbox.n > n)
        json_decref(h->outbox.v[--h->outbox.n].event);
}

void host_outbox_clear(struct host *h)
{
    outbox_cut(h, 0);
}

/* What was never sent is said better by the hello; its numbers are free again. */
static void drop_unsent(struct host *h)
{
    size_t n = h->outbox.n;
    while (n > 0 && !h->outbox.v[n - 1].is_sent)
        n--;
    h->next_seq -= (int64_t)(h->outbox.n - n);
    outbox_cut(h, n);
}

static size_t text_bytes(const json_t *j)
{
    det_cleanup(freep) char *text = json_text(j);
    return strlen(text);
}

/* By a hello the master takes an ended task for done, and has no ear for the exit that follows. But
 * a hello goes whole: marks that would make one too large for the master are not told. */
static void add_hello_marks(const struct host *h, const json_t *hello)
{
    const json_t *tasks = json_arr(hello, "tasks");
    size_t said = 0, bytes = text_bytes(hello);
    for (size_t i = 0; i < h->tasks.n; i++) {
        const struct host_task *t = h->tasks.v[i];
        if (t->state == HOST_KNOWN)
            continue;
        json_t *to = json_array_get(tasks, said++);
        if (!host_has_ended(t) || t->marks_acked == t->marks.n)
            continue;
        size_t before = text_bytes(to);
        write_marks(t, to);
        bytes += text_bytes(to) - before;
        if (bytes > BATCH_BYTES_MAX) {
            json_object_del(to, "marks");
            return;
        }
    }
}

static void cut_text(json_t *in, const char *key, size_t max)
{
    const json_t *text = json_object_get(in, key);
    if (json_string_length(text) > max)
        json_set(in, key, json_lossy(json_string_value(text), max));
}

/* What tasks say goes shortened where a master would refuse the whole for its size: for ever, as
 * each try says the same. */
static void shorten_hello(const json_t *hello)
{
    static const size_t most[] = {200, 0};
    const json_t *tasks = json_arr(hello, "tasks");
    for (size_t i = 0; i < DET_ARRAY_LEN(most) && text_bytes(hello) > BATCH_BYTES_MAX; i++)
        for (size_t k = 0; k < json_array_size(tasks); k++) {
            const json_t *task = json_array_get(tasks, k);
            json_t *end = json_object_get(task, "exit");
            cut_text(end, "text", most[i]);
            cut_text(end, "exception", most[i]);
            cut_text(end, "at", most[i]);
            cut_text(json_object_get(task, "unreached"), "text", most[i]);
        }
}

static void post_hello(struct host *h)
{
    struct link_event e = {.kind = LINK_EV_HELLO,
                           .hello = {.version = DET_VERSION,
                                     .pool = h->pool,
                                     .addr = h->addr,
                                     .slots = h->slots.v,
                                     .slots_n = h->slots.n,
                                     .looks = true}};
    VEC(struct link_task) tasks = {0};
    VEC(struct link_slot_sight) unfit = {0};
    for (size_t i = 0; i < h->sights.n; i++)
        if (h->sights.v[i].is.state != LINK_SLOT_USABLE)
            vec_push(&unfit, h->sights.v[i].is);
    e.hello.judges = h->sights.n > 0;
    e.hello.unfit = unfit.v;
    e.hello.unfit_n = unfit.n;
    for (size_t i = 0; i < h->tasks.n; i++) {
        const struct host_task *t = h->tasks.v[i];
        if (t->state != HOST_KNOWN)
            vec_push(&tasks, link_task_of(t));
    }
    e.hello.tasks = tasks.v;
    e.hello.tasks_n = tasks.n;
    json_t *event = link_event_json(&e);
    shorten_hello(event);
    add_hello_marks(h, event);
    h->hello_seq = post_event(h, event, true);
    vec_free(&tasks);
    vec_free(&unfit);
}

void host_reached(struct host_task *t)
{
    t->has_silence_news |= t->unreached.text != NULL;
    free((char *)t->unreached.text);
    t->unreached = (struct link_unreached){0};
    t->unreached_heard = 0;
}

void host_hello(struct host *h, const char *boot)
{
    if (boot) {
        free(h->boot);
        h->boot = det_strdup(boot);
        host_outbox_clear(h);
        h->next_seq = 1;
    }
    drop_unsent(h);
    forget_news(h);
    h->is_greeted = false;
    if (h->is_looking)
        vec_push(&h->effects, ((struct host_effect){.kind = HOST_UNLOOK}));
    h->is_looking = false;
    for (size_t i = 0; i < h->tasks.n; i++)
        host_reached(h->tasks.v[i]);
    post_hello(h);
    for (size_t i = 0; i < h->tasks.n; i++) {
        struct host_task *t = h->tasks.v[i];
        if (t->state == HOST_ENDED || t->state == HOST_OVER)
            t->exit_seq = host_tell(h, LINK_EV_EXIT, t);
        else if (!host_has_ended(t) && t->marks_acked < t->marks.n)
            host_tell(h, LINK_EV_STATE, t);
    }
}

bool host_has_news(const struct host *h)
{
    return h->outbox.n > 0;
}

char *host_batch(struct host *h)
{
    json_t *array = json_array();
    size_t bytes = 0;
    for (size_t i = 0; i < h->outbox.n && i < LINK_EVENTS_MAX; i++) {
        det_cleanup(freep) char *text = json_text(h->outbox.v[i].event);
        bytes += strlen(text);
        if (i > 0 && bytes > BATCH_BYTES_MAX)
            break;
        json_array_append(array, h->outbox.v[i].event);
        h->outbox.v[i].is_sent = true;
    }
    JSON_OWN body = link_events_json(h->boot, array, h->seen);
    if (h->clock)
        json_set(body, "clock", json_incref(h->clock));
    if (h->gpus)
        json_set(body, "gpus", det_take(h->gpus));
    return json_text(body);
}

void host_outbox_ack(struct host *h, int64_t seq)
{
    size_t n = 0;
    while (n < h->outbox.n && h->outbox.v[n].seq <= seq)
        json_decref(h->outbox.v[n++].event);
    if (n > 0) {
        h->outbox.n -= n;
        memmove(h->outbox.v, h->outbox.v + n, h->outbox.n * sizeof *h->outbox.v);
    }
    if (h->hello_seq > 0 && seq >= h->hello_seq && seq < h->next_seq)
        h->is_greeted = true;
    tell_sights_after(h, seq);
}

void host_set_seen(struct host *h, json_t *seen)
{
    json_decref(h->seen);
    h->seen = seen;
}

void host_set_clock(struct host *h, json_t *clock)
{
    json_decref(h->clock);
    h->clock = clock;
}

void host_set_gpus(struct host *h, json_t *gpus)
{
    json_decref(h->gpus);
    h->gpus = gpus;
}

bool host_is_greeted(const struct host *h)
{
    return h->is_greeted;
}

const char *host_boot(const struct host *h)
{
    return h->boot;
}
