#include "db_exp_ended.h"

/* clang-format off */
#define MICROS(t) "coalesce((extract(epoch FROM " t ") * 1000000)::bigint, 0)"
/* The checkpoint that a trial goes on from is kept from being removed until the trial itself holds
 * it. */
static const char read_ended[] =
    "WITH e AS (SELECT * FROM experiments WHERE id = $1::integer), "
    "latest AS (SELECT DISTINCT ON (c.trial_id) c.trial_id, c.uuid, c.steps FROM checkpoints c "
    "WHERE c.experiment_id = $1::integer AND c.state = 'COMPLETED' AND c.gc_step IS NULL "
    "ORDER BY c.trial_id, c.steps DESC, c.report_time DESC), "
    "held AS (UPDATE checkpoints c SET pinned_until = "
    "greatest(pinned_until, now() + $2::bigint * interval '1 second') FROM latest l "
    "WHERE c.uuid = l.uuid AND c.state = 'COMPLETED' AND c.gc_step IS NULL RETURNING c.uuid) "
    "SELECT e.state, e.archived, "
    "(SELECT p.archived OR w.archived FROM projects p JOIN workspaces w ON w.id = p.workspace_id "
    "WHERE p.id = e.project_id), (SELECT count(*) FROM latest) > (SELECT count(*) FROM held), "
    "e.unmanaged, "
    "json_build_object('job_id', e.job_id, 'owner_id', e.owner_id, 'project_id', e.project_id, "
    "'parent_id', coalesce(e.parent_id, 0), 'config', e.config, "
    "'start_us', " MICROS("e.start_time") ", 'end_us', " MICROS("e.end_time") ", "
    "'progress', coalesce(e.progress, 0), 'pool', e.resource_pool, "
    "'priority', coalesce(e.priority, 0), 'weight', e.weight, "
    "'max_slots', coalesce(e.max_slots, -1), 'position', coalesce(e.queue_position, 0), "
    "'core', e.core::text, "
    "'events', (SELECT coalesce(json_agg(v.event::text ORDER BY v.seq), '[]') "
    "FROM search_events v WHERE v.experiment_id = e.id), "
    "'first_event', (SELECT coalesce(min(v.seq), 1) FROM search_events v "
    "WHERE v.experiment_id = e.id), "
    "'trials', (SELECT coalesce(json_agg(json_build_object('id', t.id, "
    "'request_id', t.request_id, 'task_id', t.task_id, 'hparams', t.hparams::text, "
    "'seed', t.seed, 'start_us', " MICROS("t.start_time") ", 'state', t.state, "
    "'run_id', t.run_id, 'restarts', t.restarts, 'end_us', " MICROS("t.end_time") ", "
    "'warm_start', t.warm_start_checkpoint, 'core', t.core::text, 'latest', l.uuid, "
    "'latest_steps', coalesce(l.steps, 0)) ORDER BY t.id), '[]') "
    "FROM trials t LEFT JOIN latest l ON l.trial_id = t.id WHERE t.experiment_id = e.id)) "
    "FROM e";
/* clang-format on */

void db_exp_ended(struct db *db, int64_t id, int64_t pin_s, db_cb *cb, void *arg)
{
    db_write(db, read_ended, db_i64_arg(db_i64_arg(DB_ARGS, id), pin_s), cb, arg);
}
