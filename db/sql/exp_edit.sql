-- $1 the experiment; what is null stays: $2 name, $3 description, $4 notes, $5 labels, and what is put over the
-- configuration's checkpoint_storage ($6) and resources ($7).
UPDATE experiments
SET name = coalesce($2, name), description = coalesce($3, description), notes = coalesce($4, notes),
    labels = coalesce($5::jsonb, labels),
    config = config
        || jsonb_strip_nulls(jsonb_build_object('name', $2::text, 'description', $3::text, 'labels', $5::jsonb))
        || CASE WHEN $6::jsonb IS NULL THEN '{}'
                ELSE jsonb_build_object('checkpoint_storage', (config->'checkpoint_storage') || $6::jsonb) END
        || CASE WHEN $7::jsonb IS NULL THEN '{}'
                ELSE jsonb_build_object('resources', (config->'resources') || $7::jsonb) END
WHERE id = $1::bigint
RETURNING id
