-- $1 the project, which goes if nothing is in it: whether it is gone, whether it is the first, which stays, and how many
-- experiments are in it.
WITH old AS (
    SELECT id, (SELECT coalesce(sum(n), 0)::bigint FROM experiment_counts WHERE project_id = $1::bigint) held
    FROM projects WHERE id = $1::bigint FOR UPDATE
), gone AS (
    DELETE FROM projects p USING old WHERE p.id = old.id AND old.id <> 1 AND old.held = 0 RETURNING p.id
), counts AS (
    DELETE FROM experiment_counts c USING gone WHERE c.project_id = gone.id
), labels AS (
    DELETE FROM label_counts c USING gone WHERE c.project_id = gone.id
)
SELECT EXISTS (SELECT FROM gone), id = 1, held FROM old
