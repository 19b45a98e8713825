#include "agentlink.h"

#include "agentlink_field.h"

#include <limits.h>
#include <signal.h>
#include <string.h>

static const char *const device_names[] = {"cpu", "cuda", "rocm"};
static const char *const exit_names[] = {"exited", "killed",     "stalled", "start_failed",
                                         "lost",   "store_away", "absent"};
static const char *const state_names[] = {"starting", "running", "ended"};
static const char *const event_names[] = {"hello", "state", "exit", "store", "slot", "unknown"};
static const char *const store_names[] = {"present", "other",  "absent",
                                          "known",   "hidden", "failed"};

const char *link_device_name(enum link_device d)
{
    return device_names[d < LINK_DEVICE_COUNT ? d : 0];
}

const char *link_exit_reason_name(enum link_exit_reason r)
{
    return exit_names[r < LINK_EXIT_REASON_COUNT ? r : 0];
}

const char *link_state_name(enum link_state s)
{
    return state_names[s < LINK_STATE_COUNT ? s : 0];
}

#define AT(type, member) offsetof(struct type, member)

static const struct link_field exit_fields[] = {
    {"reason", LINK_F_NEWS, AT(link_exit, reason), true, LINK_START_FAILED, LINK_EXIT_REASON_COUNT,
     exit_names},
    {"code", LINK_F_INT, AT(link_exit, code), false, 0, 255, NULL},
    {"signal", LINK_F_INT, AT(link_exit, signal), false, 0, 64, NULL},
    {"rank", LINK_F_INT, AT(link_exit, rank), false, -1, INT_MAX, NULL},
    {"text", LINK_F_STR, AT(link_exit, text), false, 0, 4 * LINK_TEXT_MAX, NULL},
    {"exception", LINK_F_STR, AT(link_exit, exception), false, 0, 4 * LINK_EXCEPTION_MAX, NULL},
    {"at", LINK_F_STR, AT(link_exit, at), false, 0, 4 * LINK_EXCEPTION_MAX, NULL},
    {0},
};

int link_exit_decode(const json_t *j, struct link_exit *ret, struct det_err *err)
{
    *ret = (struct link_exit){.rank = -1, .text = ""};
    int rc = link_fields(j, exit_fields, ret, err);
    if (ret->exception && !ret->at)
        ret->at = "";
    return rc < 0 ? det_wrap(err, rc, "exit") : 0;
}

json_t *link_exit_json(const struct link_exit *e)
{
    const char *text = e->text ? e->text : "";
    size_t len = strnlen(text, LINK_TEXT_MAX);
    json_t *j = json_object();
    json_set(j, "reason", json_string(link_exit_reason_name(e->reason)));
    json_set(j, "code", json_integer(e->code));
    json_set(j, "signal", json_integer(e->signal));
    json_set(j, "rank", json_integer(e->rank));
    json_set(j, "text", json_lossy(text, len));
    if (e->exception) {
        json_set(j, "exception",
                 json_lossy(e->exception, strnlen(e->exception, LINK_EXCEPTION_MAX)));
        json_set(j, "at", json_lossy(e->at, strnlen(e->at, LINK_EXCEPTION_MAX)));
    }
    return j;
}

static const struct link_field mark_fields[] = {
    {"kind", LINK_F_ID, AT(link_mark, kind), true, 0, 0, NULL},
    {"at_us", LINK_F_I64, AT(link_mark, at_us), true, 0, INT64_MAX / 2, NULL},
    {"duration_us", LINK_F_I64, AT(link_mark, duration_us), false, 0, INT64_MAX / 2, NULL},
    {"detail", LINK_F_STR, AT(link_mark, detail), false, 0, 4 * LINK_DETAIL_MAX, NULL},
    {0},
};

json_t *link_mark_json(const struct link_mark *m)
{
    const char *detail = m->detail ? m->detail : "";
    json_t *j = json_object();
    json_set(j, "kind", json_string(m->kind));
    json_set(j, "at_us", json_integer(m->at_us));
    json_set(j, "duration_us", json_integer(m->duration_us));
    json_set(j, "detail", json_lossy(detail, strnlen(detail, LINK_DETAIL_MAX)));
    return j;
}

