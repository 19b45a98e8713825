#include "gpuwatch.h"

#include "gpuerrors.h"
#include "log.h"
#include "mem.h"
#include "nvml.h"
#include "pidowner.h"
#include "thread.h"
#include "vec.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define TICK_MS         1000
#define SETTLE_TICK_MS  200
#define RETRY_LOOKS_MAX 32
#define UUID_BYTES_MAX  96
#define MPS_SERVER      "nvidia-cuda-mps" /* in whose name everybody's kernels run */

struct watched {
    int slot;
    char *uuid;
    nvml_device device, whole;       /* NULL: not found */
    char whole_uuid[UUID_BYTES_MAX]; /* "": not known (yet) */
    unsigned xid;                    /* the first that is fatal since it was reset; 0: none */
    uint64_t last_xid;               /* of any kind: a program that makes many has one line */
};

/* The thread's own, but for what the lock guards. */
struct looker {
    struct nvml nvml;
    struct gpuerrors *errors;
    nvml_events events; /* NULL: none, the thread waits by the clock */
    char work_dir[PATH_MAX];
    struct watched *v;
    size_t n;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    /* guarded */
    struct gpu_sight *seen; /* n of them, of the last look */
    uint64_t asked;         /* looks that somebody wants at once, so far */
    uint64_t answered;      /* of these when the last look began */
    bool is_fresh, is_closed;
    uv_async_t *async; /* NULL: closed */
};

struct judged {
    int slot;
    struct gpu_past past;
    struct gpu_verdict verdict, logged;
    uint64_t asked; /* looks that answer less began before its last task's end */
};

struct gpuwatch {
    struct looker *looker;
    struct gpuwatch_handlers h;
    struct judged *v;
    struct gpu_sight *seen; /* a copy of the looker's */
    size_t n;
    uv_async_t async;
    uv_timer_t timer;
    uint64_t last_ms;
    bool is_silent;
    int open; /* handles */
};

static void looker_free(struct looker *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->v[i].uuid);
    free(l->v);
    free(l->seen);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->wake);
    free(l);
}

/* ---- in the thread ---- */

static uint64_t energy_of(const struct nvml *n, nvml_device whole)
{
    unsigned long long mj = 0;
    return n->energy && n->energy(whole, &mj) == NVML_OK ? mj : 0;
}

/* Of a GPU and of its instances: the errors are of the whole. */
static void find_device(struct looker *l, struct watched *w)
{
    const struct nvml *n = &l->nvml;
    w->device = w->whole = NULL;
    if (!n->by_uuid || n->by_uuid(w->uuid, &w->device) != NVML_OK) {
        w->device = NULL;
        return;
    }
    if (!n->mig_whole || strncmp(w->uuid, "MIG-", 4) != 0 ||
        n->mig_whole(w->device, &w->whole) != NVML_OK)
        w->whole = w->device;
    if (n->uuid(w->whole, w->whole_uuid, sizeof w->whole_uuid) == NVML_OK)
        w->xid = gpuerrors_get(l->errors, w->whole_uuid, energy_of(n, w->whole));
}

static void find_devices(struct looker *l)
{
    for (size_t i = 0; i < l->n; i++)
        find_device(l, &l->v[i]);
}

static void register_events(struct looker *l)
{
    const struct nvml *n = &l->nvml;
    l->events = NULL;
    if (!n->events_create || !n->events_add || !n->events_wait || !n->events_free ||
        n->events_create(&l->events) != NVML_OK) {
        l->events = NULL;
        return;
    }
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].whole)
            n->events_add(l->v[i].whole, NVML_EVENT_XID, l->events);
}

static bool begin_nvml(struct looker *l)
{
    if (l->nvml.init() != NVML_OK)
        return false;
    find_devices(l);
    register_events(l);
    return true;
}

static void end_nvml(struct looker *l)
{
    if (l->events)
        l->nvml.events_free(l->events);
    l->events = NULL;
    l->nvml.shutdown();
}

static void look_at_processes(const struct looker *l, const struct watched *w, struct gpu_sight *s)
{
    /* room for a driver that has more fields than it should */
    struct nvml_process found[GPU_PROCESSES_MAX * 2] = {0};
    unsigned n = GPU_PROCESSES_MAX;
    int rc = l->nvml.processes ? l->nvml.processes(w->device, &n, found) : NVML_NOT_SUPPORTED;
    if (rc != NVML_OK)
        return;
    for (unsigned i = 0; i < n && i < GPU_PROCESSES_MAX; i++) {
        struct gpu_process p = {.pid = (int)found[i].pid,
                                .mem_bytes =
                                    found[i].mem_bytes == ULLONG_MAX ? 0 : found[i].mem_bytes};
        enum pidowner o = pidowner_of(p.pid, l->work_dir, p.name, sizeof p.name);
        if (o == PID_GONE || strncmp(p.name, MPS_SERVER, strlen(MPS_SERVER)) == 0)
            continue;
        p.is_ours = o == PID_OURS;
        p.is_hidden = o == PID_HIDDEN;
        s->processes[s->processes_n++] = p;
    }
}

