/*
 * A profiler of a trial: recordings of whole batches, by a schedule, as Chrome traces.
 *
 * The schedule is torch.profiler.schedule's: after skip_first batches, rounds of `wait` (nothing),
 * `warmup` (listening, forgotten) and `active` batches (recorded), `repeat` times or for ever. A
 * recording begins where the batch before it ended, so the loading of its first batch is in it.
 *
 * The file is the Trace Event Format (chrome://tracing, Perfetto, TensorBoard's PyTorch profiler):
 * "X" events with microseconds, one row per thread; "C" events for memory.
 */
#ifndef PROFILE_H
#define PROFILE_H

#include "buf.h"
#include "det/err.h"
#include "map.h"
#include "span.h"
#include "vec.h"

struct profile_schedule {
    int64_t skip_first, wait, warmup, active, repeat; /* active >= 1; repeat 0: for ever */
};
enum profile_action { PROFILE_NONE, PROFILE_WARMUP, PROFILE_RECORD, PROFILE_RECORD_AND_SAVE };
/* What happens with batch number `step` (from 0). */
enum profile_action profile_action(const struct profile_schedule *s, int64_t step);

struct profile_event {
    enum span_cat cat;
    bool count; /* a number, else a span */
    int tid;
    uint32_t name, detail; /* in profile.texts; 0: none */
    int64_t start_ns, end_ns, value;
};

struct profile {
    struct span_listener listener; /* must stay the first member */
    struct profile_schedule schedule;
    bool shapes, memory;
    bool listening, recording;
    int64_t step;
    int64_t start_ns;      /* of the recording */
    int64_t step_start_ns; /* of the batch being recorded */
    int64_t last_value;    /* of the count told last; -1: none */
    VEC(struct profile_event) events;
    VEC(char *) texts; /* each once */
    struct map *text_ids;
    bool full; /* more than EVENTS_MAX: the rest is not recorded */
};

#define PROFILE_EVENTS_MAX ((size_t)4 << 20)

void profile_init(struct profile *p, const struct profile_schedule *s, bool shapes, bool memory,
                  bool waits);
void profile_finish(struct profile *p);
/* Before the first batch. */
void profile_start(struct profile *p);
/* After every batch. True: a recording is complete; write it, then profile_next(). */
bool profile_step(struct profile *p);
void profile_next(struct profile *p);
/* After the last batch. True: a recording was cut short after a batch or more; write it. */
bool profile_stop(struct profile *p);

/* The recording as a trace of process `pid`, called `process`. */
void profile_write_trace(struct profile *p, const char *process, int pid, struct buf *out);
/* A table in Markdown of what took the most time of its own, at most `rows` rows. */
void profile_write_table(struct profile *p, size_t rows, struct buf *out);
/* By thread, start, and the longer first: then every span comes before those inside it. */
void profile_sort(struct profile *p);
const char *profile_text(const struct profile *p, uint32_t id);

#endif
