/* Tasks, allocations, slot use and users as the API shows them. */
#ifndef DB_DB_TASK_READ_H
#define DB_DB_TASK_READ_H

#include "db_list.h"

/* {"task"}, null when there is no such task; whether all of it has ended; its trial (null: none).
 */
enum db_task_read_col { TASK_READ_DOC, TASK_READ_ENDED, TASK_READ_TRIAL };
void db_task_read(struct db *db, const char *task_id, db_cb *cb, void *arg);
/* {"allocation"}. */
void db_allocation_read(struct db *db, const char *alloc_id, db_cb *cb, void *arg);
/* {"acceleratorData"}. */
void db_accelerators_read(struct db *db, const char *task_id, db_cb *cb, void *arg);

/* Sums over days of UTC from `from` on and before `until` ("2026-01-31"). A row: the period
 * ("2026-01-31", by month "2026-01"), what is summed ("total", "experiment_label", "resource_pool",
 * "username", "workspace"), its name ("" of total), slot seconds; sorted so. Of an experiment with
 * several labels each has all of it. The first `max` rows. */
enum db_use_col { USE_PERIOD, USE_KIND, USE_KEY, USE_SECONDS };
void db_use_sums(struct db *db, const char *from, const char *until, bool by_month, int64_t max,
                 db_cb *cb, void *arg);

/* Each run that had slots at some time from after_us on and before before_us, whole, the first
 * `max` by their start. Columns are named as the API's members (db_doc.h). */
enum db_use_run_col {
    USE_RUN_KIND,
    USE_RUN_START,
    USE_RUN_END, /* null: it runs */
    USE_RUN_EXP,
    USE_RUN_USERNAME,
    USE_RUN_USER,
    USE_RUN_LABELS, /* a JSON list */
    USE_RUN_LIFE,   /* seconds */
    USE_RUN_SLOTS,
    USE_RUN_ALLOC,
    USE_RUN_POOL,
    USE_RUN_WORKSPACE
};
void db_use_runs(struct db *db, int64_t after_us, int64_t before_us, int64_t max, db_cb *cb,
                 void *arg);
/* Forgets runs that ended longer ago, some of them; the sums stay. Rows written tells how many. */
void db_use_forget(struct db *db, int64_t days, db_cb *cb, void *arg);

struct db_user_filter {
    const char *name;  /* substring of the user's or display name, or NULL */
    int active, admin; /* 0, 1, -1: both */
};
/* enum db_list_col (state empty; doc user.v1.User). */
void db_user_list(struct db *db, const struct db_user_filter *f, const struct db_page *p, db_cb *cb,
                  void *arg);

#endif
