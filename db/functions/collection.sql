-- Collection of checkpoints; its journal lies in their own rows (0010).

-- Who holds a checkpoint: the bits of enum gc_why in master/core/gc_policy.h; p_is_next: it is what its live trial goes on
-- from. As a table, since that is written into the statement of who asks about thousands; few trials started from a
-- checkpoint, and few checkpoints are a model's. That one is set is said besides: then a plan for many finds those few in
-- their index (trials_warm_start), not in all trials.
CREATE OR REPLACE FUNCTION holds_besides(p_is_next boolean, p_uuid text, p_pinned_until timestamptz, p_kept boolean)
    RETURNS TABLE (held integer) LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN p_is_next THEN 8 ELSE 0 END
         + CASE WHEN NOT EXISTS (SELECT 1 FROM trials t WHERE t.warm_start_checkpoint = p_uuid AND t.warm_start_checkpoint IS NOT NULL) THEN 0
                WHEN EXISTS (SELECT 1 FROM trials t WHERE t.warm_start_checkpoint = p_uuid AND trial_is_live(t.state))
                THEN 16 + 32 ELSE 32 END
         + CASE WHEN p_pinned_until > now() THEN 64 ELSE 0 END
         + CASE WHEN p_kept THEN 128 ELSE 0 END
         + CASE WHEN p_uuid IN (SELECT v.checkpoint_uuid FROM model_versions v) THEN 256 ELSE 0 END
$$;

-- All of who holds it.
CREATE OR REPLACE FUNCTION checkpoint_holds(c checkpoints) RETURNS TABLE (held integer) LANGUAGE sql STABLE AS $$
    SELECT h.held FROM (SELECT c.state = 'COMPLETED' AND c.gc_step IS NULL
             AND EXISTS (SELECT 1 FROM trials t WHERE t.id = c.trial_id AND trial_is_live(t.state))
             AND NOT EXISTS (SELECT 1 FROM checkpoints k WHERE k.trial_id = c.trial_id AND k.state = 'COMPLETED'
                             AND k.gc_step IS NULL AND k.steps > c.steps) is_next OFFSET 0) n,
        LATERAL holds_besides(n.is_next, c.uuid, c.pinned_until, c.kept) h
$$;

-- The same of one.
CREATE OR REPLACE FUNCTION checkpoint_held(c checkpoints) RETURNS integer LANGUAGE sql STABLE AS $$
    SELECT held FROM checkpoint_holds(c)
$$;

-- Writes down that these shall go. p_mask: who can prevent it. p_all: all or none. Returns those that go with
-- held = 0, those that are held, and (held = -1) those that have nothing left to remove.
CREATE OR REPLACE FUNCTION gc_intend(p_uuids jsonb, p_mask integer, p_globs jsonb, p_rest_s bigint, p_all boolean)
RETURNS TABLE (r_uuid text, r_exp integer, r_held integer) LANGUAGE plpgsql AS $$
DECLARE
    asked jsonb;
    refused boolean;
BEGIN
    PERFORM 1 FROM checkpoints c WHERE c.uuid IN (SELECT jsonb_array_elements_text(p_uuids))
        ORDER BY c.uuid FOR UPDATE;
    SELECT coalesce(jsonb_object_agg(c.uuid, jsonb_build_array(c.experiment_id,
            CASE WHEN c.state NOT IN ('COMPLETED', 'PARTIALLY_DELETED') OR c.gc_step IS NOT NULL THEN -1
                 ELSE checkpoint_held(c) & p_mask END)), '{}')
        INTO asked FROM checkpoints c WHERE c.uuid IN (SELECT jsonb_array_elements_text(p_uuids));
    refused := p_all AND EXISTS (SELECT 1 FROM jsonb_each(asked) a WHERE (a.value->>1)::integer > 0);
    IF NOT refused THEN
        UPDATE checkpoints c SET gc_step = 'remove', gc_globs = p_globs, gc_rest_s = p_rest_s,
            gc_resources = c.resources, gc_next = now(), gc_tries = 0, kept = false
            FROM jsonb_each(asked) a WHERE a.key = c.uuid AND (a.value->>1)::integer = 0;
    END IF;
    RETURN QUERY SELECT a.key, (a.value->>0)::integer, (a.value->>1)::integer FROM jsonb_each(asked) a
        WHERE NOT refused OR (a.value->>1)::integer > 0 ORDER BY a.key;
END $$;

-- What a collecting task reports of a checkpoint's files, as the journal has it. While they rest, all can come back, and
-- with them their hashes.
CREATE OR REPLACE FUNCTION gc_report(p_uuid text, p_files jsonb) RETURNS void LANGUAGE sql AS $$
    UPDATE checkpoints c SET resources = p_files,
        bytes = (SELECT coalesce(sum(value::text::bigint), 0) FROM jsonb_each(p_files)),
        hashes = CASE WHEN p_files = '{}' AND (gc_step = 'rest' OR gc_step = 'remove' AND gc_globs IS NULL AND gc_rest_s > 0)
                THEN c.hashes
            ELSE (SELECT jsonb_object_agg(h.key, h.value) FROM jsonb_each(c.hashes) h WHERE p_files ? h.key) END,
        state = CASE WHEN p_files = '{}' THEN 'DELETED'
            WHEN (SELECT count(*) FROM jsonb_object_keys(p_files)) <
                 (SELECT count(*) FROM jsonb_object_keys(coalesce(gc_resources, resources)))
                THEN 'PARTIALLY_DELETED'
            WHEN gc_step = 'restore' THEN 'COMPLETED' ELSE c.state END,
        gc_step = CASE WHEN gc_step = 'remove' AND p_files = '{}' AND gc_globs IS NULL AND gc_rest_s > 0 THEN 'rest'
                       WHEN gc_step = 'rest' THEN 'rest' END,
        gc_until = CASE WHEN gc_step = 'remove' AND gc_rest_s > 0 THEN now() + gc_rest_s * interval '1 second'
                        WHEN gc_step = 'rest' THEN gc_until END,
        kept = kept OR (gc_step IS NOT DISTINCT FROM 'restore' AND p_files <> '{}')
    WHERE c.uuid = p_uuid AND (gc_step IS DISTINCT FROM 'rest' OR p_files = '{}')
$$;