int link_marks_decode(const json_t *arr, struct link_mark **ret, size_t *ret_n, struct det_err *err)
{
    size_t n = json_array_size(arr);
    *ret = NULL;
    *ret_n = 0;
    if (n > LINK_MARKS_MAX)
        return det_fail(err, DET_ETOOBIG, "marks: %zu, at most %d are allowed", n, LINK_MARKS_MAX);
    det_cleanup(freep) struct link_mark *v = n ? det_zalloc(n * sizeof *v) : NULL;
    for (size_t i = 0; i < n; i++) {
        v[i].detail = "";
        int rc = link_fields(json_array_get(arr, i), mark_fields, &v[i], err);
        if (rc < 0)
            return det_wrap(err, rc, "marks[%zu]", i);
    }
    *ret = det_take(v);
    *ret_n = n;
    return 0;
}

static const struct link_field silent_fields[] = {
    {"rank", LINK_F_INT, AT(link_silent, rank), true, 0, INT_MAX, NULL},
    {"phase", LINK_F_ID, AT(link_silent, phase), true, 0, 0, NULL},
    {"batches", LINK_F_I64, AT(link_silent, batches), true, 0, INT64_MAX / 2, NULL},
    {"silent_ms", LINK_F_I64, AT(link_silent, silent_ms), true, 0, INT64_MAX / 2, NULL},
    {"timeout_ms", LINK_F_I64, AT(link_silent, timeout_ms), true, 1, INT64_MAX / 2, NULL},
    {0},
};

int link_silent_decode(const json_t *j, struct link_silent *ret, struct det_err *err)
{
    *ret = (struct link_silent){0};
    int rc = link_fields(j, silent_fields, ret, err);
    if (rc < 0)
        *ret = (struct link_silent){0};
    return rc < 0 ? det_wrap(err, rc, "silent") : 0;
}

json_t *link_silent_json(const struct link_silent *s)
{
    return json_make("{s:i,s:s,s:I,s:I,s:I}", "rank", s->rank, "phase", s->phase, "batches",
                     (json_int_t)s->batches, "silent_ms", (json_int_t)s->silent_ms, "timeout_ms",
                     (json_int_t)s->timeout_ms);
}

static const struct link_field unreached_fields[] = {
    {"text", LINK_F_STR, AT(link_unreached, text), true, 0, 4 * LINK_TEXT_MAX, NULL},
    {"for_ms", LINK_F_I64, AT(link_unreached, for_ms), true, 0, INT64_MAX / 2, NULL},
    {0},
};

int link_unreached_decode(const json_t *j, struct link_unreached *ret, struct det_err *err)
{
    *ret = (struct link_unreached){0};
    int rc = link_fields(j, unreached_fields, ret, err);
    if (rc < 0)
        *ret = (struct link_unreached){0};
    return rc < 0 ? det_wrap(err, rc, "unreached") : 0;
}

json_t *link_unreached_json(const struct link_unreached *u)
{
    json_t *j = json_object();
    json_set(j, "text", json_lossy(u->text, strnlen(u->text, LINK_TEXT_MAX)));
    json_set(j, "for_ms", json_integer(u->for_ms));
    return j;
}

static const struct link_field task_fields[] = {
    {"alloc", LINK_F_ID, AT(link_task, alloc), true, 0, 0, NULL},
    {"container", LINK_F_ID, AT(link_task, container), true, 0, 0, NULL},
    {"state", LINK_F_NEWS, AT(link_task, state), false, LINK_RUNNING, LINK_STATE_COUNT,
     state_names},
    {0},
};