static void look_at_errors(const struct nvml *n, const struct watched *w, struct gpu_sight *s)
{
    unsigned corrected, uncorrected, pending, failed = 0;
    unsigned long long ecc = 0;
    if (n->ecc && n->ecc(w->whole, NVML_ECC_UNCORRECTED, NVML_ECC_VOLATILE, &ecc) == NVML_OK)
        s->ecc_uncorrected = ecc;
    if (n->remapped &&
        n->remapped(w->whole, &corrected, &uncorrected, &pending, &failed) == NVML_OK)
        s->remap_failed = failed;
}

static void look_at_figures(const struct nvml *n, const struct watched *w, struct gpu_sight *s)
{
    struct nvml_utilization u;
    unsigned x;
    s->utilisation = s->temperature_c = s->power_w = s->sm_mhz = s->mem_mhz = GPU_UNKNOWN;
    if (n->utilization && n->utilization(w->device, &u) == NVML_OK)
        s->utilisation = u.gpu;
    if (n->temperature && n->temperature(w->whole, NVML_TEMPERATURE_GPU, &x) == NVML_OK)
        s->temperature_c = x;
    if (n->power && n->power(w->whole, &x) == NVML_OK)
        s->power_w = x / 1000.0;
    if (n->clock && n->clock(w->whole, NVML_CLOCK_SM, &x) == NVML_OK)
        s->sm_mhz = x;
    if (n->clock && n->clock(w->whole, NVML_CLOCK_MEM, &x) == NVML_OK)
        s->mem_mhz = x;
}

static const char *lost_text(int rc)
{
    return rc == NVML_GPU_IS_LOST      ? "the GPU has fallen off the bus"
           : rc == NVML_RESET_REQUIRED ? "the driver wants the GPU to be reset"
                                       : "the driver says nothing of it";
}

/* Its memory is what every driver tells: when not of this one, it is lost. False: begin anew. */
static bool look_at(const struct looker *l, const struct watched *w, struct gpu_sight *s)
{
    const struct nvml *n = &l->nvml;
    struct nvml_memory m = {0};
    *s = (struct gpu_sight){.xid = w->xid};
    if (!w->device) {
        s->lost = "the driver does not know it (any more)";
        return false;
    }
    int rc = n->memory ? n->memory(w->device, &m) : NVML_NOT_SUPPORTED;
    if (rc != NVML_OK && rc != NVML_NOT_SUPPORTED) {
        s->lost = lost_text(rc);
        return false;
    }
    s->mem_total = m.total;
    s->mem_used = m.used;
    look_at_errors(n, w, s);
    look_at_figures(n, w, s);
    look_at_processes(l, w, s);
    return true;
}

static uint64_t count_asked(struct looker *l)
{
    pthread_mutex_lock(&l->lock);
    uint64_t n = l->asked;
    pthread_mutex_unlock(&l->lock);
    return n;
}

static void publish_sights(struct looker *l, const struct gpu_sight *seen, uint64_t answered)
{
    pthread_mutex_lock(&l->lock);
    l->answered = answered;
    memcpy(l->seen, seen, l->n * sizeof *seen);
    l->is_fresh = true;
    if (l->async)
        uv_async_send(l->async);
    pthread_mutex_unlock(&l->lock);
}

static bool look_at_all(struct looker *l, struct gpu_sight *seen)
{
    bool good = true;
    for (size_t i = 0; i < l->n; i++)
        good &= look_at(l, &l->v[i], &seen[i]);
    return good;
}

static void on_event(struct looker *l, const struct nvml_event *e)
{
    for (size_t i = 0; e->type & NVML_EVENT_XID && i < l->n; i++) {
        struct watched *w = &l->v[i];
        if (w->whole != e->device)
            continue;
        if (w->last_xid != e->data)
            log_warning("slot %d: XID %llu", w->slot, e->data);
        w->last_xid = e->data;
        if (w->xid > 0 || !gpu_xid_is_fatal(e->data))
            continue;
        w->xid = (unsigned)e->data;
        gpuerrors_put(l->errors, w->whole_uuid, w->xid, energy_of(&l->nvml, w->whole));
    }
}

/* Until somebody asks for more than was answered, the end, or for the time. */
static void wait_by_clock(struct looker *l, long ms, uint64_t answered)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += ms / 1000;
    t.tv_nsec += ms % 1000 * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&l->lock);
    while (l->asked == answered && !l->is_closed &&
           pthread_cond_timedwait(&l->wake, &l->lock, &t) == 0)
        ;
    pthread_mutex_unlock(&l->lock);
}

