-- Takes the deletions of $1 back, all or none: why one cannot be, in words.
WITH k AS (
    SELECT c.* FROM checkpoints c
    WHERE c.uuid IN (SELECT jsonb_array_elements_text($1::jsonb))
    ORDER BY c.uuid FOR UPDATE
), w AS (
    SELECT x.uuid, k.uuid IS NULL AS is_absent,
           CASE WHEN k.uuid IS NULL THEN 'not found'
                WHEN k.gc_step = 'restore' THEN NULL
                WHEN k.gc_step = 'remove' THEN 'it is being deleted just now; try again in a moment'
                WHEN k.gc_step = 'rest' AND k.gc_until > now() THEN NULL
                WHEN k.state <> 'DELETED' THEN 'it is not deleted'
                ELSE 'its files are gone: its time in the quarantine is over' END AS why
    FROM jsonb_array_elements_text($1::jsonb) x(uuid) LEFT JOIN k ON k.uuid = x.uuid
), up AS (
    UPDATE checkpoints c SET gc_step = 'restore', gc_next = now(), gc_tries = 0
    FROM w
    WHERE w.uuid = c.uuid AND c.gc_step = 'rest' AND NOT EXISTS (SELECT 1 FROM w WHERE why IS NOT NULL)
)
SELECT uuid, why, is_absent FROM w ORDER BY uuid
