#include "edges.h"

#include "batch.h"
#include "model.h"
#include <assert.h>

#define EXP_STOPS                                                                                  \
    (BIT(EXP_STOPPING_COMPLETED) | BIT(EXP_STOPPING_CANCELED) | BIT(EXP_STOPPING_KILLED) |         \
     BIT(EXP_STOPPING_ERROR))
#define TRIAL_STOPS                                                                                \
    (BIT(TRIAL_STOPPING_COMPLETED) | BIT(TRIAL_STOPPING_CANCELED) | BIT(TRIAL_STOPPING_KILLED) |   \
     BIT(TRIAL_STOPPING_ERROR))
#define ALLOC_ENDS (BIT(ALLOC_TERMINATING) | BIT(ALLOC_TERMINATED))

/* From a state, the bits of those that may follow. The last ones have none. */
static const unsigned edges[MACHINE_COUNT][MACHINE_STATES_MAX] = {
    [MACHINE_EXP] =
        {
            [EXP_ACTIVE] = BIT(EXP_PAUSED) | EXP_STOPS,
            [EXP_PAUSED] = BIT(EXP_ACTIVE) | EXP_STOPS,
            [EXP_STOPPING_COMPLETED] = BIT(EXP_STOPPING_ERROR) | BIT(EXP_COMPLETED),
            [EXP_STOPPING_CANCELED] =
                BIT(EXP_STOPPING_KILLED) | BIT(EXP_STOPPING_ERROR) | BIT(EXP_CANCELED),
            [EXP_STOPPING_KILLED] = BIT(EXP_STOPPING_ERROR) | BIT(EXP_CANCELED),
            [EXP_STOPPING_ERROR] = BIT(EXP_ERROR),
            /* It goes on (exp_continue.c). */
            [EXP_COMPLETED] = BIT(EXP_ACTIVE),
            [EXP_CANCELED] = BIT(EXP_ACTIVE),
            [EXP_ERROR] = BIT(EXP_ACTIVE),
            /* Begun anew for one that ended, whose rows are known no more (gc.c). */
            [EXP_DELETING] = BIT(EXP_DELETED) | BIT(EXP_DELETE_FAILED),
        },
    [MACHINE_TRIAL] =
        {
            [TRIAL_ACTIVE] = BIT(TRIAL_PAUSED) | TRIAL_STOPS | BIT(TRIAL_COMPLETED),
            [TRIAL_PAUSED] = BIT(TRIAL_ACTIVE) | TRIAL_STOPS | BIT(TRIAL_COMPLETED),
            [TRIAL_STOPPING_COMPLETED] =
                BIT(TRIAL_STOPPING_KILLED) | BIT(TRIAL_STOPPING_ERROR) | BIT(TRIAL_COMPLETED),
            [TRIAL_STOPPING_CANCELED] =
                BIT(TRIAL_STOPPING_KILLED) | BIT(TRIAL_STOPPING_ERROR) | BIT(TRIAL_CANCELED),
            [TRIAL_STOPPING_KILLED] = BIT(TRIAL_STOPPING_ERROR) | BIT(TRIAL_CANCELED),
            [TRIAL_STOPPING_ERROR] = BIT(TRIAL_ERROR),
            /* Its experiment goes on. */
            [TRIAL_COMPLETED] = BIT(TRIAL_ACTIVE),
            [TRIAL_CANCELED] = BIT(TRIAL_ACTIVE),
            [TRIAL_ERROR] = BIT(TRIAL_ACTIVE),
        },
    [MACHINE_ALLOC] =
        {
            [ALLOC_PENDING] = BIT(ALLOC_ASSIGNED) | BIT(ALLOC_TERMINATED),
            [ALLOC_ASSIGNED] = BIT(ALLOC_STARTING) | BIT(ALLOC_RUNNING) | ALLOC_ENDS,
            [ALLOC_STARTING] = BIT(ALLOC_RUNNING) | ALLOC_ENDS,
            [ALLOC_RUNNING] = BIT(ALLOC_WAITING) | ALLOC_ENDS,
            [ALLOC_WAITING] = ALLOC_ENDS,
            [ALLOC_TERMINATING] = BIT(ALLOC_TERMINATED),
        },
    [MACHINE_CONTAINER] =
        {
            [ALLOC_ASSIGNED] = BIT(ALLOC_STARTING) | BIT(ALLOC_RUNNING) | BIT(ALLOC_TERMINATED),
            [ALLOC_STARTING] = BIT(ALLOC_RUNNING) | BIT(ALLOC_TERMINATED),
            [ALLOC_RUNNING] = BIT(ALLOC_TERMINATED),
        },
    [MACHINE_AGENT] =
        {
            [AGENT_ABSENT] = BIT(AGENT_UP) | BIT(AGENT_LOST),
            [AGENT_UP] = BIT(AGENT_LOST),
            [AGENT_LOST] = BIT(AGENT_UP) | BIT(AGENT_ABSENT),
        },
    [MACHINE_BATCH] =
        {
            [BATCH_REBUILDING] = BIT(BATCH_SENDING) | BIT(BATCH_PERFORMING),
            [BATCH_IDLE] = BIT(BATCH_GATHERING),
            [BATCH_GATHERING] = BIT(BATCH_SENDING) | BIT(BATCH_PERFORMING),
            [BATCH_SENDING] = BIT(BATCH_IN_FLIGHT),
            [BATCH_IN_FLIGHT] =
                BIT(BATCH_PERFORMING) | BIT(BATCH_HELD) | BIT(BATCH_SENDING) | BIT(BATCH_OVER),
            [BATCH_HELD] = BIT(BATCH_SENDING) | BIT(BATCH_OVER),
            [BATCH_PERFORMING] = BIT(BATCH_IDLE),
        },
};
static_assert(EXP_STATE_COUNT <= MACHINE_STATES_MAX && TRIAL_STATE_COUNT <= MACHINE_STATES_MAX &&
                  ALLOC_STATE_COUNT <= MACHINE_STATES_MAX &&
                  AGENT_STATE_COUNT <= MACHINE_STATES_MAX &&
                  BATCH_STATE_COUNT <= MACHINE_STATES_MAX,
              "a state without a row");

bool edges_may(enum machine m, unsigned from, unsigned to)
{
    return edges[m][from] & BIT(to);
}

unsigned edges_go(struct core *c, enum machine m, unsigned from, unsigned to)
{
    assert(edges_may(m, from, to));
    c->moved[m][from] |= BIT(to);
    return to;
}

bool edges_was_gone(const struct core *c, enum machine m, unsigned from, unsigned to)
{
    return c->moved[m][from] & BIT(to);
}