/* Events that came meanwhile: asked for without waiting, so that a kick is heard at once. */
static void take_events(struct looker *l)
{
    struct nvml_event e = {0};
    for (int i = 0; l->events && i < 64 && l->nvml.events_wait(l->events, &e, 0) == NVML_OK; i++)
        on_event(l, &e);
}

static bool is_closed(struct looker *l)
{
    pthread_mutex_lock(&l->lock);
    bool closed = l->is_closed;
    pthread_mutex_unlock(&l->lock);
    return closed;
}

static void say_lost(const struct looker *l, struct gpu_sight *seen)
{
    for (size_t i = 0; i < l->n; i++)
        seen[i] =
            (struct gpu_sight){.xid = l->v[i].xid, .lost = "the driver cannot be reached (NVML)"};
}

/* A GPU that is lost may need NVML begun anew to be seen again, but errors of the others that come
 * meanwhile are not heard: it is done at the first look that is not good, and again 2, 3, 5, 9 ..
 * looks later. */
struct retry {
    unsigned wait, left; /* looks */
};

static bool is_due(struct retry *r, bool good)
{
    if (good) {
        *r = (struct retry){0};
        return false;
    }
    if (r->left > 0) {
        r->left--;
        return false;
    }
    r->wait = r->wait == 0 ? 1 : r->wait < RETRY_LOOKS_MAX ? r->wait * 2 : RETRY_LOOKS_MAX;
    r->left = r->wait;
    return true;
}

/* One turn; true while NVML is begun. Without it there is nothing to miss: each turn tries. */
static bool take_turn(struct looker *l, struct gpu_sight *seen, bool begun, struct retry *retry)
{
    bool good = false;
    uint64_t answers = count_asked(l);
    if (begun)
        take_events(l);
    if (begun)
        good = look_at_all(l, seen);
    else
        say_lost(l, seen);
    publish_sights(l, seen, answers);
    wait_by_clock(l, GPUWATCH_EVERY_MS, answers);
    if (!begun)
        return begin_nvml(l);
    if (!is_due(retry, good))
        return true;
    take_events(l);
    end_nvml(l);
    return begin_nvml(l);
}

static void *watch_gpus(void *arg)
{
    struct looker *l = arg;
    struct gpu_sight *seen = det_zalloc(l->n * sizeof *seen);
    struct retry retry = {0};
    l->errors = gpuerrors_open(l->work_dir);
    bool begun = begin_nvml(l);
    while (!is_closed(l))
        begun = take_turn(l, seen, begun, &retry);
    if (begun)
        end_nvml(l);
    gpuerrors_close(l->errors);
    free(seen);
    looker_free(l); /* closed: nobody else has it */
    return NULL;
}

/* ---- outside ---- */

static void on_tick(uv_timer_t *t);

/* What others have on it may be new at each look: the first is told, and the end. That it is looked
 * at after a task is nothing new. */
static void log_news(struct judged *j)
{
    const struct gpu_verdict *v = &j->verdict;
    if (v->state == LINK_SLOT_UNSEEN ||
        (v->state == j->logged.state &&
         (v->state != LINK_SLOT_AILING || strcmp(v->text, j->logged.text) == 0)))
        return;
    j->logged = *v;
    log_info("slot %d: %s%s%s", j->slot, link_slot_state_name(v->state), v->text[0] ? ": " : "",
             v->text);
}

static void judge_slot(struct gpuwatch *w, size_t i)
{
    struct judged *j = &w->v[i];
    struct gpu_verdict before = j->verdict;
    j->verdict = gpu_judge(&j->past, &w->seen[i], w->h.has_task(w->h.arg, j->slot),
                           uv_now(w->timer.loop), &before);
    log_news(j);
    w->h.on_slot(w->h.arg, j->slot, &j->verdict, &w->seen[i]);
}

static bool is_settling(const struct gpuwatch *w)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->v[i].past.settle_end_ms > uv_now(w->timer.loop))
            return true;
    return false;
}

/* All of them before anybody acts on one: a gang's slots come free together. */
static void judge_all(struct gpuwatch *w, uint64_t answered)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->v[i].asked <= answered)
            judge_slot(w, i);
    w->h.on_looked(w->h.arg);
    if (is_settling(w))
        uv_timer_start(&w->timer, on_tick, SETTLE_TICK_MS, TICK_MS);
}

