-- Version $2 of model $1; what is null stays: $3 name, $4 comment, $5 notes, $6 labels, $7 metadata.
-- Whether its model is archived, for then nothing changes, and the version.
WITH old AS (
    SELECT v.id, m.archived FROM models m JOIN model_versions v ON v.model_id = m.id
    WHERE m.id = model_at($1) AND v.version = $2::bigint FOR UPDATE
), up AS (
    UPDATE model_versions v
    SET name = coalesce($3, v.name), comment = coalesce($4, v.comment), notes = coalesce($5, v.notes),
        labels = coalesce($6::jsonb, v.labels), metadata = coalesce($7::json, v.metadata), updated_at = now()
    FROM old
    WHERE v.id = old.id AND NOT old.archived
    RETURNING model_version_doc(v, (SELECT model_doc(m) FROM models m WHERE m.id = v.model_id)) doc
)
SELECT (SELECT archived FROM old), (SELECT json_build_object('modelVersion', doc) FROM up)
