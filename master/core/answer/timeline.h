/*
 * How long each thing on a trial's timeline took. Pure.
 *
 * A row is the end of something that knows its own duration (compiling, a validation), or a moment.
 * What some moments began lasts until another of the same run: being queued until it is placed,
 * being placed until the first process starts, a kill or a preemption until the run's end.
 */
#ifndef CORE_TIMELINE_H
#define CORE_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timeline_entry {
    int64_t at_us, run_id;
    const char *kind;          /* borrowed */
    const char *detail, *time; /* borrowed; this and the next are not looked at */
    int node;
    int64_t duration_us; /* as stored: of what ended then; 0: a moment, or no time */
    int64_t took_us;     /* set here; -1: a moment without a duration */
    bool open;           /* set here: it still lasts, and took_us is until now */
};

/* Sorts by time (then run, then the order in which stages come) and fills in took_us and open.
 * now_us: wall clock. Clocks of hosts differ and may jump: a negative duration becomes 0. */
void timeline_durations(struct timeline_entry *v, size_t n, int64_t now_us);

#endif
