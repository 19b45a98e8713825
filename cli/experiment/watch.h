/* One screen of an experiment or a trial that a person leaves open. */
#ifndef CLI_WATCH_H
#define CLI_WATCH_H

#include "curves.h"

struct watch_view {
    const json_t *experiment;
    const json_t *trials;        /* those to show */
    int64_t total;               /* with those that were not asked for */
    const json_t *best;          /* trial; NULL: none yet */
    const char *why;             /* a sentence where something waits; NULL: nothing does */
    const struct curves *curves; /* of the searcher's metric */
    double seconds;              /* since the first look */
    const json_t *first;         /* what watch_note() kept */
    const char *metric;          /* asked for; NULL: the searcher's */
    int columns, rows;
    bool plain, coloured, keys; /* keys: say which one leaves */
};
/* Keeps in `first` what a trial's speed is measured from: its first report that was seen to come.
 * Of one that does not run, or began anew, what was before says nothing. */
void watch_note(const json_t *trial, double seconds, json_t *first);
/* The whole screen, every line of it no wider than the terminal. */
void watch_screen(const struct watch_view *v, struct buf *out);
/* One line about a trial, for where there is no screen. metric: as in the view. */
void watch_line(const json_t *trial, const json_t *experiment, const char *metric, struct buf *out);

/* Of a metric that no report of these trials has: which the first one has. */
void watch_absent(const json_t *trials, const char *metric, struct buf *out);

/* Is standard output a terminal that can show a screen? */
bool watch_has_screen(void);
extern const struct opt watch_opts[];
/* Shows an experiment until it ends, or until somebody leaves it; CLI exit code. */
DET_MUST int watch_of_experiment(struct cli *c, int64_t id, bool *ret_left, struct det_err *err);
DET_MUST int experiment_watch(struct cli *c, struct det_err *err);
DET_MUST int trial_watch(struct cli *c, struct det_err *err);

#endif
