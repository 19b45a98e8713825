/* A core with a little world around it: agents that say hello, tasks that start and exit, time that
 * moves when told to. Effects of the last step are kept for a test to look at; core_check runs
 * after each. */
#ifndef TEST_WORLD_H
#define TEST_WORLD_H

/* cmocka wants these before it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core.h"
#include <string.h>

struct world {
    struct core *core;
    struct core_options o;
    struct core_effects fx; /* of the last step */
    int64_t now_ms;
    int64_t behind_us; /* the wall clock, from where it was */
    uint64_t request;
    bool keeps; /* set after world_init: the effects of all steps are kept, for world_restart */
    VEC(struct core_effects) kept;
    json_t *env;          /* world_env() read it last */
    bool revision_is_old; /* world_continue() says one less than it is */
};

void world_init(struct world *w, const struct core_options *o); /* NULL: the defaults */
void world_finish(struct world *w);

/* The core ends and is rebuilt from the rows of all steps; w->fx is what it does then. */
void world_restart(struct world *w);

/* One step; the time, and a request to be answered, are filled in. Returns the answer's code. */
int world_step(struct world *w, struct core_event ev);
/* An ended experiment goes on from the rows that were kept; over: merged into its configuration,
 * NULL: as it was. */
int world_continue(struct world *w, int64_t exp, const char *over);
const struct core_reply *world_reply(const struct world *w); /* of the last step */
void world_wait(struct world *w, int64_t ms);                /* moves the time, then ticks */

/* An agent of n CPU slots in pool "" says hello, running `tasks`. */
void world_hello(struct world *w, const char *agent, int slots, const struct core_task_in *tasks,
                 size_t tasks_n);
/* json is merged over a small single search of 100 batches. Returns the experiment's id. */
int64_t world_create(struct world *w, const char *json);
json_t *world_config(const char *json);

/* The i-th trial ever made has id i. */
struct core_trial_view world_trial(const struct world *w, int64_t id);
/* Its allocation's containers: all of them start, run and rendezvous. */
void world_run(struct world *w, int64_t trial);
/* The run completes its operation, acknowledges and exits 0. */
void world_complete(struct world *w, int64_t trial, double metric);
/* Container i of the trial's allocation ends. */
void world_exit(struct world *w, int64_t trial, size_t i, struct core_exit e);
int world_op(struct world *w, int64_t trial, int64_t length, double metric);

/* Effects of a kind in the last step. */
size_t world_count(const struct world *w, enum core_effect_kind kind);
const struct core_effect *world_effect(const struct world *w, enum core_effect_kind kind, size_t i);
/* Does a line of a task's log, of the last step, hold this? */
bool world_logged(struct world *w, const char *text);
/* A variable of the last step's first start; NULL: not set. Dies at the next call. */
const char *world_env(struct world *w, const char *name);

#define EXIT_CODE(n) ((struct core_exit){.reason = CORE_EXITED, .code = (n), .rank = (n) ? 0 : -1})
#define EXIT_LOST    ((struct core_exit){.reason = CORE_LOST, .rank = -1})

#endif