static int task_decode(const json_t *j, struct link_task *ret, struct det_err *err)
{
    *ret = (struct link_task){.exit = {.rank = -1, .text = ""}};
    int rc = link_fields(j, task_fields, ret, err);
    if (rc == 0 && ret->state == LINK_ENDED)
        rc = link_exit_decode(json_object_get(j, "exit"), &ret->exit, err);
    if (rc == 0 && ret->state == LINK_RUNNING && json_object_get(j, "silent"))
        rc = link_silent_decode(json_object_get(j, "silent"), &ret->silent, err);
    if (rc == 0 && ret->state == LINK_RUNNING && json_object_get(j, "unreached"))
        rc = link_unreached_decode(json_object_get(j, "unreached"), &ret->unreached, err);
    if (rc == 0)
        rc = link_marks_decode(json_object_get(j, "marks"), &ret->marks, &ret->marks_n, err);
    return rc;
}

static json_t *marks_json(const struct link_task *t)
{
    json_t *marks = json_array();
    for (size_t i = 0; i < t->marks_n; i++)
        json_array_append_new(marks, link_mark_json(&t->marks[i]));
    return marks;
}

static json_t *task_json(const struct link_task *t)
{
    json_t *j = json_object();
    json_set(j, "alloc", json_string(t->alloc));
    json_set(j, "container", json_string(t->container));
    json_set(j, "state", json_string(link_state_name(t->state)));
    if (t->state == LINK_ENDED)
        json_set(j, "exit", link_exit_json(&t->exit));
    if (t->state == LINK_RUNNING && t->silent.phase)
        json_set(j, "silent", link_silent_json(&t->silent));
    if (t->state == LINK_RUNNING && t->unreached.text)
        json_set(j, "unreached", link_unreached_json(&t->unreached));
    if (t->marks_n > 0)
        json_set(j, "marks", marks_json(t));
    return j;
}

static const struct link_field slot_fields[] = {
    {"id", LINK_F_INT, AT(link_slot, id), true, 0, LINK_SLOTS_MAX - 1, NULL},
    {"type", LINK_F_NEWS, AT(link_slot, type), true, LINK_DEVICE_COUNT, LINK_DEVICE_COUNT,
     device_names},
    {"brand", LINK_F_STR, AT(link_slot, brand), false, 0, 256, NULL},
    {"uuid", LINK_F_STR, AT(link_slot, uuid), false, 0, 128, NULL},
    {"island", LINK_F_INT, AT(link_slot, island), false, 0, LINK_SLOTS_MAX - 1, NULL},
    {"numa", LINK_F_INT, AT(link_slot, numa), false, 0, LINK_NUMA_MAX - 1, NULL},
    {0},
};

/* A slot of a type that only a newer master knows is left out: nothing could be placed there. */
static int slots_decode(const json_t *arr, struct link_hello *h, struct det_err *err)
{
    size_t n = json_array_size(arr);
    h->slots = det_zalloc((n + 1) * sizeof *h->slots);
    bool seen[LINK_SLOTS_MAX] = {false};
    for (size_t i = 0; i < n; i++) {
        struct link_slot s = {.brand = "", .uuid = "", .island = -1, .numa = -1};
        int rc = link_fields(json_array_get(arr, i), slot_fields, &s, err);
        if (rc < 0)
            return det_wrap(err, rc, "slots[%zu]", i);
        if (seen[s.id])
            return det_fail(err, DET_EINVAL, "slots[%zu]: id %d is there twice", i, s.id);
        seen[s.id] = true;
        if (s.type < LINK_DEVICE_COUNT)
            h->slots[h->slots_n++] = s;
    }
    h->left_out = n - h->slots_n;
    return 0;
}

static int tasks_decode(const json_t *arr, struct link_hello *h, struct det_err *err)
{
    h->tasks_n = json_array_size(arr);
    h->tasks = det_zalloc((h->tasks_n + 1) * sizeof *h->tasks);
    for (size_t i = 0; i < h->tasks_n; i++) {
        int rc = task_decode(json_array_get(arr, i), &h->tasks[i], err);
        if (rc < 0)
            return det_wrap(err, rc, "tasks[%zu]", i);
    }
    return 0;
}

/* ---- slots that are not usable ---- */

