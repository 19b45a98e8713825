/* Curves of trials: fetched, and shown. */
#ifndef CLI_CURVES_H
#define CLI_CURVES_H

#include "cli.h"
#include "plot.h"

struct curves {
    struct plot_line *lines;
    size_t n;
};
/* One line a trial and group. group "": training and validation. The master keeps the highest and
 * lowest of each stretch where there are more than `most` points. */
DET_MUST int curves_get(struct cli *c, const int64_t *trials, size_t n, const char *metric,
                        const char *group, int most, struct curves *ret, struct det_err *err);
void curves_finish(struct curves *k);
/* Whether this terminal has no characters beyond ASCII, or is none. */
bool curves_are_plain(void);
/* Whether it has colours, and its user wants them (no-color.org). */
bool curves_are_coloured(void);
/* The searcher's metric of the trial's experiment. Caller frees; NULL: err. */
char *curves_metric(struct cli *c, int64_t trial, struct det_err *err);

extern const struct opt trial_plot_opts[];
DET_MUST int trial_plot(struct cli *c, struct det_err *err);

#endif