static void on_async(uv_async_t *a)
{
    struct gpuwatch *w = a->data;
    struct looker *l = w->looker;
    pthread_mutex_lock(&l->lock);
    bool fresh = l->is_fresh;
    uint64_t answered = l->answered;
    l->is_fresh = false;
    memcpy(w->seen, l->seen, w->n * sizeof *w->seen);
    pthread_mutex_unlock(&l->lock);
    if (!fresh)
        return;
    w->last_ms = uv_now(a->loop);
    w->is_silent = false;
    judge_all(w, answered);
}

static void on_tick(uv_timer_t *t)
{
    struct gpuwatch *w = t->data;
    if (is_settling(w))
        gpuwatch_kick(w);
    if (w->is_silent || uv_now(t->loop) - w->last_ms < GPUWATCH_SILENCE_MS)
        return;
    w->is_silent = true;
    for (size_t i = 0; i < w->n; i++)
        w->seen[i] = (struct gpu_sight){.lost = "the driver does not answer: NVML hangs"};
    judge_all(w, UINT64_MAX);
}

static struct looker *looker_create(const struct slots *slots, const char *work_dir)
{
    struct looker *l = det_zalloc(sizeof *l);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&l->wake, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&l->lock, NULL);
    if (!realpath(work_dir, l->work_dir))
        snprintf(l->work_dir, sizeof l->work_dir, "%s", work_dir);
    l->v = det_zalloc((slots->v.n + 1) * sizeof *l->v);
    for (size_t i = 0; i < slots->v.n; i++)
        if (slots->v.v[i].type == LINK_CUDA)
            l->v[l->n++] =
                (struct watched){.slot = slots->v.v[i].id, .uuid = det_strdup(slots->v.v[i].uuid)};
    l->seen = det_zalloc((l->n + 1) * sizeof *l->seen);
    if (l->n > 0 && nvml_load(&l->nvml) == 0)
        return l;
    nvml_unload(&l->nvml);
    looker_free(l);
    return NULL;
}

struct gpuwatch *gpuwatch_create(uv_loop_t *loop, const struct slots *slots, const char *work_dir,
                                 const struct gpuwatch_handlers *h)
{
    struct looker *l = looker_create(slots, work_dir);
    if (!l)
        return NULL;
    struct gpuwatch *w = det_zalloc(sizeof *w);
    w->looker = l;
    w->h = *h;
    w->n = l->n;
    w->v = det_zalloc(w->n * sizeof *w->v);
    w->seen = det_zalloc(w->n * sizeof *w->seen);
    uv_async_init(loop, &w->async, on_async);
    uv_timer_init(loop, &w->timer);
    uv_unref((uv_handle_t *)&w->async);
    uv_unref((uv_handle_t *)&w->timer);
    w->async.data = w->timer.data = w;
    w->open = 2;
    w->last_ms = uv_now(loop);
    l->async = &w->async;
    for (size_t i = 0; i < w->n; i++) {
        w->v[i].slot = l->v[i].slot;
        w->v[i].verdict = w->v[i].logged =
            (struct gpu_verdict){LINK_SLOT_UNSEEN, "its agent has not looked at it yet"};
        h->on_slot(h->arg, w->v[i].slot, &w->v[i].verdict, &w->seen[i]);
    }
    uv_timer_start(&w->timer, on_tick, TICK_MS, TICK_MS);
    if (thread_start_detached(watch_gpus, l) != 0) /* told as a driver that does not answer */
        log_error("no thread to look at the GPUs: %s", "the system has no more");
    return w;
}

void gpuwatch_kick(struct gpuwatch *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->looker->lock);
    w->looker->asked++;
    pthread_cond_signal(&w->looker->wake);
    pthread_mutex_unlock(&w->looker->lock);
}

void gpuwatch_settle(struct gpuwatch *w, int slot)
{
    for (size_t i = 0; w && i < w->n; i++) {
        struct judged *j = &w->v[i];
        if (j->slot != slot)
            continue;
        gpuwatch_kick(w);
        j->asked = count_asked(w->looker);
        j->verdict = gpu_settle(&j->past, uv_now(w->timer.loop));
        w->h.on_slot(w->h.arg, slot, &j->verdict, &w->seen[i]);
        w->is_silent = false; /* a driver that does not answer is told anew */
    }
}

static void on_closed(uv_handle_t *h)
{
    struct gpuwatch *w = h->data;
    if (--w->open > 0)
        return;
    free(w->v);
    free(w->seen);
    free(w);
}

void gpuwatch_close(struct gpuwatch *w)
{
    if (!w)
        return;
    struct looker *l = w->looker;
    pthread_mutex_lock(&l->lock);
    l->async = NULL;
    l->is_closed = true;
    pthread_cond_signal(&l->wake);
    pthread_mutex_unlock(&l->lock);
    uv_close((uv_handle_t *)&w->async, on_closed);
    uv_close((uv_handle_t *)&w->timer, on_closed);
}
