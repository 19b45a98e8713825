/* An experiment that has ended, whole: what its continuation starts from. */
#ifndef DB_DB_EXP_ENDED_H
#define DB_DB_EXP_ENDED_H

#include "db.h"

/* All of one moment: state, archived, whether its project or workspace is archived, whether a
 * checkpoint to go on from is on its way out, whether it runs elsewhere, and the rows as JSON
 * {job_id, owner_id, .. config, core, events: [text..] from seq first_event, trials: [{id, ..
 * latest, latest_steps}..] by id}. Times in microseconds. The latest checkpoint of each trial is
 * kept from removal for pin_s seconds. No row when there is no such experiment. */
enum db_ended_col {
    ENDED_STATE,
    ENDED_ARCHIVED,
    ENDED_PLACE_ARCHIVED,
    ENDED_LEAVING,
    ENDED_UNMANAGED,
    ENDED_ROWS
};
void db_exp_ended(struct db *db, int64_t id, int64_t pin_s, db_cb *cb, void *arg);

#endif
