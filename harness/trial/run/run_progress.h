/* What a person in front of a local run sees: a line for each report on stdout, and on a terminal a
 * bar beneath them. */
#ifndef RUN_PROGRESS_H
#define RUN_PROGRESS_H

#include "loop.h"

struct run_progress {
    bool bar; /* stdout is a terminal */
    int64_t began_ms, drawn_ms;
    int64_t began_batches; /* trained before this run; -1: not known yet */
    char *checkpoint;      /* uuid of the last one; NULL: none */
    int64_t checkpoint_steps;
};

/* The observer of a run; *p must outlive it. quiet: it only notes the checkpoints. */
struct loop_observer run_progress_observer(struct run_progress *p, bool quiet);
/* Takes the bar off the terminal. */
void run_progress_clear(struct run_progress *p);
void run_progress_finish(struct run_progress *p);

#endif
