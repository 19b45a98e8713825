/* The actions on experiments, one at a time: shared by the single and the bulk routes. Private to
 * api/. */
#ifndef API_API_EXP_ACT_H
#define API_API_EXP_ACT_H

#include "driver.h"
#include "shell.h"

enum exp_act {
    EXP_ACT_ACTIVATE,
    EXP_ACT_PAUSE,
    EXP_ACT_CANCEL,
    EXP_ACT_KILL,
    EXP_ACT_ARCHIVE,
    EXP_ACT_UNARCHIVE,
    EXP_ACT_DELETE,
    EXP_ACT_MOVE, /* to another project */
    EXP_ACT_COUNT
};
/* code 0, or DET_E* with its text. Runs once, later. */
typedef void exp_act_cb(void *arg, int code, const char *text);
/* project_id: EXP_ACT_MOVE. */
void exp_act(struct shell *sh, enum exp_act act, int64_t id, int64_t project_id, exp_act_cb *cb,
             void *arg);

/* Around a change of an experiment's row that the core does not make: nobody continues the
 * experiment meanwhile from what the row was before. write() does it; with a code below 0 it must
 * not, and there is nothing to end. */
void exp_edit_begin(struct shell *sh, int64_t id, driver_cb *write, void *arg);
void exp_edit_end(struct shell *sh, int64_t id);

#endif
