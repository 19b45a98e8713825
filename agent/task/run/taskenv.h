/* The environment of the ranks (docs/contract/task.md 1) and the info files (2). */
#ifndef TASKENV_H
#define TASKENV_H

#include "taskspec.h"

/* What the rendezvous told; one node: itself. */
struct taskenv_nodes {
    const json_t *addrs; /* by rank of the node */
    int rank;
    const json_t *slots; /* counts, parallel to addrs */
};

/* Everything but what differs between ranks: an object of strings. In order: what the agent's own
 * environment may pass on, the master's and the user's variables, what only this host knows. New
 * reference. */
json_t *taskenv_common(const struct taskspec *s, const char *chief_addr);
/* Adds the rank's own variables (RANK, ...; DET_PROGRESS_FILE, DET_REPORT_SPOOL). local: 0.. */
void taskenv_add_rank(json_t *env, const struct taskspec *s, int local);
void taskenv_add_files(json_t *env, const struct taskspec *s, int local);
/* Where the determined package lies: ../lib/det/python of this program; NULL where it is not
 * installed. Caller frees. */
char *taskenv_package_dir(void);
/* "NAME=value" each, ends in NULL; free with taskenv_vector_destroy(). */
char **taskenv_vector(const json_t *env);
void taskenv_vector_destroy(char **v);

/* Writes cluster.json, trial.json, resources.json and rendezvous.json into DIR/info, as the task's
 * user. */
DET_MUST int taskenv_write_info(const struct taskspec *s, const json_t *env,
                                const struct taskenv_nodes *n, struct det_err *err);
/* Takes the configuration and the hyperparameters out where they are too long for a variable: who
 * needs them finds them in trial.json. */
void taskenv_leave_out_long(json_t *env);

#endif