static const char *const slot_state_names[] = {"usable", "unseen", "foreign", "held", "ailing"};

const char *link_slot_state_name(enum link_slot_state f)
{
    return slot_state_names[f < LINK_SLOT_STATE_COUNT ? f : 0];
}

static const struct link_field sight_fields[] = {
    {"slot", LINK_F_INT, AT(link_slot_sight, slot), true, 0, LINK_SLOTS_MAX - 1, NULL},
    {"state", LINK_F_NEWS, AT(link_slot_sight, state), true, LINK_SLOT_AILING,
     LINK_SLOT_STATE_COUNT, slot_state_names},
    {"text", LINK_F_STR, AT(link_slot_sight, text), false, 0, 4 * LINK_WHY_MAX, NULL},
    {0},
};

static int sight_decode(const json_t *j, struct link_slot_sight *ret, struct det_err *err)
{
    *ret = (struct link_slot_sight){.text = ""};
    return link_fields(j, sight_fields, ret, err);
}

static void sight_encode(json_t *j, const struct link_slot_sight *f)
{
    const char *text = f->text ? f->text : "";
    json_set(j, "slot", json_integer(f->slot));
    json_set(j, "state", json_string(link_slot_state_name(f->state)));
    json_set(j, "text", json_lossy(text, strnlen(text, LINK_WHY_MAX)));
}

/* An agent that does not say takes all of its slots for usable. */
static int unfit_decode(const json_t *arr, struct link_hello *h, struct det_err *err)
{
    bool seen[LINK_SLOTS_MAX] = {false};
    h->judges = arr != NULL;
    h->unfit_n = json_array_size(arr);
    h->unfit = h->unfit_n ? det_zalloc(h->unfit_n * sizeof *h->unfit) : NULL;
    for (size_t i = 0; i < h->unfit_n; i++) {
        struct link_slot_sight *f = &h->unfit[i];
        int rc = sight_decode(json_array_get(arr, i), f, err);
        if (rc < 0)
            return det_wrap(err, rc, "unfit[%zu]", i);
        if (seen[f->slot])
            return det_fail(err, DET_EINVAL, "unfit[%zu]: slot %d is there twice", i, f->slot);
        seen[f->slot] = true;
    }
    return 0;
}

static json_t *unfit_json(const struct link_hello *h)
{
    json_t *list = json_array();
    for (size_t i = 0; i < h->unfit_n; i++) {
        json_t *o = json_object();
        sight_encode(o, &h->unfit[i]);
        json_array_append_new(list, o);
    }
    return list;
}

/* ---- hello ---- */

struct hello_arrays {
    const char *version, *pool, *addr;
    json_t *slots, *tasks, *unfit;
};
static const struct link_field hello_fields[] = {
    {"version", LINK_F_STR, AT(hello_arrays, version), true, 0, 64, NULL},
    {"pool", LINK_F_STR, AT(hello_arrays, pool), false, 0, LINK_POOL_MAX, NULL},
    {"addr", LINK_F_STR, AT(hello_arrays, addr), true, 0, 256, NULL},
    {"slots", LINK_F_ARR, AT(hello_arrays, slots), true, 0, LINK_SLOTS_MAX, NULL},
    {"tasks", LINK_F_ARR, AT(hello_arrays, tasks), true, 0, LINK_TASKS_MAX, NULL},
    {"unfit", LINK_F_ARR, AT(hello_arrays, unfit), false, 0, LINK_SLOTS_MAX, NULL},
    {0},
};

static int hello_decode(const json_t *j, struct link_hello *h, struct det_err *err)
{
    struct hello_arrays a = {.pool = ""};
    int rc = link_fields(j, hello_fields, &a, err);
    if (rc < 0)
        return rc;
    h->version = a.version;
    h->pool = a.pool;
    h->addr = a.addr;
    h->looks = json_flag(j, "looks", false);
    rc = slots_decode(a.slots, h, err);
    if (rc == 0)
        rc = unfit_decode(a.unfit, h, err);
    return rc < 0 ? rc : tasks_decode(a.tasks, h, err);
}

