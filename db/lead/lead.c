#include "lead.h"

void lead_watch_reset(struct lead_watch *w)
{
    *w = (struct lead_watch){.is_used = true};
}

static int64_t step_ms(const struct lead_watch *w, int64_t now_ms)
{
    int64_t step = w->has_last ? now_ms - w->at_ms : 0;
    return step < 0 ? 0 : step > 2 * LEAD_POLL_MS ? 2 * LEAD_POLL_MS : step;
}

bool lead_watch_look(struct lead_watch *w, int64_t now_ms, const struct lead_seen *seen)
{
    bool first = !w->is_used;
    int64_t step = step_ms(w, now_ms);
    bool still = w->has_last && w->last.epoch == seen->epoch && w->last.beat == seen->beat;
    w->silent_ms = still ? w->silent_ms + step : 0;
    w->gone_ms = seen->vacant && w->has_last && w->last.vacant ? w->gone_ms + step : 0;
    w->is_used = w->has_last = true;
    w->last = *seen;
    w->at_ms = now_ms;
    if (seen->vacant && seen->refused && (first || w->gone_ms >= LEAD_GONE_MS))
        return true;
    return w->silent_ms >= LEAD_SILENT_MS;
}
