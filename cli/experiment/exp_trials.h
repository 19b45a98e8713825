/* The trials of an experiment as a table: which, in which order, with which columns. */
#ifndef CLI_EXP_TRIALS_H
#define CLI_EXP_TRIALS_H

#include "cli.h"

/* How the searcher judges them. */
struct trials_judge {
    const char *metric; /* NULL: by nothing */
    bool larger_is_better;
    int64_t best_id; /* of all its trials, shown or not; 0: none */
};
/* Of trials, which are all there are; 0: none has a number. */
int64_t trials_best(const json_t *trials, const struct trials_judge *by);
/* key: "best", or a column, with '-' before it the other way round. A trial without a value comes
 * last, and equal ones by id. */
void trials_sort(json_t *trials, const char *key, const struct trials_judge *by);
/* By a column's name, else a hyperparameter ("net.lr"), else a metric of the best validation, else
 * the last report of a training metric.
 * Borrowed; NULL: it has none. */
const json_t *trials_value(const json_t *trial, const char *column, const struct trials_judge *by);
/* columns: names with commas; NULL: the usual ones. */
void trials_print(const json_t *trials, const char *columns, const struct trials_judge *by);
/* Of the best one: "* best", and whether the weights of that validation were kept, since a
 * checkpoint_policy may say no. Of another: that the searcher stopped it, or whether its checkpoint
 * is of another batch than its best validation. */
const char *trials_mark(const json_t *trial, bool is_best);
/* Gives the trials that the searcher stopped a "stopped": "after rung 1 of 2". rungs: the answer
 * about an experiment's rungs, with all trials. */
void trials_note_stopped(json_t *trials, const json_t *rungs);

/* The summary of each metric that these trials (an array) reported. */
void trials_print_metrics(const json_t *trials);

extern const struct opt experiment_trials_opts[];
DET_MUST int experiment_trials(struct cli *c, struct det_err *err);
/* As `det experiment describe` has them. */
void experiment_print_trials(struct cli *c, json_t *trials, const json_t *experiment);

#endif