static json_t *slot_json(const struct link_slot *s)
{
    json_t *o = json_object();
    json_set(o, "id", json_integer(s->id));
    json_set(o, "type", json_string(link_device_name(s->type)));
    json_set(o, "brand", json_lossy(s->brand ? s->brand : "", s->brand ? strlen(s->brand) : 0));
    json_set(o, "uuid", json_lossy(s->uuid ? s->uuid : "", s->uuid ? strlen(s->uuid) : 0));
    if (s->island >= 0)
        json_set(o, "island", json_integer(s->island));
    if (s->numa >= 0)
        json_set(o, "numa", json_integer(s->numa));
    return o;
}

static void hello_encode(json_t *j, const struct link_hello *h)
{
    json_t *slots = json_array(), *tasks = json_array();
    for (size_t i = 0; i < h->slots_n; i++)
        json_array_append_new(slots, slot_json(&h->slots[i]));
    for (size_t i = 0; i < h->tasks_n; i++)
        json_array_append_new(tasks, task_json(&h->tasks[i]));
    json_set(j, "version", json_string(h->version));
    json_set(j, "pool", json_string(h->pool ? h->pool : ""));
    json_set(j, "addr", json_string(h->addr));
    json_set(j, "slots", slots);
    json_set(j, "tasks", tasks);
    json_set(j, "looks", json_boolean(h->looks));
    if (h->judges)
        json_set(j, "unfit", unfit_json(h));
}

static const struct link_field store_fields[] = {
    {"place", LINK_F_STR, AT(link_store, place), true, 0, LINK_PLACE_MAX, NULL},
    {"id", LINK_F_ID, AT(link_store, id), false, 0, 0, NULL},
    {"state", LINK_F_NEWS, AT(link_store, state), true, LINK_STORE_FAILED, LINK_STORE_STATE_COUNT,
     store_names},
    {"text", LINK_F_STR, AT(link_store, text), false, 0, 4 * LINK_TEXT_MAX, NULL},
    {0},
};

static int store_decode(const json_t *j, struct link_store *ret, struct det_err *err)
{
    *ret = (struct link_store){.text = ""};
    int rc = link_fields(j, store_fields, ret, err);
    if (rc == 0 && ret->place[0] != '/')
        return det_fail(err, DET_EINVAL, "place: an absolute path is wanted");
    if (rc == 0 && ret->state == LINK_STORE_PRESENT && !ret->id)
        return det_fail(err, DET_EINVAL, "id: missing");
    return rc;
}

static void store_encode(json_t *j, const struct link_store *s)
{
    const char *text = s->text ? s->text : "";
    json_set(j, "place", json_lossy(s->place, strlen(s->place)));
    json_set(j, "state", json_string(store_names[s->state]));
    json_set(j, "text", json_lossy(text, strnlen(text, LINK_TEXT_MAX)));
    if (s->id)
        json_set(j, "id", json_string(s->id));
}

static const struct link_field event_fields[] = {
    {"seq", LINK_F_I64, AT(link_event, seq), true, 1, INT64_MAX / 2, NULL},
    {"type", LINK_F_NEWS, AT(link_event, kind), true, LINK_EV_UNKNOWN, LINK_EVENT_KIND_COUNT,
     event_names},
    {0},
};

static int event_decode(const json_t *j, struct link_event *e, struct det_err *err)
{
    int rc = link_fields(j, event_fields, e, err);
    if (rc < 0 || e->kind == LINK_EV_UNKNOWN)
        return rc;
    if (e->kind == LINK_EV_HELLO)
        return hello_decode(j, &e->hello, err);
    if (e->kind == LINK_EV_STORE)
        return store_decode(j, &e->store, err);
    if (e->kind == LINK_EV_SLOT)
        return sight_decode(j, &e->sight, err);
    rc = task_decode(j, &e->task, err);
    if (rc < 0 || e->kind == LINK_EV_STATE)
        return rc;
    e->task.state = LINK_ENDED;
    return link_exit_decode(json_object_get(j, "exit"), &e->task.exit, err);
}

