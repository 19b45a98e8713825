/*
 * Log policies (docs/contract/trial.md 2): which lines of a log match the patterns of its
 * experiment. Patterns are compiled once per experiment, for the 256 experiments seen last.
 *
 * Bounds: of a line the first 8 KiB count; one batch may cost LOGPOLICY_STEPS, about 50 ms: lines
 * beyond that are not looked at, and the master's log says so. The configuration itself is bounded
 * when it is submitted (32 policies, 512 bytes each).
 */
#ifndef SHELL_LOGPOLICY_H
#define SHELL_LOGPOLICY_H

#include "core.h"
#include "db_logs.h"

#define LOGPOLICY_STEPS    INT64_C(50000000)
#define LOGPOLICY_HITS_MAX 64

struct logpolicies;
struct logpolicies *logpolicies_create(void);
void logpolicies_destroy(struct logpolicies *l); /* NULL ok */
/* The experiment's configuration has changed. */
void logpolicies_forget(struct logpolicies *l, int64_t exp_id);

struct logpolicy_hit {
    struct core_policy policy; /* its pattern lives until the next call */
    const char *agent_id;      /* of the line; may be NULL */
};
/* What the lines of one trial match: each policy once, one that excludes once for each agent that
 * follows another. policies: of the experiment's configuration (NULL: none). Returns how many of
 * ret are filled in. */
size_t logpolicies_match(struct logpolicies *l, int64_t exp_id, const json_t *policies,
                         const struct db_log_line *lines, size_t n,
                         struct logpolicy_hit ret[LOGPOLICY_HITS_MAX]);

#endif
