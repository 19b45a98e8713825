/* The trial state as JSON: what a checkpoint holds when the client writes no trial_state.pkl. */
#ifndef LOOP_STATE_H
#define LOOP_STATE_H

#include "loop.h"

#define LOOP_STATE_FILE "trial_state.json"

json_t *loop_state_to_json(const struct loop_state *s);
/* DET_ECORRUPT names the member that is missing, no integer or negative. */
DET_MUST int loop_state_from_json(const json_t *j, struct loop_state *ret, struct det_err *err);

#endif