json_t *link_event_json(const struct link_event *e)
{
    json_t *j = json_object();
    json_set(j, "seq", json_integer(e->seq));
    json_set(j, "type", json_string(event_names[e->kind]));
    if (e->kind == LINK_EV_HELLO) {
        hello_encode(j, &e->hello);
        return j;
    }
    if (e->kind == LINK_EV_STORE) {
        store_encode(j, &e->store);
        return j;
    }
    if (e->kind == LINK_EV_SLOT) {
        sight_encode(j, &e->sight);
        return j;
    }
    JSON_OWN t = task_json(&e->task);
    if (e->kind == LINK_EV_EXIT)
        json_object_del(t, "state");
    json_object_update(j, t);
    return j;
}

static const struct link_field life_fields[] = {
    {"cluster", LINK_F_ID, AT(link_life, cluster), true, 0, 0, NULL},
    {"nonce", LINK_F_ID, AT(link_life, nonce), true, 0, 0, NULL},
    {"epoch", LINK_F_I64, AT(link_life, epoch), true, 1, INT64_MAX / 2, NULL},
    {"batch", LINK_F_I64, AT(link_life, batch), true, 0, INT64_MAX / 2, NULL},
    {"exp", LINK_F_I64, AT(link_life, exp), true, 0, LINK_IDS_MAX, NULL},
    {"trial", LINK_F_I64, AT(link_life, trial), true, 0, LINK_IDS_MAX, NULL},
    {0},
};

int link_life_decode(const json_t *j, struct link_life *ret, struct det_err *err)
{
    *ret = (struct link_life){0};
    return link_fields(j, life_fields, ret, err);
}

json_t *link_life_json(const struct link_life *l)
{
    json_t *j = json_object();
    json_set(j, "cluster", json_string(l->cluster));
    json_set(j, "nonce", json_string(l->nonce));
    json_set(j, "epoch", json_integer(l->epoch));
    json_set(j, "batch", json_integer(l->batch));
    json_set(j, "exp", json_integer(l->exp));
    json_set(j, "trial", json_integer(l->trial));
    return j;
}

static const struct link_field clock_fields[] = {
    {"least_us", LINK_F_I64, AT(clockdiff, least_us), true, -INT64_MAX / 2, INT64_MAX / 2, NULL},
    {"most_us", LINK_F_I64, AT(clockdiff, most_us), true, -INT64_MAX / 2, INT64_MAX / 2, NULL},
    {0},
};

static int clock_decode(const json_t *j, struct clockdiff *ret, struct det_err *err)
{
    int rc = link_fields(j, clock_fields, ret, err);
    if (rc == 0 && ret->least_us > ret->most_us)
        return det_fail(err, DET_EINVAL, "least_us: is above most_us");
    return rc;
}

json_t *link_clock_json(const struct clockdiff *d)
{
    return json_make("{s:I,s:I}", "least_us", (json_int_t)d->least_us, "most_us",
                     (json_int_t)d->most_us);
}

static const struct link_field times_fields[] = {
    {"got_us", LINK_F_I64, AT(link_times, got_us), true, 0, INT64_MAX / 2, NULL},
    {"answered_us", LINK_F_I64, AT(link_times, answered_us), true, 0, INT64_MAX / 2, NULL},
    {0},
};

int link_times_decode(const json_t *j, struct link_times *ret, struct det_err *err)
{
    *ret = (struct link_times){0};
    return link_fields(j, times_fields, ret, err);
}

json_t *link_times_json(const struct link_times *t)
{
    return json_make("{s:I,s:I}", "got_us", (json_int_t)t->got_us, "answered_us",
                     (json_int_t)t->answered_us);
}

