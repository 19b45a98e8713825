#include "gpujudge.h"

#include "mem.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* NVIDIA's catalogue of XIDs: those after which the GPU does no more work before a reset. */
static const struct {
    unsigned xid;
    const char *text;
} fatal[] = {
    {46, "the GPU has stopped processing"},
    {48, "a double-bit ECC error"},
    {62, "its internal micro-controller has halted"},
    {64, "a row of its memory could not be remapped"},
    {74, "an error of NVLink"},
    {79, "the GPU has fallen off the bus"},
    {95, "an uncontained ECC error"},
    {110, "a security fault"},
    {119, "its system processor (GSP) does not answer"},
    {120, "its system processor (GSP) has failed"},
    {140, "an unrecovered ECC error"},
};

bool gpu_xid_is_fatal(uint64_t xid)
{
    for (size_t i = 0; i < DET_ARRAY_LEN(fatal); i++)
        if (fatal[i].xid == xid)
            return true;
    return false;
}

const char *gpu_xid_text(uint64_t xid)
{
    for (size_t i = 0; i < DET_ARRAY_LEN(fatal); i++)
        if (fatal[i].xid == xid)
            return fatal[i].text;
    return "an error of the GPU";
}

static struct gpu_verdict make_verdict(enum link_slot_state state, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static struct gpu_verdict make_verdict(enum link_slot_state state, const char *fmt, ...)
{
    struct gpu_verdict v = {.state = state};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(v.text, sizeof v.text, fmt, ap);
    va_end(ap);
    return v;
}

/* One whose namespace is not seen may be a task's own. */
static bool is_foreign(const struct gpu_process *p, bool has_task)
{
    return !p->is_ours && !(p->is_hidden && has_task);
}

static const struct gpu_process *first_foreign(const struct gpu_sight *s, bool has_task,
                                               size_t *ret_n)
{
    const struct gpu_process *first = NULL;
    *ret_n = 0;
    for (size_t i = 0; i < s->processes_n; i++) {
        if (!is_foreign(&s->processes[i], has_task))
            continue;
        if (!first)
            first = &s->processes[i];
        ++*ret_n;
    }
    return first;
}

/* One that was seen between its fork and its exec has another name soon. */
static bool is_there(const struct gpu_sight *s, bool has_task, const struct gpu_process *p)
{
    for (size_t i = 0; i < s->processes_n; i++)
        if (s->processes[i].pid == p->pid && is_foreign(&s->processes[i], has_task))
            return strcmp(s->processes[i].name, p->name) == 0;
    return false;
}

static const char *name_of(const struct gpu_process *p)
{
    return p->name[0] ? p->name : p->is_hidden ? "of another PID namespace" : "?";
}

static struct gpu_verdict report_foreign(const struct gpu_process *p, size_t n)
{
    char more[64] = "";
    if (n > 1)
        snprintf(more, sizeof more, " and %zu more", n - 1);
    return make_verdict(LINK_SLOT_FOREIGN, "held by process %d (%s)%s that %s none of ours", p->pid,
                        name_of(p), more, n > 1 ? "are" : "is");
}

static bool has_failed(const struct gpu_sight *s, struct gpu_verdict *ret)
{
    if (s->lost)
        *ret = make_verdict(LINK_SLOT_AILING, "%s", s->lost);
    else if (s->xid)
        *ret = make_verdict(LINK_SLOT_AILING, "XID %u: %s; out until it is reset", s->xid,
                            gpu_xid_text(s->xid));
    else if (s->remap_failed)
        *ret = make_verdict(LINK_SLOT_AILING,
                            "a row of its memory could not be remapped: the GPU is to "
                            "be replaced");
    else if (s->ecc_uncorrected)
        *ret = make_verdict(LINK_SLOT_AILING, "uncorrected ECC errors; out until it is reset");
    else
        return false;
    return true;
}

/* Of a slot that nobody has. */
static bool holds_memory(struct gpu_past *past, const struct gpu_sight *s)
{
    if (s->mem_used == 0)
        return false;
    if (past->mem_idle == 0 || s->mem_used < past->mem_idle)
        past->mem_idle = s->mem_used;
    return s->mem_used > past->mem_idle + GPU_SLACK_BYTES;
}

/* In steps of a tenth of a GiB a figure that moves is news too often. */
static uint64_t in_gib(uint64_t bytes)
{
    const uint64_t gib = (uint64_t)1 << 30;
    return (bytes + gib / 2) / gib;
}

static struct gpu_verdict report_held(const struct gpu_sight *s)
{
    return make_verdict(LINK_SLOT_HELD,
                        "memory still held: about %" PRIu64 " of %" PRIu64
                        " GiB are in use, and no process is to be seen",
                        in_gib(s->mem_used), in_gib(s->mem_total));
}

/* Of a slot that nobody has: what a task has left there. */
static const struct gpu_process *left_behind(const struct gpu_sight *s)
{
    for (size_t i = 0; i < s->processes_n; i++)
        if (s->processes[i].is_ours)
            return &s->processes[i];
    return NULL;
}

static struct gpu_verdict held_by(const struct gpu_process *p)
{
    char amount[64] = "";
    if (p->mem_bytes > 0)
        snprintf(amount, sizeof amount, ": about %" PRIu64 " GiB", in_gib(p->mem_bytes));
    return make_verdict(LINK_SLOT_HELD,
                        "memory of an ended task is still held%s by process %d (%s)", amount,
                        p->pid, name_of(p));
}

/* Those of a namespace that is not seen may be of the task that ends: they are waited for too. */
static bool may_be_given_back(const struct gpu_past *past, const struct gpu_sight *s)
{
    for (size_t i = 0; i < s->processes_n; i++)
        if (s->processes[i].is_ours || s->processes[i].is_hidden)
            return true;
    return s->processes_n == 0 && past->mem_idle > 0 &&
           s->mem_used > past->mem_idle + GPU_SLACK_BYTES;
}

static struct gpu_verdict report_unsettled(void)
{
    return make_verdict(LINK_SLOT_UNSEEN, "%s", GPU_UNSETTLED);
}

struct gpu_verdict gpu_settle(struct gpu_past *past, uint64_t now_ms)
{
    past->settle_end_ms = now_ms + GPU_SETTLE_MS;
    past->suspected = LINK_SLOT_USABLE;
    return report_unsettled();
}

/* By what is on it. The figures of one that was named before are not said anew. */
static struct gpu_verdict look_at(struct gpu_past *past, const struct gpu_sight *s, bool has_task,
                                  const struct gpu_verdict *before)
{
    size_t n;
    const struct gpu_process *p = first_foreign(s, has_task, &n);
    if (p && before->state == LINK_SLOT_FOREIGN && is_there(s, has_task, &past->named))
        return *before;
    if (p) {
        past->named = *p;
        return report_foreign(p, n);
    }
    p = has_task ? NULL : left_behind(s);
    if (p && before->state == LINK_SLOT_HELD && past->named.pid == p->pid)
        return *before;
    if (p) {
        past->named = *p;
        return held_by(p);
    }
    if (has_task || s->processes_n > 0 || !holds_memory(past, s))
        return (struct gpu_verdict){.state = LINK_SLOT_USABLE};
    past->named = (struct gpu_process){0};
    return report_held(s);
}

/* Processes that come and go would give and take the slot every few seconds, a line each time. */
static void keep_calm(struct gpu_past *past, struct gpu_verdict *v, uint64_t now_ms,
                      const struct gpu_verdict *before)
{
    uint64_t since = now_ms - past->foreign_ms;
    if (v->state == LINK_SLOT_FOREIGN) {
        if (past->foreign_ms == 0 || since >= GPU_AGAIN_MS)
            past->calm_ms = 0;
        else if (before->state != LINK_SLOT_FOREIGN)
            past->calm_ms = past->calm_ms == 0                ? GPU_CALM_MS
                            : past->calm_ms < GPU_CALM_MS_MAX ? past->calm_ms * 2
                                                              : GPU_CALM_MS_MAX;
        past->foreign_ms = now_ms;
    } else if (v->state == LINK_SLOT_USABLE && since < past->calm_ms) {
        *v = make_verdict(LINK_SLOT_FOREIGN,
                          "processes that are none of ours come and go, last %d (%s)",
                          past->named.pid, name_of(&past->named));
    }
}

struct gpu_verdict gpu_judge(struct gpu_past *past, const struct gpu_sight *s, bool has_task,
                             uint64_t now_ms, const struct gpu_verdict *before)
{
    struct gpu_verdict v;
    if (has_failed(s, &v))
        return v;
    if (has_task)
        past->settle_end_ms = 0;
    if (past->settle_end_ms > now_ms && may_be_given_back(past, s))
        return report_unsettled();
    v = look_at(past, s, has_task, before);
    bool is_late = past->settle_end_ms > 0 && v.state == LINK_SLOT_HELD;
    if (!is_late)
        past->settle_end_ms = 0;
    enum link_slot_state suspected = past->suspected;
    past->suspected = v.state;
    if (v.state != LINK_SLOT_USABLE && !is_late && suspected != v.state && before->state != v.state)
        return *before;
    keep_calm(past, &v, now_ms, before);
    return v;
}
