-- $1 the model; what is null stays: $2 name, $3 description, $4 notes, $5 labels, $6 metadata; $7 workspace, 0: stays.
-- Whether it is archived, for then nothing changes, and the model.
WITH old AS (
    SELECT m.id, m.archived FROM models m WHERE m.id = model_at($1) FOR UPDATE
), up AS (
    UPDATE models m
    SET name = coalesce($2, m.name), description = coalesce($3, m.description), notes = coalesce($4, m.notes),
        labels = coalesce($5::jsonb, m.labels), metadata = coalesce($6::json, m.metadata),
        workspace_id = coalesce(nullif($7::integer, 0), m.workspace_id), updated_at = now()
    FROM old
    WHERE m.id = old.id AND NOT old.archived
    RETURNING model_doc(m) doc
)
SELECT (SELECT archived FROM old), (SELECT json_build_object('model', doc) FROM up)