static const struct link_field gpu_fields[] = {
    {"slot", LINK_F_INT, AT(link_gpu, slot), true, 0, LINK_SLOTS_MAX - 1, NULL},
    {"util_percent", LINK_F_INT, AT(link_gpu, util_percent), false, 0, 100, NULL},
    {"mem_used", LINK_F_I64, AT(link_gpu, mem_used), false, 0, INT64_MAX / 2, NULL},
    {"mem_total", LINK_F_I64, AT(link_gpu, mem_total), false, 0, INT64_MAX / 2, NULL},
    {"temp_c", LINK_F_INT, AT(link_gpu, temp_c), false, 0, INT_MAX, NULL},
    {"power_mw", LINK_F_INT, AT(link_gpu, power_mw), false, 0, INT_MAX, NULL},
    {"sm_mhz", LINK_F_INT, AT(link_gpu, sm_mhz), false, 0, INT_MAX, NULL},
    {"mem_mhz", LINK_F_INT, AT(link_gpu, mem_mhz), false, 0, INT_MAX, NULL},
    {"idle_s", LINK_F_I64, AT(link_gpu, idle_s), false, 0, INT64_MAX / 2, NULL},
    {0},
};

static int gpus_decode(const json_t *arr, struct link_events *e, struct det_err *err)
{
    if (!json_is_array(arr) || json_array_size(arr) > LINK_SLOTS_MAX)
        return det_fail(err, DET_EINVAL, "an array of at most %d", LINK_SLOTS_MAX);
    e->gpus_n = json_array_size(arr);
    e->gpus = det_zalloc((e->gpus_n + 1) * sizeof *e->gpus);
    for (size_t i = 0; i < e->gpus_n; i++) {
        e->gpus[i] = (struct link_gpu){0, -1, -1, -1, -1, -1, -1, -1, -1};
        int rc = link_fields(json_array_get(arr, i), gpu_fields, &e->gpus[i], err);
        if (rc < 0)
            return det_wrap(err, rc, "[%zu]", i);
    }
    return 0;
}

static void set_known(json_t *j, const char *key, int64_t value)
{
    if (value >= 0)
        json_set(j, key, json_integer(value));
}

json_t *link_gpu_json(const struct link_gpu *g)
{
    json_t *j = json_object();
    json_set(j, "slot", json_integer(g->slot));
    set_known(j, "util_percent", g->util_percent);
    set_known(j, "mem_used", g->mem_used);
    set_known(j, "mem_total", g->mem_total);
    set_known(j, "temp_c", g->temp_c);
    set_known(j, "power_mw", g->power_mw);
    set_known(j, "sm_mhz", g->sm_mhz);
    set_known(j, "mem_mhz", g->mem_mhz);
    set_known(j, "idle_s", g->idle_s);
    return j;
}

json_t *link_events_json(const char *boot, json_t *events_array, json_t *seen)
{
    json_t *j = json_object();
    json_set(j, "boot", json_string(boot));
    json_set(j, "protocol", json_integer(LINK_PROTOCOL));
    json_set(j, "beats", json_true());
    json_set(j, "events", events_array);
    if (seen)
        json_set(j, "seen", json_incref(seen));
    return j;
}

struct events_head {
    const char *boot;
    int protocol;
    json_t *events;
};
static const struct link_field events_fields[] = {
    {"boot", LINK_F_ID, AT(events_head, boot), true, 0, 0, NULL},
    {"protocol", LINK_F_INT, AT(events_head, protocol), true, 0, INT_MAX, NULL},
    {"events", LINK_F_ARR, AT(events_head, events), true, 0, LINK_EVENTS_MAX, NULL},
    {0},
};

int link_protocol_check(int64_t protocol, struct det_err *err)
{
    if (protocol > LINK_PROTOCOL)
        return det_fail(err, DET_EUNIMPL,
                        "protocol %lld is newer than this master's %d: upgrade the master",
                        (long long)protocol, LINK_PROTOCOL);
    if (protocol < LINK_PROTOCOL_MIN)
        return det_fail(err, DET_EUNIMPL,
                        "protocol %lld is older than this master takes (%d to %d): upgrade the "
                        "agent",
                        (long long)protocol, LINK_PROTOCOL_MIN, LINK_PROTOCOL);
    return 0;
}

