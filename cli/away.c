#include "away.h"

#include "plain.h"

#include <stdio.h>

bool away_answered(struct away *a)
{
    bool was_away = a->since_ms != 0;
    *a = (struct away){.was_there = true};
    return was_away;
}

static bool is_absence(const struct det_err *err)
{
    return err->code == DET_EUNAVAIL || err->code == DET_ETIMEOUT;
}

bool away_is_borne(struct away *a, const struct det_err *err, int64_t asked_ms, int64_t now_ms)
{
    if (!a->was_there || !is_absence(err))
        return false;
    if (a->since_ms == 0)
        a->since_ms = asked_ms;
    return now_ms - a->since_ms < AWAY_MAX_MS;
}

void away_tell(struct away *a, const struct det_err *err)
{
    if (!a->is_told)
        plain_say("det: the master is away, and is asked again: ", err->text);
    a->is_told = true;
}

void away_tell_back(void)
{
    fputs("det: the master is back\n", stderr);
}
