#include "stall.h"

#include "fsx.h"
#include "progress.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct watched {
    int fd;
    uint64_t batches;
    int64_t mono_ms;
    uint32_t phase;
    int64_t changed_ms; /* when we saw it change; 0: the time does not count yet */
};
struct stall {
    int64_t timeout_ms;
    struct stall_found longest; /* at the last look; local -1: none is silent */
    struct stall_found told;    /* likewise */
    bool from_start;
    int n;
    struct watched v[];
};

struct stall *stall_create(const struct taskspec *spec, int n, bool from_start, int64_t now_ms)
{
    struct stall *s = det_zalloc(sizeof *s + (size_t)n * sizeof s->v[0]);
    s->timeout_ms = spec->task.stall_timeout_ms;
    s->longest.local = s->told.local = -1;
    s->from_start = from_start;
    s->n = n;
    for (int i = 0; i < n; i++) {
        char name[64];
        snprintf(name, sizeof name, "run/progress.%d", i);
        s->v[i].fd = fsx_open_beneath(spec->dirfd, name, O_RDONLY | O_NOFOLLOW, 0, NULL);
        s->v[i].changed_ms = from_start ? now_ms : 0;
    }
    return s;
}

void stall_destroy(struct stall *s)
{
    for (int i = 0; s && i < s->n; i++)
        det_closep(&s->v[i].fd);
    free(s);
}

/* What the file says now; false as long as the rank has not begun, or (ended) no more is to come of
 * one that had. */
static bool read_progress(int fd, struct watched *ret, bool *ended)
{
    struct progress p;
    bool is_whole = fd >= 0 && pread(fd, &p, sizeof p, 0) == (ssize_t)sizeof p;
    *ended = is_whole && p.magic == 0;
    if (!is_whole || p.magic != PROGRESS_MAGIC)
        return false;
    ret->batches = p.batches;
    ret->mono_ms = p.mono_ms;
    ret->phase = p.phase;
    return true;
}

static void note_progress(const struct stall *s, struct watched *w, int64_t now_ms)
{
    struct watched now = {0};
    bool ended = false, begun = read_progress(w->fd, &now, &ended);
    if (ended && !s->from_start)
        w->changed_ms = 0;
    if (!begun || (w->changed_ms != 0 && now.batches == w->batches && now.mono_ms == w->mono_ms &&
                   now.phase == w->phase))
        return;
    w->batches = now.batches;
    w->mono_ms = now.mono_ms;
    w->phase = now.phase;
    w->changed_ms = now_ms;
}

bool stall_check(struct stall *s, int64_t now_ms, struct stall_found *ret)
{
    struct stall_found longest = {.local = -1};
    for (int i = 0; i < s->n; i++) {
        struct watched *w = &s->v[i];
        note_progress(s, w, now_ms);
        int64_t silent_ms = w->changed_ms ? now_ms - w->changed_ms : 0;
        if (silent_ms > longest.silent_ms)
            longest = (struct stall_found){i, w->batches, progress_phase_name(w->phase), silent_ms};
    }
    *ret = s->longest = longest;
    return longest.local >= 0 && longest.silent_ms >= s->timeout_ms;
}

/* Silences of less than a second are nobody's concern, whatever the timeout. */
static int64_t told_from_ms(const struct stall *s)
{
    int64_t ms = s->timeout_ms / 10;
    return ms < 1000 ? 1000 : ms > 10000 ? 10000 : ms;
}

static bool is_news(const struct stall *s, bool is_silent)
{
    const struct stall_found *now = &s->longest, *told = &s->told;
    if (!is_silent || told->local < 0)
        return is_silent != (told->local >= 0);
    return now->local != told->local || now->silent_ms < told->silent_ms ||
           now->silent_ms >= told->silent_ms + s->timeout_ms / 10;
}

bool stall_news(struct stall *s, struct stall_found *ret)
{
    bool is_silent = s->longest.local >= 0 && s->longest.silent_ms >= told_from_ms(s);
    if (!is_news(s, is_silent))
        return false;
    *ret = s->told = is_silent ? s->longest : (struct stall_found){.local = -1};
    return true;
}

void stall_forgive(struct stall *s, int64_t ms)
{
    for (int i = 0; i < s->n; i++)
        s->v[i].changed_ms += s->v[i].changed_ms ? ms : 0;
}

uint64_t stall_period_ms(const struct stall *s)
{
    int64_t ms = s->timeout_ms / 8;
    return (uint64_t)(ms < 20 ? 20 : ms > 1000 ? 1000 : ms);
}
