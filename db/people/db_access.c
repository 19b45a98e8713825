#include "db_access.h"

/* FOUND gives k, as it was asked, owner_id and workspace_id. */
#define ACCESS(found)                                                                              \
    "SELECT x.k, x.owner_id, o.username, w.user_id, w.name, "                                      \
    "roles_of($2::integer, x.workspace_id) FROM (" found                                           \
    ") x LEFT JOIN users o ON o.id = x.owner_id LEFT JOIN workspaces w ON w.id = x.workspace_id"
#define IDS "FROM jsonb_array_elements_text($1::jsonb) AS i(k) "
#define OF_EXPERIMENT(joins)                                                                       \
    ACCESS("SELECT k, e.owner_id, p.workspace_id " IDS joins                                       \
           "JOIN projects p ON p.id = e.project_id")

static const char *const statements[ACCESS_KINDS] = {
    [ACCESS_EXP] = OF_EXPERIMENT("JOIN experiments e ON e.id = k::bigint "),
    [ACCESS_TRIAL] = OF_EXPERIMENT("JOIN trials t ON t.id = k::bigint "
                                   "JOIN experiments e ON e.id = t.experiment_id "),
    [ACCESS_CKPT] = OF_EXPERIMENT("JOIN checkpoints c ON c.uuid = k "
                                  "JOIN experiments e ON e.id = c.experiment_id "),
    [ACCESS_JOB] = OF_EXPERIMENT("JOIN experiments e ON e.job_id = k "),
    [ACCESS_TASK] =
        OF_EXPERIMENT("JOIN LATERAL (SELECT experiment_id FROM trials WHERE task_id = k UNION "
                      "SELECT experiment_id FROM allocations WHERE task_id = k LIMIT 1) t ON true "
                      "JOIN experiments e ON e.id = t.experiment_id "),
    [ACCESS_ALLOC] = OF_EXPERIMENT("JOIN allocations a ON a.id = k "
                                   "JOIN experiments e ON e.id = a.experiment_id "),
    [ACCESS_WORKSPACE] = ACCESS("SELECT k, s.user_id owner_id, s.id workspace_id " IDS
                                "JOIN workspaces s ON s.id = k::bigint"),
    [ACCESS_PROJECT] = ACCESS("SELECT k, p.user_id owner_id, p.workspace_id " IDS
                              "JOIN projects p ON p.id = k::bigint"),
    [ACCESS_TEMPLATE] = ACCESS("SELECT k, t.user_id owner_id, t.workspace_id " IDS
                               "JOIN templates t ON t.name = k"),
    [ACCESS_MODEL] = ACCESS("SELECT k, m.user_id owner_id, m.workspace_id " IDS
                            "JOIN models m ON m.id = model_at(k)"),
    [ACCESS_USER] = ACCESS("SELECT k, u.id owner_id, NULL::integer workspace_id " IDS
                           "JOIN users u ON u.id = k::bigint"),
    [ACCESS_VIEW] = ACCESS("SELECT k, v.user_id owner_id, v.workspace_id " IDS
                           "JOIN page_views v ON v.id = k::bigint AND (v.user_id = $2::integer OR "
                           "v.workspace_id IS NOT NULL)"),
    [ACCESS_TOKEN] = ACCESS("SELECT k, t.user_id owner_id, NULL::integer workspace_id " IDS
                            "JOIN access_tokens t ON t.id = k::bigint"),
};

void db_access(struct db *db, enum db_access_kind kind, int64_t user_id, const char *ids, db_cb *cb,
               void *arg)
{
    db_query(db, statements[kind], db_i64_arg(db_str_arg(DB_ARGS, ids), user_id), cb, arg);
}