static int events_decode(struct link_events *e, struct det_err *err)
{
    struct events_head h = {0};
    int rc = link_fields(e->json, events_fields, &h, err);
    if (rc < 0)
        return rc;
    e->boot = h.boot;
    e->protocol = h.protocol;
    e->beats = json_flag(e->json, "beats", false);
    rc = link_protocol_check(e->protocol, err);
    if (rc < 0)
        return rc;
    e->has_seen = json_object_get(e->json, "seen") != NULL;
    if (e->has_seen && link_life_decode(json_object_get(e->json, "seen"), &e->seen, err) < 0)
        return det_wrap(err, DET_EINVAL, "seen");
    const json_t *clock = json_object_get(e->json, "clock");
    e->has_clock = clock != NULL;
    if (e->has_clock && clock_decode(clock, &e->clock, err) < 0)
        return det_wrap(err, DET_EINVAL, "clock");
    const json_t *gpus = json_object_get(e->json, "gpus");
    rc = gpus ? gpus_decode(gpus, e, err) : 0;
    if (rc < 0)
        return det_wrap(err, rc, "gpus");
    e->n = json_array_size(h.events);
    e->v = det_zalloc((e->n + 1) * sizeof *e->v);
    for (size_t i = 0; i < e->n; i++) {
        rc = event_decode(json_array_get(h.events, i), &e->v[i], err);
        if (rc < 0)
            return det_wrap(err, rc, "events[%zu]", i);
        if (i > 0 && e->v[i].seq != e->v[i - 1].seq + 1)
            return det_fail(err, DET_EINVAL, "events[%zu].seq: %lld does not follow %lld", i,
                            (long long)e->v[i].seq, (long long)e->v[i - 1].seq);
    }
    return 0;
}

int link_events_decode(const char *text, size_t len, struct link_events *ret, struct det_err *err)
{
    *ret = (struct link_events){0};
    if (len > LINK_BODY_MAX)
        return det_fail(err, DET_ETOOBIG, "a request of %zu bytes, at most %zu are allowed", len,
                        LINK_BODY_MAX);
    ret->json = json_parse(text, len, err);
    if (!ret->json)
        return DET_EINVAL;
    int rc = events_decode(ret, err);
    if (rc < 0)
        link_events_finish(ret);
    return rc;
}

void link_events_finish(struct link_events *e)
{
    for (size_t i = 0; i < e->n && e->v; i++) {
        free(e->v[i].hello.slots);
        free(e->v[i].hello.unfit);
        for (size_t k = 0; k < e->v[i].hello.tasks_n && e->v[i].hello.tasks; k++)
            free(e->v[i].hello.tasks[k].marks);
        free(e->v[i].hello.tasks);
        free(e->v[i].task.marks);
    }
    free(e->v);
    free(e->gpus);
    json_decref(e->json);
    *e = (struct link_events){0};
}

int link_ack_decode(const char *text, size_t len, struct link_ack *ret, struct det_err *err)
{
    static const struct link_field fields[] = {
        {"ack", LINK_F_I64, AT(link_ack, ack), true, 0, INT64_MAX / 2, NULL}, {0}};
    *ret = (struct link_ack){0};
    JSON_OWN j = len <= LINK_BODY_MAX ? json_parse(text, len, err) : NULL;
    int rc = j ? link_fields(j, fields, ret, err) : DET_EINVAL;
    ret->has_life = rc == 0 && json_object_get(j, "life");
    if (ret->has_life)
        rc = link_life_decode(json_object_get(j, "life"), &ret->life, err);
    ret->has_clock = rc == 0 && json_object_get(j, "clock");
    if (ret->has_clock)
        rc = link_times_decode(json_object_get(j, "clock"), &ret->clock, err);
    if (rc == 0)
        ret->json = det_take(j);
    return rc;
}

void link_ack_finish(struct link_ack *a)
{
    json_decref(a->json);
    *a = (struct link_ack){0};
}
